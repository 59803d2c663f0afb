//! State of a shard that its task's life cycle depends on.

use super::obey::is_ending;
use crate::ids::{ItemCount, ItemIndex, RunNo, SessionId, ShardId, TaskId, WallMs};
use crate::items::counters::Counters;
use crate::shards::Share;
use crate::task::ShardRange;
use crate::task::lifecycle::{Desired, ShardState};

/// Shard in the life cycle of its task. Progress, which only its owner writes, is read-only here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardLife {
    /// Number of the shard within its task.
    pub no: u32,
    /// First index of the range.
    pub first: ItemIndex,
    /// One past the last index to process; lower than `range_end` after an early finish.
    pub end: ItemIndex,
    /// One past the last index of the range.
    pub range_end: ItemIndex,
    /// Current state of the shard.
    pub state: ShardState,
    /// Desired state set by its task; `rest` while the business prepares a start.
    pub desired: Desired,
    /// Session that owns the shard, or owned it last unless the shard was taken away.
    pub session: Option<SessionId>,
    /// Number of the latest run; 0 before the first.
    pub run: RunNo,
    /// Watermark: every index below is settled or parked.
    pub watermark: ItemIndex,
    /// One past the highest index with a known answer.
    pub high_water: ItemIndex,
    /// Dispatch horizon: one past the highest index that may have been dispatched.
    pub horizon: ItemIndex,
    /// Counters of its own range.
    pub counters: Counters,
    /// Number of recoveries in a row without an item of progress.
    pub recoveries: u32,
    /// Watermark at the last claim. `None` means that the next claim doesn't count as a stall.
    pub claimed_at: Option<ItemIndex>,
    /// Earliest time at which it can be claimed.
    pub not_before: WallMs,
    /// Time of the last activity.
    pub updated_at: WallMs,
    /// Time until which other nodes leave it to the node that people moved it to.
    pub moves_until: Option<WallMs>,
    /// Share of the task's rate as the store keeps it; `None` is the whole rate.
    pub share: Option<i64>,
}

/// `not_before` of a shard that waits for the canary: it can't be claimed until it is released.
pub(super) const HELD: WallMs = WallMs(i64::MAX);

impl ShardLife {
    /// Creates a shard that never ran.
    pub fn new(no: u32, range: ShardRange, desired: Desired, now: WallMs) -> ShardLife {
        ShardLife {
            no,
            first: range.start,
            end: range.end,
            range_end: range.end,
            state: ShardState::Idle,
            desired,
            session: None,
            run: RunNo(0),
            watermark: range.start,
            high_water: range.start,
            horizon: range.start,
            counters: Counters::default(),
            recoveries: 0,
            claimed_at: None,
            not_before: WallMs(0),
            updated_at: now,
            moves_until: None,
            share: None,
        }
    }

    /// Creates the shard that publishes the results of a task of `total` items.
    pub(super) fn of_publication(total: ItemCount, desired: Desired, now: WallMs) -> ShardLife {
        let end = ItemIndex(total.0);
        let no = ShardId::publication(TaskId(0)).no;
        let mut shard = ShardLife::new(no, ShardRange { start: end, end }, desired, now);
        if is_ending(desired) {
            shard.state = ShardState::Stopped;
        }
        shard
    }

    /// Returns true for the shard that has no items and publishes the results.
    pub fn is_publication(&self) -> bool {
        self.no == ShardId::publication(TaskId(0)).no
    }

    /// Returns the shard's share of the task's rate, or `None` once it is done.
    pub fn part(&self) -> Option<Share> {
        (!self.is_done()).then(|| Share::read(self.share))
    }

    /// Returns the time from which it may be claimed again, if it is recovering.
    pub fn next_at(&self) -> Option<WallMs> {
        (self.state == ShardState::Recovering).then_some(self.not_before)
    }

    /// Returns its counters, with the items that an early finish cut off as excluded.
    pub fn counted(&self) -> Counters {
        Counters {
            excluded: self.range_end.0.saturating_sub(self.end.0),
            ..self.counters
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.state == ShardState::Running
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == ShardState::Done
    }

    /// Returns true if nothing of it is left, as far as is saved.
    pub(super) fn is_settled(&self) -> bool {
        self.watermark >= self.end && self.counters.parked == 0
    }

    /// Returns one past the highest index that a finished run may have sent. An older program's run writes only
    /// `high_water`.
    fn may_have_left(&self) -> ItemIndex {
        self.horizon.max(self.high_water)
    }

    /// Returns one past the highest index known to be dispatched; its owner may know of more.
    pub(super) fn dispatched(&self) -> ItemIndex {
        if self.is_running() {
            self.high_water
        } else {
            self.may_have_left()
        }
    }

    /// Applies the desired state of its task.
    pub(super) fn follow(&mut self, desired: Desired, now: WallMs) {
        (self.desired, self.updated_at) = (desired, now);
        match (desired, self.state) {
            (Desired::Run, ShardState::Stopped) => {
                // A start clears the waiting time and the stalls.
                self.state = ShardState::Idle;
                (self.not_before, self.recoveries, self.claimed_at) = (WallMs(0), 0, None);
            }
            (
                Desired::Stop | Desired::StopNow | Desired::Cancel,
                ShardState::Idle | ShardState::Recovering,
            ) => {
                self.state = ShardState::Stopped;
            }
            _ => {}
        }
    }

    /// Lowers the end. Items that were or may have been dispatched stay; a shard with nothing left is done.
    pub(super) fn cut(&mut self, end: ItemIndex, now: WallMs) {
        self.end = self.end.min(end.max(self.may_have_left()).max(self.first));
        self.updated_at = now;
        if self.is_settled() {
            self.state = ShardState::Done;
        }
    }
}
