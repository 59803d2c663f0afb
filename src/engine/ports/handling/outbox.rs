//! Calls of hooks and notices of alerts that changes left to be delivered: at least once each, by whichever node takes
//! them.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::business::HookKind;
use windrow_core::ids::{TaskId, WallMs};

/// Hook of a task's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookTarget {
    /// Task that the call is about.
    pub task: TaskId,
    /// Start of the task that it is about.
    pub start_no: u32,
    /// Slug of the business.
    pub business: String,
    /// Kind of the hook.
    pub kind: HookKind,
}

/// Receiver of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Hook of a business.
    Hook(HookTarget),
    /// Alert of this name.
    Alert(String),
}

/// Call that was taken for delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Id of its row.
    pub id: i64,
    /// Receiver of the call.
    pub target: Target,
    /// Stable id that the receiver sees.
    pub delivery_id: String,
    /// Body as JSON text.
    pub body: String,
    /// Number of this attempt, from 1; a settlement is conditional on it.
    pub attempts: u32,
    /// Time from which it isn't tried again.
    pub expires_at: WallMs,
}

/// Settlement of a delivery that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Delivered, or no longer wanted. A body with a start token is not kept.
    Done,
    /// To be taken again, not before a time, with the error if there was one.
    Again {
        /// Earliest time of the next attempt.
        due_at: WallMs,
        /// Error as a sentence.
        error: Option<String>,
    },
    /// Failed; it isn't tried again.
    Dead {
        /// Error of the last attempt.
        error: String,
    },
}

/// Store of calls to be delivered.
#[async_trait]
pub trait OutboxStore: Send + Sync {
    /// Takes calls that are due, the longest waiting first. Each counts an attempt and becomes due again at `until`,
    /// so that a dispatcher that dies delays it and loses none. A call that another node took meanwhile is left out.
    ///
    /// # Errors
    /// If the store can't be written; then nothing, or everything that would have been returned, is taken.
    async fn take_due(&self, now: WallMs, until: WallMs, limit: u32) -> Result<Vec<Delivery>, StoreError>;

    /// Records the settlement of a delivery, unless it was taken again since. Returns true if it was accepted.
    ///
    /// # Errors
    /// If the store can't be written; the call is taken again later.
    async fn settle(&self, delivery: &Delivery, settlement: &Settlement) -> Result<bool, StoreError>;
}
