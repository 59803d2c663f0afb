//! Control of a shard that its launcher has applied, readable by its parent: a heartbeat without news costs no
//! message, however many shards a node owns.

use std::sync::Mutex;

use crate::actors::runtime::lock;
use crate::ports::ownership::run_store::Control;
use crate::ports::ownership::session_store::OwnedShard;
use windrow_core::ids::ClaimId;
use windrow_core::task::lifecycle::Desired;

/// Claim, desired state and revision that the run has applied. Empty until the run has begun.
#[derive(Debug, Default)]
pub(crate) struct SeenRevision(Mutex<Option<(ClaimId, Desired, u64)>>);

impl SeenRevision {
    /// Records that the run of this claim has applied this control.
    pub(crate) fn note(&self, claim: ClaimId, control: &Control) {
        *lock(&self.0) = Some((claim, control.desired, control.rev));
    }

    /// True if the row holds nothing that the run doesn't know.
    pub(crate) fn shows(&self, row: &OwnedShard) -> bool {
        let seen = *lock(&self.0);
        !row.leaves && seen == Some((row.claim, row.desired, row.control_rev))
    }
}
