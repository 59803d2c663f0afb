//! Where the ids of sessions and claims come from, and the spread of what nodes should not do in step.
//!
//! Random in a real node. A simulation gives the same ones for the same seed: then everything else repeats too.

use std::sync::Arc;

use uuid::Uuid;

/// Makes UUIDs that are never used again.
#[derive(Clone)]
pub struct NewIds(Arc<dyn Fn() -> Uuid + Send + Sync>);

impl NewIds {
    /// Ids from somewhere else; whoever gives them owes that none comes twice.
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
