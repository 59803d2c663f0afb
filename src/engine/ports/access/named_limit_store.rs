//! Limits with a name of their own, which several businesses and tasks may use: made, changed, listed, deleted. Every change
//! keeps an audit entry in its transaction. How they are shared is in [`crate::ports::ownership::limit_store`].

use std::collections::BTreeSet;
use windrow_words::engine as say;

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::tasks::store::Write;
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::limit::Bounds;
use windrow_core::task::lifecycle::Status;

/// So many tasks are named of those that use a limit.
pub const TASKS_SHOWN_MAX: u64 = 20;

/// A named limit as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLimit {
    /// Its name; never changes.
    pub name: String,
    /// What it allows.
    pub bounds: Bounds,
    /// Grows with each change.
    pub revision: u64,
    /// When it was made.
    pub created_at: WallMs,
    /// When it was last changed.
    pub updated_at: WallMs,
}

/// Who names a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitUsers {
    /// The slugs of businesses that name it for all their tasks, archived ones too.
    pub businesses: Vec<String>,
    /// The first of the tasks that name it themselves and haven't ended, at most [`TASKS_SHOWN_MAX`].
    pub tasks: Vec<LimitedTask>,
    /// How many such tasks there are.
    pub tasks_total: u64,
}

impl LimitUsers {
    /// Whether nobody names it.
    pub fn is_empty(&self) -> bool {
        self.businesses.is_empty() && self.tasks_total == 0
    }
}

/// A task that names a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedTask {
    /// Which.
    pub id: TaskId,
    /// Its business's slug.
    pub business: String,
    /// Where it stands.
    pub status: Status,
}

/// A named limit could not be made, changed or deleted. Nothing was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamedLimitError {
    /// There is none of this name.
    #[error("{}", say::no_limit(.0))]
    NotFound(String),
    /// There is one of this name.
    #[error("{}", say::limit_exists(.0))]
    Taken(String),
    /// It was changed since the caller looked.
    #[error("{}", say::limit_changed(found.to_string(), expected.to_string()))]
    Changed {
        /// What the caller saw.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// Somebody names it.
    #[error("{}", say::limit_in_use(.0))]
    InUse(String, Box<LimitUsers>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps named limits.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait NamedLimitStore: Send + Sync {
    /// Makes a limit.
    ///
    /// # Errors
    /// `Taken`, or when the store fails.
    async fn create_limit(
        &self,
        name: &str,
        bounds: Bounds,
        write: &Write,
        now: WallMs,
    ) -> Result<NamedLimit, NamedLimitError>;

    /// A limit by its name.
    async fn named_limit(&self, name: &str) -> Result<Option<NamedLimit>, StoreError>;

    /// Limits in the order of their names, after one, at most `count`; only those `among` names, if any are given.
    async fn named_limits(
        &self,
        among: Option<&BTreeSet<String>>,
        after: Option<&str>,
        count: u32,
    ) -> Result<Vec<NamedLimit>, StoreError>;

    /// The limits that a business names, or one of its tasks that haven't ended.
    async fn limits_of(&self, business: &str) -> Result<BTreeSet<String>, StoreError>;

    /// Changes what a limit allows, while it has the expected revision. What allows the same already is left as it is.
    ///
    /// # Errors
    /// `NotFound`, `Changed`, or when the store fails.
    async fn change_limit(
        &self,
        name: &str,
        expected: u64,
        bounds: Bounds,
        write: &Write,
        now: WallMs,
    ) -> Result<NamedLimit, NamedLimitError>;

    /// Deletes a limit that nobody names; answers what it was.
    ///
    /// # Errors
    /// `NotFound`, `InUse`, or when the store fails.
    async fn delete_limit(
        &self,
        name: &str,
        write: &Write,
        now: WallMs,
    ) -> Result<NamedLimit, NamedLimitError>;

    /// Who names a limit.
    async fn limit_users(&self, name: &str) -> Result<LimitUsers, StoreError>;
}
