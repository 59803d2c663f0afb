//! Node sessions: heartbeats and fencing (decision 0020, rules 1–6, 11, 18).

use std::time::Duration;

use async_trait::async_trait;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait as _};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, UpdateMany};
use uuid::Uuid;

use crate::sql::entity::{audit, meta, session, shard_head};
use crate::sql::run::claim::unfenced;
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Reply, Run, Store, Talk, damaged, settled, words};
use windrow_core::business::POOL_DEFAULT;
use windrow_core::capacity::Load;
use windrow_core::ids::{ClaimId, Epoch, SessionId, WallMs};
use windrow_core::life::succession::Fenced;
use windrow_core::task::lifecycle::Desired;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::actor::Actor;
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::ownership::session_store::{
    Heartbeat, NewSession, OwnedShard, SessionFace, SessionStore, SessionView,
};

/// Largest step of a heartbeat: small enough that one per second can't overflow within the age of the universe.
const STEP_MAX: u64 = 1 << 20;

#[async_trait]
impl SessionStore for Store {
    async fn begin(&self, new: &NewSession) -> Result<(), StoreError> {
        let row = session::ActiveModel {
            id: Set(words::session_text(new.id)),
            node: Set(new.node.clone()),
            hb: Set(random_step()),
            fenced: Set(false),
            promise_ms: Set(i64::try_from(new.lease_duration.as_millis()).unwrap_or(i64::MAX)),
            address: Set(new.face.address.clone()),
            version: Set(new.version.clone()),
            ckpt_version_max: Set(i32::from(new.ckpt_version_max)),
            pools: Set(pools_text(&new.face)?),
            capacity: Set(capacity(&new.face)),
            state: Set(state(&new.face).to_owned()),
            started_at: Set(new.started_at.0),
            labels: Set(words::labels_text(&new.face.labels)?),
            drain: Set(is_drained(self, &new.node).await?),
        };
        session::Entity::insert(row).run(&self.pulse).await?;
        Ok(())
    }

    async fn beat(&self, id: SessionId) -> Result<Heartbeat, StoreError> {
        let beaten = session::Entity::update_many()
            .col_expr(
                session::Column::Hb,
                Expr::col(session::Column::Hb).add(random_step()),
            )
            .filter(session::Column::Id.eq(words::session_text(id)))
            .filter(session::Column::Fenced.eq(false))
            .run(&self.pulse)
            .await?;
        if beaten == 0 {
            return Ok(Heartbeat::Fenced);
        }
        let me = session::Entity::find_by_id(words::session_text(id))
            .row(&self.pulse)
            .await?;
        let drain = me.is_some_and(|row| row.drain);
        let rows = shard_head::Entity::find()
            .filter(shard_head::Column::SessionId.eq(words::session_text(id)))
            .order_by_asc(shard_head::Column::TaskId)
            .order_by_asc(shard_head::Column::ShardNo)
            .rows(&self.pulse)
            .await?;
        Ok(Heartbeat::Alive {
            shards: rows.iter().filter_map(owned).collect(),
            drain,
        })
    }

    async fn list(&self) -> Result<Vec<SessionView>, StoreError> {
        let all = session::Entity::find().order_by_asc(session::Column::Id);
        let rows = match self.talk().await? {
            Some(mut talk) => talk.all(&all).await,
            None => all.rows(&self.readers).await,
        };
        // Skip a row that a newer program wrote differently: it can't be fenced here, and must not hide the others.
        Ok(rows?
            .into_iter()
            .filter_map(|row| words::readable("session", view(row)))
            .collect())
    }

    async fn fence(&self, id: SessionId, heartbeat: i64, now: WallMs) -> Result<bool, StoreError> {
        settled(|| fence(self, id, heartbeat, now)).await
    }

    async fn fence_all_but(&self, survivor: SessionId) -> Result<u64, StoreError> {
        let fenced = session::Entity::update_many()
            .col_expr(session::Column::Fenced, Expr::value(true))
            .filter(session::Column::Id.ne(words::session_text(survivor)))
            .filter(session::Column::Fenced.eq(false))
            .run(&self.writer)
            .await?;
        Ok(fenced)
    }

    async fn describe(&self, id: SessionId, face: &SessionFace) -> Result<bool, StoreError> {
        use session::Column as C;
        let described = session::Entity::update_many()
            .col_expr(C::Address, Expr::value(face.address.clone()))
            .col_expr(C::Pools, Expr::value(pools_text(face)?))
            .col_expr(C::Capacity, Expr::value(capacity(face)))
            .col_expr(C::State, Expr::value(state(face)))
            .col_expr(C::Labels, Expr::value(words::labels_text(&face.labels)?))
            .filter(C::Id.eq(words::session_text(id)))
            .filter(C::Fenced.eq(false))
            .run(&self.pulse)
            .await?;
        Ok(described == 1)
    }

    async fn request_drain(&self, node: &str, drain: bool) -> Result<bool, StoreError> {
        use session::Column as C;
        let rows = || session::Entity::update_many().filter(C::Node.eq(node));
        let wished = rows()
            .col_expr(C::Drain, Expr::value(drain))
            .run(&self.writer)
            .await;
        wished?;
        let live = session::Entity::find()
            .filter(C::Node.eq(node))
            .filter(C::Fenced.eq(false));
        Ok(live.row(&self.writer).await?.is_some())
    }

    async fn change_witness(&self, from: &str, to: &str) -> Result<bool, StoreError> {
        use meta::Column as C;
        let changed = meta::Entity::update_many()
            .col_expr(C::Val, Expr::value(to))
            .filter(C::Name.eq(WITNESS))
            .filter(C::Val.eq(from))
            .filter(Expr::exists(unfenced()).not())
            .run(&self.writer)
            .await?;
        Ok(changed == 1)
    }

    async fn witness(&self, mine: &str) -> Result<String, StoreError> {
        // If two nodes start at once, one conflicts with the other's row and reads it on the next attempt.
        settled(|| agree(self, mine)).await
    }

    async fn end(&self, id: SessionId) -> Result<(), StoreError> {
        let id = words::session_text(id);
        let transaction = self.write().await?;
        let held = shard_head::Entity::find()
            .filter(shard_head::Column::SessionId.eq(id.as_str()))
            .row(&transaction);
        if held.await?.is_none() {
            crate::sql::session::limits::forget(&transaction, &id).await?;
            session::Entity::delete_by_id(id).run(&transaction).await?;
        }
        transaction.commit().await
    }
}

fn fencing(id: SessionId, heartbeat: i64) -> UpdateMany<session::Entity> {
    session::Entity::update_many()
        .col_expr(session::Column::Fenced, Expr::value(true))
        .filter(session::Column::Id.eq(words::session_text(id)))
        .filter(session::Column::Fenced.eq(false))
        .filter(session::Column::Hb.eq(heartbeat))
}

/// Returns the audit entry for a session that was fenced.
fn told(id: SessionId, row: &session::Model) -> (Actor, Change) {
    let told = Fenced {
        node: &row.node,
        session: id,
    };
    let change = Change {
        object: AuditObject::new(ObjectKind::Node, &row.node),
        task: None,
        business: None,
        action: Fenced::ACTION.to_owned(),
        before: Some(told.before()),
        after: Some(told.after()),
    };
    (Actor::windrow(Some(told.sentence().to_string())), change)
}

/// Fences a session on a server, in two round trips.
async fn fence_batch(mut talk: Talk, id: SessionId, heartbeat: i64, now: WallMs) -> Result<bool, StoreError> {
    let row = session::Entity::find_by_id(words::session_text(id));
    let replies = talk
        .say(&[
            "BEGIN".to_owned(),
            talk.text(&fencing(id, heartbeat)),
            talk.text(&row),
        ])
        .await?;
    let row: Option<session::Model> = replies.get(2).map_or(Ok(None), Reply::one)?;
    let is_new = replies.get(1).is_some_and(|fenced| fenced.affected == 1);
    match row.as_ref().filter(|_| is_new) {
        Some(row) => {
            let (actor, change) = told(id, row);
            let entry = audit::Entity::insert(record::entry(&actor, change, now));
            talk.say(&[talk.text(&entry), "COMMIT".to_owned()]).await?;
        }
        None => {
            talk.say(&["ROLLBACK".to_owned()]).await?;
        }
    }
    // A row that is gone counts as fenced (rule 6).
    Ok(row.is_none_or(|row| row.fenced))
}

async fn fence(store: &Store, id: SessionId, heartbeat: i64, now: WallMs) -> Result<bool, StoreError> {
    if let Some(talk) = store.talk().await? {
        return fence_batch(talk, id, heartbeat, now).await;
    }
    let transaction = store.write().await?;
    let fenced = fencing(id, heartbeat).run(&transaction).await?;
    let row = session::Entity::find_by_id(words::session_text(id))
        .row(&transaction)
        .await?;
    // A row that is gone counts as fenced (rule 6).
    let Some(row) = row else { return Ok(true) };
    if fenced == 1 {
        let (actor, change) = told(id, &row);
        record::audit(&transaction, &actor, change, now).await?;
        transaction.commit().await?;
    }
    Ok(row.fenced)
}

/// Name of the `meta` row that holds the witness.
const WITNESS: &str = "witness";

async fn agree(store: &Store, mine: &str) -> Result<String, StoreError> {
    let transaction = store.write().await?;
    let known = meta::Entity::find_by_id(WITNESS.to_owned())
        .row(&transaction)
        .await?;
    if let Some(known) = known {
        return Ok(known.val);
    }
    let row = meta::ActiveModel {
        name: Set(WITNESS.to_owned()),
        val: Set(mine.to_owned()),
    };
    meta::Entity::insert(row).run(&transaction).await?;
    transaction.commit().await?;
    Ok(mine.to_owned())
}

/// Returns a random step, so that no old value recurs after a rollback of the database.
fn random_step() -> i64 {
    let (random, _) = Uuid::new_v4().as_u64_pair();
    (1 + random % STEP_MAX).cast_signed()
}

/// Returns true if people drained an earlier session of this node whose row still exists.
async fn is_drained(store: &Store, node: &str) -> Result<bool, StoreError> {
    use session::Column as C;
    let drained = session::Entity::find()
        .filter(C::Node.eq(node))
        .filter(C::Drain.eq(true))
        .row(&store.pulse);
    Ok(drained.await?.is_some())
}

/// Converts a row to an owned shard, or `None` if it can't be read: one damaged row must not cost the session its
/// heartbeat.
fn owned(row: &shard_head::Model) -> Option<OwnedShard> {
    let claim = row
        .claim_id
        .as_deref()
        .ok_or_else(|| damaged("shard.claim_id", ""));
    let claim = words::readable("shard", claim.and_then(words::uuid))?;
    let desired = words::readable("shard", words::desired(&row.desired));
    Some(OwnedShard {
        shard: words::shard_id(row),
        epoch: Epoch(row.epoch.cast_unsigned()),
        claim: ClaimId(claim),
        // A desired state that only a newer program knows is for a newer node: this one gives the shard away.
        leaves: row.move_to.is_some() || desired.is_none(),
        desired: desired.unwrap_or(Desired::Run),
        control_rev: row.control_rev.cast_unsigned(),
    })
}

fn view(row: session::Model) -> Result<SessionView, StoreError> {
    let face = face(&row)?;
    Ok(SessionView {
        id: SessionId(words::uuid(&row.id)?),
        node: row.node,
        heartbeat: row.hb,
        fenced: row.fenced,
        lease_duration: Duration::from_millis(row.promise_ms.cast_unsigned()),
        ckpt_version_max: u8::try_from(row.ckpt_version_max).unwrap_or(u8::MAX),
        started_at: WallMs(row.started_at),
        face,
        drain: row.drain,
        version: row.version,
    })
}

const ACTIVE: &str = "active";
const DRAINING: &str = "draining";

/// Returns true if the session's node reports that it is draining.
pub(crate) fn is_draining(row: &session::Model) -> bool {
    row.state == DRAINING
}

fn state(face: &SessionFace) -> &'static str {
    if face.draining { DRAINING } else { ACTIVE }
}

/// Returns a node's capacity in millionths of an item per second, like [`Load`].
fn capacity(face: &SessionFace) -> Option<i64> {
    face.capacity
        .map(|load| i64::try_from(load.0).unwrap_or(i64::MAX))
}

fn pools_text(face: &SessionFace) -> Result<Option<String>, StoreError> {
    let text = |pools| serde_json::to_string(pools).map_err(|fault| StoreError::Refused(fault.to_string()));
    face.pools.as_ref().map(text).transpose()
}

/// Returns true if a session takes tasks of a pool; a draining one takes none.
pub(crate) fn serves(row: &session::Model, pool: Option<&str>) -> Result<bool, StoreError> {
    let pool = pool.unwrap_or(POOL_DEFAULT);
    let face = face(row)?;
    Ok(!face.draining
        && face
            .pools
            .is_none_or(|pools| pools.iter().any(|served| served == pool)))
}

fn face(row: &session::Model) -> Result<SessionFace, StoreError> {
    let pools = row
        .pools
        .as_deref()
        .map(|text| serde_json::from_str(text).map_err(|_| damaged("pools", text)));
    Ok(SessionFace {
        address: row.address.clone(),
        pools: pools.transpose()?,
        capacity: row.capacity.map(|micros| Load(u128::from(micros.unsigned_abs()))),
        labels: words::labels(row.labels.as_deref())?,
        draining: is_draining(row),
    })
}
