//! The shards of a task together: cut when it starts, sharing its rate, told what one of them was told.
//!
//! All of it happens under the task's lock, so two shards never share at the same time.

use super::shard::{HELD, ShardLife};
use super::{Life, Desired};
use crate::execution::sharding;
use crate::ids::{ItemIndex, WallMs};
use crate::shards::{Directives, Nodes, Pause, PauseReason, Share, cut};
use crate::task::lifecycle::ShardState;

impl Life {
    /// Makes the shards of a task that is started and of which nothing ever ran; one that has run keeps those it has.
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

    /// Makes one shard of a task that never ran, which has all of its rate; a start cuts it anew.
    pub(super) fn join_shards(&mut self) {
        let whole = self.whole();
        self.shards.truncate(1);
        for shard in &mut self.shards {
            (shard.first, shard.watermark) = (whole.start, whole.start);
            (shard.high_water, shard.reach) = (whole.start, whole.start);
            (shard.end, shard.range_end, shard.share) = (whole.end, whole.end, None);
        }
    }

    /// Lengthens the last shard of a task that has run.
    pub(super) fn extend_shards(&mut self) {
        let end = ItemIndex(self.total.0);
        // Its results are not what they were: they are published when all are there.
        self.shards.retain(|shard| !shard.is_publication());
        if let Some(last) = self.shards.last_mut().filter(|shard| shard.range_end != end) {
            (last.end, last.range_end) = (end, end);
            if last.is_done() {
                last.state = ShardState::Stopped;
            }
        }
    }

    /// Shares a task that is about to run, while no shard of it has an owner. Only the first can be claimed before the
    /// canary has passed.
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

    /// Gives each shard that isn't done the same part, and those that are nothing.
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

    /// After a shard was done: its part goes to the others, whose owners read it with their control. The gate of the run
    /// that ended was closed before (decision 0020, rule 16).
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

    /// Every shard can be claimed.
    fn let_go(&mut self, now: WallMs) {
        for shard in self.shards.iter_mut().filter(|shard| shard.not_before == HELD) {
            (shard.not_before, shard.updated_at) = (WallMs(0), now);
        }
    }

    /// The canary has passed. Its owner knows, so the revision of its settings stays.
    pub fn pass_canary(&mut self, now: WallMs) {
        if self.spec.canary.take().is_some() {
            self.let_go(now);
        }
    }

    /// Keeps what a handler told one shard where all of them read it.
    pub fn tell(&mut self, told: Directives, now: WallMs) {
        let held = self.pause.filter(|pause| pause.until > now);
        self.pause = Pause::longer(held, told.pause);
        self.slow = told.slow.or(self.slow);
        if let Some(end) = told.finish {
            self.end_early(end, now);
        }
        self.bump_control();
    }

    /// Lowers the end. Shards without an owner are cut here; an owner reads it from its control.
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

    /// The whole task recovers because one shard has found its budget exceeded: the others end their runs when they read
    /// it, and none is claimed before. Says when; a recovery that is under way already goes on.
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
