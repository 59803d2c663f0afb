//! What people do: the verbs behind the command line and the façade. Knows ports and the supervisor's handle.
//!
//! [`job`] is `windrow run`. [`Service`] is everything that the façade can do; its methods are in one file a
//! resource, and say what can go wrong with the one [`ServiceError`].

pub mod access;
pub mod businesses;
pub mod cluster;
pub mod error;
pub mod explain;
pub mod failures;
pub mod health;
pub mod job;
pub mod limits;
pub mod logs;
pub mod nodes;
pub mod sources;
pub mod stats;
pub(crate) use tasks::settings::nearest;
pub mod tasks;
mod turns;

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Semaphore;

pub use error::{FieldFault, ServiceError};
pub use job::{Found, Job, JobError, begin, start_if_stopped, stop};

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
use windrow_engine::ports::handling::hook::{HandlerDesk, HookCaller};
use windrow_engine::ports::handling::meters::Meters;
use windrow_engine::ports::sources::desk::SourceDesk;
use windrow_engine::ports::sources::provision::{Provider, TaskItems};
use windrow_engine::ports::sources::store::SourceStore;
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
    /// Remembered answers.
    pub answers: Arc<dyn IdempotencyStore>,
    /// What is counted for people who watch.
    pub meters: Arc<Meters>,
    /// Lines.
    pub data_log: Arc<dyn DataLog>,
    /// Indexed sources.
    pub sources: Arc<dyn SourceStore>,
    /// Items that failed.
    pub failures: Arc<dyn FailureList>,
    /// What reports are made of.
    pub reports: Arc<dyn ReportStore>,
    /// The bytes of uploads.
    pub uploads: Arc<dyn UploadStore>,
    /// Makes descriptions of sources.
    pub desk: Arc<dyn SourceDesk>,
    /// Calls hooks.
    pub hooks: Arc<dyn HookCaller>,
    /// Looks at handlers before tasks use them.
    pub handlers: Arc<dyn HandlerDesk>,
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
const LOOKS_MAX: usize = 2;

/// Everything that people can do to a node. Cheap to share behind an `Arc`; holds no state but the configuration.
pub struct Service {
    pub(crate) parts: Parts,
    config: RwLock<Arc<Config>>,
    changes: turns::Turns,
    stats: Arc<stats::Stats>,
    roster: cluster::Roster,
    looks: Semaphore,
}

impl Service {
    /// Where tokens are kept.
    pub fn token_store(&self) -> &dyn TokenStore {
        &*self.parts.tokens
    }

    /// A service over these parts.
    pub fn new(parts: Parts, config: Config) -> Service {
        let stats = Arc::new(stats::Stats::new(parts.clock.clone()));
        let roster = cluster::Roster::default();
        Service {
            parts,
            config: RwLock::new(Arc::new(config)),
            changes: turns::Turns::default(),
            stats,
            roster,
            looks: Semaphore::new(LOOKS_MAX),
        }
    }

    /// The configuration as it is now.
    pub fn config(&self) -> Arc<Config> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a reloaded configuration in place; who changes what can't be reloaded has looked before.
    pub fn reconfigure(&self, config: Config) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// The wall clock.
    pub fn now(&self) -> WallMs {
        self.parts.clock.wall()
    }

    /// The node's actors.
    pub fn supervisor(&self) -> &SupervisorHandle {
        &self.parts.supervisor
    }
}
