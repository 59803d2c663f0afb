//! How the business behaves: what each item comes to is its index's alone, how long that takes is the mood's.

use std::time::Duration;

use bytes::Bytes;

use crate::evidence::Verdict;

/// What it does with one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Ok,
    Skip,
    Fail,
    /// Answers 500.
    Error,
    /// Comes again after a while that parks it.
    Later,
    Busy,
    /// Says nothing that means anything.
    Malformed,
    /// Says more than anybody reads.
    Huge,
    /// A byte a second, for ever.
    Trickle,
    Slow(Duration),
    Hang,
    /// Processes it and resets the connection.
    Reset,
}

impl Act {
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            Act::Ok | Act::Slow(_) => Verdict::Succeeded,
            Act::Skip => Verdict::Skipped,
            Act::Fail => Verdict::Failed,
            Act::Error | Act::Later | Act::Malformed | Act::Huge => Verdict::Retry,
            Act::Busy => Verdict::Busy,
            Act::Hang | Act::Reset | Act::Trickle => Verdict::Nothing,
        }
    }

    /// Status and body.
    pub(crate) fn reply(self) -> (u16, Bytes) {
        let json = |text: &'static str| (200, Bytes::from_static(text.as_bytes()));
        match self {
            Act::Skip => json(r#"{"result":"skip"}"#),
            Act::Fail => json(r#"{"result":"fail","code":"NO_SUCH_USER","message":"gone"}"#),
            Act::Later => json(r#"{"result":"retry","retry_after":"3s","code":"BUSY"}"#),
            Act::Error => (500, Bytes::new()),
            Act::Busy => (429, Bytes::new()),
            Act::Malformed => json(r#"{"result":["ok""#),
            Act::Huge => (200, Bytes::from(vec![b' '; 3 << 20])),
            _ => (204, Bytes::new()),
        }
    }
}

/// How it is at the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mood {
    /// How long every call takes.
    pub(crate) takes: Duration,
    /// Of a hundred first attempts, so many meet something bad.
    pub(crate) bad: u64,
    /// All deliveries are refused for now.
    pub(crate) is_busy: bool,
}

impl Default for Mood {
    fn default() -> Mood {
        Mood {
            takes: Duration::from_millis(5),
            bad: 0,
            is_busy: false,
        }
    }
}

/// A number of the index that looks random.
fn mixed(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}

/// What an item comes to in the end.
pub(crate) fn end(index: u64) -> Verdict {
    match index % 100 {
        7 => Verdict::Skipped,
        11 => Verdict::Failed,
        _ => Verdict::Succeeded,
    }
}

/// What becomes of a delivery.
pub(crate) fn act(mood: &Mood, index: u64, attempt: u32) -> Act {
    if mood.is_busy {
        return Act::Busy;
    }
    if attempt <= 2 && mixed(index) % 100 < mood.bad {
        let bad = [
            Act::Error,
            Act::Slow(Duration::from_millis(700)),
            Act::Hang,
            Act::Trickle,
            Act::Huge,
            Act::Malformed,
            Act::Reset,
        ];
        let at = usize::try_from(mixed(index) / 100 % bad.len() as u64).expect("few");
        // A slow item succeeds, and only those may that come to it.
        return if end(index) == Verdict::Succeeded {
            bad[at]
        } else {
            Act::Error
        };
    }
    match (end(index), index % 100, attempt) {
        (Verdict::Skipped, ..) => Act::Skip,
        (Verdict::Failed, ..) => Act::Fail,
        (_, 23, 1) => Act::Error,
        (_, 31, 1) => Act::Later,
        _ => Act::Ok,
    }
}
