//! Hook calls that changes left to be delivered: at least once each, by whichever node takes them.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::business::HookKind;
use windrow_core::ids::{TaskId, WallMs};

/// A hook call that was taken to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its row.
    pub id: i64,
    /// The task that it is about.
    pub task: TaskId,
    /// The start that it is about.
    pub start_no: u32,
    /// The business's slug.
    pub business: String,
    /// Which hook.
    pub kind: HookKind,
    /// The stable id that the business sees.
    pub delivery_id: String,
    /// The body as JSON text.
    pub body: String,
    /// Which attempt this is, 1-based; also what a settlement is conditional on.
    pub attempts: u32,
    /// From then on it isn't tried again.
    pub expires_at: WallMs,
}

/// What becomes of a delivery that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Heard, or no longer wanted. A body with a start token is not kept.
    Done,
    /// To be taken again, not before a time; with what went wrong, if anything did.
    Again {
        /// When.
        due_at: WallMs,
        /// A sentence.
        error: Option<String>,
    },
    /// Given up.
    Dead {
        /// What went wrong the last time.
        error: String,
    },
}

/// Takes and settles hook calls.
#[async_trait]
pub trait OutboxStore: Send + Sync {
    /// Takes calls that are due, the longest waiting first: each counts an attempt and becomes due again at `until`,
    /// so that a dispatcher that dies delays it and loses none. One that another took meanwhile is left out.
    ///
    /// # Errors
    /// When the store can't be written; nothing, or everything that would have been returned, is taken then.
    async fn take_due(&self, now: WallMs, until: WallMs, limit: u32) -> Result<Vec<Delivery>, StoreError>;

    /// Says what became of a delivery, unless it was taken again since; says whether it was believed.
    ///
    /// # Errors
    /// When the store can't be written; the call is taken again later.
    async fn settle(&self, delivery: &Delivery, settlement: &Settlement) -> Result<bool, StoreError>;
}
