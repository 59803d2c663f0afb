//! Composition root: builds runtimes, stores, handlers and actors, and shuts them down in order.
//!
//! The only place where adapters and actors meet. `windrow run` and `windrow serve` are thin layers on top of it.

pub mod agreement;
mod alerts;
mod bootstrap;
pub mod database;
pub mod dev;
pub mod handler_log;
pub mod handlers;
pub mod job_node;
pub mod jobs;
mod min_level;
mod provider;
mod publish;
mod runtimes;
pub mod serve;
pub mod sources;
pub mod systemd;
mod traces;
#[cfg(feature = "redis")]
pub mod witness;
#[cfg(not(feature = "redis"))]
#[path = "without_redis.rs"]
pub mod witness;

use std::sync::Arc;
use std::time::Duration;

use self::jobs::Jobs;
use windrow_config::{Cluster, Config};
use windrow_core::capacity::Ledger;
use windrow_core::execution::Progress;
use windrow_core::ids::TaskId;
use windrow_engine::actors::runtime::context::{
    Heartbeats, HookParts, Keep, LocalBuckets, NodeContext, NodePlace, RoomBoard, RunDirectory,
    ScheduleParts, Serving, SinkParts,
};
pub use windrow_engine::actors::runtime::handle::NotStarted;
use windrow_engine::actors::runtime::handle::SupervisorHandle;
use windrow_engine::actors::runtime::new_ids::NewIds;
use windrow_engine::actors::runtime::tree::{Printed, Tree};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::datasets::publication::Preparer;
use windrow_engine::ports::handling::data_log::DataLog;
use windrow_engine::ports::schedules::maker::FireMaker;
use windrow_engine::ports::sources::provision::Provider;
use windrow_engine::ports::sources::uploads::UploadStore;
use windrow_engine::ports::tasks::store::TaskStore;

pub use self::runtimes::{CallThreads, Runtimes};
pub use windrow_engine::actors::runtime::context::Times;
pub use windrow_host::clock::SystemClock;
pub use windrow_host::secret_file::{SecretFault, SecretFile, SecretFileError};
pub use windrow_host::state_dir::{LockError, StateDir};
pub use windrow_store::sql::{ServerAddress, ServerKind, Store};

/// Options to start a node.
pub struct NodeOptions {
    /// Name of the node, the root of every actor's path.
    pub name: String,
    /// State directory held by this process.
    pub state: Arc<StateDir>,
    /// Store in that directory.
    pub store: Arc<Store>,
    /// Provider of handlers and sources.
    pub provider: Arc<dyn Provider>,
    /// Total rate that may run here, and the rate reserved for a task without one.
    pub ledger: Ledger,
    /// Time limits of ownership.
    pub times: Times,
    /// Runtimes for lanes and handlers.
    pub runtimes: Arc<Runtimes>,
    /// True if no other process can use the store; older sessions are then fenced at once.
    pub exclusive: bool,
    /// Runs only these jobs; `None` runs everything that the store offers.
    pub only: Option<Arc<Jobs>>,
}

/// Error that keeps a node from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The supervision tree failed to start.
    #[error(transparent)]
    Tree(#[from] NotStarted),
}

/// Parts of a serving node that `windrow run` doesn't have.
#[derive(Default)]
struct Beside {
    /// Tasks that the node takes.
    serving: Serving,
    /// Address and labels announced to other nodes.
    place: NodePlace,
    /// Delivery of hooks to businesses.
    hooks: Option<HookParts>,
    /// Store from which unused uploads are removed.
    uploads: Option<Arc<dyn UploadStore>>,
    /// Parts that fire schedules.
    schedules: Option<ScheduleParts>,
    /// Copying of datasets for readers.
    sinks: Option<SinkParts>,
    /// Retention periods of stored data.
    keep: Option<Keep>,
    /// Events at which the actor tree is printed.
    printed: Printed,
    /// Settings for other nodes; `None` for a node without any.
    cluster: Option<Cluster>,
    /// Destination of log lines; without one, all go to the store.
    data_log: Option<Arc<dyn DataLog>>,
    /// Preparation of published results; without it no task publishes.
    preparer: Option<Arc<dyn Preparer>>,
}

/// A running node with its actors.
pub struct Node {
    supervisor: Arc<SupervisorHandle>,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    times: Times,
    schedules: Option<ScheduleParts>,
    /// Held for the life of the node.
    _state: Arc<StateDir>,
}

impl Node {
    /// Starts the tree; the caller's runtime runs the actors.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(options: NodeOptions) -> Result<Node, StartError> {
        Node::start_with(options, Beside::default()).await
    }

    /// Same as `start`, with the parts of a serving node.
    async fn start_with(options: NodeOptions, beside: Beside) -> Result<Node, StartError> {
        let (clock, store): (Arc<dyn Clock>, _) = (Arc::new(SystemClock::new()), options.store.clone());
        let (store_id, meters) = (store.store_id().await?, store.meters().clone());
        let (leases, hints) = witness::open(&beside, &store_id, &clock, &meters, options.runtimes.vital())?;
        let context = NodeContext {
            node: options.name,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            store_id,
            clock: clock.clone(),
            tree: Tree::new(clock.clone()).printed(beside.printed),
            work: options.runtimes.work().clone(),
            vital: options.runtimes.vital().clone(),
            lanes_unpaced: options.runtimes.lanes(),
            runs: jobs::runs(&store, options.only),
            tasks: store.clone(),
            sessions: store.clone(),
            limits: store.clone(),
            found: store.clone(),
            local_buckets: LocalBuckets::default(),
            leases,
            hints,
            data_log: beside.data_log.unwrap_or_else(|| store.clone()),
            provider: options.provider,
            times: options.times,
            serving: beside.serving,
            exclusive: options.exclusive,
            directory: RunDirectory::default(),
            place: beside.place,
            hooks: beside.hooks,
            schedules: beside.schedules.clone(),
            sinks: beside.sinks,
            upkeep: store.clone(),
            preparer: beside.preparer.unwrap_or_else(|| Arc::new(publish::Nothing)),
            publications: store.clone(),
            uploads: beside.uploads,
            keep: beside.keep,
            room: RoomBoard::default(),
            heartbeats: Heartbeats::default(),
            new_ids: NewIds::default(),
            meters,
        };
        Ok(Node {
            supervisor: Arc::new(SupervisorHandle::start(Arc::new(context), options.ledger).await?),
            store,
            clock,
            times: options.times,
            schedules: beside.schedules,
            _state: options.state,
        })
    }

    /// Sets the factory for the tasks of schedules' fires.
    fn fire_with(&self, maker: Arc<dyn FireMaker>) {
        let Some(parts) = &self.schedules else { return };
        if parts.maker.set(maker).is_err() {
            tracing::error!("the factory for schedules' tasks was set twice");
        }
        self.supervisor.wake_schedules();
    }

    /// Returns the store of businesses and tasks.
    pub fn tasks(&self) -> &dyn TaskStore {
        &*self.store
    }

    /// Returns the node's clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Looks for work in the store at once.
    pub fn wake(&self) {
        self.supervisor.wake();
    }

    /// Makes the runs of a task re-read its desired state and settings at once.
    pub fn nudge(&self, task: TaskId) {
        self.supervisor.nudge(task);
    }

    /// Returns the live progress of each shard of a task that runs here.
    pub fn progress(&self, task: TaskId) -> Vec<Progress> {
        let live = self.supervisor.progress(task).into_iter();
        live.map(|(_, progress)| progress).collect()
    }

    /// Returns the supervision tree.
    pub fn tree(&self) -> &Tree {
        self.supervisor.tree()
    }

    /// Returns the handle to the node's actors.
    pub fn supervisor(&self) -> &Arc<SupervisorHandle> {
        &self.supervisor
    }

    /// True if the supervisor has ended: nothing will run any more.
    pub fn is_over(&self) -> bool {
        self.supervisor.is_over()
    }

    /// Drains and ends the node. True if everything ended in time.
    pub async fn drain(self) -> bool {
        self.supervisor
            .drain_now(self.times.drain_timeout + Duration::from_secs(10))
            .await
    }

    /// Closes the store after the tree has ended. If that fails, the next start recovers from its journal.
    async fn close(self) {
        if let Err(error) = self.store.close().await {
            tracing::warn!(%error, "database not closed; nothing saved is lost");
        }
    }
}

/// Returns the time limits of a configuration.
fn times(config: &Config) -> Times {
    let cluster = &config.cluster;
    Times {
        lease_ttl: cluster.lease_ttl,
        lease_renew: cluster.lease_renew,
        heartbeat: Times::default().heartbeat,
        restore_scan: cluster.restore_scan,
        restore_window: cluster.restore_window,
        restore_max: cluster.restore_max,
        restore_backoff: (cluster.restore_backoff.first, cluster.restore_backoff.max),
        data_log_flush: config.data_log.flush,
        drain_timeout: config.node.drain_timeout,
        takeover_without_leases: cluster.takeover_without_redis,
        first_contact: None,
    }
}
