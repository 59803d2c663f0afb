//! Results of attempts, in the vocabulary shared by all handlers.

mod code;
mod records;

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::code::{code_of, is_near_code};
pub use self::records::{AttemptNote, FailingItem, NOTES_MAX, ParkedItem, SideRecord};
use crate::ids::{Attempt, ItemCount, ItemIndex, Moment, WallMs};
use crate::items::run::IndexRun;
use crate::text::steers;

/// Maximum length of a failure message; the rest is cut. Unit: bytes.
pub const MESSAGE_BYTES_MAX: usize = 1024;
/// Maximum length of a failure code, which is the width of the column. Unit: bytes.
pub const CODE_BYTES_MAX: usize = 64;
/// Maximum length of the `output` kept for a failed item. Unit: bytes.
pub const OUTPUT_BYTES_MAX: usize = 4096;

/// Successful final state of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The handler processed the item.
    Succeeded,
    /// The handler reports that there was nothing to do; not a failure.
    Skipped,
}

/// Reason why an attempt did not succeed: a stable code that groups failures, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Code of the form `[A-Z0-9_]{1,64}`, such as `TIMEOUT`; a handler's own code is normalized to it.
    pub code: Cow<'static, str>,
    /// Message for people, cut to [`MESSAGE_BYTES_MAX`] bytes.
    pub message: String,
    /// JSON that the handler returned about the item, at most [`OUTPUT_BYTES_MAX`] bytes.
    pub output: Option<String>,
}

impl Failure {
    /// Creates a failure with a normalized code and a message cut to its limit; control characters become spaces. A
    /// code that loses more than its case and its separators is repeated in the message.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl AsRef<str>) -> Failure {
        let (code, message) = (code.into(), message.as_ref());
        let message = match is_near_code(&code) {
            true => Cow::Borrowed(message),
            false => Cow::Owned(format!("(code {:?}) {message}", cut(&code, CODE_BYTES_MAX))),
        };
        Failure {
            code: code_of(code),
            message: cut(&message, MESSAGE_BYTES_MAX),
            output: None,
        }
    }
}

/// Cuts `text` to at most `bytes_max` bytes at a character boundary, ending in `…(+n)` with the number of bytes left
/// out. Replaces control characters, so that no stored text can drive a terminal or forge a log line.
pub fn cut(text: &str, bytes_max: usize) -> String {
    let clean = |c: char| if steers(c) { ' ' } else { c };
    if text.len() <= bytes_max {
        return text.chars().map(clean).collect();
    }
    let room = bytes_max.saturating_sub(16);
    let end = (0..=room)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let kept: String = text[..end].chars().map(clean).collect();
    format!("{kept}…(+{})", text.len() - end)
}

/// Action that a handler asks for when an attempt did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAdvice {
    /// Another attempt, after the task's back-off or after a wait that the handler chose.
    Retry {
        /// Wait that the handler asked for; `None` leaves it to the task's back-off.
        after: Option<Duration>,
    },
    /// No more attempts: the item fails for good.
    Fail,
}

crate::slugs! {
    /// Meaning of an unsuccessful call: what it proves, and about whom. Evidence counts per call, not per item of a
    /// batch.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FailureClass {
        /// The handler gave a verdict about these items. Charged.
        Answered = "answered",
        /// The handler rejects the request as invalid (400 and the like). Charged once the handler has ever given a
        /// verdict; before that it means that the request is wrong for all items.
        Faulty = "faulty",
        /// The handler refuses Windrow's calls in general (401, 403, 404, 405, 415, 501, 3xx), or its reply can't be
        /// parsed. Three in a row over distinct items stop the task. Charged only if calls for other items that were
        /// dispatched later were answered.
        Rejected = "rejected",
        /// The call can't have had an effect: DNS, connection or TLS failed, or a worker can't start although one did
        /// before. Never charged.
        Unreachable = "unreachable",
        /// No worker lives long enough to take an item, and none ever did. Three in a row stop the task. Never
        /// charged.
        Unstarted = "unstarted",
        /// 502 and 503: a proxy in front of the handler reports it as unavailable. Never charged.
        Unavailable = "unavailable",
        /// The effect is unknown: a timeout, a reset, 500, 504, a worker that died with the item. Charged
        /// provisionally.
        Unclear = "unclear",
        /// No call can be built from the item, so nothing was sent. Fails the item at once if the handler has ever
        /// given a verdict or no fresh item is left; before that it means that the request is wrong for all items.
        Unsendable = "unsendable",
        /// The program of an item ended with an exit code that has no more specific meaning. Charged as a verdict,
        /// unless so many items in a row end alike that it can't be chance; then the handler counts as down.
        Exited = "exited",
    }
}

impl FailureClass {
    /// Returns true if the call couldn't be made, so it can't have had an effect.
    pub fn is_before_work(self) -> bool {
        matches!(self, FailureClass::Unreachable | FailureClass::Unstarted)
    }

    /// Returns true if the request reached nobody who could work on it.
    pub fn reaches_nobody(self) -> bool {
        matches!(self, FailureClass::Unreachable | FailureClass::Unavailable)
    }
}

/// Period in which the handler is down, as shown to people and passed on to a later run of the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// Start of the period. Unit: milliseconds since the Unix epoch.
    pub since: WallMs,
    /// Number of probes sent so far.
    pub probes: u32,
}

/// Most recent kind of error, kept while it persists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// Class of the failure, which says who is at fault.
    pub class: FailureClass,
    /// Failure code that the calls share.
    pub code: Cow<'static, str>,
    /// Message of the latest failure.
    pub example: String,
    /// Index of an item that failed this way.
    pub index: ItemIndex,
    /// Number of calls that failed since it began: with this code where codes are told apart, otherwise with any
    /// code.
    pub count: u64,
    /// Time of the first failure. Unit: milliseconds since the Unix epoch.
    pub since: WallMs,
    /// Time of the latest failure.
    pub at: WallMs,
}

/// Health of the handler: down or not, last error, held items and requested pause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerState {
    /// True once the handler has given a verdict about any item, in this run or before.
    pub contacted: bool,
    /// Set while the handler is down, `None` while it answers.
    pub outage: Option<Outage>,
    /// Time until the next probe. `None` while calls go out in rounds, or when the handler isn't down.
    pub next_probe_in: Option<Duration>,
    /// Last error that persists, or `None` without one.
    pub error: Option<LastError>,
    /// Number of items that failed each time without a verdict and wait for another item's answer.
    pub held: u64,
    /// Indexes of the first few held items.
    #[serde(default)]
    pub held_items: Vec<ItemIndex>,
    /// Number of attempts that each held item still gets when nothing else is left.
    #[serde(default)]
    pub held_tries: u32,
    /// Time until held items are judged without another item's answer, when nothing else is left.
    pub judged_in: Option<Duration>,
    /// Number of remaining items that got 502 or 503 each time; only people can decide that the items are at fault.
    #[serde(default)]
    pub unjudged: u64,
    /// Pause that the handler asked for, while it lasts.
    #[serde(default)]
    pub paused: Option<Paused>,
}

/// Pause that a handler asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// Time left until the pause ends.
    pub left: Duration,
    /// Code and message of the last call that was turned away, or `None` if the handler asked in another way.
    pub said: Option<String>,
}

/// One unsuccessful call, with the answered calls before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// Calls of the same lane that brought a verdict before this one.
    pub before: AnsweredCalls,
    /// Class of the failure, as evidence about items or handler.
    pub class: FailureClass,
    /// Index of the first item in the call.
    pub index: ItemIndex,
    /// Number of items in the call.
    pub items: u32,
    /// Time at which the call was dispatched.
    pub departed: Moment,
    /// Failure of the call as a whole.
    pub failure: Failure,
    /// Wait that the handler asked for, if any.
    pub after: Option<Duration>,
}

/// Summary of the calls that brought a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnsweredCalls {
    /// Number of answered calls.
    pub calls: u32,
    /// Dispatch time of the latest answered call.
    pub departed: Moment,
}

impl AnsweredCalls {
    /// Counts one more answered call, dispatched at `departed`.
    #[inline]
    pub fn add(&mut self, departed: Moment) {
        self.calls += 1;
        self.departed = self.departed.max(departed);
    }
}

/// Run of items that one call (or several) settled as succeeded or skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Indexes of the settled items.
    pub run: IndexRun,
    /// Attempt that settled the items.
    pub attempt: Attempt,
    /// Final state of the items.
    pub outcome: Outcome,
}

impl Settled {
    /// Returns the items of `dispatch` as succeeded, for a call that succeeded as a whole.
    #[inline]
    pub fn well(dispatch: Dispatch) -> Settled {
        Settled {
            run: dispatch.run,
            attempt: dispatch.attempt,
            outcome: Outcome::Succeeded,
        }
    }
}

/// Item whose attempt did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Index of the item.
    pub index: ItemIndex,
    /// Number of the attempt that failed.
    pub attempt: Attempt,
    /// Code and message of the failure.
    pub failure: Failure,
    /// Action that the handler asks for.
    pub advice: RetryAdvice,
    /// Class of the failure, which says who is at fault.
    pub class: FailureClass,
    /// Number of items in the call if it failed as a whole; 1 if this item was judged by itself.
    pub call_items: u32,
    /// Time at which the call was dispatched.
    pub departed: Moment,
    /// Duration of the failed call.
    pub took: Duration,
}

/// Run of items that the core dispatches, with their attempt number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dispatch {
    /// Indexes of the dispatched items.
    pub run: IndexRun,
    /// Attempt number of all items in the run.
    pub attempt: Attempt,
}

/// Information that a call gives about the handler as a whole, apart from its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The handler is gone for good (410); the task stops.
    Gone(Failure),
    /// The handler asks for a pause (429, or 503 with a time). The whole task pauses. No attempt is charged.
    BackPressure {
        /// Length of the pause it asked for, if given.
        after: Option<Duration>,
        /// Time at which the call was sent that asked for it.
        departed: Moment,
        /// Answer of the handler.
        failure: Failure,
    },
    /// The business has seen a newer epoch: this run ends at once, without a checkpoint.
    Fenced,
    /// The handler sent a command in its reply.
    Command(HandlerCommand),
}

/// Command that a business may send with a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerCommand {
    /// Drain the task, then end it as `stopped(business)`.
    Stop {
        /// Reason that is shown to people.
        reason: String,
    },
    /// Dispatch nothing at or above `total`; those items become excluded.
    Finish {
        /// New end of the task; `None` means one past the highest index of this call.
        total: Option<ItemCount>,
    },
    /// Stop dispatching for this long, then resume.
    PauseFor(Duration),
    /// Lower the rate for a while.
    SlowDown {
        /// Temporary rate in items per second, like a task's rate.
        rate: crate::task::Rate,
        /// Duration of the lower rate.
        lasting: Duration,
        /// Reason that is shown to people.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character_and_say_how_much_is_missing() {
        let text = "中".repeat(600);
        let kept = cut(&text, MESSAGE_BYTES_MAX);
        assert!(kept.len() <= MESSAGE_BYTES_MAX, "{}", kept.len());
        assert!(
            kept.ends_with(&format!("…(+{})", 1800 - 3 * kept.matches('中').count())),
            "{kept}"
        );
    }

    #[test]
    fn control_characters_do_not_survive() {
        assert_eq!(cut("a\x1b[31m\nb", 100), "a [31m b");
    }
}
