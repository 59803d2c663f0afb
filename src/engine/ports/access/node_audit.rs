//! What people do to a node itself, for the audit.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::access::audit_object::AuditObject;
use crate::ports::tasks::store::Write;
use windrow_core::ids::WallMs;

/// A change of a node, or what it was asked to do beside tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeChange {
    /// `node.drain`, `node.undrain`, `node.change` or `handler.try`.
    pub action: &'static str,
    /// The node or the business that it touches.
    pub object: AuditObject,
    /// The business that it concerns.
    pub business: Option<String>,
    /// The settings before, as JSON text; none where nothing was set.
    pub before: Option<String>,
    /// The settings after, or what was asked, as JSON text.
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
