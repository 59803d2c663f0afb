//! What a launcher has seen of its shard's row, where its parent can look: a heartbeat that found nothing new costs no
//! message, however many shards a node owns.

use std::sync::Mutex;

use crate::actors::runtime::lock;
use crate::ports::ownership::run_store::Control;
use crate::ports::ownership::session_store::OwnedShard;
use windrow_core::ids::ClaimId;
use windrow_core::task::lifecycle::Desired;

/// See the module. Empty until the run has begun.
#[derive(Debug, Default)]
pub(crate) struct SeenRevision(Mutex<Option<(ClaimId, Desired, u64)>>);

impl SeenRevision {
    /// The run of this claim has taken this control over.
    pub(crate) fn note(&self, claim: ClaimId, control: &Control) {
        *lock(&self.0) = Some((claim, control.desired, control.rev));
    }

    /// Whether the row says nothing that the run doesn't know.
    pub(crate) fn shows(&self, row: &OwnedShard) -> bool {
        let seen = *lock(&self.0);
        !row.leaves && seen == Some((row.claim, row.desired, row.control_rev))
    }
}
