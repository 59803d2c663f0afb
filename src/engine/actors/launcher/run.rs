//! Run of a launcher: its cell, its children and its numbered checkpoints.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use futures_util::FutureExt;
use ractor::{ActorId, ActorProcessingErr};

use crate::actors::executor;
use crate::actors::executor::reply_lines::{DraftLines, Drafted, count_lines};
use crate::actors::executor::run_cell::RunCell;
use crate::actors::launcher::idle::Idleness;
use crate::actors::launcher::share::InForce;
use crate::actors::launcher::talk::Talk;
use crate::actors::launcher::{Launcher, LauncherEnd, Msg, lease_renewer, opening};
use crate::actors::runtime::address::{Address, Route};
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::policy::{Kind, Restarts, policy};
use crate::actors::runtime::tree::Activity;
use crate::actors::writers::checkpoint_writer;
use crate::actors::writers::lease_keeper;
use crate::ports::ownership::gate::Gate;
use crate::ports::ownership::lease_store::LeaseKey;
use crate::ports::ownership::run_store::{Control, ReplyLines, RunClose, ShardCheckpoint};
use windrow_core::checkpoint;
use windrow_core::execution::{Command, Extension, RunEnd};
use windrow_core::ids::{CheckpointSeq, ClaimId, Epoch, Moment};
use windrow_core::items::retry::doubled;
use windrow_core::task::lifecycle::{Desired, StopReason};

/// Longest time for a handler to close before its launcher ends without it.
const CLOSE_PATIENCE: Duration = Duration::from_secs(30);
/// Time without an acknowledgement after which a checkpoint is sent again.
const RESEND_AFTER: Duration = Duration::from_secs(2);

/// Newest checkpoint, kept until it is stored.
pub(crate) struct Pending {
    checkpoint: ShardCheckpoint,
    draft_no: u64,
}

/// Child actor of the run, once it has been started.
pub(crate) struct Child<M: ractor::Message> {
    pub(crate) address: Option<Address<M>>,
    restarts: Restarts,
}

impl<M: ractor::Message> Child<M> {
    pub(crate) fn new() -> Child<M> {
        let (address, restarts) = (None, Restarts::default());
        Child { address, restarts }
    }

    fn is(&self, actor: ActorId) -> bool {
        self.address
            .as_ref()
            .is_some_and(|known| known.actor().get_id() == actor)
    }

    pub(crate) fn tell(&self, message: M) {
        if let Some(address) = &self.address {
            address.tell(message);
        }
    }

    fn stop(&self) {
        if let Some(address) = &self.address {
            address.actor().stop(None);
        }
    }
}

pub(crate) struct Run {
    pub(crate) cell: Arc<RunCell>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) key: LeaseKey,
    pub(crate) epoch: Epoch,
    pub(crate) control: Control,
    pub(crate) in_force: InForce,
    pub(crate) idleness: Idleness,
    pub(crate) talk: Talk,
    pub(crate) recoveries: u32,
    pub(crate) claimed_at: Moment,
    pub(crate) seq: CheckpointSeq,
    pub(crate) pending: Option<Pending>,
    /// Set when people want the run on another node, or when only a newer program knows its desired state.
    pub(crate) leaves: bool,
    pub(crate) executor: Child<executor::Msg>,
    pub(crate) renewer: Child<lease_renewer::Msg>,
}

impl Run {
    pub(crate) fn claim(&self) -> ClaimId {
        self.key.claim
    }

    /// True if a heartbeat sent at `sent` must have found the shard, were it still ours.
    pub(crate) fn is_missing_at(&self, sent: Moment) -> bool {
        let giving_back = self
            .pending
            .as_ref()
            .is_some_and(|pending| pending.checkpoint.close.is_some());
        self.claimed_at < sent && !giving_back
    }

    /// Returns the business whose items the run calls.
    pub(crate) fn business(&self) -> &str {
        &self.cell.about.business
    }

    /// Describes the state of the run, for the tree.
    pub(crate) fn doing(&self) -> String {
        let progress = self.cell.progress();
        let rate = progress
            .rate
            .map_or_else(|| "no rate".to_owned(), |rate| rate.to_string());
        let settled = progress.counters.settled();
        let text = format!(
            "{}: {settled} of {} settled, {rate}",
            self.business(),
            progress.total.0
        );
        match progress.handler.error {
            Some(error) => say::last_error(text, error.code.as_ref(), error.index.0.to_string()).to_string(),
            None => text,
        }
    }

    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// Numbers a draft, keeps it and sends it. A newer draft holds everything that an unstored older one held.
    pub(crate) fn on_draft(&mut self, drafted: Drafted, state: &mut Launcher) {
        let Drafted {
            draft,
            lines,
            results,
        } = drafted;
        let close = draft
            .end
            .as_ref()
            .map(|end| self.close_of(end, &state.arguments.node));
        if close.is_some() {
            // Closed for good before the statement that releases the shard is sent.
            self.gate.close();
        }
        self.seq = self.seq.next();
        let lines = self.carried_lines(lines);
        let version = state.arguments.node.heartbeats.checkpoint_version();
        let extension = Extension::new(self.cell.found(), draft.meters);
        let checkpoint = ShardCheckpoint {
            shard: self.cell.shard,
            epoch: self.epoch,
            claim: self.key.claim,
            seq: self.seq,
            watermark: draft.watermark,
            high_water: draft.high_water,
            horizon: draft.horizon,
            counters: draft.counters,
            blob: checkpoint::encode_as(version, draft.watermark, &draft.above, &extension.bytes()),
            side: draft.side,
            finish_at: draft.finish_at,
            canary_passed: draft.canary_passed,
            told: draft.told,
            outage: draft.outage,
            lines,
            results_kept: results.kept,
            results: results.segments,
            close,
            now: state.arguments.node.clock.wall(),
        };
        self.pending = Some(Pending {
            checkpoint,
            draft_no: draft.no,
        });
        self.send(state);
    }

    /// Returns the lines of a draft, after those of an earlier draft that may not be stored.
    fn carried_lines(&mut self, new: DraftLines) -> Vec<ReplyLines> {
        let mut lines = self
            .pending
            .take()
            .map(|pending| pending.checkpoint.lines)
            .unwrap_or_default();
        if new != DraftLines::default() {
            lines.push(ReplyLines {
                since: self.seq,
                lines: new.lines.into(),
                dropped: new.dropped,
            });
        }
        lines
    }

    fn send(&self, state: &Launcher) {
        let Some(pending) = &self.pending else { return };
        let sink = state.me.sink(Msg::Written);
        let write = checkpoint_writer::Msg::Write(Box::new(pending.checkpoint.clone()), sink);
        state.arguments.routes.checkpoint_writer.tell(write);
        state
            .me
            .tell_after(RESEND_AFTER, Msg::Resend(pending.checkpoint.seq));
    }

    /// Sends a checkpoint again, since the writer may have died with it. A repeat of the same number is harmless.
    pub(crate) fn resend(&mut self, seq: CheckpointSeq, state: &mut Launcher) {
        if self
            .pending
            .as_ref()
            .is_some_and(|pending| pending.checkpoint.seq == seq)
        {
            self.send(state);
        }
    }

    /// Notes that a checkpoint is durable. Returns the end of the launcher if it was the last one.
    pub(crate) fn on_stored(&mut self, seq: CheckpointSeq, state: &Launcher) -> Option<LauncherEnd> {
        let stored = self.pending.take_if(|pending| pending.checkpoint.seq == seq)?;
        self.cell.on_saved(stored.draft_no);
        count_lines(&stored.checkpoint, &state.arguments.node);
        state.me.leaf.say(Activity::Ok, self.doing());
        self.tell_now_and_then(stored.checkpoint.close.is_some(), state);
        if let Some(close) = stored.checkpoint.close {
            return Some(LauncherEnd::Closed(close));
        }
        self.executor.tell(executor::Msg::Stored(stored.draft_no));
        None
    }

    fn close_of(&self, end: &RunEnd, node: &NodeContext) -> RunClose {
        match end {
            RunEnd::Done => RunClose::Done,
            RunEnd::HandedOver | RunEnd::Fenced => RunClose::Released,
            RunEnd::Stopped {
                reason,
                text,
                cut_off,
            } => RunClose::Stopped {
                reason: *reason,
                text: text.clone(),
                cut_off: cut_off.clone(),
            },
            RunEnd::Recovering { reason, text } => self.recover(reason, text, node),
        }
    }

    /// Returns the close for a recovery. A run that outlasted the longest delay was healthy, so its count of
    /// recoveries restarts. If the whole task recovers, it does so once.
    fn recover(&self, reason: &str, text: &str, node: &NodeContext) -> RunClose {
        if let Some(pause) = self.task_recovers(node.clock.wall()) {
            let (not_before, reason, text) = (pause.until, reason.to_owned(), text.to_owned());
            return RunClose::Recovering {
                not_before,
                reason,
                text,
                nth: None,
            };
        }
        let backoff = node.times.restore_backoff;
        let lasted = node.clock.now().since(self.claimed_at);
        let before = if lasted > backoff.1 { 0 } else { self.recoveries };
        let most = node.times.restore_max;
        if before >= most {
            let text = say::recoveries_exhausted(before, text).to_string();
            return RunClose::stopped(StopReason::RecoveriesExhausted, text);
        }
        RunClose::Recovering {
            not_before: node.clock.wall().plus(doubled(backoff, before)),
            reason: reason.to_owned(),
            text: say::recovery(text, before + 1, most).to_string(),
            nth: Some(before + 1),
        }
    }

    pub(crate) fn on_desired(&self, desired: Desired) {
        let now = self.cell.clock.wall();
        let is_late =
            desired == Desired::Stop && self.control.deadline.is_some_and(|deadline| deadline <= now);
        let end = if is_late {
            RunEnd::stopped(
                StopReason::Deadline,
                windrow_words::task::deadline_passed().to_string(),
            )
        } else {
            RunEnd::stopped(StopReason::Operator, say::stopped().to_string())
        };
        match desired {
            Desired::Run => {}
            Desired::Stop | Desired::Cancel | Desired::Rest => self.steer(Command::Stop(end)),
            Desired::StopNow => self.abort(end),
        }
    }

    /// Ends the core by the given command and drops calls in flight. Without an executor there are none, and the next
    /// executor finds a run that has to end.
    pub(crate) fn abort(&self, end: RunEnd) {
        self.steer(Command::Stop(end));
        self.executor.tell(executor::Msg::Abort);
    }

    /// Drains and gives the shard to another node; aborts if it takes too long. A repeat does nothing.
    pub(crate) fn leave(&mut self, state: &Launcher) {
        if !std::mem::replace(&mut self.leaves, true) {
            tracing::info!(
                shard = %self.cell.shard,
                "draining the run and releasing its shard, to run elsewhere or again"
            );
            self.steer(Command::Stop(RunEnd::HandedOver));
            state
                .me
                .tell_after(state.arguments.node.times.drain_timeout, Msg::Abort);
        }
    }

    /// Sends a command straight to the core, never through the executor: one that died would take the command with
    /// it.
    pub(crate) fn steer(&self, command: Command) {
        let mut fx = windrow_core::execution::Effects::default();
        let told = self
            .cell
            .tell(windrow_core::execution::Event::Command(command), &mut fx);
        if told.is_err() {
            tracing::error!(shard = %self.cell.shard, "run failed; it will be restored");
        }
    }

    /// Restarts a child by the policy; past the limit the launcher fails.
    pub(crate) fn on_child_lost(
        &mut self,
        child: ActorId,
        error: &str,
        state: &Launcher,
    ) -> Result<(), ActorProcessingErr> {
        let now = state.arguments.node.clock.now();
        let (kind, restarts) = if self.executor.is(child) {
            (Kind::WindowExecutor, &mut self.executor.restarts)
        } else if self.renewer.is(child) {
            (Kind::LeaseRenewer, &mut self.renewer.restarts)
        } else {
            return Ok(());
        };
        let path = state.me.leaf.child(kind.as_str());
        tracing::error!(actor = path, error, "actor failed");
        state.arguments.node.tree.failed(&path, error);
        if self.cell.is_broken() {
            return Err(ActorProcessingErr::from(say::core_broken(error).to_string()));
        }
        let Some(wait) = restarts.on_failure(policy(kind), now) else {
            return Err(ActorProcessingErr::from(
                say::failed_too_often(kind.as_str(), error).to_string(),
            ));
        };
        let (me, cell) = (state.me.clone(), self.cell.clone());
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            if kind == Kind::WindowExecutor {
                cell.lanes_gone().await;
            }
            me.tell(Msg::Restart(kind));
        });
        Ok(())
    }

    /// Ends everything of the run. The future completes when the handler is closed and the lease given back.
    pub(crate) fn close(self, state: &Launcher) -> impl Future<Output = ()> + Send + 'static {
        self.gate.close();
        state.me.leaf.say(Activity::Draining, say::closing_handler());
        self.executor.stop();
        self.renewer.stop();
        let node = state.arguments.node.clone();
        let keeper = state.arguments.routes.lease_keeper.clone();
        async move {
            self.cell.silence();
            self.cell.lanes_gone().await;
            // Nothing is in flight any more: the next owner need not wait for the handler to close.
            opening::give_lease_back(self.key, &keeper);
            let closing = AssertUnwindSafe(async { self.cell.handler.close().await }).catch_unwind();
            match tokio::time::timeout(CLOSE_PATIENCE, closing).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => tracing::error!(shard = %self.cell.shard, "handler panicked while closing"),
                Err(_) => tracing::warn!(shard = %self.cell.shard, "handler did not close in time"),
            }
            node.directory.leave(&self.cell);
        }
    }

    /// Ends a run whose launcher failed or was killed.
    pub(crate) fn fail(self, node: &NodeContext, keeper: &Route<lease_keeper::Msg>) {
        self.gate.close();
        opening::give_lease_back(self.key, keeper);
        self.cell.silence();
        node.directory.leave(&self.cell);
        let cell = self.cell;
        node.work.spawn(async move { cell.handler.close().await });
    }
}
