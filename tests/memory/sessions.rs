//! Node sessions.

use async_trait::async_trait;
use uuid::Uuid;

use super::state::{Session, State};
use super::{Call, MemoryStore};
use windrow_core::ids::{SessionId, ShardId, WallMs};
use windrow_core::life::succession::Fenced;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::actor::Actor;
use windrow_engine::ports::ownership::session_store::{
    Heartbeat, NewSession, OwnedShard, SessionFace, SessionStore, SessionView,
};

#[async_trait]
impl SessionStore for MemoryStore {
    async fn begin(&self, new: &NewSession) -> Result<(), StoreError> {
        self.act(Call::Session, |state| {
            if state.sessions.contains_key(&new.id) {
                return Err(StoreError::Refused(format!(
                    "the session {} exists already",
                    new.id.0
                )));
            }
            let mut namesakes = state.sessions.values().filter(|session| session.node == new.node);
            let session = Session {
                drain: namesakes.any(|session| session.drain),
                node: new.node.clone(),
                heartbeat: step(),
                fenced: false,
                lease_duration: new.lease_duration,
                version: new.version.clone(),
                ckpt_version_max: new.ckpt_version_max,
                started_at: new.started_at,
                face: new.face.clone(),
            };
            state.sessions.insert(new.id, session);
            Ok(())
        })
        .await
    }

    async fn beat(&self, id: SessionId) -> Result<Heartbeat, StoreError> {
        self.faults().while_frozen(id).await;
        self.act(Call::Beat, |state| {
            if !state.is_live(id) {
                return Ok(Heartbeat::Fenced);
            }
            let shards = owned(state, id);
            let Some(session) = state.sessions.get_mut(&id) else {
                return Ok(Heartbeat::Fenced);
            };
            session.heartbeat += step();
            Ok(Heartbeat::Alive {
                shards,
                drain: session.drain,
            })
        })
        .await
    }

    async fn list(&self) -> Result<Vec<SessionView>, StoreError> {
        self.act(Call::Read, |state| {
            let view = |(id, session): (&SessionId, &Session)| SessionView {
                id: *id,
                node: session.node.clone(),
                heartbeat: session.heartbeat,
                fenced: session.fenced,
                lease_duration: session.lease_duration,
                version: session.version.clone(),
                ckpt_version_max: session.ckpt_version_max,
                started_at: session.started_at,
                face: session.face.clone(),
                drain: session.drain,
            };
            Ok(state.sessions.iter().map(view).collect())
        })
        .await
    }

    async fn fence(&self, id: SessionId, heartbeat: i64, now: WallMs) -> Result<bool, StoreError> {
        self.act(Call::Fence, |state| {
            let Some(session) = state.sessions.get_mut(&id) else {
                return Ok(true);
            };
            if !session.fenced && session.heartbeat == heartbeat {
                session.fenced = true;
                let node = session.node.clone();
                let told = Fenced {
                    node: &node,
                    session: id,
                };
                let actor = Actor::windrow(Some(told.sentence().to_string()));
                let change = (Some(told.before()), Some(told.after()));
                state.record(None, &actor, now, Fenced::ACTION.to_owned(), change);
                return Ok(true);
            }
            Ok(session.fenced)
        })
        .await
    }

    async fn fence_all_but(&self, survivor: SessionId) -> Result<u64, StoreError> {
        self.act(Call::Fence, |state| {
            let mut fenced = 0;
            for (id, session) in &mut state.sessions {
                if *id != survivor && !session.fenced {
                    session.fenced = true;
                    fenced += 1;
                }
            }
            Ok(fenced)
        })
        .await
    }

    async fn describe(&self, id: SessionId, face: &SessionFace) -> Result<bool, StoreError> {
        self.act(Call::Session, |state| {
            let live = state.sessions.get_mut(&id).filter(|session| !session.fenced);
            let Some(session) = live else { return Ok(false) };
            session.face = face.clone();
            Ok(true)
        })
        .await
    }

    async fn request_drain(&self, node: &str, drain: bool) -> Result<bool, StoreError> {
        self.act(Call::Session, |state| {
            let mut is_live = false;
            for session in state.sessions.values_mut().filter(|session| session.node == node) {
                session.drain = drain;
                is_live |= !session.fenced;
            }
            Ok(is_live)
        })
        .await
    }

    async fn change_witness(&self, from: &str, to: &str) -> Result<bool, StoreError> {
        self.act(Call::Session, |state| {
            let may = state.witness.as_deref() == Some(from) && state.sessions.values().all(|one| one.fenced);
            if may {
                state.witness = Some(to.to_owned());
            }
            Ok(may)
        })
        .await
    }

    async fn witness(&self, mine: &str) -> Result<String, StoreError> {
        self.act(Call::Session, |state| {
            Ok(state.witness.get_or_insert_with(|| mine.to_owned()).clone())
        })
        .await
    }

    async fn end(&self, id: SessionId) -> Result<(), StoreError> {
        self.act(Call::Session, |state| {
            let mut shards = state.tasks.values().flat_map(|task| &task.shards);
            if !shards.any(|shard| shard.session == Some(id)) {
                state.sessions.remove(&id);
            }
            Ok(())
        })
        .await
    }
}

fn step() -> i64 {
    let (random, _) = Uuid::new_v4().as_u64_pair();
    (1 + random % (1 << 20)).cast_signed()
}

fn owned(state: &State, id: SessionId) -> Vec<OwnedShard> {
    let mut owned = Vec::new();
    for (task_id, task) in &state.tasks {
        for shard in task.shards.iter().filter(|shard| shard.session == Some(id)) {
            if let Some(claim) = shard.claim {
                owned.push(OwnedShard {
                    shard: ShardId {
                        task: *task_id,
                        no: shard.no,
                    },
                    epoch: shard.epoch,
                    claim,
                    desired: task.desired,
                    control_rev: task.control_rev,
                    leaves: shard.moves.is_some(),
                });
            }
        }
    }
    owned
}
