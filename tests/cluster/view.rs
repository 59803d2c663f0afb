//! The shared stores as one node sees them: every port over its link, every effect before the judge's eyes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use windrow_core::ids::{ClaimId, Epoch, ItemIndex, SessionId, ShardId, WallMs};
use windrow_core::items::verdict::ParkedItem;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::ownership::lease_store::{LeaseKey, LeaseReply, LeaseStore};
use windrow_engine::ports::ownership::run_store::{
    CandidatePage, CandidateQuery, CheckpointAck, ClaimOutcome, ClaimRequest, Control, RunClose, RunStore,
    ShardCheckpoint,
};
use windrow_engine::ports::ownership::session_store::{
    Heartbeat, NewSession, SessionFace, SessionStore, SessionView,
};
use windrow_engine::ports::tasks::store::TaskStore;
use windrow_memory::{MemoryLeases, MemoryStore};

use crate::link::{Link, Peer};

/// See the module. One for each life of a node.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) link: Arc<Link>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) leases: Option<Arc<MemoryLeases>>,
}

impl View {
    /// What the tasks are now, for the judge; after each write that may have changed one.
    pub(crate) async fn look(&self) {
        look(&self.link, &self.store).await;
    }
}

pub(crate) async fn look(link: &Link, store: &MemoryStore) {
    for task in link.judge(|judge| judge.tasks()) {
        if let Ok(Some(view)) = store.get(task).await {
            link.judge(|judge| judge.on_status(&view));
        }
    }
}

#[async_trait]
impl RunStore for View {
    async fn candidates(&self, hunt: &CandidateQuery) -> Result<CandidatePage, StoreError> {
        let (view, hunt) = (self.clone(), hunt.clone());
        self.link
            .call(Peer::Database, "candidates", move || {
                let (view, hunt) = (view.clone(), hunt.clone());
                async move { view.store.candidates(&hunt).await }
            })
            .await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let view = self.clone();
        self.link
            .call(Peer::Database, "claim", move || {
                let view = view.clone();
                async move {
                    let outcome = view.store.claim(request).await;
                    let (link, who) = (&view.link, (view.link.node, view.link.life));
                    link.judge(|judge| judge.on_claim(who, &request, outcome.as_ref().ok()));
                    view.look().await;
                    outcome
                }
            })
            .await
    }

    async fn checkpoint(&self, checkpoints: &[ShardCheckpoint]) -> Result<Vec<CheckpointAck>, StoreError> {
        let (view, checkpoints) = (self.clone(), Arc::new(checkpoints.to_vec()));
        let closes = checkpoints.iter().any(|checkpoint| checkpoint.close.is_some());
        self.link
            .call(
                Peer::Database,
                if closes { "close" } else { "checkpoint" },
                move || {
                    let (view, checkpoints) = (view.clone(), checkpoints.clone());
                    async move {
                        let acks = view.store.checkpoint(&checkpoints).await?;
                        view.link.judge(|judge| {
                            for (checkpoint, ack) in checkpoints.iter().zip(&acks) {
                                judge.on_checkpoint(checkpoint, *ack);
                            }
                        });
                        view.look().await;
                        Ok(acks)
                    }
                },
            )
            .await
    }

    async fn release(
        &self,
        shard: ShardId,
        epoch: Epoch,
        claim: ClaimId,
        close: &RunClose,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError> {
        let (view, close) = (self.clone(), close.clone());
        self.link
            .call(Peer::Database, "release", move || {
                let (view, close) = (view.clone(), close.clone());
                async move {
                    let ack = view.store.release(shard, epoch, claim, &close, now).await?;
                    view.link
                        .judge(|judge| judge.on_release(shard, epoch, claim, &close, ack));
                    view.look().await;
                    Ok(ack)
                }
            })
            .await
    }

    async fn parked_due(
        &self,
        shard: ShardId,
        before: WallMs,
        after: Option<(WallMs, ItemIndex)>,
        limit: u32,
    ) -> Result<Vec<ParkedItem>, StoreError> {
        let view = self.clone();
        self.link
            .call(Peer::Database, "parked", move || {
                let view = view.clone();
                async move { view.store.parked_due(shard, before, after, limit).await }
            })
            .await
    }

    async fn control(&self, shard: ShardId) -> Result<Control, StoreError> {
        let view = self.clone();
        let control = self
            .link
            .call(Peer::Database, "control", move || {
                let view = view.clone();
                async move { view.store.control(shard).await }
            })
            .await?;
        let who = (self.link.node, self.link.life);
        self.link.judge(|judge| judge.on_control(who, shard, &control));
        Ok(control)
    }
}

#[async_trait]
impl SessionStore for View {
    async fn begin(&self, session: &NewSession) -> Result<(), StoreError> {
        let (view, session) = (self.clone(), session.clone());
        self.link
            .call(Peer::Database, "begin", move || {
                let (view, session) = (view.clone(), session.clone());
                async move {
                    let who = (view.link.node, view.link.life);
                    let begun = view.store.begin(&session).await;
                    if begun.is_ok() {
                        view.link
                            .judge(|judge| judge.on_session(who, session.id, session.lease_duration));
                    }
                    begun
                }
            })
            .await
    }

    async fn beat(&self, id: SessionId) -> Result<Heartbeat, StoreError> {
        let (view, sent) = (self.clone(), self.link.clock.now());
        let heartbeat = self
            .link
            .call(Peer::Database, "beat", move || {
                let view = view.clone();
                async move {
                    let heartbeat = view.store.beat(id).await;
                    view.link.judge(|judge| match &heartbeat {
                        Ok(Heartbeat::Alive { .. }) => judge.on_beaten(id),
                        Ok(Heartbeat::Fenced) => judge.seen("fenced session came back"),
                        Err(_) => {}
                    });
                    heartbeat
                }
            })
            .await?;
        match &heartbeat {
            Heartbeat::Alive { .. } => self.link.judge(|judge| judge.on_beat(id, sent)),
            Heartbeat::Fenced => self.link.judge(|judge| judge.on_fenced_heard(id)),
        }
        Ok(heartbeat)
    }

    async fn list(&self) -> Result<Vec<SessionView>, StoreError> {
        let view = self.clone();
        self.link
            .call(Peer::Database, "list", move || {
                let view = view.clone();
                async move { view.store.list().await }
            })
            .await
    }

    async fn fence(&self, id: SessionId, heartbeat: i64, wall: WallMs) -> Result<bool, StoreError> {
        let (view, now) = (self.clone(), self.link.clock.now());
        // Whoever may go without leases, or has none, needs none.
        if self.leases.is_some() && self.link.judge(|judge| judge.alone.is_none()) {
            self.link
                .judge(|judge| judge.on_fence_sent((self.link.node, self.link.life), id, now));
        }
        self.link
            .call(Peer::Database, "fence", move || {
                let view = view.clone();
                async move {
                    let fenced = view.store.fence(id, heartbeat, wall).await?;
                    let who = (view.link.node, view.link.life);
                    view.link.judge(|judge| judge.on_fence(who, id, fenced));
                    Ok(fenced)
                }
            })
            .await
    }

    /// Only the holder of a state directory's lock may; no node of a cluster is one.
    async fn fence_all_but(&self, _: SessionId) -> Result<u64, StoreError> {
        self.link
            .judge(|judge| judge.fail("a node of a cluster fenced all others".into()));
        Ok(0)
    }

    async fn describe(&self, id: SessionId, face: &SessionFace) -> Result<bool, StoreError> {
        let (view, face) = (self.clone(), face.clone());
        self.link
            .call(Peer::Database, "describe", move || {
                let (view, face) = (view.clone(), face.clone());
                async move { view.store.describe(id, &face).await }
            })
            .await
    }

    async fn request_drain(&self, node: &str, drain: bool) -> Result<bool, StoreError> {
        self.store.request_drain(node, drain).await
    }

    async fn change_witness(&self, from: &str, to: &str) -> Result<bool, StoreError> {
        self.store.change_witness(from, to).await
    }

    async fn witness(&self, mine: &str) -> Result<String, StoreError> {
        self.store.witness(mine).await
    }

    async fn end(&self, id: SessionId) -> Result<(), StoreError> {
        let view = self.clone();
        self.link
            .call(Peer::Database, "end", move || {
                let view = view.clone();
                async move {
                    view.link.judge(|judge| judge.on_ending(id));
                    view.store.end(id).await
                }
            })
            .await
    }
}

#[async_trait]
impl LeaseStore for View {
    async fn acquire(&self, keys: &[LeaseKey], ttl: Duration) -> Result<Vec<LeaseReply>, StoreError> {
        let (view, sent, asked) = (self.clone(), self.link.clock.now(), Arc::new(keys.to_vec()));
        let replies = self
            .link
            .call(Peer::Leases, "acquire", move || {
                let (leases, asked) = (view.leases.clone(), asked.clone());
                async move { leases.ok_or_else(no_leases)?.acquire(&asked, ttl).await }
            })
            .await?;
        self.link.judge(|judge| {
            judge.on_leases((self.link.node, self.link.life), keys, &replies, sent, ttl);
            judge.count(replies.contains(&LeaseReply::Absent), "quarantine");
            judge.count(replies.contains(&LeaseReply::Lost), "lease held by another");
        });
        Ok(replies)
    }

    async fn renew(
        &self,
        keys: &[LeaseKey],
        ttl: Duration,
        reassert: bool,
    ) -> Result<Vec<LeaseReply>, StoreError> {
        let (view, sent, asked) = (self.clone(), self.link.clock.now(), Arc::new(keys.to_vec()));
        let replies = self
            .link
            .call(Peer::Leases, "renew", move || {
                let (view, asked) = (view.clone(), asked.clone());
                async move {
                    let replies = view
                        .leases
                        .clone()
                        .ok_or_else(no_leases)?
                        .renew(&asked, ttl, reassert)
                        .await?;
                    view.link.judge(|judge| judge.on_renewed(&asked, &replies));
                    Ok(replies)
                }
            })
            .await?;
        self.link.judge(|judge| {
            judge.on_leases((self.link.node, self.link.life), keys, &replies, sent, ttl);
            judge.count(replies.contains(&LeaseReply::Lost), "lease lost");
        });
        Ok(replies)
    }

    async fn release(&self, keys: &[LeaseKey]) -> Result<(), StoreError> {
        let (view, asked) = (self.clone(), Arc::new(keys.to_vec()));
        self.link
            .call(Peer::Leases, "give back", move || {
                let (view, asked) = (view.clone(), asked.clone());
                async move {
                    view.link
                        .judge(|judge| judge.on_leases_given_back((view.link.node, view.link.life), &asked));
                    view.leases.clone().ok_or_else(no_leases)?.release(&asked).await
                }
            })
            .await
    }
}

fn no_leases() -> StoreError {
    StoreError::Unavailable("this cluster has no lease store".into())
}
