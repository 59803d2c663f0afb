//! Claim of a shard by its launcher, and the start of its run or the end without one.

use std::sync::atomic::Ordering;
use windrow_words::engine as say;

use crate::actors::launcher::opening::{self, Claimed, NotClaimed, Opened};
use crate::actors::launcher::run::Run;
use crate::actors::launcher::share::LOOK_AGAIN;
use crate::actors::launcher::{Launcher, LauncherEnd, Msg};
use crate::actors::runtime::actor::Handled;
use crate::actors::runtime::tree::{self, Activity};
use crate::ports::handling::data_log::DataLogLine;
use crate::ports::ownership::run_store::{CheckpointAck, ClaimedShard, LeftBy, RunClose};
use windrow_core::ids::{ClaimId, Epoch};
use windrow_core::task::lifecycle::{Desired, StopReason};

impl Launcher {
    pub(crate) fn claim(&mut self) {
        let (arguments, me) = (self.arguments.clone(), self.me.clone());
        let called_off = self.called_off.clone();
        self.arguments.node.work.spawn(self.me.guard(async move {
            // The semaphore is never closed. Without a permit the bound is missing, but nothing goes wrong.
            let permit = arguments.claims.clone().acquire_owned().await.ok();
            let outcome = if called_off.load(Ordering::Relaxed) {
                Err(NotClaimed::LOST)
            } else {
                opening::claim(&arguments, permit).await
            };
            me.tell(Msg::Claimed(Box::new(outcome)));
        }));
    }

    pub(crate) async fn on_claimed(&mut self, outcome: Result<Opened, NotClaimed>) -> Handled {
        match outcome {
            Ok(opened) if self.arguments.life.trust.is_fenced() => {
                // Nothing is carried over from a session that was fenced meanwhile (decision 0020, rule 4).
                opening::give_lease_back(opened.key(), &self.arguments.routes.lease_keeper);
                self.finish(LauncherEnd::Fenced);
                Ok(())
            }
            Ok(Opened::Publication(claimed)) => {
                self.publish(*claimed);
                Ok(())
            }
            Ok(Opened::Run(claimed)) if !self.is_booked(&claimed) => {
                tracing::info!(
                    actor = self.me.leaf.path(),
                    "rate changed in the meantime; offering the shard again"
                );
                opening::give_lease_back(claimed.key, &self.arguments.routes.lease_keeper);
                self.release(claimed.shard.epoch, claimed.shard.claim, RunClose::Released);
                Ok(())
            }
            Ok(Opened::Run(claimed)) => self.begin_run(*claimed).await,
            Err(NotClaimed::End(end)) => {
                self.finish(end);
                Ok(())
            }
            Err(NotClaimed::Unfit(unfit)) => {
                let (shard, close) = *unfit;
                if close == RunClose::Released {
                    tracing::info!(actor = self.me.leaf.path(), "shard claimed to commit its end");
                } else {
                    tracing::error!(actor = self.me.leaf.path(), %close, "shard can't run");
                }
                self.release(shard.epoch, shard.claim, close);
                Ok(())
            }
        }
    }

    /// True if the booked rate is the one that would run: the offer may be older than a change of the rate, which
    /// found nothing to book again.
    fn is_booked(&self, claimed: &Claimed) -> bool {
        let offered = &self.arguments.candidate;
        let now = claimed.control.shared.share;
        let rate = offered.share.of_limit(claimed.control.tuning.rate);
        offered.desired != Desired::Run || (offered.rate == rate && offered.share.parts() >= now.parts())
    }

    async fn begin_run(&mut self, claimed: Claimed) -> Handled {
        let (epoch, claim) = (claimed.shard.epoch, claimed.shard.claim);
        let left_by = claimed.shard.left_by.as_ref();
        self.taken_from = self.taken_from.take().or_else(|| left_by.map(described));
        self.log_take_over(&claimed.shard);
        match Run::open(self, claimed) {
            Ok(run) => {
                self.arguments.seen.note(run.claim(), run.control());
                self.run = Some(run);
            }
            Err(error) => {
                let close = RunClose::stopped(StopReason::HandlerRejected, error.to_string());
                self.release(epoch, claim, close);
                return Ok(());
            }
        }
        self.with_run(|run, state| state.me.leaf.say(Activity::Ok, run.doing()));
        self.me.tell_after(LOOK_AGAIN, Msg::LookAgain);
        self.with_run(|run, state| run.book_again(state));
        self.start_renewer().await?;
        self.start_executor().await?;
        self.tell_of_begin();
        for message in std::mem::take(&mut self.early) {
            self.me.tell(message);
        }
        Ok(())
    }

    /// Writes a line to the task's own log if the previous node didn't end the run.
    fn log_take_over(&self, shard: &ClaimedShard) {
        let owner = self.arguments.candidate.session;
        let is_taken = owner.is_some_and(|owner| owner != self.arguments.life.id);
        let was_lost = shard.left_by.as_ref().is_some_and(|left| left.is_lost);
        if !is_taken && !was_lost {
            return;
        }
        let unknown = say::unknown_node().english();
        let from = self.taken_from.as_deref().unwrap_or(unknown);
        let at = self.arguments.node.clock.wall();
        let line = DataLogLine::taken_over(shard.shard, at, from, shard.may_repeat());
        (self.arguments.logs.sink())(line);
    }

    /// Logs one line per run, with its part of the tree, which is complete by now.
    fn tell_of_begin(&self) {
        let Some(run) = &self.run else { return };
        let path = self.me.leaf.path();
        let from = self.taken_from.as_deref().unwrap_or("nobody");
        let shown = self.arguments.node.tree.for_log(path, |printed| printed.start);
        let (number, progress) = (run.cell.about.run.0, run.cell.progress());
        tracing::info!(
            target: tree::LOG,
            actor = path,
            business = run.business(),
            run = number,
            watermark = progress.watermark.0,
            total = progress.total.0,
            from,
            tree = %shown,
            "run began"
        );
    }

    /// Releases the shard in the store without a run, then ends the launcher.
    fn release(&mut self, epoch: Epoch, claim: ClaimId, close: RunClose) {
        let (node, me, shard) = (self.arguments.node.clone(), self.me.clone(), self.shard());
        self.arguments.node.work.spawn(self.me.guard(async move {
            let now = node.clock.wall();
            let released = opening::retrying(|| node.runs.release(shard, epoch, claim, &close, now)).await;
            me.tell(Msg::Ended(match released {
                Ok(CheckpointAck::Stored) => LauncherEnd::Closed(close),
                Ok(CheckpointAck::Fenced) => LauncherEnd::Fenced,
                Err(error) => LauncherEnd::StillOwned(error.to_string()),
            }));
        }));
    }
}

/// Describes the node that left a shard, for messages.
fn described(left: &LeftBy) -> String {
    match left.is_lost {
        true => say::fenced_node(&left.node).to_string(),
        false => say::leaving_node(&left.node).to_string(),
    }
}
