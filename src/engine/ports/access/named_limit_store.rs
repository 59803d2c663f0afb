//! Named limits, which several businesses and tasks may use: created, changed, listed, deleted. Every change keeps an
//! audit entry in its transaction. [`crate::ports::ownership::limit_store`] shares them among nodes.

use std::collections::BTreeSet;
use windrow_words::engine as say;

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::tasks::store::Write;
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::limit::Bounds;
use windrow_core::meter::metering::Metering;
use windrow_core::task::lifecycle::Status;

/// Maximum number of tasks listed as users of a limit.
pub const TASKS_SHOWN_MAX: u64 = 20;

/// Named limit as stored in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLimit {
    /// Name of the limit; never changes.
    pub name: String,
    /// Bounds that it sets.
    pub bounds: Bounds,
    /// Limits in units, and what calls cost in them.
    pub metering: Metering,
    /// Revision, incremented by each change.
    pub revision: u64,
    /// Time at which it was created.
    pub created_at: WallMs,
    /// Time of its last change.
    pub updated_at: WallMs,
}

/// Businesses and tasks that name a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitUsers {
    /// Slugs of businesses that name it for all their tasks, including archived ones.
    pub businesses: Vec<String>,
    /// First tasks that name it themselves and haven't ended, at most [`TASKS_SHOWN_MAX`].
    pub tasks: Vec<LimitedTask>,
    /// Number of all such tasks.
    pub tasks_total: u64,
}

impl LimitUsers {
    /// True if no business and no task names it.
    pub fn is_empty(&self) -> bool {
        self.businesses.is_empty() && self.tasks_total == 0
    }
}

/// Task that names a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedTask {
    /// Id of the task.
    pub id: TaskId,
    /// Slug of its business.
    pub business: String,
    /// Current status of the task.
    pub status: Status,
}

/// Error of creating, changing or deleting a named limit. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamedLimitError {
    /// No limit has this name.
    #[error("{}", say::no_limit(.0))]
    NotFound(String),
    /// A limit has this name already.
    #[error("{}", say::limit_exists(.0))]
    Taken(String),
    /// The limit was changed since the caller read it.
    #[error("{}", say::limit_changed(found.to_string(), expected.to_string()))]
    Changed {
        /// Revision that the caller saw.
        expected: u64,
        /// Revision that it has.
        found: u64,
    },
    /// A business or a task names the limit.
    #[error("{}", say::limit_in_use(.0))]
    InUse(String, Box<LimitUsers>),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Store of named limits.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait NamedLimitStore: Send + Sync {
    /// Creates a limit with its bounds and its limits in units.
    ///
    /// # Errors
    /// `Taken`, or if the store fails.
    async fn create_limit(
        &self,
        name: &str,
        terms: (Bounds, &Metering),
        write: &Write,
        now: WallMs,
    ) -> Result<NamedLimit, NamedLimitError>;

    /// Returns a limit by its name.
    async fn named_limit(&self, name: &str) -> Result<Option<NamedLimit>, StoreError>;

    /// Returns limits in the order of their names, after one, at most `count`; only those that `among` names, if
    /// given.
    async fn named_limits(
        &self,
        among: Option<&BTreeSet<String>>,
        after: Option<&str>,
        count: u32,
    ) -> Result<Vec<NamedLimit>, StoreError>;

    /// Returns the limits named by a business, or by one of its tasks that haven't ended.
    async fn limits_of(&self, business: &str) -> Result<BTreeSet<String>, StoreError>;

    /// Changes the bounds and limits in units of a limit, while it has the expected revision. A limit with the same
    /// ones is left as it is.
    ///
    /// # Errors
    /// `NotFound`, `Changed`, or if the store fails.
    async fn change_limit(
        &self,
        name: &str,
        expected: u64,
        terms: (Bounds, &Metering),
        write: &Write,
        now: WallMs,
    ) -> Result<NamedLimit, NamedLimitError>;

    /// Deletes a limit that nobody names, and returns its last state.
    ///
    /// # Errors
    /// `NotFound`, `InUse`, or if the store fails.
    async fn delete_limit(
        &self,
        name: &str,
        write: &Write,
        now: WallMs,
    ) -> Result<NamedLimit, NamedLimitError>;

    /// Returns the businesses and tasks that name a limit.
    async fn limit_users(&self, name: &str) -> Result<LimitUsers, StoreError>;
}
