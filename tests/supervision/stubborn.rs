//! The memory store, but it refuses what is wrong with the data: for good, so that trying again does not help.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use windrow::adapters::memory::MemoryStore;
use windrow::domain::ids::{ClaimId, Epoch, ItemIndex, ShardId, TaskId, WallMs};
use windrow::domain::verdict::ParkedItem;
use windrow::ports::StoreError;
use windrow::ports::run_store::{
    CheckpointAck, ClaimOutcome, ClaimRequest, Control, Game, Hunt, RunClose, RunStore, ShardCheckpoint,
};

pub struct Stubborn {
    store: Arc<MemoryStore>,
    /// Refuses every transaction with a checkpoint of this shard.
    pub refused: Mutex<Option<ShardId>>,
    pub refuses_claims: AtomicBool,
    /// The tasks of all claims so far.
    pub claims: Mutex<Vec<TaskId>>,
}

impl Stubborn {
    pub fn new(store: Arc<MemoryStore>) -> Stubborn {
        Stubborn {
            store,
            refused: Mutex::default(),
            refuses_claims: AtomicBool::new(false),
            claims: Mutex::default(),
        }
    }
}

#[async_trait]
impl RunStore for Stubborn {
    async fn candidates(&self, hunt: &Hunt) -> Result<Game, StoreError> {
        self.store.candidates(hunt).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        self.claims.lock().expect("no panic while held").push(request.shard.task);
        // Time passes in a hot loop too.
        tokio::time::sleep(Duration::from_millis(1)).await;
        if self.refuses_claims.load(Ordering::SeqCst) {
            return Err(StoreError::Refused("a damaged row".into()));
        }
        self.store.claim(request).await
    }

    async fn checkpoint(&self, checkpoints: &[ShardCheckpoint]) -> Result<Vec<CheckpointAck>, StoreError> {
        let refused = *self.refused.lock().expect("no panic while held");
        if checkpoints.iter().any(|checkpoint| Some(checkpoint.shard) == refused) {
            return Err(StoreError::Refused("a row that does not fit".into()));
        }
        self.store.checkpoint(checkpoints).await
    }

    async fn release(
        &self,
        shard: ShardId,
        epoch: Epoch,
        claim: ClaimId,
        close: &RunClose,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError> {
        self.store.release(shard, epoch, claim, close, now).await
    }

    async fn parked_due(
        &self,
        shard: ShardId,
        before: WallMs,
        after: Option<(WallMs, ItemIndex)>,
        limit: u32,
    ) -> Result<Vec<ParkedItem>, StoreError> {
        self.store.parked_due(shard, before, after, limit).await
    }

    async fn control(&self, shard: ShardId) -> Result<Control, StoreError> {
        self.store.control(shard).await
    }
}
