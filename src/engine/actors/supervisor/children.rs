//! Children of the supervisor itself, and owned shards without a run on the node.

use std::collections::BTreeMap;
use std::time::Duration;
use windrow_words::engine as say;

use ractor::{ActorCell, ActorId, ActorProcessingErr, Message, SpawnErr};
use tokio::runtime::Handle;

use crate::actors::membership::restorer::{self, Restorer};
use crate::actors::membership::session::Session;
use crate::actors::runtime::actor::{Handled, start};
use crate::actors::runtime::address::Address;
use crate::actors::runtime::policy::{Kind, Restarts, policy};
use crate::actors::supervisor::{Msg, Supervisor};
use crate::actors::upkeep::maintenance::{Maintenance, Sinks};
use crate::actors::upkeep::outbox_dispatcher::OutboxDispatcher;
use crate::actors::upkeep::scheduler::Scheduler;
use crate::actors::upkeep::sink_follower::SinkFollower;
use crate::actors::writers::checkpoint_writer::CheckpointWriter;
use crate::actors::writers::data_log_writer::DataLogWriter;
use crate::actors::writers::lease_keeper::LeaseKeeper;
use crate::ports::ownership::run_store::RunClose;
use crate::ports::ownership::session_store::OwnedShard;
use windrow_core::ids::Moment;
use windrow_core::items::retry::doubled;

/// Children in the order of their start. They end in reverse order: the session last, since it shows that this node
/// is alive.
pub(crate) const CHILDREN: [Kind; 9] = [
    Kind::Session,
    Kind::LeaseKeeper,
    Kind::DataLogWriter,
    Kind::CheckpointWriter,
    Kind::Restorer,
    Kind::OutboxDispatcher,
    Kind::Scheduler,
    Kind::SinkFollower,
    Kind::Maintenance,
];

/// First and longest delay before a shard whose launcher failed is offered again, doubled with each failure.
const RELAUNCH: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// Longest time for the orderly end of one child.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Longest time for it without a store, when no last write is made.
const STOP_PATIENCE_ALONE: Duration = Duration::from_millis(500);

/// Returns the longest time for the orderly end of one child, without a store or with one.
pub(crate) fn stop_patience(is_alone: bool) -> Duration {
    if is_alone {
        STOP_PATIENCE_ALONE
    } else {
        STOP_PATIENCE
    }
}

/// Children, each the only one of its kind, with their restarts.
#[derive(Default)]
pub(crate) struct Children(BTreeMap<Kind, (ActorCell, Restarts)>);

impl Children {
    /// Sets the newest actor of a kind and keeps its restarts.
    pub(crate) fn put(&mut self, kind: Kind, child: ActorCell) {
        let restarts = self.0.remove(&kind).map(|(_, restarts)| restarts);
        self.0.insert(kind, (child, restarts.unwrap_or_default()));
    }

    /// Returns the child that failed, and the delay before its restart; no delay if it failed too often.
    fn on_failure(&mut self, actor: ActorId, now: Moment) -> Option<(Kind, Option<Duration>)> {
        let mut children = self.0.iter_mut();
        let (kind, (_, restarts)) = children.find(|(_, (child, _))| child.get_id() == actor)?;
        Some((*kind, restarts.on_failure(policy(*kind), now)))
    }

    pub(crate) async fn end(&mut self, patience: Duration) {
        for kind in CHILDREN.into_iter().rev() {
            if let Some((child, _)) = self.0.remove(&kind) {
                end(kind, &child, patience).await;
            }
        }
    }
}

async fn end(kind: Kind, child: &ActorCell, patience: Duration) {
    let patience = Some(patience);
    let fault = if kind == Kind::LeaseKeeper {
        // Last messages of runs that ended may be in its mailbox.
        child
            .drain_and_wait(patience)
            .await
            .err()
            .map(|fault| fault.to_string())
    } else {
        let stopped = child.stop_and_wait(None, patience).await;
        stopped.err().map(|fault| fault.to_string())
    };
    if let Some(error) = fault {
        tracing::warn!(actor = kind.as_str(), error, "child did not end in time");
    }
}

/// Starts an actor on this runtime: heartbeats and leases share no thread with the work.
async fn on<M: Message>(
    runtime: &Handle,
    starting: impl Future<Output = Result<Address<M>, SpawnErr>> + Send + 'static,
) -> Result<Address<M>, SpawnErr> {
    match runtime.spawn(starting).await {
        Ok(started) => started,
        Err(error) => Err(SpawnErr::StartupFailed(error.into())),
    }
}

impl Supervisor {
    pub(crate) async fn start_child(&self, kind: Kind) -> Result<ActorCell, SpawnErr> {
        let (node, routes) = (self.node.clone(), self.routes.clone());
        let (logs, me) = (self.logs.clone(), &self.me);
        let (leaf, parent, vital) = (me.leaf.enter_child(kind), me.cell(), self.node.vital.clone());
        Ok(match kind {
            Kind::LeaseKeeper => {
                let arguments = (node, routes.lease_keeper);
                on(&vital, start::<LeaseKeeper>(leaf, arguments, parent))
                    .await?
                    .cell()
            }
            Kind::Session => {
                let arguments = (node, me.sink(Msg::News), self.life.clone(), routes.session);
                on(&vital, start::<Session>(leaf, arguments, parent))
                    .await?
                    .cell()
            }
            Kind::CheckpointWriter => {
                let arguments = (node, routes.checkpoint_writer);
                start::<CheckpointWriter>(leaf, arguments, parent).await?.cell()
            }
            Kind::DataLogWriter => start::<DataLogWriter>(leaf, (node, logs), parent).await?.cell(),
            Kind::OutboxDispatcher => {
                let arguments = (node, logs, routes);
                start::<OutboxDispatcher>(leaf, arguments, parent).await?.cell()
            }
            Kind::Scheduler => {
                let arguments = (node, me.sink(Msg::Nudge), routes);
                start::<Scheduler>(leaf, arguments, parent).await?.cell()
            }
            Kind::SinkFollower => start::<SinkFollower>(leaf, node, parent).await?.cell(),
            Kind::Maintenance => {
                let sinks = Sinks {
                    nudge: me.sink(Msg::Nudge),
                    leave: me.sink(Msg::LeaveToOthers),
                    restorer: routes.restorer,
                };
                start::<Maintenance>(leaf, (node, sinks), parent).await?.cell()
            }
            Kind::Restorer
            | Kind::Supervisor
            | Kind::Launcher
            | Kind::LeaseRenewer
            | Kind::WindowExecutor => {
                let arguments = (node, me.sink(Msg::Offer), routes.restorer);
                start::<Restorer>(leaf, arguments, parent).await?.cell()
            }
        })
    }

    pub(crate) fn on_own_child_ended(&mut self, child: &ActorCell, reason: &str) -> Handled {
        let now = self.node.clock.now();
        let Some((kind, wait)) = self.children.on_failure(child.get_id(), now) else {
            return Ok(());
        };
        let path = self.me.leaf.child(kind.as_str());
        tracing::error!(actor = path, error = reason, "actor failed");
        self.node.tree.failed(&path, reason);
        let Some(wait) = wait else {
            let text = say::failed_too_often(kind.as_str(), reason);
            return Err(ActorProcessingErr::from(text.to_string()));
        };
        self.me.tell_after(wait, Msg::Restart(kind));
        Ok(())
    }

    /// Restarts a child. A restart that fails is a failure of the child, not of this actor, and is tried again by the
    /// same policy.
    pub(crate) async fn restart(&mut self, kind: Kind) {
        if self.is_over() {
            return;
        }
        match self.start_child(kind).await {
            Ok(child) => self.children.put(kind, child),
            Err(error) => {
                tracing::error!(actor = kind.as_str(), %error, "child not started; trying again");
                self.me.tell_after(policy(kind).wait_max, Msg::Restart(kind));
            }
        }
    }

    /// Releases a shard of this session without a run here: only this node can give it back (decision 0020, rule 5).
    pub(crate) fn release_orphan(&mut self, row: OwnedShard) {
        let wait = doubled(RELAUNCH, self.runs.failures(row.shard));
        let (node, routes) = (self.node.clone(), self.routes.clone());
        node.meters.recovers("run_failed");
        tracing::warn!(shard = %row.shard, wait_ms = wait.as_millis() as u64, "owned shard without a run released");
        tokio::spawn(async move {
            let now = node.clock.wall();
            let close = RunClose::Recovering {
                not_before: now.plus(wait),
                reason: "run_failed".to_owned(),
                text: say::run_failed().to_string(),
                nth: None,
            };
            if let Err(error) = node
                .runs
                .release(row.shard, row.epoch, row.claim, &close, now)
                .await
            {
                tracing::warn!(
                    shard = %row.shard,
                    %error,
                    "shard not released; trying again at the next heartbeat"
                );
            }
            tokio::time::sleep(wait).await;
            routes.restorer.tell(restorer::Msg::Wake);
        });
    }
}
