//! Log lines of a run about its handler: when a code first appears and how often it occurs, when an outage begins and
//! when it ends. Bounded, however often calls fail.

use std::time::Duration;

use windrow_words::{Message, handler as say, list};

use crate::ids::{ItemIndex, WallMs};
use crate::items::verdict::{HandlerState, LastError, Outage};

/// Code of the line for the beginning of an outage.
pub const DOWN: &str = "HANDLER_DOWN";
/// Code of the line for the end of an outage.
pub const BACK: &str = "HANDLER_BACK";
/// Interval at which the calls of a recurring code are counted in the log.
const COUNT_EVERY: Duration = Duration::from_secs(60);
/// Maximum number of codes of a run that get lines.
const CODES_MAX: usize = 20;

/// Line for the log of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Code of the failure, or [`DOWN`] or [`BACK`].
    pub code: String,
    /// Item that the line is about.
    pub index: Option<ItemIndex>,
    /// Message for people, one sentence.
    pub message: Message,
    /// True if the line reports an improvement.
    pub is_good: bool,
}

/// State of what was logged so far.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    outage: Option<Outage>,
    codes: Vec<LoggedCode>,
    are_codes_left_out: bool,
}

#[derive(Clone, Debug)]
struct LoggedCode {
    code: String,
    count: u64,
    at: WallMs,
}

impl Journal {
    /// Returns the lines that are new since the last call.
    pub fn look(&mut self, state: &HandlerState, errors: &[LastError], now: WallMs) -> Vec<Entry> {
        let mut entries: Vec<Entry> = errors
            .iter()
            .filter_map(|error| self.on_error(error, now))
            .collect();
        entries.extend(self.on_outage(state, now));
        entries
    }

    fn on_error(&mut self, error: &LastError, now: WallMs) -> Option<Entry> {
        let Some(told) = self.codes.iter_mut().find(|told| told.code == error.code) else {
            return self.on_new_code(error, now);
        };
        // A count smaller than before has started anew.
        let before = if error.count < told.count { 0 } else { told.count };
        let (more, lasting) = (error.count - before, now.since(told.at));
        if more == 0 || lasting < COUNT_EVERY {
            return None;
        }
        (told.count, told.at) = (error.count, now);
        Some(of(error, say::more_failed(more, lasting, &error.example)))
    }

    fn on_new_code(&mut self, error: &LastError, now: WallMs) -> Option<Entry> {
        if self.codes.len() >= CODES_MAX {
            let is_first = !std::mem::replace(&mut self.are_codes_left_out, true);
            let message = say::no_more_codes(error.code.clone(), &error.example);
            return is_first.then(|| of(error, message));
        }
        self.codes.push(LoggedCode {
            code: error.code.clone().into_owned(),
            count: error.count,
            at: now,
        });
        Some(of(error, list::quoted(&error.example)))
    }

    fn on_outage(&mut self, state: &HandlerState, now: WallMs) -> Option<Entry> {
        let before = std::mem::replace(&mut self.outage, state.outage);
        match (before, state.outage) {
            (None, Some(outage)) => Some(down(state, outage, now)),
            (Some(outage), None) => {
                let message = say::back(now.since(outage.since), outage.probes);
                Some(Entry {
                    code: BACK.to_owned(),
                    index: None,
                    message,
                    is_good: true,
                })
            }
            _ => None,
        }
    }
}

fn down(state: &HandlerState, outage: Outage, now: WallMs) -> Entry {
    let lasting = now.since(outage.since);
    let (message, index) = match &state.error {
        Some(error) => (
            say::no_response_why(lasting, error.code.clone(), &error.example),
            Some(error.index),
        ),
        None => (say::no_response(lasting), None),
    };
    Entry {
        code: DOWN.to_owned(),
        index,
        message,
        is_good: false,
    }
}

fn of(error: &LastError, message: Message) -> Entry {
    Entry {
        code: error.code.clone().into_owned(),
        index: Some(error.index),
        message,
        is_good: false,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::items::verdict::FailureClass;

    fn error(code: String, count: u64) -> LastError {
        let (class, index) = (FailureClass::Unreachable, ItemIndex(3));
        let (code, example) = (Cow::Owned(code), "refused".to_owned());
        LastError {
            class,
            code,
            example,
            index,
            count,
            since: WallMs(0),
            at: WallMs(0),
        }
    }

    fn told(entries: &[Entry]) -> Vec<(&str, String)> {
        entries
            .iter()
            .map(|entry| (entry.code.as_str(), entry.message.to_string()))
            .collect()
    }

    #[test]
    fn a_code_is_told_once_and_then_counted_each_minute() {
        let mut journal = Journal::default();
        let up = HandlerState::default();
        let mut look = |count: u64, second: i64| {
            let entries = journal.look(&up, &[error("CONNECT".to_owned(), count)], WallMs(second * 1000));
            told(&entries)
                .into_iter()
                .map(|(_, message)| message)
                .collect::<Vec<_>>()
        };
        assert_eq!(look(1, 0), ["refused"]);
        assert_eq!(look(40, 30), [""; 0]);
        assert_eq!(look(61, 60), ["60 more calls failed in 1m, the last: refused"]);
        assert_eq!(look(61, 180), [""; 0], "it is over");
        assert_eq!(
            look(2, 600),
            ["2 more calls failed in 9m, the last: refused"],
            "it began anew"
        );
    }

    #[test]
    fn an_outage_is_told_when_it_begins_and_when_it_ends() {
        let mut journal = Journal::default();
        let errors = [error("CONNECT".to_owned(), 5)];
        let outage = |probes| HandlerState {
            outage: Some(Outage {
                since: WallMs(1_000),
                probes,
            }),
            error: Some(errors[0].clone()),
            ..HandlerState::default()
        };
        let begun = journal.look(&outage(0), &errors, WallMs(2_000));
        assert_eq!(
            begun.iter().map(|entry| entry.code.as_str()).collect::<Vec<_>>(),
            ["CONNECT", DOWN]
        );
        assert!(
            begun[1]
                .message
                .to_string()
                .starts_with("the handler has not responded for 1s (CONNECT: refused)")
        );
        assert!(journal.look(&outage(4), &errors, WallMs(30_000)).is_empty());
        let ended = journal.look(&HandlerState::default(), &errors, WallMs(46_000));
        assert_eq!(
            told(&ended),
            [(
                BACK,
                "the handler responds again after 45s and 4 probes".to_owned()
            )]
        );
    }

    #[test]
    fn a_handler_that_makes_codes_up_fills_no_log() {
        let mut journal = Journal::default();
        let errors: Vec<LastError> = (0..500).map(|n| error(format!("E{n}"), 1)).collect();
        let entries = journal.look(&HandlerState::default(), &errors, WallMs(0));
        assert_eq!(entries.len(), CODES_MAX + 1);
        assert!(
            entries[CODES_MAX]
                .message
                .to_string()
                .ends_with("further codes of this run are not logged")
        );
        assert!(
            journal
                .look(&HandlerState::default(), &errors, WallMs(1))
                .is_empty()
        );
    }
}
