//! The shards of a task as people see them.

use windrow_core::ids::{ItemIndex, RunNo, SessionId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::shards::Share;
use windrow_core::task::lifecycle::ShardState;

/// One shard of a task, as it is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardView {
    /// Its number.
    pub no: u32,
    /// Its first index.
    pub first: ItemIndex,
    /// One past the last index that is to be done; lower than `range_end` where the task was finished early.
    pub end: ItemIndex,
    /// One past its last index.
    pub range_end: ItemIndex,
    /// Where it stands.
    pub state: ShardState,
    /// The session that owns it.
    pub session: Option<SessionId>,
    /// The name of its node, where a single task was asked for or commanded.
    pub node: Option<String>,
    /// Its newest run; 0 before the first.
    pub run: RunNo,
    /// First index that is neither settled nor parked.
    pub low_water: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// The counters of its range; `excluded` is what lies behind `end`.
    pub counters: Counters,
    /// Its part of the task's rate; none once it is done.
    pub share: Option<Share>,
    /// When it may be claimed again, where it recovers.
    pub next_at: Option<WallMs>,
}
