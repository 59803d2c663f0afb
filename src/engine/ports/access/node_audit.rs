//! What people do to a node itself, for the audit.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::tasks::store::Write;
use windrow_core::ids::WallMs;

/// A change of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeChange {
    /// `node.drain`, `node.undrain` or `node.change`.
    pub action: &'static str,
    /// The settings before, as JSON text.
    pub before: String,
    /// The settings after, as JSON text.
    pub after: String,
}

/// Keeps what people do to a node.
#[async_trait]
pub trait NodeAudit: Send + Sync {
    /// Appends an entry.
    ///
    /// # Errors
    /// When the store can't be written: then the change must not be made.
    async fn note(&self, change: &NodeChange, write: &Write, now: WallMs) -> Result<(), StoreError>;
}
