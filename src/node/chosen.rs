//! The store as a node sees it that runs some tasks only: it has no handler for any other.
//!
//! Other tasks of the store are offered only to be stopped; what a `kill -9` left running stays as it is until its
//! own command comes.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;

use windrow_core::ids::{ClaimId, Epoch, ItemIndex, ShardId, TaskId, WallMs};
use windrow_core::items::verdict::ParkedItem;
use windrow_core::task::lifecycle::Wish;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{
    CandidatePage, CandidateQuery, CheckpointAck, ClaimOutcome, ClaimRequest, Control, RunClose, RunStore,
    ShardCheckpoint,
};

/// The tasks that a node runs. Cheap to clone; what is added counts from then on.
#[derive(Clone, Debug, Default)]
pub struct Chosen(Arc<RwLock<BTreeSet<TaskId>>>);

impl Chosen {
    /// One more.
    pub fn add(&self, task: TaskId) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(task);
    }

    fn has(&self, task: TaskId) -> bool {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&task)
    }
}

impl From<TaskId> for Chosen {
    fn from(task: TaskId) -> Chosen {
        let one = Chosen::default();
        one.add(task);
        one
    }
}

/// The runs of chosen tasks.
pub(super) struct ChosenRuns {
    pub(super) runs: Arc<dyn RunStore>,
    pub(super) chosen: Chosen,
}

#[async_trait]
impl RunStore for ChosenRuns {
    async fn candidates(&self, hunt: &CandidateQuery) -> Result<CandidatePage, StoreError> {
        let mut game = self.runs.candidates(hunt).await?;
        game.found
            .retain(|candidate| self.chosen.has(candidate.shard.task) || candidate.wish != Wish::Run);
        Ok(game)
    }

    async fn claim(&self, request: ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        self.runs.claim(request).await
    }

    async fn checkpoint(&self, checkpoints: &[ShardCheckpoint]) -> Result<Vec<CheckpointAck>, StoreError> {
        self.runs.checkpoint(checkpoints).await
    }

    async fn release(
        &self,
        shard: ShardId,
        epoch: Epoch,
        claim: ClaimId,
        close: &RunClose,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError> {
        self.runs.release(shard, epoch, claim, close, now).await
    }

    async fn parked_due(
        &self,
        shard: ShardId,
        before: WallMs,
        after: Option<(WallMs, ItemIndex)>,
        limit: u32,
    ) -> Result<Vec<ParkedItem>, StoreError> {
        self.runs.parked_due(shard, before, after, limit).await
    }

    async fn control(&self, shard: ShardId) -> Result<Control, StoreError> {
        self.runs.control(shard).await
    }
}
