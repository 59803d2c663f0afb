//! Handler and source of a run's task, found by the code that composes the node.

use std::sync::Arc;

use async_trait::async_trait;

use crate::ports::access::business_store::Business;
use crate::ports::handling::handler::HandlerFactory;
use crate::ports::sources::source::Source;
use crate::ports::tasks::store::TaskView;
use windrow_core::meter::metering::Metering;

/// Handler, source and limits of a run.
#[derive(Clone)]
pub struct Provision {
    /// Factory that opens the handler.
    pub handler: Arc<dyn HandlerFactory>,
    /// Source of the items.
    pub source: Arc<dyn Source>,
    /// Limits that its items count against, at most [`windrow_core::limit::key::JOINED_MAX`], each once.
    pub limits: Vec<LimitOf>,
}

/// Limit that a task's items count against, together with those of other tasks on all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitOf {
    /// Key of the limit; see [`windrow_core::limit::key::LimitKey`].
    pub name: String,
    /// True if it limited anything when this was read; it may be changed at any time.
    pub is_limited: bool,
    /// Limits in units of a named limit, and what calls cost in them.
    pub metering: Option<Metering>,
}

/// Error of finding the handler or source of a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProvisionError {
    /// The source has changed since the task began.
    #[error("{0}")]
    SourceChanged(String),
    /// No call can ever succeed as things are (no such command, bad URL).
    #[error("{0}")]
    HandlerUnusable(String),
    /// This node hasn't the key that the business's secrets were sealed with. Another may have it.
    #[error("{0}")]
    KeyMissing(String),
    /// Unavailable for now; worth another try.
    #[error("{0}")]
    Unavailable(String),
}

/// Finder of the handlers of businesses, apart from their tasks.
pub trait BusinessHandlers: Send + Sync {
    /// Returns a factory of handlers that call a business as a run would, one item per call. Calls in mode `preview`
    /// are not recorded.
    ///
    /// # Errors
    /// If no call can succeed as the business is.
    fn handler_of(&self, business: &Business) -> Result<Arc<dyn HandlerFactory>, ProvisionError>;
}

/// Opener of a task's items, apart from its runs.
#[async_trait]
pub trait TaskItems: Send + Sync {
    /// Returns the source of a task.
    ///
    /// # Errors
    /// If it can't be read (any more) on this node.
    async fn source(&self, task: &TaskView) -> Result<Arc<dyn Source>, ProvisionError>;
}

/// Provider of handlers and sources.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns the handler and source of a task.
    async fn provide(&self, task: &TaskView) -> Result<Provision, ProvisionError>;
}
