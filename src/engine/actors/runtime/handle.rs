//! Handle on the supervision tree, with named methods; code outside never sees an actor.

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
use crate::ports::handling::handler::Workers;
use crate::ports::ownership::hints::Hint;
use crate::ports::ownership::limit_store::PartView;
use windrow_core::capacity::{Capacity, Ledger, Refusal, Request};
use windrow_core::execution::{Progress, WindowPicture};
use windrow_core::ids::{RunNo, SessionId, ShardId, TaskId};
use windrow_core::limit::units::Use;
use windrow_core::settings::RateLimit;
use windrow_core::shards::Share;

/// Reason why the supervision tree did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStarted {
    /// Another live node has this name; people drain nodes and move shards by name.
    #[error("{}", say::node_name_taken(.0))]
    NameTaken(String),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An actor failed to start.
    #[error("{}", say::no_actors(.0))]
    Actors(String),
}

/// Maximum number of shards named per log line.
const NAMED_MAX: usize = 20;

/// Handle on the supervision tree of a node.
pub struct SupervisorHandle {
    node: Arc<NodeContext>,
    address: Address<Msg>,
    over: watch::Receiver<bool>,
}

impl SupervisorHandle {
    /// Starts the supervision tree of a node.
    ///
    /// # Errors
    /// If another live node has the name, or a child can't start.
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
                tracing::error!(%error, "supervisor panicked");
            }
            sender.send_replace(true);
        });
        if let Some(hints) = node.hints.clone() {
            tokio::spawn(hint_listener::listen(hints, address.clone(), over.clone()));
        }
        Ok(SupervisorHandle { address, node, over })
    }

    /// Looks for work now instead of at the next scan, after a change in the store.
    pub fn wake(&self) {
        self.address.tell(Msg::Wake);
    }

    /// Checks for due schedules now, after a schedule was changed or a fire ordered; other nodes do so within a
    /// second.
    pub fn wake_schedules(&self) {
        self.address.tell(Msg::WakeSchedules);
    }

    /// Returns the time since each session's heartbeat moved, as seen by this node; sessions it never saw are left
    /// out.
    pub fn heartbeat_ages(&self) -> BTreeMap<SessionId, Duration> {
        self.node.heartbeats.ages(self.node.clock.now())
    }

    /// Returns the node's current session, or `None` before its first began.
    pub fn session(&self) -> Option<SessionId> {
        self.node.heartbeats.me()
    }

    /// Announces a changed desired state or settings of a task: its runs, here and on other nodes, check at once
    /// instead of at the next heartbeat; other nodes look for work too.
    pub fn nudge(&self, task: TaskId) {
        self.address.tell(Msg::Nudge(task));
    }

    /// Sends the other nodes a hint, if hints are available.
    pub fn hint(&self, hint: Hint) {
        self.address.tell(Msg::Hint(hint));
    }

    /// Returns the tree as shown to people.
    pub fn tree(&self) -> &Tree {
        &self.node.tree
    }

    /// Returns the live progress of each shard of a task that runs here.
    pub fn progress(&self, task: TaskId) -> Vec<(ShardId, Progress)> {
        self.node.directory.progress(task)
    }

    /// Returns the same with the workers, without shards that another node may own by now.
    pub fn trusted_progress(&self, task: TaskId) -> Vec<(ShardId, Progress, Option<Workers>)> {
        self.node.directory.trusted_progress(task)
    }

    /// Returns the window of each shard of a task that runs here and surely is owned here, in at most `cells_max`
    /// cells.
    pub fn windows(&self, task: TaskId, cells_max: NonZeroU32) -> Vec<(ShardId, WindowPicture)> {
        self.node.directory.windows(task, cells_max)
    }

    /// Books another rate for the shards of a task that run here, each its share, before the change is committed;
    /// `share` is the share of one of its shards if none runs here. If a booked raise isn't committed after all, book
    /// the old rate to give it back. Once the tree has ended there is nothing to book.
    ///
    /// # Errors
    /// If it doesn't fit, with what would; nothing is booked then. Also if nothing of the task runs here, but the
    /// rate is more than the whole node has.
    pub async fn rebook(&self, task: TaskId, rate: RateLimit, share: Share) -> Result<(), Refusal> {
        let (sender, answer) = oneshot::channel();
        self.address.tell(Msg::Rebook(task, (rate, share), sender));
        answer.await.unwrap_or(Ok(()))
    }

    /// Checks whether [`SupervisorHandle::rebook`] would book a rate now; books nothing.
    ///
    /// # Errors
    /// The error that it would return.
    pub async fn would_book(&self, task: TaskId, rate: RateLimit, share: Share) -> Result<(), Refusal> {
        let (sender, answer) = oneshot::channel();
        self.address.tell(Msg::TryBook(task, (rate, share), sender));
        answer.await.unwrap_or(Ok(()))
    }

    /// Checks whether a shard would be admitted if it stood in this node's line now.
    ///
    /// # Errors
    /// The reason why it would wait.
    pub async fn would_admit(&self, request: Request) -> Result<(), Refusal> {
        let (sender, answer) = oneshot::channel();
        self.address.tell(Msg::TryAdmit(request, sender));
        answer.await.unwrap_or(Ok(()))
    }

    /// Changes the node's capacity; running shards continue even if they no longer fit.
    pub fn set_capacity(&self, capacity: Capacity) {
        self.address.tell(Msg::SetCapacity(capacity));
    }

    /// Returns the use of the totals of a limit.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn uses_of_limit(&self, name: &str) -> Result<Vec<Use>, StoreError> {
        self.node.limits.uses(name).await
    }

    /// Returns each node's share of a limit that tasks share.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn parts_of_limit(&self, name: &str) -> Result<Vec<PartView>, StoreError> {
        self.node.limits.parts(name).await
    }

    /// Announces a changed limit on all running tasks of a business: this node checks at once, others within a
    /// second.
    pub fn limits_changed(&self) {
        self.node.local_buckets.hurry();
    }

    /// Changes which tasks this node takes; running ones continue.
    pub fn set_serving(&self, serving: ServingNow) {
        self.node.serving.set(serving);
        self.address.tell(Msg::ShowFace);
        self.wake();
    }

    /// Returns the tasks that this node takes.
    pub fn serving(&self) -> ServingNow {
        self.node.serving.now()
    }

    /// Returns the capacity of the node and its use.
    pub fn room(&self) -> Room {
        self.node.room.read()
    }

    /// Returns the live runs of this node and their numbers.
    pub fn run_numbers(&self) -> Vec<(ShardId, RunNo)> {
        self.node.directory.numbers()
    }

    /// Returns a view of every live run of this node.
    pub fn runs(&self) -> Vec<RunView> {
        self.node.directory.runs()
    }

    /// Returns a view of each live run of a task on this node.
    pub fn runs_of(&self, task: TaskId) -> Vec<RunView> {
        self.node.directory.runs_of(task)
    }

    /// Returns the number of other tasks here that share a service with a task under the autopilot.
    pub fn company_of(&self, task: TaskId) -> u32 {
        self.node.directory.company_of(task)
    }

    /// Returns the runs that ended since the previous call.
    pub fn take_ended_runs(&self) -> Vec<RunView> {
        self.node.directory.take_ended()
    }

    /// Returns a sample of every live run. Cancel safe.
    pub async fn samples(&self) -> Vec<RunSample> {
        self.node.directory.samples().await
    }

    /// Returns the last samples of the runs that ended since the previous call.
    pub fn take_ended_samples(&self) -> Vec<RunSample> {
        self.node.directory.take_ended_samples()
    }

    /// True if the tree has ended (drained, or its supervisor failed).
    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Takes no new work, drains the runs, gives every shard back and ends the tree. Returns true if it ended in
    /// time.
    pub async fn drain(self, patience: Duration) -> bool {
        self.drain_now(patience).await
    }

    /// Drains the node in the same way, for a handle that is shared.
    pub async fn drain_now(&self, patience: Duration) -> bool {
        let shown = self.node.tree.for_log("", |printed| printed.stop);
        tracing::info!(target: tree::LOG, node = self.node.node, tree = %shown, "node draining");
        let (sender, drained) = oneshot::channel();
        self.address.tell(Msg::Drain(sender));
        let mut over = self.over.clone();
        let ended = async {
            // The sender is dropped with the supervisor's state, however the supervisor ends.
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
                tracing::error!(node, %tree, "actors still alive after the drain");
                return false;
            }
        }
        true
    }
}

/// Formats shards for a log line.
fn named(shards: &[ShardId]) -> String {
    let mut names: Vec<String> = shards.iter().take(NAMED_MAX).map(ShardId::to_string).collect();
    if let Some(more) = shards.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}
