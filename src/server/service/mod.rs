//! Operations for people, behind the command line and the API server. Depends only on ports and the supervisor's
//! handle.
//!
//! [`job`] is `windrow run`. [`Service`] is everything that the API server offers, with one part per resource. A part
//! names the ports and other parts that it needs, and reports all failures as [`ServiceError`]. Any method may also
//! fail because the store can't be reached, which isn't documented again.

pub mod access;
pub mod alerts;
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
use alerts::Alerts;
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
use windrow_engine::ports::handling::alerts::AlertStore;
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

/// All interfaces that the service requires of its store.
pub trait Stores:
    TaskStore
    + TaskList
    + FailureList
    + ReportStore
    + BusinessStore
    + NamedLimitStore
    + AlertStore
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
    S: StatisticsStore + SignInStore + AlertStore,
{
}

/// Dependencies of the service, provided by the composition root.
pub struct Parts<S> {
    /// Store behind all its ports.
    pub store: Arc<S>,
    /// Store of data log lines.
    pub data_log: Arc<dyn DataLog>,
    /// Counters for metrics and health.
    pub meters: Arc<Meters>,
    /// Resolver for the sources in requests.
    pub resolver: Arc<dyn SourceResolver>,
    /// Client that calls hooks.
    pub hooks: Arc<dyn HookCaller>,
    /// Checker for handlers, used before tasks call them.
    pub handlers: Arc<dyn HandlerChecker>,
    /// Vault that encrypts secrets.
    pub vault: Arc<dyn Vault>,
    /// Handlers and sources of tasks, for previews.
    pub provider: Arc<dyn Provider>,
    /// Handlers of businesses, for test calls without a task.
    pub tries: Arc<dyn BusinessHandlers>,
    /// Sources of tasks, for the data of their items.
    pub items: Arc<dyn TaskItems>,
    /// Access to the other nodes.
    pub cluster: cluster::ClusterParts,
    /// Handle of the node's supervisor.
    pub supervisor: Arc<SupervisorHandle>,
    /// Clock of the node.
    pub clock: Arc<dyn Clock>,
    /// Identity of all callers while authentication is off.
    pub everybody: access::Everybody,
}

/// All operations on a node. Cheap to share in an `Arc`; holds no state except the configuration and recent counts.
pub struct Service {
    /// Node that the service runs on.
    pub node: Arc<ThisNode>,
    /// Service for creating and controlling tasks.
    pub tasks: Tasks,
    /// Service for previews, which call handlers without recording anything.
    pub previews: Previews,
    /// Service for test calls of businesses without a task.
    pub tries: Tries,
    /// Service for failures and their outcomes.
    pub failures: Arc<Failures>,
    /// Service for results of items.
    pub results: Results,
    /// Service for published datasets.
    pub datasets: Datasets,
    /// Service for reports, which prove that all items are accounted for.
    pub reports: Reports,
    /// Service for the state of all items in dispatch windows.
    pub windows: Windows,
    /// Service that explains the rates of tasks.
    pub explain: Explain,
    /// Service for running tasks and their recent statistics.
    pub stats: Arc<Stats>,
    /// Service for daily totals.
    pub statistics: Statistics,
    /// Service for registered businesses.
    pub businesses: Arc<Businesses>,
    /// Service for named limits.
    pub limits: Arc<Limits>,
    /// Service that keeps alerts and tries them.
    pub alerts: Alerts,
    /// Service for recurring tasks.
    pub schedules: Schedules,
    /// Service for item sources and uploads.
    pub sources: Arc<Sources>,
    /// Service for the data log.
    pub logs: Logs,
    /// Service for authentication and tokens.
    pub access: Access,
    /// Service for the other nodes.
    pub cluster: Arc<Cluster>,
    /// Health checks of this node.
    pub health: Health,
    /// Store of responses by idempotency key.
    pub idempotency: Arc<dyn IdempotencyStore>,
}

impl Service {
    /// Creates a service from its dependencies.
    pub fn new<S: Stores + 'static>(parts: Parts<S>, config: Config) -> Service {
        let (name, store, meters) = (parts.cluster.node.clone(), parts.store, parts.meters.clone());
        let node = Arc::new(ThisNode::new(name, parts.supervisor, parts.clock, meters, config));
        let cluster = Arc::new(Cluster::new(node.clone(), parts.cluster, &store));
        let stats = Arc::new(Stats::new(node.clone(), cluster.clone()));
        let limits = Arc::new(Limits::new(node.clone(), store.clone(), store.clone()));
        let (vault, handlers) = (parts.vault.clone(), parts.handlers.clone());
        let businesses = Businesses::new(node.clone(), store.clone(), limits.clone(), vault, handlers);
        let (to, of) = (cluster.clone(), stats.clone());
        let sources = Arc::new(Sources::new(node.clone(), parts.resolver, store.clone()));
        let failures = Arc::new(Failures::new(&store, &sources, parts.items, stats.clone()));
        Service {
            alerts: Alerts::new(node.clone(), &store, parts.vault, parts.handlers),
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

    /// Returns the current configuration, see [`ThisNode::config`].
    pub fn config(&self) -> Arc<Config> {
        self.node.config()
    }

    /// Returns the current time, see [`ThisNode::now`].
    pub fn now(&self) -> WallMs {
        self.node.now()
    }

    /// Returns the handle of the node's supervisor.
    pub fn supervisor(&self) -> &SupervisorHandle {
        &self.node.supervisor
    }
}
