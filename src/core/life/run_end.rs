//! End of a run: how it releases its shard, and the effect on its task (decision 0020, rules 16 and 17).

use std::fmt;
use std::time::Duration;

use windrow_words::life as say;

use super::obey::is_ending;
use super::{Desired, Life};
use crate::ids::WallMs;
use crate::task::lifecycle::{CutOff, Note, ShardState, StopReason, TASK_RECOVERS};

/// Time after its release for which a moved shard is reserved for the node that it was moved to.
pub const MOVE_PATIENCE: Duration = Duration::from_secs(30);

/// Way in which a run releases its shard, saved with its last checkpoint in the same transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunClose {
    /// Not finished: claimable at once by any node (drain, hand-over).
    Released,
    /// All items are settled.
    Done,
    /// The task stopped, with the reason and what was cut off.
    Stopped {
        /// Reason for the stop.
        reason: StopReason,
        /// Sentence that is shown to people.
        text: String,
        /// Items in flight that the stop didn't wait for.
        cut_off: CutOff,
    },
    /// To be resumed automatically, not before a time.
    Recovering {
        /// Earliest time of the next claim.
        not_before: WallMs,
        /// Reason as a machine-readable slug.
        reason: String,
        /// Sentence that is shown to people.
        text: String,
        /// Number of recoveries in a row, including this one; `None` leaves the count unchanged.
        nth: Option<u32>,
    },
}

impl RunClose {
    /// Creates a stop that cut nothing off.
    pub fn stopped(reason: StopReason, text: String) -> RunClose {
        RunClose::Stopped {
            reason,
            text,
            cut_off: CutOff::default(),
        }
    }

    /// Returns true if the close is no sign of a crash loop: the run ended in order, or because too much failed.
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
            RunClose::Released => say::released().fmt(f),
            RunClose::Done => f.write_str("done"),
            // A run only learns that it must stop; the reason is stored with its task.
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
    /// Applies the end of a run that has released its shard. The caller must update the status with
    /// [`Life::refresh`], passing the returned note.
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
            // Neither a calm end nor a pause because too much failed counts as a stall.
            shard.claimed_at = None;
        }
        if state == ShardState::Done {
            self.settle_shards(now);
        }
        note(close)
    }

    /// Returns the time from which the shard may be claimed again. A run that found the error budget of its task
    /// exceeded puts the other shards into recovery as well.
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

    /// Takes a shard from an owner that is gone. Its time of last activity and the watermark of its last claim stay
    /// as they are. Returns the note to show with the status.
    pub fn disown(&mut self, no: u32) -> Option<Note> {
        let state = state_after(&RunClose::Released, self.desired);
        let shard = self.shards.iter_mut().find(|shard| shard.no == no)?;
        (shard.state, shard.session) = (state, None);
        Some(Note::text(say::owner_gone().to_string()))
    }
}

fn state_after(close: &RunClose, desired: Desired) -> ShardState {
    match close {
        RunClose::Done => ShardState::Done,
        RunClose::Stopped { .. } => ShardState::Stopped,
        // Otherwise a node would claim it only to find that it must stop.
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
