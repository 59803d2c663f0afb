//! What the supervisor does for its node: its own children, orphaned shards, reasons for waiting.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorRef, SpawnErr};
use tokio::task::JoinHandle;

use crate::actors::membership::restorer::{self, Restorer};
use crate::actors::membership::session::Session;
use crate::actors::runtime::lines::Lines;
use crate::actors::runtime::policy::{Kind, policy};
use crate::actors::runtime::tree::Address;
use crate::actors::supervisor::{Msg, State};
use crate::actors::upkeep::maintenance::{Sinks, Steward};
use crate::actors::upkeep::outbox_dispatcher::Courier;
use crate::actors::writers::checkpoint_writer::CheckpointWriter;
use crate::actors::writers::data_log_writer::DataLogWriter;
use crate::actors::writers::lease_keeper::LeaseKeeper;
use crate::ports::ownership::run_store::RunClose;
use crate::ports::ownership::session_store::OwnedShard;

/// The wait before a shard whose launcher failed is offered again, doubled with each failure up to the longest.
const RELAUNCH_FIRST: Duration = Duration::from_millis(500);
const RELAUNCH_MAX: Duration = Duration::from_secs(60);

/// Spawns an actor on a runtime: what heartbeats and leases depend on shares no thread with the work.
async fn on<M: ractor::Message>(
    runtime: &tokio::runtime::Handle,
    spawning: impl Future<Output = Result<(ActorRef<M>, JoinHandle<()>), SpawnErr>> + Send + 'static,
) -> Result<ActorCell, SpawnErr> {
    match runtime.spawn(spawning).await {
        Ok(spawned) => Ok(spawned?.0.get_cell()),
        Err(error) => Err(SpawnErr::StartupFailed(error.into())),
    }
}

/// Who hears what the steward did.
fn sinks(supervisor: &Address<Msg>, lines: &Lines) -> Sinks {
    let (nudger, leaver) = (supervisor.clone(), supervisor.clone());
    let nudge = Arc::new(move |task| {
        nudger.tell(Msg::Nudge(task));
    });
    let leave = Arc::new(move |shard| {
        leaver.tell(Msg::LeaveToOthers(shard));
    });
    Sinks {
        nudge,
        leave,
        restorer: lines.restorer.clone(),
    }
}

/// How long the ordered end of one child may take.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Ends a child, and waits for that.
pub(crate) async fn end(kind: Kind, child: &ActorCell) {
    let patience = Some(STOP_PATIENCE);
    let fault = if kind == Kind::LeaseKeeper {
        // What runs told it as they ended may be in its mailbox.
        child
            .drain_and_wait(patience)
            .await
            .err()
            .map(|fault| fault.to_string())
    } else {
        child
            .stop_and_wait(None, patience)
            .await
            .err()
            .map(|fault| fault.to_string())
    };
    if let Some(error) = fault {
        tracing::warn!(actor = kind.as_str(), error, "child did not end in time");
    }
}

impl State {
    pub(crate) async fn spawn(&self, kind: Kind, me: &ActorCell) -> Result<ActorCell, SpawnErr> {
        let (node, lines, me) = (self.node.clone(), self.lines.clone(), me.clone());
        let name = Some(self.leaf.child(kind.as_str()));
        let address = self.me.clone();
        Ok(match kind {
            Kind::LeaseKeeper => {
                let vital = node.vital.clone();
                on(
                    &vital,
                    Actor::spawn_linked(name, LeaseKeeper, (node, lines.lease_keeper), me),
                )
                .await?
            }
            Kind::CheckpointWriter => {
                Actor::spawn_linked(name, CheckpointWriter, (node, lines.checkpoint_writer), me)
                    .await?
                    .0
                    .get_cell()
            }
            Kind::DataLogWriter => {
                let arguments = (node, self.logs.clone());
                Actor::spawn_linked(name, DataLogWriter, arguments, me)
                    .await?
                    .0
                    .get_cell()
            }
            Kind::Session => {
                let news = Arc::new(move |news| {
                    address.tell(Msg::News(news));
                });
                let life = self.life.clone();
                let vital = node.vital.clone();
                on(
                    &vital,
                    Actor::spawn_linked(name, Session, (node, news, life, lines.session), me),
                )
                .await?
            }
            Kind::Courier => {
                let arguments = (node, self.logs.clone(), lines);
                Actor::spawn_linked(name, Courier, arguments, me)
                    .await?
                    .0
                    .get_cell()
            }
            Kind::Steward => {
                let sinks = sinks(&address, &lines);
                Actor::spawn_linked(name, Steward, (node, sinks), me)
                    .await?
                    .0
                    .get_cell()
            }
            Kind::Supervisor
            | Kind::Restorer
            | Kind::Launcher
            | Kind::LeaseRenewer
            | Kind::WindowExecutor => {
                let offer = Arc::new(move |candidates| {
                    address.tell(Msg::Offer(candidates));
                });
                Actor::spawn_linked(name, Restorer, (node, offer, lines.restorer), me)
                    .await?
                    .0
                    .get_cell()
            }
        })
    }

    /// A respawn that fails is a failure of the child, not of this actor: it is tried again by the same policy.
    pub(crate) async fn restart(&mut self, kind: Kind, me: &ActorCell) {
        if self.is_over() {
            return;
        }
        match self.spawn(kind, me).await {
            Ok(child) => {
                if let Some((cell, _)) = self.children.get_mut(&kind) {
                    *cell = child;
                }
            }
            Err(error) => {
                tracing::error!(actor = kind.as_str(), %error, "child not started; trying again");
                self.me.tell_after(policy(kind).wait_max, Msg::Restart(kind));
            }
        }
    }

    /// A shard of this session that nobody here runs: only we can give it back (decision 0020, rule 5).
    pub(crate) fn release_orphan(&mut self, row: OwnedShard) {
        let failures = self.failures.get(&row.shard).copied().unwrap_or(0);
        let wait = RELAUNCH_FIRST
            .saturating_mul(1 << failures.min(16))
            .min(RELAUNCH_MAX);
        let (node, lines) = (self.node.clone(), self.lines.clone());
        node.meters.recovers("run_failed");
        tracing::warn!(shard = %row.shard, wait_ms = wait.as_millis() as u64, "owned shard without a run released");
        tokio::spawn(async move {
            let now = node.clock.wall();
            let close = RunClose::Recovering {
                not_before: now.plus(wait),
                reason: "run_failed".to_owned(),
                text: "its run failed on this node; it goes on from the last checkpoint".to_owned(),
                nth: None,
            };
            if let Err(error) = node
                .runs
                .release(row.shard, row.epoch, row.claim, &close, now)
                .await
            {
                tracing::warn!(shard = %row.shard, %error, "not released; trying again at the next heartbeat");
            }
            tokio::time::sleep(wait).await;
            lines.restorer.tell(restorer::Msg::Wake);
        });
    }
}
