//! Commands from outside the lanes, and the state that a run takes over from the previous one.

use super::Execution;
use super::types::{Command, Now, RunEnd};
use crate::execution::items::Items;
use crate::ids::{ItemIndex, WallMs};
use crate::items::verdict::{FailingItem, Failure, ParkedItem};
use crate::items::waiting::{Doing, Place, RetryingItem, Suspicion};

impl Execution {
    pub(super) fn on_command(&mut self, command: Command, now: Now) {
        match command {
            Command::Tune(tuning) => self.tune(*tuning, now),
            Command::Stop(end) => self.stop(end),
            Command::Finish(end) => self.items.finish(end),
            Command::Supply(supply) => self.items.on_supply(supply),
            Command::Canary(canary) => self.items.canary.set(canary, self.items.range.start),
            Command::MarkFailed(decided) => self.judge.mark_failed(decided),
            Command::Skip(wanted) => self.set_skips(wanted),
            Command::Shared(shared) => self.on_shared(shared, now),
            Command::Heard(pause, slow) => self.on_heard(pause, slow, now),
            Command::Neighbours(heard) => self.on_neighbours(&heard, now),
        }
    }

    /// Returns the end of the run, once a stop was requested or the run is over.
    pub fn ending(&self) -> Option<&RunEnd> {
        match &self.phase {
            super::Phase::Running => None,
            super::Phase::Stopping(end) | super::Phase::Ended(end) => Some(end),
        }
    }
}

impl Items {
    /// Stops dispatching at or above `end`. Items already dispatched, possibly by an earlier run, still settle.
    pub(in crate::execution) fn finish(&mut self, end: ItemIndex) {
        let end = end.max(self.lowest_end()).max(self.range.start);
        let closes = self.supply.close();
        if end < self.end || closes {
            let end = end.min(self.end);
            self.drafts.finish(end);
            self.exclude(Some(end));
        }
    }

    pub(in crate::execution) fn exclude(&mut self, end: Option<ItemIndex>) {
        if let Some(end) = end.filter(|end| *end < self.end) {
            self.counters.excluded += self.end.0 - end.0;
            self.end = end;
            self.supply.close();
        }
    }

    pub(in crate::execution) fn restore_retrying(
        &mut self,
        retrying: Vec<FailingItem>,
        parked: Vec<ParkedItem>,
        was_down: bool,
        now: Now,
    ) {
        let highest = retrying.iter().map(|row| row.index.plus(1)).max();
        self.window.cover(highest.unwrap_or_default());
        for row in retrying
            .into_iter()
            .filter(|row| !self.window.is_settled(row.index))
        {
            self.high = self.high.max(row.index.plus(1));
            let retrying = RetryingItem {
                history: row.history,
                place: Place::Window,
                doing: Doing::Waiting(now.moment),
                due_at: now.wall,
                ..restored(row.attempts, row.charged, was_down, row.failure, row.at)
            };
            self.retrying_items.put(row.index, retrying);
        }
        for row in parked {
            let retrying = RetryingItem {
                history: row.history,
                place: Place::Outside,
                doing: Doing::Waiting(now.moment.plus(row.due_at.since(now.wall))),
                due_at: row.due_at,
                ..restored(row.attempts, row.charged, was_down, row.failure, row.at)
            };
            self.retrying_items.put(row.index, retrying);
        }
        self.counters.parked = 0;
        self.counters.in_flight = 0;
    }
}

/// Restores an item with the attempts of earlier runs. Charged attempts are evidence, unless the handler was down
/// when they were saved.
fn restored(
    attempts: u32,
    charged: u32,
    was_down: bool,
    failure: Option<Failure>,
    at: WallMs,
) -> RetryingItem {
    RetryingItem {
        attempts,
        charged,
        failure,
        at,
        has_row: true,
        suspicion: Suspicion {
            before: if was_down { 0 } else { charged },
            ..Suspicion::default()
        },
        ..RetryingItem::default()
    }
}
