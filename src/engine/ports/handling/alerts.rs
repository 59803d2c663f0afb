//! Alerts: stored by name, raised by events, and sent through the outbox like calls of hooks.

use std::time::Duration;

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::handling::hook::HookReply;
use crate::ports::tasks::store::Write;
use windrow_core::alert::{AlertSpec, Notice};
use windrow_core::ids::WallMs;
use windrow_words::alert as say;

/// Alert as stored in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Name of the alert; never changes.
    pub name: String,
    /// Declaration of the alert.
    pub spec: AlertSpec,
    /// Sealed [`windrow_core::alert::AlertSecrets`]; `None` for a command.
    pub sealed: Option<Vec<u8>>,
    /// Revision, incremented by each change.
    pub revision: u64,
    /// Time at which it was created.
    pub created_at: WallMs,
    /// Time of its last change.
    pub updated_at: WallMs,
}

/// Row of the outbox about an alert, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertDelivery {
    /// Number of the row.
    pub id: i64,
    /// Id that the receiver sees, the same for each attempt.
    pub delivery_id: String,
    /// Notice as JSON text.
    pub notice: String,
    /// State: `due`, `done` or `dead`.
    pub state: String,
    /// Attempts that were made, failed ones included.
    pub attempts: u32,
    /// Error of the last attempt that failed.
    pub last_error: Option<String>,
    /// Time of the event.
    pub created_at: WallMs,
    /// Earliest time of the next attempt, if it is due.
    pub due_at: WallMs,
}

/// Error of creating, changing or deleting an alert. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlertError {
    /// No alert has this name.
    #[error("{}", say::not_found(.0))]
    NotFound(String),
    /// An alert has this name already.
    #[error("{}", say::taken(.0))]
    Taken(String),
    /// There are as many alerts as there can be.
    #[error("{}", say::too_many(*.0))]
    TooMany(u32),
    /// The alert was changed since the caller read it.
    #[error("{}", say::changed(found.to_string(), expected.to_string()))]
    Changed {
        /// Revision that the caller saw.
        expected: u64,
        /// Revision that it has.
        found: u64,
    },
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Store of alerts. Every change keeps an audit entry in its transaction.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait AlertStore: Send + Sync {
    /// Creates an alert; its revision and times are set by the store.
    ///
    /// # Errors
    /// `Taken`, `TooMany`, or if the store fails.
    async fn create_alert(&self, alert: &Alert, write: &Write, now: WallMs) -> Result<Alert, AlertError>;

    /// Returns an alert by its name.
    async fn alert(&self, name: &str) -> Result<Option<Alert>, StoreError>;

    /// Returns alerts in the order of their names, after one, at most `count`.
    async fn alerts(&self, after: Option<&str>, count: u32) -> Result<Vec<Alert>, StoreError>;

    /// Replaces declaration and secrets of an alert while it has the revision of `alert`. One that is the same is left
    /// as it is.
    ///
    /// # Errors
    /// `NotFound`, `Changed`, or if the store fails.
    async fn change_alert(&self, alert: &Alert, write: &Write, now: WallMs) -> Result<Alert, AlertError>;

    /// Deletes an alert with its deliveries, and returns its last state.
    ///
    /// # Errors
    /// `NotFound`, or if the store fails.
    async fn delete_alert(&self, name: &str, write: &Write, now: WallMs) -> Result<Alert, AlertError>;

    /// Enqueues a notice for each alert that wants it.
    async fn raise(&self, notice: &Notice, now: WallMs) -> Result<(), StoreError>;

    /// Enqueues a test of an alert, and returns its delivery.
    ///
    /// # Errors
    /// `NotFound`, or if the store fails.
    async fn test_alert(&self, name: &str, now: WallMs) -> Result<AlertDelivery, AlertError>;

    /// Returns the deliveries of an alert, newest first, before one, at most `count`.
    async fn alert_deliveries(
        &self,
        name: &str,
        before: Option<i64>,
        count: u32,
    ) -> Result<Vec<AlertDelivery>, StoreError>;
}

/// Client that sends notices to URLs and commands.
#[async_trait]
pub trait AlertSender: Send + Sync {
    /// Sends a notice (JSON text) in the form of the alert. The id is the same for each attempt.
    async fn send(&self, alert: &Alert, id: &str, notice: &str, timeout: Duration) -> HookReply;
}
