//! Shards of a task as a group: cut at the start, sharing the rate, and receiving the directives given to any of
//! them.
//!
//! All of it happens under the task's lock, so shares are never changed concurrently.

use super::shard::{HELD, ShardLife};
use super::{Desired, Life};
use crate::execution::sharding;
use crate::ids::{ItemIndex, WallMs};
use crate::shards::{Directives, Nodes, Pause, PauseReason, Share, cut};
use crate::task::lifecycle::ShardState;

impl Life {
    /// Cuts a task that starts for the first time into shards. One that has run keeps its shards.
    pub(super) fn make_shards(&mut self, nodes: Nodes, now: WallMs) {
        if self.is_cut() || self.has_run() || self.intake.is_some() {
            return;
        }
        let range = self.whole();
        let wanted = sharding(self.spec.shards.0, &self.tuning, self.spec.canary);
        let parts = cut(range, wanted.count(range, nodes));
        if parts.len() > 1 || self.shards.len() > 1 {
            let shard = |(no, part)| ShardLife::new(no, part, Desired::Rest, now);
            self.shards = (0..).zip(parts).map(shard).collect();
        }
    }

    /// Merges the shards of a task that never ran into one with the whole rate; a start cuts it anew.
    pub(super) fn join_shards(&mut self) {
        let whole = self.whole();
        self.shards.truncate(1);
        for shard in &mut self.shards {
            (shard.first, shard.watermark) = (whole.start, whole.start);
            (shard.high_water, shard.horizon) = (whole.start, whole.start);
            (shard.end, shard.range_end, shard.share) = (whole.end, whole.end, None);
        }
    }

    /// Extends the last shard of a task that has run.
    pub(super) fn extend_shards(&mut self) {
        let end = ItemIndex(self.total.0);
        // The set of results changes, so they are published only once all of them exist.
        self.shards.retain(|shard| !shard.is_publication());
        if let Some(last) = self.shards.last_mut().filter(|shard| shard.range_end != end) {
            (last.end, last.range_end) = (end, end);
            if last.is_done() {
                last.state = ShardState::Stopped;
            }
        }
    }

    /// Assigns rate shares to a task that is about to run, while no shard of it has an owner. Only the first shard
    /// can be claimed before the canary has passed.
    pub(super) fn deal(&mut self) {
        self.share_alike();
        if self.spec.canary.is_some() && self.shards.len() > 1 {
            let is_waiting = |shard: &&mut ShardLife| shard.no != 0 && shard.state == ShardState::Idle;
            self.shards
                .iter_mut()
                .filter(is_waiting)
                .for_each(|shard| shard.not_before = HELD);
        }
    }

    /// Gives every shard that isn't done an equal share, and finished ones nothing.
    fn share_alike(&mut self) {
        if self.shards.len() < 2 {
            return;
        }
        let has_items = |shard: &&ShardLife| !shard.is_done() && !shard.is_publication();
        let share = Share::of_each(self.shards.iter().filter(has_items).count());
        for shard in self.shards.iter_mut().filter(|shard| !shard.is_publication()) {
            shard.share = Some(if shard.is_done() { 0 } else { share.stored() });
        }
    }

    /// Gives the share of a finished shard to the others, whose owners read it with their control. The dispatch gate
    /// of the run that ended was closed before (decision 0020, rule 16).
    pub(super) fn settle_shards(&mut self, now: WallMs) {
        if self.shards.len() < 2 {
            return;
        }
        self.share_alike();
        self.bump_control();
        let is_first_done = self.shards.iter().any(|shard| shard.no == 0 && shard.is_done());
        if is_first_done && self.spec.canary.take().is_some() {
            self.let_go(now);
        }
    }

    /// Makes every shard that waits for the canary claimable.
    fn let_go(&mut self, now: WallMs) {
        for shard in self.shards.iter_mut().filter(|shard| shard.not_before == HELD) {
            (shard.not_before, shard.updated_at) = (WallMs(0), now);
        }
    }

    /// Records that the canary has passed. Its owner knows already, so the control revision stays.
    pub fn pass_canary(&mut self, now: WallMs) {
        if self.spec.canary.take().is_some() {
            self.let_go(now);
        }
    }

    /// Stores the directives that a handler gave to one shard, where all shards read them.
    pub fn tell(&mut self, told: Directives, now: WallMs) {
        let held = self.pause.filter(|pause| pause.until > now);
        self.pause = Pause::longer(held, told.pause);
        self.slow = told.slow.or(self.slow);
        if let Some(end) = told.finish {
            self.end_early(end, now);
        }
        self.bump_control();
    }

    /// Lowers the end. Cuts shards without an owner here; owners read it from their control.
    pub(super) fn end_early(&mut self, end: ItemIndex, now: WallMs) {
        self.finish_at = Some(self.finish_at.map_or(end, |earlier| earlier.min(end)));
        self.seal_early();
        let is_open =
            |shard: &&mut ShardLife| !shard.is_running() && !shard.is_done() && !shard.is_publication();
        self.shards
            .iter_mut()
            .filter(is_open)
            .for_each(|shard| shard.cut(end, now));
        self.settle_shards(now);
    }

    /// Puts the whole task into recovery because one shard found its budget exceeded. The other shards end their runs
    /// when they read it, and none is claimed before. Returns the end of the recovery; one already under way keeps
    /// its end.
    pub(super) fn recover_all(&mut self, until: WallMs, nth: Option<u32>, now: WallMs) -> WallMs {
        let is_under_way = |held: &Pause| held.reason == PauseReason::ErrorBudget && held.until > now;
        let until = self.pause.filter(is_under_way).map_or(until, |held| held.until);
        self.pause = Some(Pause {
            until,
            reason: PauseReason::ErrorBudget,
        });
        self.bump_control();
        for shard in self.shards.iter_mut().filter(|shard| !shard.is_done()) {
            shard.recoveries = nth.unwrap_or(shard.recoveries);
            shard.updated_at = now;
            let is_unowned = matches!(shard.state, ShardState::Idle | ShardState::Recovering);
            if is_unowned && shard.not_before < until {
                (shard.state, shard.not_before) = (ShardState::Recovering, until);
            }
        }
        until
    }
}
