//! Ids of sessions and claims, and the jitter of actions that nodes should not do in step.
//!
//! Random in a real node. A simulation gives the same ids for the same seed, so that everything else repeats too.

use std::sync::Arc;

use uuid::Uuid;

/// Generator of UUIDs that are never used again.
#[derive(Clone)]
pub struct NewIds(Arc<dyn Fn() -> Uuid + Send + Sync>);

impl NewIds {
    /// Takes ids from another generator, which must never give one twice.
    pub fn from(make: impl Fn() -> Uuid + Send + Sync + 'static) -> NewIds {
        NewIds(Arc::new(make))
    }

    pub(crate) fn make(&self) -> Uuid {
        (self.0)()
    }
}

impl Default for NewIds {
    fn default() -> NewIds {
        NewIds::from(Uuid::new_v4)
    }
}
