//! Texts about handlers and from them: the state of one in a sentence, with the same words everywhere; and JSON
//! responses, minified for storage.

use std::time::Duration;

use windrow_words::{Message, handler as say, list};

use crate::ids::WallMs;
use crate::items::verdict::{HandlerState, LastError, Paused, cut};

/// Time for which the last error is shown after it happened, while the handler answers.
const TOLD_FOR: Duration = Duration::from_secs(60);
/// Minimum time shown: calls that fail together take less than people could read, but not none.
const TOLD_AS_MIN: Duration = Duration::from_secs(1);
/// Maximum length of an example, in bytes.
const EXAMPLE_BYTES_MAX: usize = 160;
/// Shown in place of a code, if no call was answered.
const NO_ANSWER: &str = "no answer";

/// Describes the handler now; `None` if nothing went wrong recently.
pub fn sentence(state: &HandlerState, now: WallMs) -> Option<Message> {
    let error = state.error.as_ref();
    if let Some(outage) = state.outage {
        let lasting = now.since(outage.since);
        let next = state.next_probe_in.map(say::next_probe);
        let down = match error {
            // Without a next probe, the handler responds again.
            Some(error) if next.is_none() => say::was_down_why(lasting, at_item(error)),
            Some(error) => say::down_why(lasting, at_item(error)),
            // For a run that can't be asked, only the outage is known.
            None => say::down(lasting),
        };
        return list::all([down].into_iter().chain(next).chain(judged(state)));
    }
    if let Some(paused) = &state.paused {
        return Some(pause(paused));
    }
    let error = error.filter(|error| now.since(error.at) <= TOLD_FOR || state.held > 0)?;
    let lasting = error.at.since(error.since).max(TOLD_AS_MIN);
    let failed = say::failed(error.count, lasting, at_item(error));
    list::all([failed].into_iter().chain(judged(state)))
}

/// Subject of a sentence, without what changes on its own between two looks: times, counts, the item that failed
/// last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Set if the handler doesn't answer.
    pub is_down: bool,
    /// Set if the handler asked to wait.
    pub is_paused: bool,
    /// Code of the last error.
    pub code: Option<String>,
    /// Set if the sentence names items that can't be compared with others, or that only people can judge.
    pub is_about_items: bool,
    /// Set if the next call is a probe for an answer.
    pub is_probed: bool,
}

/// Returns the current subject of [`sentence`].
pub fn subject(state: &HandlerState, now: WallMs) -> Option<Subject> {
    sentence(state, now)?;
    Some(Subject {
        is_down: state.outage.is_some(),
        is_paused: state.paused.is_some(),
        code: state.error.as_ref().map(|error| error.code.to_string()),
        is_about_items: state.unjudged > 0 || (state.held > 0 && state.judged_in.is_some()),
        is_probed: state.outage.is_some() && state.next_probe_in.is_some(),
    })
}

impl Subject {
    /// Describes the subject in a few words, for readers of the sentence.
    pub fn brief(&self) -> Message {
        let code = self.code.as_deref().unwrap_or(NO_ANSWER);
        match self {
            Subject { is_down: true, .. } => say::is_down(code),
            Subject { is_paused: true, .. } => say::asks_to_wait(),
            _ => say::calls_fail(code),
        }
    }
}

fn pause(paused: &Paused) -> Message {
    match &paused.said {
        Some(said) => say::paused_why(cut(said, EXAMPLE_BYTES_MAX), paused.left),
        None => say::paused(paused.left),
    }
}

fn at_item(error: &LastError) -> Message {
    let example = cut(&error.example, EXAMPLE_BYTES_MAX);
    say::at_item(error.code.clone(), error.index.0.to_string(), example)
}

/// Describes the items that are tried without others to compare them with: how often, until when, and what shortens
/// that.
fn judged(state: &HandlerState) -> Option<Message> {
    if state.unjudged > 0 {
        return Some(say::unjudged(state.unjudged));
    }
    let wait = state.judged_in.filter(|_| state.held > 0)?;
    let failing = failing(state);
    Some(match state.held_tries {
        _ if wait.is_zero() => say::until_proven(failing),
        0 => say::result_in(failing, wait),
        tries => say::result_after(failing, tries, wait),
    })
}

/// Names the held items, as far as they are known.
fn failing(state: &HandlerState) -> Message {
    let named: Vec<String> = state.held_items.iter().map(|item| item.0.to_string()).collect();
    let dots = if state.held > named.len() as u64 {
        ", …"
    } else {
        ""
    };
    match named.as_slice() {
        [] => say::some_items(state.held),
        [one] if state.held == 1 => say::one_item(one),
        all => say::named_items(state.held, all.join(", ") + dots),
    }
}

/// Removes the white space between JSON tokens. Numbers and strings stay as they were written.
pub(crate) fn minified(json: &str) -> String {
    let (mut in_text, mut escaped) = (false, false);
    json.chars()
        .filter(|c| {
            let is_space = !in_text && matches!(c, ' ' | '\t' | '\n' | '\r');
            match c {
                _ if escaped => escaped = false,
                '\\' if in_text => escaped = true,
                '"' => in_text = !in_text,
                _ => {}
            }
            !is_space
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::ids::ItemIndex;
    use crate::items::verdict::{FailureClass, Outage};

    fn error(code: &'static str) -> LastError {
        let (since, at) = (WallMs(1_000), WallMs(41_000));
        let example = "connection refused".to_owned();
        let class = FailureClass::Unreachable;
        LastError {
            class,
            code: Cow::Borrowed(code),
            example,
            index: ItemIndex(7),
            count: 12,
            since,
            at,
        }
    }

    fn said(state: &HandlerState, now: i64) -> String {
        sentence(state, WallMs(now)).expect("it is told").to_string()
    }

    #[test]
    fn a_pause_says_what_the_handler_answered_and_when_it_ends() {
        let mut state = HandlerState {
            paused: Some(Paused {
                left: Duration::from_millis(18_900),
                said: Some("HTTP_429: quota used".to_owned()),
            }),
            ..HandlerState::default()
        };
        assert_eq!(
            said(&state, 0),
            "the handler asks to wait (HTTP_429: quota used); calls resume in 18s"
        );
        if let Some(paused) = &mut state.paused {
            paused.said = None;
        }
        assert_eq!(said(&state, 0), "the handler asks to wait; calls resume in 18s");
    }

    #[test]
    fn an_outage_says_since_when_why_and_when_it_is_tried_next() {
        let state = HandlerState {
            outage: Some(Outage {
                since: WallMs(1_000),
                probes: 4,
            }),
            next_probe_in: Some(Duration::from_millis(8_900)),
            error: Some(error("CONNECT")),
            ..HandlerState::default()
        };
        assert_eq!(
            said(&state, 41_000),
            "handler down for 40s (CONNECT at item 7: connection refused); next probe in 8.9s"
        );
    }

    #[test]
    fn what_a_sentence_is_about_stays_while_only_times_counts_and_items_change() {
        let mut state = HandlerState {
            outage: Some(Outage {
                since: WallMs(1_000),
                probes: 4,
            }),
            next_probe_in: Some(Duration::from_millis(8_900)),
            error: Some(error("CONNECT")),
            ..HandlerState::default()
        };
        let at = |state: &HandlerState, now| subject(state, WallMs(now)).expect("an outage");
        let first = at(&state, 41_000);
        assert_eq!(first.brief().to_string(), "handler down (CONNECT)");
        (state.next_probe_in, state.error) = (Some(Duration::ZERO), Some(error("CONNECT")));
        state.error.as_mut().expect("an error").index = ItemIndex(9);
        assert_eq!(at(&state, 47_000), first);
        state.error = Some(error("TIMEOUT"));
        assert_ne!(at(&state, 47_000), first);
        (state.error, state.next_probe_in) = (Some(error("CONNECT")), None);
        assert_ne!(at(&state, 47_000), first, "it answers again");
        assert_eq!(subject(&HandlerState::default(), WallMs(0)), None);
    }

    #[test]
    fn where_only_people_can_say_that_it_is_the_items_they_hear_how() {
        let state = HandlerState {
            outage: Some(Outage {
                since: WallMs(1_000),
                probes: 4,
            }),
            next_probe_in: Some(Duration::from_millis(8_900)),
            unjudged: 2,
            ..HandlerState::default()
        };
        assert_eq!(
            said(&state, 41_000),
            "handler down for 40s; next probe in 8.9s; 2 items left that got only 502 or 503; a \
             `judge_after` of 0s fails them now"
        );
    }

    #[test]
    fn an_error_is_told_for_a_minute_and_then_no_more() {
        let state = HandlerState {
            error: Some(error("HTTP_400")),
            ..HandlerState::default()
        };
        assert_eq!(
            said(&state, 42_000),
            "12 calls failed in 40s, the last with HTTP_400 at item 7: connection refused"
        );
        assert_eq!(sentence(&state, WallMs(102_000)), None);
        let mut at_once = error("HTTP_400");
        at_once.since = at_once.at;
        let state = HandlerState {
            error: Some(at_once),
            ..HandlerState::default()
        };
        let told = said(&state, 42_000);
        assert!(told.starts_with("12 calls failed in 1s, "), "{told}");
        assert_eq!(sentence(&HandlerState::default(), WallMs(0)), None);
    }

    #[test]
    fn items_that_are_tried_again_are_named_with_their_tries_and_the_setting_that_ends_it() {
        let of = |items: &[u64], held: u64, tries: u32| {
            let state = HandlerState {
                error: Some(error("DIED")),
                held,
                held_items: items.iter().copied().map(ItemIndex).collect(),
                held_tries: tries,
                judged_in: Some(Duration::from_secs(597)),
                ..HandlerState::default()
            };
            let sight = crate::handler::sight::HandlerSight::of([("n1", &state)], WallMs(50_000));
            let said = sight.text().expect("a text").to_string();
            let (_, judged) = said.split_once("; ").expect("what is judged");
            judged.to_owned()
        };
        assert_eq!(
            of(&[7], 1, 2),
            "item 7 keeps failing; 2 more attempts each, final result in 9m 57s; a shorter `judge_after` decides sooner"
        );
        let many = of(&[7, 9, 12], 43, 1);
        assert!(
            many.starts_with(
                "43 items keep failing (7, 9, 12, …); 1 more attempt each, final result in 9m 57s"
            ),
            "{many}"
        );
        assert!(of(&[7, 9], 2, 0).starts_with("2 items keep failing (7, 9); final result in 9m 57s"));
        assert!(
            of(&[], 5, 3).starts_with("5 items keep failing; 3 more"),
            "an older node names none"
        );
    }
}
