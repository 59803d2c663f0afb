//! What came of an attempt, in the one vocabulary that all handlers share.

mod code;
mod records;

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::code::{code_of, is_near_code};
pub use self::records::{AttemptNote, ItemTrouble, NOTES_MAX, ParkedItem, SideRecord};
use crate::ids::{Attempt, ItemCount, ItemIndex, Moment, WallMs};
use crate::items::run::IndexRun;
use crate::text::steers;

/// The longest message kept of a failure; the rest is cut. Unit: bytes.
pub const MESSAGE_BYTES_MAX: usize = 1024;
/// The longest code kept of a failure. Unit: bytes; the width of the column.
pub const CODE_BYTES_MAX: usize = 64;
/// The longest `output` kept of a failed item. Unit: bytes.
pub const OUTPUT_BYTES_MAX: usize = 4096;

/// How an item ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The handler did it.
    Succeeded,
    /// The handler says that there was nothing to do; not a failure.
    Skipped,
}

/// Why an attempt did not succeed: a stable code that groups failures, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `[A-Z0-9_]{1,64}`, such as `TIMEOUT`; one of the handler's own is brought to that form.
    pub code: Cow<'static, str>,
    /// What happened, cut to [`MESSAGE_BYTES_MAX`] bytes.
    pub message: String,
    /// The handler's own JSON about the item, at most [`OUTPUT_BYTES_MAX`] bytes.
    pub output: Option<String>,
}

impl Failure {
    /// A failure whose code has its form, and whose message is cut to its limit; control characters become spaces. A code
    /// that loses more than its case and its separators stays readable in the message.
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

/// Cuts `text` to at most `bytes_max` bytes at a character border, ending in `…(+n)` with the bytes left out,
/// and replaces control characters, so that no stored text can drive a terminal or forge a log line.
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

/// What a handler asks for when an attempt did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAdvice {
    /// Another attempt, after the task's back-off or after the time that the handler chose.
    Retry {
        /// The wait that the handler asked for; none leaves it to the task's back-off.
        after: Option<Duration>,
    },
    /// No more attempts: the item is failed.
    Fail,
}

crate::slugs! {
    /// What a call that brought no success says, and of whom. Evidence is per call, not per item of a batch.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FailureClass {
        /// A verdict of the handler about these items: charged.
        Answered = "answered",
        /// The handler finds fault with the request (400 and the like): charged, once it has ever given a verdict; before
        /// that it says that the request is wrong for all items.
        Faulty = "faulty",
        /// The handler refuses us as such (401, 403, 404, 405, 415, 501, 3xx), or its reply can't be understood: three in a row over
        /// distinct items stop the task. Charged only where calls of others that departed later were answered.
        Rejected = "rejected",
        /// It can't have had an effect: no name, no connection, no TLS, a worker that can't start though one could before.
        /// Never charged.
        Unreachable = "unreachable",
        /// No worker lives long enough to take an item, and none did before: three in a row stop the task. Never charged.
        Unstarted = "unstarted",
        /// 502 and 503: what stands before the handler says that it isn't there. Never charged.
        Unavailable = "unavailable",
        /// Nobody knows what it did: a timeout, a reset, 500, 504, a worker that died with it. Charged, provisionally.
        Unclear = "unclear",
        /// No call can be made of the item, so nothing left: it fails at once, once the handler has ever given a verdict or nothing
        /// fresh is left; before that it says that the request is wrong for all items.
        Unsendable = "unsendable",
        /// The program of an item ended with an exit code that says no more than that: charged as a verdict, unless so many
        /// items in a row end alike that it is no chance. Then it is an outage.
        Exited = "exited",
    }
}

impl FailureClass {
    /// The call couldn't be made: it can't have had an effect.
    pub fn is_before_work(self) -> bool {
        matches!(self, FailureClass::Unreachable | FailureClass::Unstarted)
    }

    /// Whether what was sent came to nobody who could work on it.
    pub fn reaches_nobody(self) -> bool {
        matches!(self, FailureClass::Unreachable | FailureClass::Unavailable)
    }
}

/// An outage of a handler, as people and a later run of the shard need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// Since when. Unit: milliseconds since the Unix epoch.
    pub since: WallMs,
    /// Probes that were sent.
    pub probes: u32,
}

/// What last went wrong, while it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// Of whom it speaks.
    pub class: FailureClass,
    /// The failure's code.
    pub code: Cow<'static, str>,
    /// The message of the latest one.
    pub example: String,
    /// An item that it happened to.
    pub index: ItemIndex,
    /// How many calls failed since it began: with this code where codes are told apart, else with whichever.
    pub count: u64,
    /// When it began. Unit: milliseconds since the Unix epoch.
    pub since: WallMs,
    /// When it last happened.
    pub at: WallMs,
}

/// How the handler fares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerState {
    /// Whether it has given a verdict about any item, in this run or before.
    pub contacted: bool,
    /// It doesn't answer, and since when.
    pub outage: Option<Outage>,
    /// How long until the next probe; none while calls are out in rounds, or when there is no outage.
    pub next_probe_in: Option<Duration>,
    /// What last went wrong; none when nothing did.
    pub error: Option<LastError>,
    /// Items that failed each time without a verdict and wait for another item's answer.
    pub held: u64,
    /// The first few of those.
    #[serde(default)]
    pub held_items: Vec<ItemIndex>,
    /// How often each of them is still tried, where nothing else is left.
    #[serde(default)]
    pub held_tries: u32,
    /// How long until held items are judged without one, where nothing else is left.
    pub judged_in: Option<Duration>,
    /// Items that are left and brought 502 or 503 each time, of which only people can say that it is them.
    #[serde(default)]
    pub unjudged: u64,
    /// It asked for a pause, which goes on.
    #[serde(default)]
    pub paused: Option<Paused>,
}

/// A pause that a handler asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// How much of it is left.
    pub left: Duration,
    /// Code and message of the call that was turned away last; none where it asked in another way.
    pub said: Option<String>,
}

/// One call that brought no success, after those that brought one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// Calls of the same lane that brought a verdict before it.
    pub before: AnsweredCalls,
    /// What it says.
    pub class: FailureClass,
    /// Its first item.
    pub index: ItemIndex,
    /// Number of its items.
    pub items: u32,
    /// When it departed.
    pub departed: Moment,
    /// Why.
    pub failure: Failure,
    /// How long the handler asked us to wait.
    pub after: Option<Duration>,
}

/// Calls that brought a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnsweredCalls {
    /// How many.
    pub calls: u32,
    /// When the latest of them departed.
    pub departed: Moment,
}

impl AnsweredCalls {
    /// One more.
    #[inline]
    pub fn add(&mut self, departed: Moment) {
        self.calls += 1;
        self.departed = self.departed.max(departed);
    }
}

/// A run of items that one call (or several) settled well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The items.
    pub run: IndexRun,
    /// Which attempt settled them.
    pub attempt: Attempt,
    /// How they ended.
    pub outcome: Outcome,
}

impl Settled {
    /// What a call that succeeded as a whole says of these items.
    #[inline]
    pub fn well(dispatch: Dispatch) -> Settled {
        Settled {
            run: dispatch.run,
            attempt: dispatch.attempt,
            outcome: Outcome::Succeeded,
        }
    }
}

/// One item whose attempt did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The item.
    pub index: ItemIndex,
    /// Which attempt failed.
    pub attempt: Attempt,
    /// Why.
    pub failure: Failure,
    /// What the handler wants done.
    pub advice: RetryAdvice,
    /// Whose fault it is.
    pub class: FailureClass,
    /// Items of the call, where it failed as a whole; 1 where this one was judged by itself.
    pub call_items: u32,
    /// When the call departed.
    pub departed: Moment,
    /// How long the call took.
    pub took: Duration,
}

/// A run of items that the core lets go, and their attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dispatch {
    /// The items.
    pub run: IndexRun,
    /// Their attempt.
    pub attempt: Attempt,
}

/// What a call tells about the handler as a whole, beside the items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The handler is gone for good (410); the task stops.
    Gone(Failure),
    /// The handler asks for a pause (429, or 503 with a time): the whole task pauses. No attempt is charged.
    BackPressure {
        /// The time it asked for.
        after: Option<Duration>,
    },
    /// The business has seen a newer epoch: this run ends at once, without a checkpoint.
    Fenced,
    /// A command in a reply.
    Command(HandlerCommand),
}

/// A command that a business may send with a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerCommand {
    /// Drain, then `stopped(business)`.
    Stop {
        /// Shown to people.
        reason: String,
    },
    /// Nothing at or above `total` is dispatched any more; it becomes excluded.
    Finish {
        /// The new end; none means one past the highest index of this call.
        total: Option<ItemCount>,
    },
    /// Stop dispatching for this long, then go on.
    PauseFor(Duration),
    /// A lower rate for a while.
    SlowDown {
        /// Items per second, as a task's rate.
        rate: crate::task::Rate,
        /// How long.
        lasting: Duration,
        /// Shown to people.
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
