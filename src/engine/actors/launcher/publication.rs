//! Publication of a task's results by the launcher of its last shard: prepared, then made visible by one write under
//! the claim.
//!
//! Nothing is sent to the task's handler, so there is no dispatch gate and no lease to keep: the epoch alone guards
//! against another node's publication. It runs as one task of the launcher and is cancelled by a signal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windrow_words::engine as say;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::actors::launcher::opening::{self, ClaimedPublication};
use crate::actors::launcher::{Launcher, LauncherEnd, Msg};
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::tree::Activity;
use crate::ports::StoreError;
use crate::ports::datasets::publication::{OwnClaim, PrepareError, Prepared};
use crate::ports::handling::meters::PublicationFate;
use crate::ports::ownership::run_store::{CheckpointAck, RunClose};
use windrow_core::ids::Moment;
use windrow_core::items::retry::doubled;
use windrow_core::task::lifecycle::{Desired, StopReason};

/// First and longest delay before a publication that could not be prepared is tried again.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));
/// Tries before the task stops; people start it again.
const TRIES_MAX: u32 = 5;

/// Publication that this launcher is preparing or writing.
pub(crate) struct Publication {
    own: OwnClaim,
    claimed_at: Moment,
    gives_up: Arc<Notify>,
    /// Set while the shard is being released or the results published: the row may name no owner by then.
    is_ending: Arc<AtomicBool>,
    work: AbortHandle,
}

impl Drop for Publication {
    /// Runs also when the launcher fails or is killed, and aborts the work.
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Launcher {
    /// Starts the publication that this node has just claimed.
    pub(crate) fn publish(&mut self, claimed: ClaimedPublication) {
        let node = self.arguments.node.clone();
        // A successor waits for the session's silence, not for a lease.
        opening::give_lease_back(claimed.key, &self.arguments.routes.lease_keeper);
        let own = OwnClaim {
            shard: claimed.shard.shard,
            epoch: claimed.shard.epoch,
            claim: claimed.shard.claim,
        };
        tracing::info!(actor = self.me.leaf.path(), "publishing the results of the task");
        self.me.leaf.say(Activity::Ok, say::publishing());
        let (gives_up, is_ending, me) = (
            Arc::new(Notify::new()),
            Arc::<AtomicBool>::default(),
            self.me.clone(),
        );
        let (signal, ending, claimed_at) = (gives_up.clone(), is_ending.clone(), node.clock.now());
        let recoveries = claimed.shard.recoveries;
        let work = self.arguments.node.work.spawn(self.me.guard(async move {
            let prepared = tokio::select! {
                prepared = node.preparer.prepare(&claimed.task, own) => prepared.map_err(Some),
                () = signal.notified() => Err(None),
            };
            ending.store(true, Ordering::Relaxed);
            let end = conclude(&node, own, prepared, recoveries).await;
            me.tell(Msg::Ended(end));
        }));
        self.publication = Some(Publication {
            own,
            claimed_at,
            gives_up,
            is_ending,
            work: work.abort_handle(),
        });
        for message in std::mem::take(&mut self.early) {
            self.me.tell(message);
        }
    }

    /// Handles messages while a publication is in progress.
    pub(crate) fn on_publication(&mut self, message: &Msg) {
        let Some(publication) = &self.publication else {
            return;
        };
        let own = publication.own;
        let is_foreign = match message {
            // An answer from before the claim names the previous claim.
            Msg::Row(row, sent) if row.claim != own.claim => publication.claimed_at < *sent,
            Msg::NotListed(sent) => {
                publication.claimed_at < *sent && !publication.is_ending.load(Ordering::Relaxed)
            }
            Msg::Drop => true,
            _ => false,
        };
        if is_foreign {
            self.publication = None;
            return self.finish(LauncherEnd::Fenced);
        }
        let is_over = match message {
            Msg::Row(row, _) => row.claim == own.claim && (row.desired != Desired::Run || row.leaves),
            Msg::HandOver | Msg::Leave | Msg::Abort => true,
            Msg::Look => return self.look(),
            Msg::Controlled(control) => control.desired != Desired::Run,
            _ => false,
        };
        if is_over {
            publication.gives_up.notify_one();
        }
    }
}

/// Publishes the prepared results, or releases the shard. A cancelled publication is released without a message,
/// which stops it if its task is to stop.
async fn conclude(
    node: &NodeContext,
    own: OwnClaim,
    prepared: Result<Prepared, Option<PrepareError>>,
    recoveries: u32,
) -> LauncherEnd {
    let close = match prepared {
        Ok(prepared) => {
            let known = opening::retrying(|| node.publications.publish(own, &prepared, node.clock.wall()));
            let end = end_of(known.await, RunClose::Done);
            if matches!(end, LauncherEnd::Closed(_)) {
                node.meters.published(PublicationFate::Done);
                tracing::info!(shard = %own.shard, "results published");
            }
            return end;
        }
        Err(None) => RunClose::Released,
        Err(Some(PrepareError::Fenced)) => return LauncherEnd::Fenced,
        Err(Some(PrepareError::Failed(text))) => RunClose::stopped(StopReason::ReduceFailed, text),
        Err(Some(PrepareError::Unavailable(text))) => later(node, text, recoveries),
    };
    if let RunClose::Stopped { text, .. } | RunClose::Recovering { text, .. } = &close {
        tracing::warn!(shard = %own.shard, text, "results not published");
        node.meters.published(match &close {
            RunClose::Stopped { .. } => PublicationFate::Failed,
            _ => PublicationFate::Retried,
        });
    }
    let now = node.clock.wall();
    let released =
        opening::retrying(|| node.runs.release(own.shard, own.epoch, own.claim, &close, now)).await;
    end_of(released, close)
}

fn later(node: &NodeContext, text: String, recoveries: u32) -> RunClose {
    let nth = recoveries + 1;
    if nth >= TRIES_MAX {
        let text = format!("{text}; tried {nth} times");
        return RunClose::stopped(StopReason::ReduceFailed, text);
    }
    RunClose::Recovering {
        not_before: node.clock.wall().plus(doubled(TRY_AGAIN, recoveries)),
        reason: "reduce_unavailable".to_owned(),
        text: format!("{text}; try {nth} of {TRIES_MAX}"),
        nth: Some(nth),
    }
}

fn end_of(outcome: Result<CheckpointAck, StoreError>, close: RunClose) -> LauncherEnd {
    match outcome {
        Ok(CheckpointAck::Stored) => LauncherEnd::Closed(close),
        Ok(CheckpointAck::Fenced) => LauncherEnd::Fenced,
        Err(error) => LauncherEnd::StillOwned(error.to_string()),
    }
}
