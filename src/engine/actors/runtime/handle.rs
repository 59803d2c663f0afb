//! What others hold of the tree: a handle with named methods, never an actor.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use tokio::sync::{oneshot, watch};

use crate::actors::executor::run_view::{RunSample, RunView};
use crate::actors::membership::hint_listener;
use crate::actors::membership::unique_name;
use crate::actors::runtime::actor::start_root;
use crate::actors::runtime::address::Address;
use crate::actors::runtime::context::{NodeContext, Room, ServingNow};
use crate::actors::runtime::policy::Kind;
use crate::actors::runtime::tree::{self, Tree};
use crate::actors::supervisor::{Msg, Supervisor};
use crate::ports::StoreError;
use crate::ports::ownership::hints::Hint;
use crate::ports::ownership::limit_store::PartView;
use windrow_core::capacity::{Capacity, Ledger, Refusal, Request};
use windrow_core::execution::{Progress, WindowPicture};
use windrow_core::ids::{RunNo, SessionId, ShardId, TaskId};
use windrow_core::settings::RateLimit;
use windrow_core::shards::Share;

/// The supervision tree did not come up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStarted {
    /// Another live node has this name: people drain nodes and move shards by their names.
    #[error("{}", say::node_name_taken(.0))]
    NameTaken(String),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An actor.
    #[error("{}", say::no_actors(.0))]
    Actors(String),
}

/// Shards that a line of the log names.
const NAMED_MAX: usize = 20;

/// The supervision tree of a node, from outside.
pub struct SupervisorHandle {
    node: Arc<NodeContext>,
    address: Address<Msg>,
    over: watch::Receiver<bool>,
}

impl SupervisorHandle {
    /// Starts the tree.
    ///
    /// # Errors
    /// When another live node has the name, or a child can't start.
    pub async fn start(node: Arc<NodeContext>, ledger: Ledger) -> Result<SupervisorHandle, NotStarted> {
        unique_name::await_name(&node).await?;
        let leaf = node.tree.enter(&node.node, Kind::Supervisor);
        node.room.write(&ledger, 0);
        let (address, ended) = start_root::<Supervisor>(leaf, (node.clone(), ledger))
            .await
            .map_err(|error| NotStarted::Actors(error.to_string()))?;
        let shown = node.tree.for_log("", |printed| printed.start);
        tracing::info!(target: tree::LOG, node = node.node, tree = %shown, "node up");
        let (sender, over) = watch::channel(false);
        tokio::spawn(async move {
            if let Err(error) = ended.await {
                tracing::error!(%error, "the supervisor ended by a panic");
            }
            sender.send_replace(true);
        });
        if let Some(hints) = node.hints.clone() {
            tokio::spawn(hint_listener::listen(hints, address.clone(), over.clone()));
        }
        Ok(SupervisorHandle { address, node, over })
    }

    /// Something changed in the store: look for work now instead of at the next scan.
    pub fn wake(&self) {
        self.address.tell(Msg::Wake);
    }

    /// A schedule was changed, or a fire ordered: look at what is due now; other nodes do within a second.
    pub fn wake_schedules(&self) {
        self.address.tell(Msg::WakeSchedules);
    }

    /// How long the heartbeat of each session has not moved, as this node saw it; those it never saw are left out.
    pub fn heartbeat_ages(&self) -> BTreeMap<SessionId, Duration> {
        self.node.heartbeats.ages(self.node.clock.now())
    }

    /// The node's session of this moment; none before its first began.
    pub fn session(&self) -> Option<SessionId> {
        self.node.heartbeats.me()
    }

    /// A task's wish or settings changed: its runs, here and on other nodes, look at once instead of at the next
    /// heartbeat; other nodes look for work too.
    pub fn nudge(&self, task: TaskId) {
        self.address.tell(Msg::Nudge(task));
    }

    /// Tells the other nodes what to look at, where there is a way to.
    pub fn hint(&self, hint: Hint) {
        self.address.tell(Msg::Hint(hint));
    }

    /// The tree as people see it.
    pub fn tree(&self) -> &Tree {
        &self.node.tree
    }

    /// The live progress of each shard of a task that runs here.
    pub fn progress(&self, task: TaskId) -> Vec<(ShardId, Progress)> {
        self.node.directory.progress(task)
    }

    /// The same, without the shards that another node may own by now.
    pub fn trusted_progress(&self, task: TaskId) -> Vec<(ShardId, Progress)> {
        self.node.directory.trusted_progress(task)
    }

    /// The window of each shard of a task that runs here and surely is owned here, in at most so many cells.
    pub fn windows(&self, task: TaskId, cells_max: NonZeroU32) -> Vec<(ShardId, WindowPicture)> {
        self.node.directory.windows(task, cells_max)
    }

    /// Books another rate for what runs here of a task, each shard its part, before the change is committed; `share` is
    /// the part of one of its shards, where none runs here. A raise that was booked and
    /// is not committed after all is given back by booking the old rate. Once the tree has ended there is nothing to
    /// book.
    ///
    /// # Errors
    /// When it doesn't fit, with what would; nothing is booked then. Also when nothing of the task runs here, but
    /// the rate is more than the whole node has.
    pub async fn rebook(&self, task: TaskId, rate: RateLimit, share: Share) -> Result<(), Refusal> {
        let (sender, answer) = oneshot::channel();
        self.address.tell(Msg::Rebook(task, (rate, share), sender));
        answer.await.unwrap_or(Ok(()))
    }

    /// Whether [`SupervisorHandle::rebook`] would book a rate now; nothing is booked.
    ///
    /// # Errors
    /// As it would have.
    pub async fn would_book(&self, task: TaskId, rate: RateLimit, share: Share) -> Result<(), Refusal> {
        let (sender, answer) = oneshot::channel();
        self.address.tell(Msg::TryBook(task, (rate, share), sender));
        answer.await.unwrap_or(Ok(()))
    }

    /// Says whether a shard would be admitted if it stood in this node's line now.
    ///
    /// # Errors
    /// Why it would wait.
    pub async fn would_admit(&self, request: Request) -> Result<(), Refusal> {
        let (sender, answer) = oneshot::channel();
        self.address.tell(Msg::TryAdmit(request, sender));
        answer.await.unwrap_or(Ok(()))
    }

    /// Changes the node's capacity; what runs goes on also where it no longer fits.
    pub fn set_capacity(&self, capacity: Capacity) {
        self.address.tell(Msg::SetCapacity(capacity));
    }

    /// What each node may use of a limit that tasks share.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn parts_of_limit(&self, name: &str) -> Result<Vec<PartView>, StoreError> {
        self.node.limits.parts(name).await
    }

    /// What the running tasks of a business may do together was changed: this node looks at once, others in a second.
    pub fn limits_changed(&self) {
        self.node.pots.hurry();
    }

    /// Changes which tasks this node takes; what runs goes on.
    pub fn set_serving(&self, serving: ServingNow) {
        self.node.serving.set(serving);
        self.address.tell(Msg::ShowFace);
        self.wake();
    }

    /// Which tasks this node takes.
    pub fn serving(&self) -> ServingNow {
        self.node.serving.now()
    }

    /// How much of the node is taken.
    pub fn room(&self) -> Room {
        self.node.room.read()
    }

    /// The runs that are live here, and their numbers.
    pub fn run_numbers(&self) -> Vec<(ShardId, RunNo)> {
        self.node.directory.numbers()
    }

    /// Every run that is live here.
    pub fn runs(&self) -> Vec<RunView> {
        self.node.directory.runs()
    }

    /// The runs of a task that are live here.
    pub fn runs_of(&self, task: TaskId) -> Vec<RunView> {
        self.node.directory.runs_of(task)
    }

    /// The runs that have ended since this was asked last.
    pub fn take_ended_runs(&self) -> Vec<RunView> {
        self.node.directory.take_ended()
    }

    /// What every live run has counted so far. Cancel safe.
    pub async fn samples(&self) -> Vec<RunSample> {
        self.node.directory.samples().await
    }

    /// What the runs had counted that have ended since this was asked last.
    pub fn take_ended_samples(&self) -> Vec<RunSample> {
        self.node.directory.take_ended_samples()
    }

    /// Whether the tree has ended (drained, or its supervisor failed).
    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Takes no new work, drains what runs, gives every shard back, ends the tree. Says whether it ended in time.
    pub async fn drain(self, patience: Duration) -> bool {
        self.drain_now(patience).await
    }

    /// The same, for a handle that is shared.
    pub async fn drain_now(&self, patience: Duration) -> bool {
        let shown = self.node.tree.for_log("", |printed| printed.stop);
        tracing::info!(target: tree::LOG, node = self.node.node, tree = %shown, "node drains");
        let (sender, drained) = oneshot::channel();
        self.address.tell(Msg::Drain(sender));
        let mut over = self.over.clone();
        let ended = async {
            // The sender is dropped with the supervisor's state, whichever way it ends.
            let kept = drained.await.unwrap_or_default();
            over.wait_for(|over| *over).await.is_ok().then_some(kept)
        };
        let node = &self.node.node;
        match tokio::time::timeout(patience, ended).await.ok().flatten() {
            Some(kept) if kept.is_empty() => {
                tracing::info!(target: tree::LOG, node, "node down: every actor ended");
            }
            Some(kept) => {
                let ttl = humantime::format_duration(self.node.times.lease_ttl);
                let shards = named(&kept);
                tracing::warn!(
                    node,
                    shards,
                    "node down, and the store did not answer: nothing saved is lost, but what these shards did since \
                     their last checkpoint was not saved and will be repeated; other nodes take them {ttl} after the \
                     store answers, or this one when it is back"
                );
                return false;
            }
            None => {
                let tree = self.node.tree.for_log("", |printed| printed.stop);
                tracing::error!(node, %tree, "actors are still alive after the drain");
                return false;
            }
        }
        true
    }
}

/// Shards for a line of the log.
fn named(shards: &[ShardId]) -> String {
    let mut names: Vec<String> = shards.iter().take(NAMED_MAX).map(ShardId::to_string).collect();
    if let Some(more) = shards.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}
