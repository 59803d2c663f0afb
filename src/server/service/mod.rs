//! What people do: the verbs behind the command line and the façade. Knows ports and the supervisor's handle.
//!
//! [`job`] is `windrow run`. [`Service`] is everything that the façade can do, a part for each resource: a part names the
//! ports and the other parts that it needs, and says what can go wrong with the one [`ServiceError`]. What no method says of itself: the store
//! may be out of reach.

pub mod access;
mod answering;
pub mod businesses;
pub mod cluster;
pub mod datasets;
pub mod error;
pub mod explain;
pub mod failures;
mod field_fault;
pub mod health;
pub mod job;
pub mod limits;
pub mod logs;
pub mod node;
pub mod results;
pub mod schedules;
pub mod sources;
pub mod statistics;
pub mod stats;
pub mod tasks;

use std::sync::Arc;

pub use error::ServiceError;
pub use field_fault::FieldFault;
pub use job::{Job, JobError, JobStart, begin, start_if_stopped};

use access::Access;
use businesses::Businesses;
use businesses::tries::Tries;
use cluster::Cluster;
use datasets::Datasets;
use explain::Explain;
use failures::Failures;
use health::Health;
use limits::Limits;
use logs::Logs;
use node::ThisNode;
use results::Results;
use schedules::Schedules;
use sources::Sources;
use statistics::Statistics;
use stats::Stats;
use tasks::Tasks;
use tasks::preview::Previews;
use tasks::report::Reports;
use tasks::turns::Turns;
use tasks::window::Windows;
use windrow_config::Config;
use windrow_core::ids::WallMs;
use windrow_engine::actors::runtime::handle::SupervisorHandle;
use windrow_engine::ports::access::business_store::BusinessStore;
use windrow_engine::ports::access::idempotency::IdempotencyStore;
use windrow_engine::ports::access::named_limit_store::NamedLimitStore;
use windrow_engine::ports::access::node_audit::NodeAudit;
use windrow_engine::ports::access::sign_in_store::SignInStore;
use windrow_engine::ports::access::token_store::TokenStore;
use windrow_engine::ports::access::vault::Vault;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::datasets::store::DatasetStore;
use windrow_engine::ports::handling::data_log::DataLog;
use windrow_engine::ports::handling::hook::{HandlerChecker, HookCaller};
use windrow_engine::ports::handling::meters::Meters;
use windrow_engine::ports::schedules::store::ScheduleStore;
use windrow_engine::ports::sources::append::AppendStore;
use windrow_engine::ports::sources::provision::{BusinessHandlers, Provider, TaskItems};
use windrow_engine::ports::sources::resolver::SourceResolver;
use windrow_engine::ports::sources::uploads::UploadStore;
use windrow_engine::ports::tasks::failure_list::FailureList;
use windrow_engine::ports::tasks::list::TaskList;
use windrow_engine::ports::tasks::report_store::ReportStore;
use windrow_engine::ports::tasks::results::ResultStore;
use windrow_engine::ports::tasks::statistics::StatisticsStore;
use windrow_engine::ports::tasks::store::TaskStore;

/// Everything that the service asks of its store.
pub trait Stores:
    TaskStore
    + TaskList
    + FailureList
    + ReportStore
    + BusinessStore
    + NamedLimitStore
    + ScheduleStore
    + TokenStore
    + SignInStore
    + IdempotencyStore
    + UploadStore
    + AppendStore
    + NodeAudit
    + ResultStore
    + DatasetStore
    + StatisticsStore
{
}

impl<S> Stores for S
where
    S: TaskStore + TaskList + FailureList + ReportStore + BusinessStore + NamedLimitStore + ScheduleStore,
    S: TokenStore + IdempotencyStore + UploadStore + AppendStore + NodeAudit + ResultStore + DatasetStore,
    S: StatisticsStore + SignInStore,
{
}

/// What the service works with; the composition root fills it.
pub struct Parts<S> {
    /// The store.
    pub store: Arc<S>,
    /// Lines.
    pub data_log: Arc<dyn DataLog>,
    /// What is counted for people who watch.
    pub meters: Arc<Meters>,
    /// Says what the source of a request is.
    pub resolver: Arc<dyn SourceResolver>,
    /// Calls hooks.
    pub hooks: Arc<dyn HookCaller>,
    /// Looks at handlers before tasks use them.
    pub handlers: Arc<dyn HandlerChecker>,
    /// Seals secrets.
    pub vault: Arc<dyn Vault>,
    /// Handlers and sources of tasks, for previews.
    pub provider: Arc<dyn Provider>,
    /// Handlers of businesses, for calls without a task.
    pub tries: Arc<dyn BusinessHandlers>,
    /// Sources of tasks, for what their items carry.
    pub items: Arc<dyn TaskItems>,
    /// The other nodes.
    pub cluster: cluster::ClusterParts,
    /// The node's actors.
    pub supervisor: Arc<SupervisorHandle>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The identity of callers where nobody is asked.
    pub everybody: access::Everybody,
}

/// Everything that people can do to a node. Cheap to share behind an `Arc`; holds no state but the configuration and
/// what was counted recently.
pub struct Service {
    /// This node.
    pub node: Arc<ThisNode>,
    /// Tasks.
    pub tasks: Tasks,
    /// Calls of handlers without consequences.
    pub previews: Previews,
    /// Calls of businesses without a task.
    pub tries: Tries,
    /// What failed.
    pub failures: Arc<Failures>,
    /// What items came to.
    pub results: Results,
    /// What finished tasks published.
    pub datasets: Datasets,
    /// What was, and its proof.
    pub reports: Reports,
    /// What every index of a window is doing.
    pub windows: Windows,
    /// Why a task is as fast as it is.
    pub explain: Explain,
    /// What runs, and what was counted of it recently.
    pub stats: Arc<Stats>,
    /// What was done in each day.
    pub statistics: Statistics,
    /// Businesses.
    pub businesses: Arc<Businesses>,
    /// Limits with a name.
    pub limits: Arc<Limits>,
    /// Work that recurs.
    pub schedules: Schedules,
    /// Where items come from.
    pub sources: Arc<Sources>,
    /// Lines of the data log.
    pub logs: Logs,
    /// Who may call.
    pub access: Access,
    /// This node among the others.
    pub cluster: Arc<Cluster>,
    /// Whether this node can do its work.
    pub health: Health,
    /// Remembered responses.
    pub idempotency: Arc<dyn IdempotencyStore>,
}

impl Service {
    /// A service over these parts.
    pub fn new<S: Stores + 'static>(parts: Parts<S>, config: Config) -> Service {
        let (name, store, meters) = (parts.cluster.node.clone(), parts.store, parts.meters.clone());
        let node = Arc::new(ThisNode::new(name, parts.supervisor, parts.clock, meters, config));
        let cluster = Arc::new(Cluster::new(node.clone(), parts.cluster, &store));
        let stats = Arc::new(Stats::new(node.clone(), cluster.clone()));
        let limits = Arc::new(Limits::new(node.clone(), store.clone()));
        let (vault, handlers) = (parts.vault, parts.handlers);
        let businesses = Businesses::new(node.clone(), store.clone(), limits.clone(), vault, handlers);
        let businesses = Arc::new(businesses);
        let (to, of) = (cluster.clone(), stats.clone());
        let sources = Arc::new(Sources::new(node.clone(), parts.resolver, store.clone()));
        let failures = Arc::new(Failures::new(&store, &sources, parts.items, stats.clone()));
        Service {
            results: Results::new(store.clone()),
            datasets: Datasets::new(node.clone(), &store),
            statistics: Statistics::new(node.clone(), store.clone()),
            schedules: Schedules::new(node.clone(), store.clone(), store.clone()),
            previews: Previews::new(node.clone(), store.clone(), parts.provider),
            tries: Tries::new(businesses.clone(), parts.tries, store.clone()),
            reports: Reports::new(node.clone(), store.clone(), failures.clone()),
            windows: Windows::new(node.clone(), cluster.clone(), failures.clone()),
            explain: Explain::new(node.clone(), store.clone(), to, of, limits.clone()),
            logs: Logs::new(node.clone(), parts.data_log),
            access: Access::new(node.clone(), &store, parts.everybody),
            health: Health::new(node.clone(), store.clone(), parts.meters),
            idempotency: store.clone(),
            tasks: Tasks {
                node: node.clone(),
                store: store.clone(),
                appends: store.clone(),
                results: Results::new(store.clone()),
                lists: store,
                businesses: businesses.clone(),
                limits: limits.clone(),
                sources: sources.clone(),
                failures: failures.clone(),
                stats: stats.clone(),
                cluster: cluster.clone(),
                hooks: parts.hooks,
                turns: Turns::default(),
            },
            node,
            failures,
            stats,
            businesses,
            limits,
            sources,
            cluster,
        }
    }

    /// See [`ThisNode::config`].
    pub fn config(&self) -> Arc<Config> {
        self.node.config()
    }

    /// See [`ThisNode::now`].
    pub fn now(&self) -> WallMs {
        self.node.now()
    }

    /// The node's actors.
    pub fn supervisor(&self) -> &SupervisorHandle {
        &self.node.supervisor
    }
}
