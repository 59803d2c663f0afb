//! Stragglers: items that hold a full window although slots are free. They are parked, even in flight.

use crate::execution::Execution;
use crate::execution::items::Items;
use crate::execution::types::Now;
use crate::ids::{ItemIndex, Moment};
use crate::items::run::IndexRun;
use crate::items::waiting::{Doing, Place, RetryingItem};

/// Time since which the window has been full.
#[derive(Debug, Default)]
pub(in crate::execution) struct Stragglers {
    full_since: Option<Moment>,
}

impl Stragglers {
    pub(in crate::execution) fn full_since(&self) -> Option<Moment> {
        self.full_since
    }
}

impl Execution {
    /// Parks the items that have held a full window for `straggler_after` while slots are free, even in flight:
    /// everything unsettled in the window's lower half, since its upper half was dispatched later and is done.
    pub(in crate::execution) fn evict_stragglers(&mut self, now: Now) {
        let held = !self.settings.tuning.ordered
            && self.judge.circuit.is_closed()
            && self.items.cursor >= self.items.window.limit()
            && self.items.cursor < self.items.end
            && self.items.counters.in_flight < u64::from(self.settings.limits.concurrency);
        if !held {
            self.stragglers.full_since = None;
            return;
        }
        let since = *self.stragglers.full_since.get_or_insert(now.moment);
        if now.moment.since(since) < self.settings.tuning.straggler_after {
            return;
        }
        self.stragglers.full_since = None;
        let half = self
            .items
            .window
            .watermark()
            .plus(u64::from(self.items.window.size() / 2).max(1));
        let mut from = self.items.window.watermark();
        while let Some(run) = self
            .items
            .window
            .unsettled(from, half, 1)
            .filter(|_| self.items.has_room_to_park(&self.settings))
        {
            from = run.end();
            self.items.evict(run.first(), now);
        }
    }
}

impl Items {
    pub(in crate::execution) fn evict(&mut self, index: ItemIndex, now: Now) {
        if self.again.iter().any(|run| run.contains(index)) {
            return;
        }
        if self.window.settle(IndexRun::one(index)).is_err() {
            return;
        }
        let doing = Doing::InFlight;
        let fresh = || RetryingItem {
            doing,
            ..RetryingItem::fresh(now.wall)
        };
        let mut retrying = self.retrying_items.take(index).unwrap_or_else(fresh);
        retrying.place = Place::Outside;
        self.drafts.on_completed(1);
        self.record(index, &retrying);
        self.retrying_items.put(index, retrying);
    }
}
