//! Moves of shards between nodes: a request in the shard's row, which its owner reads with the heartbeat. A move
//! never takes the shard away (decision 0020, rule 17). A move to the shard's own node begins a new run there.

use std::collections::BTreeSet;

use sea_orm::sea_query::{Expr, Query};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use serde_json::json;

use crate::sql::entity::{session, shard, shard_head, task};
use crate::sql::session::sessions;
use crate::sql::task::life;
use crate::sql::task::record::{self, Change};
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, keep, words};
use windrow_core::ids::{SessionId, ShardId, TaskId, WallMs};
use windrow_core::task::lifecycle::ShardState;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::AuditObject;
use windrow_engine::ports::ownership::run_store::MOVE_PATIENCE;
use windrow_engine::ports::tasks::command::shards_to_move;
use windrow_engine::ports::tasks::store::{CommandError, MoveRefusal, Write};

/// Implements [`windrow_engine::ports::tasks::store::TaskStore::move_shards`]; returns the number of shards that are
/// asked to move.
pub(crate) async fn move_shards(
    store: &Store,
    (id, only, to): (TaskId, Option<u32>, &str),
    write: &Write,
    now: WallMs,
) -> Result<u32, CommandError> {
    let transaction = store.write().await?;
    let found = task::Entity::find_by_id(id.0).row(&transaction).await?;
    found.ok_or(CommandError::NotFound(id))?;
    let there = sessions_of(&transaction, to).await?;
    let mut rows = record::shards(&transaction, id).await?;
    let shards = rows.iter().map(life::shard_life).collect::<Result<Vec<_>, _>>()?;
    let moving = shards_to_move((id, only), to, &there, &shards)?;
    rows.retain(|row| moving.contains(&row.shard_no.cast_unsigned()));
    let mut moved = Vec::new();
    for row in rows {
        if desired(&transaction, &row, to, now).await? {
            moved.push(row.shard_no);
        }
    }
    let after = Some(json!({ "to": to, "shards": moved }).to_string());
    let change = Change {
        object: AuditObject::task(id),
        task: Some(id),
        business: None,
        action: "task.move".to_owned(),
        before: None,
        after,
    };
    record::audit(&transaction, &write.actor, change, now).await?;
    keep(transaction, write).await?;
    Ok(u32::try_from(moved.len()).unwrap_or(u32::MAX))
}

/// Makes the runs of a business's tasks end in order and begin again on their nodes, so that each opens the handler
/// as it is then. A publication calls no handler and continues.
pub(crate) async fn begin_anew(
    transaction: &Transaction,
    business: i64,
    now: WallMs,
) -> Result<(), StoreError> {
    use shard_head::Column as C;
    let of_business = Query::select()
        .column(task::Column::Id)
        .from(task::Entity)
        .and_where(task::Column::BusinessId.eq(business))
        .to_owned();
    let publication = ShardId::publication(TaskId(0));
    let running = Condition::all()
        .add(C::State.eq(ShardState::Running.as_str()))
        .add(C::MoveTo.is_null())
        .add(C::ShardNo.ne(words::shard_no(publication)))
        .add(C::TaskId.in_subquery(of_business));
    let owners: Vec<Option<String>> = shard_head::Entity::find()
        .filter(running.clone())
        .order_by_asc(C::TaskId)
        .order_by_asc(C::ShardNo)
        .lock_exclusive()
        .pluck([C::SessionId], transaction)
        .await?;
    let owners: BTreeSet<String> = owners.into_iter().flatten().collect();
    let nodes = session::Entity::find()
        .filter(session::Column::Id.is_in(owners))
        .rows(transaction);
    for owner in nodes.await? {
        let wished = shard_head::Entity::update_many()
            .col_expr(C::MoveTo, Expr::value(owner.node))
            .col_expr(C::MoveUntil, Expr::value(now.plus(MOVE_PATIENCE).0))
            .filter(running.clone())
            .filter(C::SessionId.eq(owner.id));
        wished.run(transaction).await?;
    }
    Ok(())
}

/// Returns the sessions of a node that may take shards; fails if there are none.
async fn sessions_of(transaction: &Transaction, node: &str) -> Result<Vec<SessionId>, CommandError> {
    use session::Column as C;
    let live = session::Entity::find()
        .filter(C::Node.eq(node))
        .filter(C::Fenced.eq(false))
        .rows(transaction);
    let live = live.await?;
    if live.is_empty() {
        return Err(MoveRefusal::NoNode(node.to_owned()).into());
    }
    let takes = live
        .into_iter()
        .filter(|row| !row.drain && !sessions::is_draining(row));
    let takes = takes.map(|row| words::uuid(&row.id).map(SessionId));
    let takes = takes.collect::<Result<Vec<_>, _>>()?;
    if takes.is_empty() {
        Err(MoveRefusal::Draining(node.to_owned()).into())
    } else {
        Ok(takes)
    }
}

/// Requests the move of a shard. Returns false if the shard has changed hands in the meantime.
async fn desired(
    transaction: &Transaction,
    row: &shard_head::Model,
    to: &str,
    now: WallMs,
) -> Result<bool, StoreError> {
    use shard::Column as C;
    let wished = shard::Entity::update_many()
        .col_expr(C::MoveTo, Expr::value(to))
        .col_expr(C::MoveUntil, Expr::value(now.plus(MOVE_PATIENCE).0))
        .filter(C::TaskId.eq(row.task_id))
        .filter(C::ShardNo.eq(row.shard_no))
        .filter(C::Epoch.eq(row.epoch))
        .filter(C::State.eq(ShardState::Running.as_str()))
        .run(transaction)
        .await?;
    Ok(wished == 1)
}
