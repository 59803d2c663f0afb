//! A shard, as far as its task's life depends on it.

use super::obey::is_ending;
use crate::ids::{ItemCount, ItemIndex, RunNo, SessionId, ShardId, TaskId, WallMs};
use crate::items::counters::Counters;
use crate::shards::Share;
use crate::task::ShardRange;
use crate::task::lifecycle::{ShardState, Desired};

/// A shard. What its owner alone writes (its progress) is only read here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardLife {
    /// Its number.
    pub no: u32,
    /// The first index.
    pub first: ItemIndex,
    /// One past the last index that is to be done; lower than `range_end` after finishing early.
    pub end: ItemIndex,
    /// One past the last index.
    pub range_end: ItemIndex,
    /// Where it stands.
    pub state: ShardState,
    /// What its task wants of it; `rest` while the business prepares itself.
    pub desired: Desired,
    /// Who owns it, or did when nobody took it away.
    pub session: Option<SessionId>,
    /// Its newest run; 0 before the first.
    pub run: RunNo,
    /// Everything before is settled.
    pub watermark: ItemIndex,
    /// One past the highest index whose answer is known.
    pub high_water: ItemIndex,
    /// One past the highest index that may have left.
    pub reach: ItemIndex,
    /// The sums of its own range.
    pub counters: Counters,
    /// How often it recovered without an item of progress between.
    pub recoveries: u32,
    /// Watermark at the last claim; none forgives: the next claim is no stall.
    pub claimed_at: Option<ItemIndex>,
    /// It can't be claimed before.
    pub not_before: WallMs,
    /// When it was active last.
    pub updated_at: WallMs,
    /// Until when others leave it to the node that people moved it to.
    pub moves_until: Option<WallMs>,
    /// Its part of the rate, as the store keeps it; none is the whole.
    pub share: Option<i64>,
}

/// Until when a shard can't be claimed that waits for the canary: for good, as long as nobody lets it.
pub(super) const HELD: WallMs = WallMs(i64::MAX);

impl ShardLife {
    /// One that never ran.
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
            reach: range.start,
            counters: Counters::default(),
            recoveries: 0,
            claimed_at: None,
            not_before: WallMs(0),
            updated_at: now,
            moves_until: None,
            share: None,
        }
    }

    /// The one that publishes the results of a task of so many items.
    pub(super) fn of_publication(total: ItemCount, desired: Desired, now: WallMs) -> ShardLife {
        let end = ItemIndex(total.0);
        let no = ShardId::publication(TaskId(0)).no;
        let mut shard = ShardLife::new(no, ShardRange { start: end, end }, desired, now);
        if is_ending(desired) {
            shard.state = ShardState::Stopped;
        }
        shard
    }

    /// Whether it has no items: it publishes the results.
    pub fn is_publication(&self) -> bool {
        self.no == ShardId::publication(TaskId(0)).no
    }

    /// Its part of the task's rate; none once it is done.
    pub fn part(&self) -> Option<Share> {
        (!self.is_done()).then(|| Share::read(self.share))
    }

    /// When it may be claimed again, where it recovers.
    pub fn next_at(&self) -> Option<WallMs> {
        (self.state == ShardState::Recovering).then_some(self.not_before)
    }

    /// Its counters, with what an early finish cut off as excluded.
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

    /// Whether nothing of it is left, as far as is saved.
    pub(super) fn is_settled(&self) -> bool {
        self.watermark >= self.end && self.counters.parked == 0
    }

    /// One past the highest index that a run which is over may have sent: an older program's writes high water alone.
    fn may_have_left(&self) -> ItemIndex {
        self.reach.max(self.high_water)
    }

    /// What was dispatched, as far as is known; its owner knows better.
    pub(super) fn dispatched(&self) -> ItemIndex {
        if self.is_running() {
            self.high_water
        } else {
            self.may_have_left()
        }
    }

    /// Hears what its task wants.
    pub(super) fn follow(&mut self, desired: Desired, now: WallMs) {
        (self.desired, self.updated_at) = (desired, now);
        match (desired, self.state) {
            (Desired::Run, ShardState::Stopped) => {
                // A start forgives: no waiting time, no stalls.
                self.state = ShardState::Idle;
                (self.not_before, self.recoveries, self.claimed_at) = (WallMs(0), 0, None);
            }
            (Desired::Stop | Desired::StopNow | Desired::Cancel, ShardState::Idle | ShardState::Recovering) => {
                self.state = ShardState::Stopped;
            }
            _ => {}
        }
    }

    /// Ends earlier. What was dispatched, or may have been, stays; one with nothing left is done.
    pub(super) fn cut(&mut self, end: ItemIndex, now: WallMs) {
        self.end = self.end.min(end.max(self.may_have_left()).max(self.first));
        self.updated_at = now;
        if self.is_settled() {
            self.state = ShardState::Done;
        }
    }
}
