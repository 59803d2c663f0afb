//! What a run works with: its task's handler and source, found by whoever composes the node.

use std::sync::Arc;

use async_trait::async_trait;

use crate::ports::access::business_store::Business;
use crate::ports::handling::handler::HandlerFactory;
use crate::ports::sources::source::Source;
use crate::ports::tasks::store::TaskView;

/// What a run works with.
#[derive(Clone)]
pub struct Provision {
    /// Opens the handler.
    pub handler: Arc<dyn HandlerFactory>,
    /// The items.
    pub source: Arc<dyn Source>,
    /// The limits that its items count against, at most [`windrow_core::limit::key::JOINED_MAX`], each once.
    pub limits: Vec<LimitOf>,
}

/// A limit that a task's items count against, together with those of other tasks on all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitOf {
    /// Its key, see [`windrow_core::limit::key::LimitKey`].
    pub name: String,
    /// Whether it limited anything when this was read; it may be changed at any time.
    pub is_limited: bool,
}

/// A task can't be provided for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProvisionError {
    /// The source is not what it was when the task began.
    #[error("{0}")]
    SourceChanged(String),
    /// No call can ever succeed as things are (no such command, bad URL).
    #[error("{0}")]
    HandlerUnusable(String),
    /// This node hasn't the key that its business's secrets were sealed with. Another may have it.
    #[error("{0}")]
    KeyMissing(String),
    /// Not now; worth another try.
    #[error("{0}")]
    Unavailable(String),
}

/// Finds the handlers of businesses apart from their tasks.
pub trait BusinessHandlers: Send + Sync {
    /// What calls a business as a run would, one item a call. Nothing that it is asked in mode `preview` is recorded.
    ///
    /// # Errors
    /// When no call can succeed as the business is.
    fn handler_of(&self, business: &Business) -> Result<Arc<dyn HandlerFactory>, ProvisionError>;
}

/// Opens the items of a task apart from its runs.
#[async_trait]
pub trait TaskItems: Send + Sync {
    /// The source of a task.
    ///
    /// # Errors
    /// When it can't be read (any more), here.
    async fn source(&self, task: &TaskView) -> Result<Arc<dyn Source>, ProvisionError>;
}

/// Finds handlers and sources.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The handler and source of a task.
    async fn provide(&self, task: &TaskView) -> Result<Provision, ProvisionError>;
}
