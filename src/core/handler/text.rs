//! Texts about handlers and from them: the state of one in a sentence, with the same words everywhere; and JSON
//! responses, minified for storage.

use std::time::Duration;

use crate::ids::WallMs;
use crate::items::verdict::{HandlerState, LastError, Paused, cut};

/// Time for which the last error is shown after it happened, while the handler answers.
const TOLD_FOR: Duration = Duration::from_secs(60);
/// Minimum time shown: calls that fail together take less than people could read, but not none.
const TOLD_AS_MIN: Duration = Duration::from_secs(1);
/// Maximum length of an example, in bytes.
const EXAMPLE_BYTES_MAX: usize = 160;

/// Describes the handler now; `None` if nothing went wrong recently.
pub fn sentence(state: &HandlerState, now: WallMs) -> Option<String> {
    let error = state.error.as_ref();
    let said = error.map(said);
    if let Some(outage) = state.outage {
        let mut text = format!("handler down for {}", seconds(now.since(outage.since)));
        text += &said.map(|said| format!(" ({said})")).unwrap_or_default();
        text += &match state.next_probe_in {
            Some(wait) => format!("; next probe in {}", seconds(wait)),
            // For a run that can't be asked, only the outage is known.
            None if error.is_none() => String::new(),
            None => "; it answers again, the rate grows".to_owned(),
        };
        return Some(text + &judged(state));
    }
    if let Some(paused) = &state.paused {
        return Some(pause(paused));
    }
    let error = error.filter(|error| now.since(error.at) <= TOLD_FOR || state.held > 0)?;
    let lasting = seconds(error.at.since(error.since).max(TOLD_AS_MIN));
    let calls = if error.count == 1 { "call" } else { "calls" };
    let times = format!("{} {calls} failed in {lasting}", error.count);
    Some(format!(
        "{}, the last with {}{}",
        times,
        self::said(error),
        judged(state)
    ))
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
    pub fn brief(&self) -> String {
        let code = self.code.as_deref().unwrap_or("no answer");
        match self {
            Subject { is_down: true, .. } => format!("handler down ({code})"),
            Subject { is_paused: true, .. } => "the handler asks to wait".to_owned(),
            _ => format!("calls fail ({code})"),
        }
    }
}

fn pause(paused: &Paused) -> String {
    let why = paused
        .said
        .as_ref()
        .map_or_else(String::new, |said| format!(" ({})", cut(said, EXAMPLE_BYTES_MAX)));
    format!(
        "the handler asks to wait{why}; it goes on in {}",
        seconds(paused.left)
    )
}

fn said(error: &LastError) -> String {
    format!(
        "{} at item {}: {}",
        error.code,
        error.index.0,
        cut(&error.example, EXAMPLE_BYTES_MAX)
    )
}

/// Describes the items that are tried without others to compare them with: how often, until when, and what shortens
/// that.
fn judged(state: &HandlerState) -> String {
    if state.unjudged > 0 {
        let (items, them) = match state.unjudged {
            1 => ("item is", "it"),
            _ => ("items are", "them"),
        };
        let left = state.unjudged;
        return format!(
            "; {left} {items} left, for which nobody was ever there: if it is {them}, --judge-after 0s gives {them} up"
        );
    }
    let Some(wait) = state.judged_in.filter(|_| state.held > 0) else {
        return String::new();
    };
    let (them, they) = match state.held {
        1 => ("it", "it is"),
        _ => ("them", "each is"),
    };
    let times = match state.held_tries {
        0 => String::new(),
        1 => "once more ".to_owned(),
        tries => format!("{tries} times more "),
    };
    if wait.is_zero() {
        let held = held(state);
        return format!(
            "; {held} failed each time, and nothing else is left to compare {them} with: {they} called until it can't be chance"
        );
    }
    format!(
        "; {} failed each time, and nothing else is left to compare {them} with: {they} tried {times}and judged in {} (a \
         shorter --judge-after judges sooner)",
        held(state),
        seconds(wait)
    )
}

/// Formats the held items: `item 7`, `items 7 and 9`, `items 7, 9, 12 and 40 more`.
fn held(state: &HandlerState) -> String {
    let named: Vec<String> = state.held_items.iter().map(|item| item.0.to_string()).collect();
    let more = state.held.saturating_sub(named.len() as u64);
    let noun = if state.held == 1 { "item" } else { "items" };
    match (named.as_slice(), more) {
        ([], count) => format!("{count} {noun}"),
        ([one], 0) => format!("{noun} {one}"),
        ([first @ .., last], 0) => format!("{noun} {} and {last}", first.join(", ")),
        (all, more) => format!("{noun} {} and {more} more", all.join(", ")),
    }
}

/// Formats the time of an outage: `40s`, `47m 13s`, `3h 20m`.
pub(super) fn seconds(span: Duration) -> String {
    let seconds = span.as_secs();
    let (larger, smaller) = match seconds {
        0..120 => return format!("{seconds}s"),
        120..7200 => ((seconds / 60, "m"), (seconds % 60, "s")),
        _ => ((seconds / 3600, "h"), (seconds % 3600 / 60, "m")),
    };
    let rest = if smaller.0 > 0 {
        format!(" {}{}", smaller.0, smaller.1)
    } else {
        String::new()
    };
    format!("{}{}{rest}", larger.0, larger.1)
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

    #[test]
    fn a_pause_says_what_the_handler_answered_and_when_it_ends() {
        let mut state = HandlerState {
            paused: Some(Paused {
                left: Duration::from_millis(18_900),
                said: Some("HTTP_429: quota used".to_owned()),
            }),
            ..HandlerState::default()
        };
        let told = sentence(&state, WallMs(0));
        assert_eq!(
            told.as_deref(),
            Some("the handler asks to wait (HTTP_429: quota used); it goes on in 18s")
        );
        if let Some(paused) = &mut state.paused {
            paused.said = None;
        }
        let told = sentence(&state, WallMs(0));
        assert_eq!(
            told.as_deref(),
            Some("the handler asks to wait; it goes on in 18s")
        );
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
            sentence(&state, WallMs(41_000)).as_deref(),
            Some("handler down for 40s (CONNECT at item 7: connection refused); next probe in 8s")
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
        assert_eq!(first.brief(), "handler down (CONNECT)");
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
            sentence(&state, WallMs(41_000)).as_deref(),
            Some(
                "handler down for 40s; next probe in 8s; 2 items are left, for which nobody was ever there: if it is \
                 them, --judge-after 0s gives them up"
            )
        );
    }

    #[test]
    fn a_long_outage_is_told_in_units_that_people_read() {
        let told = [0, 119, 120, 2833, 7199, 7200, 12_000].map(|secs| seconds(Duration::from_secs(secs)));
        assert_eq!(told, ["0s", "119s", "2m", "47m 13s", "119m 59s", "2h", "3h 20m"]);
    }

    #[test]
    fn an_error_is_told_for_a_minute_and_then_no_more() {
        let state = HandlerState {
            error: Some(error("HTTP_400")),
            ..HandlerState::default()
        };
        assert_eq!(
            sentence(&state, WallMs(42_000)).as_deref(),
            Some("12 calls failed in 40s, the last with HTTP_400 at item 7: connection refused")
        );
        assert_eq!(sentence(&state, WallMs(102_000)), None);
        let mut at_once = error("HTTP_400");
        at_once.since = at_once.at;
        let state = HandlerState {
            error: Some(at_once),
            ..HandlerState::default()
        };
        let told = sentence(&state, WallMs(42_000)).expect("it is told");
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
            let said = sight.text().expect("a text");
            let (_, judged) = said.split_once("; ").expect("what is judged");
            judged.to_owned()
        };
        assert_eq!(
            of(&[7], 1, 2),
            "item 7 failed each time, and nothing else is left to compare it with: it is tried 2 times more and \
             judged in 9m 57s (a shorter --judge-after judges sooner)"
        );
        let many = of(&[7, 9, 12], 43, 1);
        assert!(
            many.starts_with("items 7, 9, 12 and 40 more failed each time")
                && many.contains("each is tried once more and judged in 9m 57s"),
            "{many}"
        );
        assert!(of(&[7, 9], 2, 0).starts_with("items 7 and 9 failed"));
        assert!(
            of(&[], 5, 3).starts_with("5 items failed"),
            "an older node names none"
        );
    }
}
