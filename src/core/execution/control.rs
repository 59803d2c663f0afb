//! Commands from outside the lanes, and what a run takes over from the one before.

use super::Execution;
use super::types::{Command, Now, RunEnd};
use crate::ids::ItemIndex;
use crate::items::verdict::{ItemTrouble, ParkedItem};
use crate::items::waiting::{Doing, Place, Trouble};

impl Execution {
    pub(super) fn on_command(&mut self, command: Command, now: Now) {
        match command {
            Command::Tune(tuning) => self.tune(*tuning, now),
            Command::Stop(end) => self.stop(end),
            Command::Finish(end) => self.finish(end),
            Command::Supply(supply) => self.on_supply(supply),
            Command::Canary(canary) => self.items.canary.set(canary, self.items.range.start),
            Command::GiveUp(decided) => self.set_given_up(decided),
            Command::Skip(wanted) => self.set_skips(wanted),
            Command::Shared(shared) => self.on_shared(shared, now),
            Command::Heard(pause, slow) => self.on_heard(pause, slow, now),
        }
    }

    /// Nothing at or above `end` is dispatched any more; what was dispatched, or may have been by a run before, still settles.
    pub(super) fn finish(&mut self, end: ItemIndex) {
        let end = end.max(self.lowest_end()).max(self.items.range.start);
        let closes = self.items.supply.close();
        if end < self.items.end || closes {
            let end = end.min(self.items.end);
            self.items.drafts.finish(end);
            self.exclude(Some(end));
        }
    }

    pub(super) fn exclude(&mut self, end: Option<ItemIndex>) {
        if let Some(end) = end.filter(|end| *end < self.items.end) {
            self.items.counters.excluded += self.items.end.0 - end.0;
            self.items.end = end;
            self.items.supply.close();
        }
    }

    /// Whether a stop was asked for or the run is over, and how it ends.
    pub fn ending(&self) -> Option<&RunEnd> {
        match &self.phase {
            super::Phase::Running => None,
            super::Phase::Stopping(end) | super::Phase::Ended(end) => Some(end),
        }
    }

    pub(super) fn restore_troubles(&mut self, retrying: Vec<ItemTrouble>, parked: Vec<ParkedItem>, now: Now) {
        let highest = retrying.iter().map(|row| row.index.plus(1)).max();
        self.items.window.cover(highest.unwrap_or_default());
        for row in retrying
            .into_iter()
            .filter(|row| !self.items.window.is_settled(row.index))
        {
            let trouble = Trouble {
                attempts: row.attempts,
                charged: row.charged,
                place: Place::Window,
                doing: Doing::Waiting(now.moment),
                failure: row.failure,
                history: row.history,
                at: row.at,
                due_at: now.wall,
                has_row: true,
                ..Trouble::default()
            };
            self.items.high = self.items.high.max(row.index.plus(1));
            self.items.troubles.put(row.index, trouble);
        }
        for row in parked {
            let trouble = Trouble {
                attempts: row.attempts,
                charged: row.charged,
                place: Place::Outside,
                doing: Doing::Waiting(now.moment.plus(row.due_at.since(now.wall))),
                failure: row.failure,
                history: row.history,
                at: row.at,
                due_at: row.due_at,
                has_row: true,
                ..Trouble::default()
            };
            self.items.troubles.put(row.index, trouble);
        }
        self.items.counters.parked = 0;
        self.items.counters.in_flight = 0;
    }
}
