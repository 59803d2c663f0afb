//! What people do: the verbs behind the command line and the façade. Knows ports and the supervisor's handle.
//!
//! [`job`] is `windrow run`. [`Service`] is everything that the façade can do, a part for each resource: a part names the
//! ports and the other parts that it needs, and says what can go wrong with the one [`ServiceError`]. What no method says of itself: the store
//! may be out of reach.

pub mod access;
mod answering;
pub mod businesses;
pub mod cluster;
pub mod error;
pub mod explain;
pub mod failures;
pub mod health;
pub mod job;
pub mod limits;
pub mod logs;
pub mod node;
pub mod sources;
pub mod stats;
pub(crate) use tasks::settings::nearest;
pub mod tasks;

use std::sync::Arc;

use tokio::sync::Semaphore;

pub use error::{FieldFault, ServiceError};
pub use job::{Job, JobError, JobStart, begin, start_if_stopped, stop};

use access::Access;
use businesses::Businesses;
use cluster::{Cluster, Roster};
use explain::Explain;
use failures::Failures;
use health::Health;
use limits::Limits;
use logs::Logs;
use node::ThisNode;
use sources::Sources;
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
use windrow_engine::ports::access::token_store::TokenStore;
use windrow_engine::ports::access::vault::Vault;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::data_log::DataLog;
use windrow_engine::ports::handling::hook::{HandlerChecker, HookCaller};
use windrow_engine::ports::handling::meters::Meters;
use windrow_engine::ports::sources::provision::{Provider, TaskItems};
use windrow_engine::ports::sources::resolver::SourceResolver;
use windrow_engine::ports::sources::uploads::UploadStore;
use windrow_engine::ports::tasks::failure_list::FailureList;
use windrow_engine::ports::tasks::list::TaskList;
use windrow_engine::ports::tasks::report_store::ReportStore;
use windrow_engine::ports::tasks::store::TaskStore;

/// What the service works with; the composition root fills it.
pub struct Parts {
    /// Tasks.
    pub tasks: Arc<dyn TaskStore>,
    /// Lists of tasks, runs and audit entries.
    pub lists: Arc<dyn TaskList>,
    /// Businesses.
    pub businesses: Arc<dyn BusinessStore>,
    /// Limits with a name.
    pub limits: Arc<dyn NamedLimitStore>,
    /// Tokens.
    pub tokens: Arc<dyn TokenStore>,
    /// Remembered responses.
    pub responses: Arc<dyn IdempotencyStore>,
    /// What is counted for people who watch.
    pub meters: Arc<Meters>,
    /// Lines.
    pub data_log: Arc<dyn DataLog>,
    /// Items that failed.
    pub failures: Arc<dyn FailureList>,
    /// What reports are made of.
    pub reports: Arc<dyn ReportStore>,
    /// The bytes of uploads.
    pub uploads: Arc<dyn UploadStore>,
    /// Makes descriptions of sources.
    pub resolver: Arc<dyn SourceResolver>,
    /// Calls hooks.
    pub hooks: Arc<dyn HookCaller>,
    /// Looks at handlers before tasks use them.
    pub handlers: Arc<dyn HandlerChecker>,
    /// Seals secrets.
    pub vault: Arc<dyn Vault>,
    /// Handlers and sources of tasks, for previews.
    pub provider: Arc<dyn Provider>,
    /// Sources of tasks, for what their items carry.
    pub items: Arc<dyn TaskItems>,
    /// What people do to the node.
    pub node_audit: Arc<dyn NodeAudit>,
    /// The other nodes.
    pub cluster: cluster::ClusterParts,
    /// The node's actors.
    pub supervisor: Arc<SupervisorHandle>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// Readers of what items carry at a time.
const ITEM_READERS_MAX: usize = 2;

/// Everything that people can do to a node. Cheap to share behind an `Arc`; holds no state but the configuration and
/// what was counted lately.
pub struct Service {
    /// This node.
    pub node: Arc<ThisNode>,
    /// Tasks.
    pub tasks: Tasks,
    /// Calls of handlers without consequences.
    pub previews: Previews,
    /// What failed.
    pub failures: Arc<Failures>,
    /// What was, and its proof.
    pub reports: Reports,
    /// What every index of a window is doing.
    pub windows: Windows,
    /// Why a task is as fast as it is.
    pub explain: Explain,
    /// What runs, and what was counted of it lately.
    pub stats: Arc<Stats>,
    /// Businesses.
    pub businesses: Arc<Businesses>,
    /// Limits with a name.
    pub limits: Arc<Limits>,
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
    pub fn new(parts: Parts, config: Config) -> Service {
        let name = parts.cluster.node.clone();
        let node = Arc::new(ThisNode::new(name, parts.supervisor, parts.clock, config));
        let cluster = Arc::new(Cluster {
            node: node.clone(),
            parts: parts.cluster,
            lists: parts.lists.clone(),
            audit: parts.node_audit,
            roster: Roster::default(),
        });
        let stats = Arc::new(Stats::new(node.clone(), cluster.clone()));
        let limits = Arc::new(Limits {
            node: node.clone(),
            store: parts.limits,
        });
        let businesses = Arc::new(Businesses {
            node: node.clone(),
            store: parts.businesses,
            limits: limits.clone(),
            vault: parts.vault,
            handlers: parts.handlers,
        });
        let sources = Arc::new(Sources {
            node: node.clone(),
            resolver: parts.resolver,
            uploads: parts.uploads,
        });
        let failures = Arc::new(Failures {
            list: parts.failures,
            tasks: parts.tasks.clone(),
            reports: parts.reports,
            resolver: sources.resolver.clone(),
            items: parts.items,
            stats: stats.clone(),
            item_readers: Semaphore::new(ITEM_READERS_MAX),
        });
        Service {
            previews: Previews {
                node: node.clone(),
                tasks: parts.tasks.clone(),
                provider: parts.provider,
            },
            reports: Reports {
                node: node.clone(),
                tasks: parts.tasks.clone(),
                failures: failures.clone(),
            },
            windows: Windows {
                node: node.clone(),
                cluster: cluster.clone(),
                failures: failures.clone(),
            },
            explain: Explain {
                node: node.clone(),
                cluster: cluster.clone(),
                stats: stats.clone(),
                limits: limits.clone(),
            },
            logs: Logs {
                node: node.clone(),
                store: parts.data_log,
            },
            access: Access {
                node: node.clone(),
                tokens: parts.tokens,
                businesses: businesses.store.clone(),
                tasks: parts.tasks.clone(),
            },
            health: Health {
                node: node.clone(),
                tasks: parts.tasks.clone(),
                meters: parts.meters,
            },
            idempotency: parts.responses,
            tasks: Tasks {
                node: node.clone(),
                store: parts.tasks,
                lists: parts.lists,
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
