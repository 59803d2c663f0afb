//! State of a task's handler, combined from its runs on all nodes.

use windrow_words::{Message, handler as say, list};

use crate::handler::text::sentence;
use crate::ids::WallMs;
use crate::items::verdict::{HandlerState, LastError, Outage};
use std::time::Duration;

/// Handler of a task, as its runs see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandlerSight {
    /// State of the runs for which it is down, if any; otherwise of all runs.
    pub state: HandlerState,
    /// Nodes for which it is down.
    pub down_on: Vec<String>,
    /// True if other runs of the task reach it.
    pub is_up_elsewhere: bool,
    /// Time of this observation.
    pub at: WallMs,
}

impl HandlerSight {
    /// Combines what runs see, each with its node.
    pub fn of<'a>(runs: impl IntoIterator<Item = (&'a str, &'a HandlerState)>, at: WallMs) -> HandlerSight {
        let (down, up): (Vec<_>, Vec<_>) = runs.into_iter().partition(|(_, state)| state.outage.is_some());
        let mut down_on: Vec<String> = down.iter().map(|(node, _)| (*node).to_owned()).collect();
        down_on.sort_unstable();
        down_on.dedup();
        let is_up_elsewhere = !down.is_empty() && !up.is_empty();
        let states = if down.is_empty() { up } else { down };
        let state = together(states.into_iter().map(|(_, state)| state));
        HandlerSight {
            state,
            down_on,
            is_up_elsewhere,
            at,
        }
    }

    /// Returns the time of the next probe, rounded to whole seconds so that it doesn't move with each look.
    pub fn next_probe_at(&self) -> Option<WallMs> {
        let due = self.at.0 + i64::try_from(self.state.next_probe_in?.as_millis()).unwrap_or(i64::MAX / 2);
        Some(WallMs((due + 500).div_euclid(1000) * 1000))
    }

    /// Describes the state in one sentence, if there is something to say.
    pub fn text(&self) -> Option<Message> {
        let text = sentence(&self.state, self.at)?;
        Some(match self.is_up_elsewhere {
            true => list::both(text, say::down_on(self.down_on.join(", "))),
            false => text,
        })
    }
}

/// Combines what several runs see.
pub fn together<'a>(states: impl IntoIterator<Item = &'a HandlerState>) -> HandlerState {
    let mut all = HandlerState::default();
    for state in states {
        all.contacted |= state.contacted;
        all.held += state.held;
        all.held_items.extend(&state.held_items);
        all.held_tries = all.held_tries.max(state.held_tries);
        all.unjudged += state.unjudged;
        all.judged_in = sooner(all.judged_in, state.judged_in);
        all.next_probe_in = sooner(all.next_probe_in, state.next_probe_in);
        all.outage = match (all.outage, state.outage) {
            (Some(one), Some(other)) => Some(Outage {
                since: one.since.min(other.since),
                probes: one.probes.saturating_add(other.probes),
            }),
            (one, other) => one.or(other),
        };
        all.paused = match (all.paused, &state.paused) {
            (Some(one), Some(other)) if other.left > one.left => Some(other.clone()),
            (one, other) => one.or_else(|| other.clone()),
        };
        all.error = match (all.error, &state.error) {
            (Some(one), Some(other)) => Some(newest(one, other)),
            (one, other) => one.or_else(|| other.clone()),
        };
    }
    all
}

fn sooner(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    [one, other].into_iter().flatten().min()
}

/// Returns the later of two errors, with the counts of both.
fn newest(one: LastError, other: &LastError) -> LastError {
    let (count, since) = (one.count + other.count, one.since.min(other.since));
    let later = if other.at > one.at { other.clone() } else { one };
    LastError {
        count,
        since,
        ..later
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::ids::ItemIndex;
    use crate::items::verdict::FailureClass;

    fn state(code: &'static str, down_since: Option<i64>, at: i64) -> HandlerState {
        let error = LastError {
            class: FailureClass::Unreachable,
            code: Cow::Borrowed(code),
            example: format!("said at {at}"),
            index: ItemIndex(1),
            count: 2,
            since: WallMs(at - 1_000),
            at: WallMs(at),
        };
        HandlerState {
            outage: down_since.map(|since| Outage {
                since: WallMs(since),
                probes: 3,
            }),
            next_probe_in: down_since.map(|since| Duration::from_millis(since.unsigned_abs())),
            error: Some(error),
            ..HandlerState::default()
        }
    }

    #[test]
    fn runs_that_see_the_same_are_told_as_one() {
        let (one, other) = (
            state("CONNECT", Some(5_000), 9_000),
            state("CONNECT", Some(4_000), 8_000),
        );
        let sight = HandlerSight::of([("n2", &one), ("n1", &other), ("n1", &other)], WallMs(10_000));
        let error = sight.state.error.clone().expect("an error");
        assert_eq!(
            (error.count, error.since, error.at),
            (6, WallMs(7_000), WallMs(9_000))
        );
        assert_eq!(
            sight.state.outage,
            Some(Outage {
                since: WallMs(4_000),
                probes: 9
            })
        );
        assert_eq!(
            (sight.down_on.join(","), sight.next_probe_at()),
            ("n1,n2".to_owned(), Some(WallMs(14_000)))
        );
        let text = "handler down for 6s (CONNECT at item 1: said at 9000); next probe in 4s";
        assert_eq!(sight.text().expect("a text").to_string(), text);
    }

    #[test]
    fn what_runs_count_is_one_sum_whatever_failed_last() {
        let (one, other) = (state("HTTP_422", None, 8_000), state("HTTP_500", None, 9_000));
        let text = HandlerSight::of([("n1", &one), ("n2", &other)], WallMs(10_000)).text();
        assert_eq!(
            text.expect("a text").to_string(),
            "4 calls failed in 2s, the last with HTTP_500 at item 1: said at 9000"
        );
    }

    #[test]
    fn where_one_node_only_does_not_reach_it_that_is_said() {
        let (down, up) = (
            state("CONNECT", Some(5_000), 8_000),
            state("HTTP_422", None, 9_900),
        );
        let sight = HandlerSight::of([("n1", &up), ("n2", &down)], WallMs(10_000));
        let text = sight.text().expect("a text").to_string();
        assert!(text.starts_with("handler down for 5s (CONNECT"), "{text}");
        assert!(text.ends_with("; down for n2, other nodes reach it"), "{text}");
        let sight = HandlerSight::of([("n1", &up)], WallMs(10_000));
        assert!(sight.down_on.is_empty() && !sight.is_up_elsewhere);
        assert!(
            sight
                .text()
                .is_some_and(|text| text.to_string().contains("HTTP_422")),
            "{sight:?}"
        );
    }
}
