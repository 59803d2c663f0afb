//! Changes of a node itself, for the audit.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::access::audit_object::AuditObject;
use crate::ports::tasks::store::Write;
use windrow_core::ids::WallMs;

/// Change of a node, or a request to it other than about tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeChange {
    /// Action: `node.drain`, `node.undrain`, `node.change` or `handler.try`.
    pub action: &'static str,
    /// Node or business that it touches.
    pub object: AuditObject,
    /// Business that it concerns, if any.
    pub business: Option<String>,
    /// Settings before, as JSON text; `None` if nothing was set.
    pub before: Option<String>,
    /// Settings after, or the request, as JSON text.
    pub after: String,
}

/// Audit of changes to a node.
#[async_trait]
pub trait NodeAudit: Send + Sync {
    /// Appends an entry.
    ///
    /// # Errors
    /// If the store can't be written: then the change must not be made.
    async fn note(&self, change: &NodeChange, write: &Write, now: WallMs) -> Result<(), StoreError>;
}
