//! One node's way to the database and to the leases that all nodes share; tests cut it, let it hang,
//! and let it refuse for good what is wrong with the data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use windrow_core::ids::{ClaimId, Epoch, ItemIndex, SessionId, ShardId, TaskId, WallMs};
use windrow_core::items::verdict::ParkedItem;
use windrow_core::limit::Bounds;
use windrow_core::limit::round::Round;
use windrow_core::limit::units::Use;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseReply, LeaseStore};
use windrow_engine::ports::ownership::limit_store::{LimitStore, PartView, RoundOutcome};
use windrow_engine::ports::ownership::run_store::{
    CandidatePage, CandidateQuery, CheckpointAck, ClaimOutcome, ClaimRequest, Control, RunClose, RunStore,
    ShardCheckpoint,
};
use windrow_engine::ports::ownership::session_store::{
    Heartbeat, NewSession, SessionFace, SessionStore, SessionView,
};
use windrow_memory::{MemoryLeases, MemoryStore};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Open,
    /// Every request fails at once.
    Cut,
    /// Requests wait until the way is another one, and are obeyed then.
    Hangs,
}

pub struct Link {
    store: Arc<MemoryStore>,
    leases: Option<Arc<MemoryLeases>>,
    database: watch::Sender<Way>,
    redis: watch::Sender<Way>,
    /// Refuses every transaction with a checkpoint of this shard.
    pub refused: Mutex<Option<ShardId>>,
    pub refuses_claims: AtomicBool,
    /// The tasks of all claims so far.
    pub claims: Mutex<Vec<TaskId>>,
}

impl Link {
    pub fn new(store: Arc<MemoryStore>, leases: Option<Arc<MemoryLeases>>) -> Arc<Link> {
        let open = || watch::Sender::new(Way::Open);
        Arc::new(Link {
            store,
            leases,
            database: open(),
            redis: open(),
            refused: Mutex::default(),
            refuses_claims: AtomicBool::new(false),
            claims: Mutex::default(),
        })
    }

    pub fn database(&self, way: Way) {
        self.database.send_replace(way);
    }

    pub fn redis(&self, way: Way) {
        self.redis.send_replace(way);
    }

    async fn pass(way: &watch::Sender<Way>) -> Result<(), StoreError> {
        let mut changes = way.subscribe();
        match *changes
            .wait_for(|way| *way != Way::Hangs)
            .await
            .expect("the sender lives")
        {
            Way::Cut => Err(StoreError::Unavailable("the way is cut".into())),
            Way::Open | Way::Hangs => Ok(()),
        }
    }

    async fn store(&self) -> Result<&MemoryStore, StoreError> {
        Link::pass(&self.database).await?;
        Ok(&self.store)
    }

    async fn leases(&self) -> Result<&MemoryLeases, StoreError> {
        Link::pass(&self.redis).await?;
        Ok(self.leases.as_ref().expect("there are leases"))
    }
}

#[async_trait]
impl RunStore for Link {
    async fn candidates(&self, hunt: &CandidateQuery) -> Result<CandidatePage, StoreError> {
        self.store().await?.candidates(hunt).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        self.claims
            .lock()
            .expect("no panic while held")
            .push(request.shard.task);
        if self.refuses_claims.load(Ordering::SeqCst) {
            // Time passes in a hot loop too, or nobody would see its end.
            tokio::time::sleep(Duration::from_millis(1)).await;
            return Err(StoreError::Refused("a damaged row".into()));
        }
        self.store().await?.claim(request).await
    }

    async fn checkpoint(&self, checkpoints: &[ShardCheckpoint]) -> Result<Vec<CheckpointAck>, StoreError> {
        let refused = *self.refused.lock().expect("no panic while held");
        if checkpoints
            .iter()
            .any(|checkpoint| Some(checkpoint.shard) == refused)
        {
            return Err(StoreError::Refused("a row that does not fit".into()));
        }
        self.store().await?.checkpoint(checkpoints).await
    }

    async fn release(
        &self,
        shard: ShardId,
        epoch: Epoch,
        claim: ClaimId,
        close: &RunClose,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError> {
        self.store().await?.release(shard, epoch, claim, close, now).await
    }

    async fn parked_due(
        &self,
        shard: ShardId,
        before: WallMs,
        after: Option<(WallMs, ItemIndex)>,
        limit: u32,
    ) -> Result<Vec<ParkedItem>, StoreError> {
        self.store().await?.parked_due(shard, before, after, limit).await
    }

    async fn control(&self, shard: ShardId) -> Result<Control, StoreError> {
        self.store().await?.control(shard).await
    }
}

#[async_trait]
impl SessionStore for Link {
    async fn begin(&self, session: &NewSession) -> Result<(), StoreError> {
        self.store().await?.begin(session).await
    }

    async fn beat(&self, id: SessionId) -> Result<Heartbeat, StoreError> {
        self.store().await?.beat(id).await
    }

    async fn list(&self) -> Result<Vec<SessionView>, StoreError> {
        self.store().await?.list().await
    }

    async fn fence(&self, id: SessionId, heartbeat: i64, now: WallMs) -> Result<bool, StoreError> {
        self.store().await?.fence(id, heartbeat, now).await
    }

    async fn fence_all_but(&self, survivor: SessionId) -> Result<u64, StoreError> {
        self.store().await?.fence_all_but(survivor).await
    }

    async fn describe(&self, id: SessionId, face: &SessionFace) -> Result<bool, StoreError> {
        self.store().await?.describe(id, face).await
    }

    async fn request_drain(&self, node: &str, drain: bool) -> Result<bool, StoreError> {
        self.store().await?.request_drain(node, drain).await
    }

    async fn change_witness(&self, from: &str, to: &str) -> Result<bool, StoreError> {
        self.store().await?.change_witness(from, to).await
    }

    async fn witness(&self, mine: &str) -> Result<String, StoreError> {
        self.store().await?.witness(mine).await
    }

    async fn end(&self, id: SessionId) -> Result<(), StoreError> {
        self.store().await?.end(id).await
    }
}

#[async_trait]
impl LeaseStore for Link {
    async fn acquire(&self, keys: &[LeaseKey], ttl: Duration) -> Result<Vec<LeaseReply>, StoreError> {
        self.leases().await?.acquire(keys, ttl).await
    }

    async fn renew(
        &self,
        keys: &[LeaseKey],
        ttl: Duration,
        reassert: bool,
    ) -> Result<Vec<LeaseReply>, StoreError> {
        self.leases().await?.renew(keys, ttl, reassert).await
    }

    async fn release(&self, keys: &[LeaseKey]) -> Result<(), StoreError> {
        self.leases().await?.release(keys).await
    }
}

#[async_trait]
impl LimitStore for Link {
    async fn bounds(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, Bounds>, StoreError> {
        self.store().await?.bounds(names).await
    }

    async fn play(&self, rounds: &[(String, Round)]) -> Result<Vec<RoundOutcome>, StoreError> {
        self.store().await?.play(rounds).await
    }

    async fn parts(&self, name: &str) -> Result<Vec<PartView>, StoreError> {
        self.store().await?.parts(name).await
    }

    async fn uses(&self, name: &str) -> Result<Vec<Use>, StoreError> {
        self.store().await?.uses(name).await
    }
}
