//! How a run gives its shard back, and what that makes of its task (decision 0020, rules 16 and 17).

use std::fmt;
use std::time::Duration;

use super::obey::is_ending;
use super::{Life, Desired};
use crate::ids::WallMs;
use crate::task::lifecycle::{CutOff, Note, ShardState, StopReason, TASK_RECOVERS};

/// How long a shard that was moved is left to the node that it was moved to, from its release on.
pub const MOVE_PATIENCE: Duration = Duration::from_secs(30);
/// What a task says that waits because its owner is gone.
pub const OWNER_GONE: &str =
    "the node that ran it is gone; it goes on from its last checkpoint as soon as a node takes it";

/// How a run gives its shard back, with its last checkpoint, in the same transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunClose {
    /// Still to be run: claimable at once by anyone (drain, hand-over).
    Released,
    /// Everything is settled.
    Done,
    /// The task stopped.
    Stopped {
        /// Why.
        reason: StopReason,
        /// The sentence shown to people.
        text: String,
        /// What was in flight, where the stop didn't wait.
        cut_off: CutOff,
    },
    /// To be tried again by itself, not before a time.
    Recovering {
        /// When.
        not_before: WallMs,
        /// A machine slug.
        reason: String,
        /// The sentence shown to people.
        text: String,
        /// Which recovery in a row this is; none leaves the count as it is.
        nth: Option<u32>,
    },
}

impl RunClose {
    /// A stop that cut nothing off.
    pub fn stopped(reason: StopReason, text: String) -> RunClose {
        RunClose::Stopped {
            reason,
            text,
            cut_off: CutOff::default(),
        }
    }

    /// Whether it says nothing of a crash loop: the run ended in order, or because too much failed.
    pub fn is_calm(&self) -> bool {
        match self {
            RunClose::Released | RunClose::Stopped { .. } => true,
            RunClose::Recovering { reason, .. } => reason == TASK_RECOVERS,
            RunClose::Done => false,
        }
    }
}

impl fmt::Display for RunClose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunClose::Released => f.write_str("handed over: any node may take it"),
            RunClose::Done => f.write_str("done"),
            // A run hears only that it is to stop; why is with its task.
            RunClose::Stopped {
                reason: StopReason::Operator,
                text,
                cut_off,
            } => f.write_str(&cut_off.told_after(text)),
            RunClose::Stopped {
                reason,
                text,
                cut_off,
            } => {
                write!(f, "stopped ({reason}): {}", cut_off.told_after(text))
            }
            RunClose::Recovering { reason, text, .. } => write!(f, "recovers ({reason}): {text}"),
        }
    }
}

impl Life {
    /// A run ended and gave its shard back. The status is still to be found ([`Life::refresh`]), with what is returned.
    pub fn end_run(&mut self, no: u32, close: &RunClose, now: WallMs) -> Option<Note> {
        let close = self.believed(no, close);
        if let (RunClose::Stopped { reason, .. }, Desired::Run) = (close, self.desired) {
            self.stop_reason = Some(*reason);
            self.set_desired(Desired::Stop, now);
        }
        if let RunClose::Stopped { cut_off, .. } = close {
            self.cut_off.add(cut_off);
        }
        let state = state_after(close, self.desired);
        let not_before = self.together(close, state, now);
        let shard = self.shards.iter_mut().find(|shard| shard.no == no)?;
        (shard.state, shard.session) = (state, None);
        (shard.not_before, shard.updated_at) = (not_before, now);
        shard.moves_until = Some(now.plus(MOVE_PATIENCE));
        if let RunClose::Recovering { nth: Some(nth), .. } = close {
            shard.recoveries = *nth;
        }
        if close.is_calm() {
            // It isn't a stall, nor one that paused because too much failed.
            shard.claimed_at = None;
        }
        if state == ShardState::Done {
            self.settle_shards(now);
        }
        note(close)
    }

    /// When the shard may be claimed again. A run that found the error budget of its task exceeded takes the other shards
    /// with it.
    fn together(&mut self, close: &RunClose, state: ShardState, now: WallMs) -> WallMs {
        let RunClose::Recovering {
            not_before,
            reason,
            nth,
            ..
        } = close
        else {
            return WallMs(0);
        };
        let is_shared = reason == TASK_RECOVERS && state == ShardState::Recovering && self.shards.len() > 1;
        if is_shared {
            self.recover_all(*not_before, *nth, now)
        } else {
            *not_before
        }
    }

    /// A shard is taken from an owner that is gone. When it was active last stays as it was, and so does the watermark of
    /// its last claim. Says what is said beside the status.
    pub fn disown(&mut self, no: u32) -> Option<Note> {
        let state = state_after(&RunClose::Released, self.desired);
        let shard = self.shards.iter_mut().find(|shard| shard.no == no)?;
        (shard.state, shard.session) = (state, None);
        Some(Note::text(OWNER_GONE))
    }
}

fn state_after(close: &RunClose, desired: Desired) -> ShardState {
    match close {
        RunClose::Done => ShardState::Done,
        RunClose::Stopped { .. } => ShardState::Stopped,
        // Nobody would claim it only to find that it has to stop.
        _ if is_ending(desired) => ShardState::Stopped,
        RunClose::Released => ShardState::Idle,
        RunClose::Recovering { .. } => ShardState::Recovering,
    }
}

fn note(close: &RunClose) -> Option<Note> {
    match close {
        RunClose::Released | RunClose::Done => None,
        RunClose::Stopped { text, .. } => Some(Note::text(text.clone())),
        RunClose::Recovering { reason, text, .. } => Some(Note::because(reason, text.clone())),
    }
}
