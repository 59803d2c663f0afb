//! Due work and expired data: reads find it, and each removal is one short transaction.

use async_trait::async_trait;
use sea_orm::sea_query::{Alias, Expr, ExprTrait as _, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, Condition, DerivePartialModel, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect,
    RelationDef,
};

use crate::sql::business::outbox::{DEAD, DONE};
use crate::sql::business::sign_ins;
use crate::sql::entity::{audit, business, idempotency, item, outbox, session, shard, task};
use crate::sql::run::{close, result_place, results};
use crate::sql::session::found;
use crate::sql::source::appended;
use crate::sql::statistics::days;
use crate::sql::{Pluck, Run, Store, archive, dataset, settled};
use windrow_core::business::POOL_DEFAULT;
use windrow_core::handler::elsewhere::Reaching;
use windrow_core::ids::{Epoch, SessionId, ShardId, TaskId, WallMs};
use windrow_core::task::lifecycle::{DORMANT, ShardState, Status};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::upkeep::{SWEEP_MAX, Sweep, UpkeepStore};

const ENDED: [Status; 2] = [Status::Finished, Status::Cancelled];
/// Statuses in which a deadline still matters.
const BOUND: [Status; 4] = [
    Status::Queued,
    Status::AwaitingBusiness,
    Status::Running,
    Status::Recovering,
];
/// Statuses of tasks that a node is to take.
const WAITING: [Status; 2] = [Status::Queued, Status::Recovering];
/// Keys per statement: each is a condition of its own.
const KEYS_AT_ONCE: u64 = 200;

#[async_trait]
impl UpkeepStore for Store {
    async fn past_deadline(&self, now: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError> {
        use task::Column as C;
        let found = task::Entity::find()
            .filter(C::Deadline.lte(now.0))
            .filter(C::Status.is_in(BOUND.map(Status::as_str)))
            .order_by_asc(C::Deadline);
        ids(self, found, limit).await
    }

    async fn unanswered(&self, now: WallMs, limit: u32) -> Result<Vec<(TaskId, u32)>, StoreError> {
        use task::Column as C;
        let found: Vec<(i64, i32)> = task::Entity::find()
            .filter(C::Status.eq(Status::AwaitingBusiness.as_str()))
            .filter(C::AwaitingUntil.lte(now.0))
            .order_by_asc(C::Id)
            .limit(u64::from(limit))
            .pluck([C::Id, C::StartNo], &self.readers)
            .await?;
        Ok(found
            .into_iter()
            .map(|(id, start)| (TaskId(id), start.cast_unsigned()))
            .collect())
    }

    async fn is_start_due(&self, after: WallMs, upto: WallMs) -> Result<bool, StoreError> {
        use task::Column as C;
        let found = task::Entity::find()
            .filter(C::Status.eq(Status::Queued.as_str()))
            .filter(C::NotBefore.gt(after.0))
            .filter(C::NotBefore.lte(upto.0));
        Ok(!ids(self, found, 1).await?.is_empty())
    }

    async fn dormant(&self, before: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError> {
        use task::Column as C;
        let found = task::Entity::find()
            .filter(C::Status.is_in(WAITING.map(Status::as_str)))
            .filter(is_awake())
            .filter(Expr::exists(active(before)).not())
            .order_by_asc(C::Id);
        ids(self, found, limit).await
    }

    async fn unserved(
        &self,
        served: &[String],
        now: WallMs,
        limit: u32,
    ) -> Result<Vec<(TaskId, String)>, StoreError> {
        use task::Column as C;
        let mut other = Condition::any().add(C::Pool.is_not_in(served.iter().map(String::as_str)));
        if !served.iter().any(|pool| pool == POOL_DEFAULT) {
            other = other.add(C::Pool.is_null());
        }
        let found: Vec<(i64, Option<String>)> = task::Entity::find()
            .filter(C::Status.is_in(WAITING.map(Status::as_str)))
            .filter(is_awake())
            .filter(C::NotBefore.lte(now.0))
            .filter(other)
            .order_by_asc(C::Id)
            .limit(u64::from(limit))
            .pluck([C::Id, C::Pool], &self.readers)
            .await?;
        let pool = |pool: Option<String>| pool.unwrap_or_else(|| POOL_DEFAULT.to_owned());
        Ok(found.into_iter().map(|(id, of)| (TaskId(id), pool(of))).collect())
    }

    async fn orphans(
        &self,
        silent: &[SessionId],
        limit: u32,
    ) -> Result<Vec<(ShardId, SessionId)>, StoreError> {
        close::orphans(self, silent, limit).await
    }

    async fn reaching(
        &self,
        business: &str,
        besides: SessionId,
        limit: u32,
    ) -> Result<Vec<Reaching>, StoreError> {
        reaching(self, business, besides, limit).await
    }

    async fn disown(&self, shards: &[ShardId], now: WallMs) -> Result<Vec<TaskId>, StoreError> {
        settled(|| close::disown(self, shards, now)).await
    }

    async fn sweep(&self, what: Sweep, before: WallMs) -> Result<u64, StoreError> {
        match what {
            Sweep::Answers => answers(self, before).await,
            Sweep::Delivered => calls(self, DONE, before).await,
            Sweep::GivenUp => calls(self, DEAD, before).await,
            Sweep::Sessions => settled(|| sessions(self, before)).await,
            Sweep::Failures => failures(self, before).await,
            Sweep::Results => results::expire(self, before).await,
            Sweep::Generations => dataset::sweep::sweep(self).await,
            Sweep::ResultBytes => result_place::sweep(self, before).await,
            Sweep::Statistics => days::expire(self, before).await,
            Sweep::Appended => settled(|| appended::sweep(self, before)).await,
            Sweep::ArchiveHalves => archive::sweep(self, before).await,
            Sweep::Found => settled(|| found::expire(self, before)).await,
            Sweep::SignIns => settled(|| sign_ins::expire(self, before)).await,
            Sweep::Audit => audits(self, before).await,
            Sweep::AppendKeys => settled(|| appended::sweep_keys(self, before)).await,
        }
    }

    async fn ended_before(&self, before: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError> {
        use task::Column as C;
        let found = task::Entity::find()
            .filter(C::Status.is_in(ENDED.map(Status::as_str)))
            .filter(C::FinishedAt.lt(before.0))
            .order_by_asc(C::FinishedAt);
        ids(self, found, limit).await
    }
}

async fn ids(
    store: &Store,
    found: sea_orm::Select<task::Entity>,
    limit: u32,
) -> Result<Vec<TaskId>, StoreError> {
    let ids = found
        .order_by_asc(task::Column::Id)
        .limit(u64::from(limit))
        .pluck([task::Column::Id], &store.readers)
        .await?;
    Ok(ids.into_iter().map(TaskId).collect())
}

/// Columns of a shard that show that its handler responds.
#[derive(DerivePartialModel)]
#[sea_orm(entity = "shard::Entity")]
struct Progress {
    task_id: i64,
    shard_no: i32,
    epoch: i64,
    succeeded: i64,
}

async fn reaching(
    store: &Store,
    business: &str,
    besides: SessionId,
    limit: u32,
) -> Result<Vec<Reaching>, StoreError> {
    use shard::Column as C;
    let task_of_shard: RelationDef = shard::Entity::belongs_to(task::Entity)
        .from(C::TaskId)
        .to(task::Column::Id)
        .into();
    let of_business = Query::select()
        .column(business::Column::Id)
        .from(business::Entity)
        .and_where(business::Column::Slug.eq(business))
        .to_owned();
    let found: Vec<Progress> = shard::Entity::find()
        .join(JoinType::InnerJoin, task_of_shard)
        .filter(C::State.eq(ShardState::Running.as_str()))
        .filter(C::SessionId.is_not_null())
        .filter(C::SessionId.ne(besides.0.to_string()))
        .filter(C::CircuitSince.is_null())
        .filter(task::Column::BusinessId.in_subquery(of_business))
        .order_by_asc(C::TaskId)
        .order_by_asc(C::ShardNo)
        .limit(u64::from(limit))
        .parts(&store.readers)
        .await?;
    let run = |row: Progress| Reaching {
        shard: ShardId {
            task: TaskId(row.task_id),
            no: row.shard_no.cast_unsigned(),
        },
        epoch: Epoch(row.epoch.cast_unsigned()),
        succeeded: row.succeeded.cast_unsigned(),
    };
    Ok(found.into_iter().map(run).collect())
}

async fn answers(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    use idempotency::Column as C;
    let keys: Vec<(String, String)> = idempotency::Entity::find()
        .filter(C::CreatedAt.lt(before.0))
        .limit(KEYS_AT_ONCE)
        .pluck([C::Scope, C::KeyHash], &store.readers)
        .await?;
    if keys.is_empty() {
        return Ok(0);
    }
    let is_full = keys.len() as u64 == KEYS_AT_ONCE;
    let one = |(scope, key): (String, String)| {
        Condition::all()
            .add(C::Scope.eq(scope))
            .add(C::KeyHash.eq(key))
            .add(C::CreatedAt.lt(before.0))
    };
    let any = keys.into_iter().map(one).fold(Condition::any(), Condition::add);
    let gone = idempotency::Entity::delete_many()
        .filter(any)
        .run(&store.writer)
        .await?;
    // Fewer than a sweep may remove, but more are left.
    Ok(if is_full { SWEEP_MAX } else { gone })
}

async fn calls(store: &Store, state: &str, before: WallMs) -> Result<u64, StoreError> {
    use outbox::Column as C;
    let old: Vec<i64> = outbox::Entity::find()
        .filter(C::State.eq(state))
        .filter(C::CreatedAt.lt(before.0))
        .order_by_asc(C::Id)
        .limit(SWEEP_MAX)
        .pluck([C::Id], &store.readers)
        .await?;
    if old.is_empty() {
        return Ok(0);
    }
    let gone = outbox::Entity::delete_many()
        .filter(C::Id.is_in(old))
        .filter(C::State.eq(state));
    gone.run(&store.writer).await
}

async fn sessions(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    use session::Column as C;
    let named = Query::select()
        .column(shard::Column::SessionId)
        .from(shard::Entity)
        .and_where(Expr::col((shard::Entity, shard::Column::SessionId)).equals((session::Entity, C::Id)))
        .to_owned();
    let gone = session::Entity::delete_many()
        .filter(C::Fenced.eq(true))
        .filter(C::StartedAt.lt(before.0))
        .filter(Expr::exists(named).not());
    gone.run(&store.writer).await
}

/// Removes the oldest entries about no task, or about one that no longer exists.
async fn audits(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    use audit::Column as C;
    let kept = Query::select()
        .column(task::Column::Id)
        .from(task::Entity)
        .to_owned();
    let old: Vec<i64> = audit::Entity::find()
        .filter(C::AtMs.lt(before.0))
        .filter(C::TaskId.is_null().or(C::TaskId.not_in_subquery(kept)))
        .order_by_asc(C::AtMs)
        .limit(SWEEP_MAX)
        .pluck([C::Id], &store.readers)
        .await?;
    if old.is_empty() {
        return Ok(0);
    }
    let gone = audit::Entity::delete_many()
        .filter(C::Id.is_in(old))
        .run(&store.writer)
        .await?;
    Ok(gone)
}

async fn failures(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    use item::Column as C;
    // One task per call, since its rows are stored together.
    let Some(task) = oldest_with_failures(store, before).await? else {
        return Ok(0);
    };
    let old: Vec<i64> = item::Entity::find()
        .filter(C::TaskId.eq(task))
        .order_by_asc(C::Idx)
        .limit(SWEEP_MAX)
        .pluck([C::Idx], &store.readers)
        .await?;
    let gone = item::Entity::delete_many()
        .filter(C::TaskId.eq(task))
        .filter(C::Idx.is_in(old));
    gone.run(&store.writer).await?;
    // Another task may be left.
    Ok(SWEEP_MAX)
}

/// Returns a task that ended before a time, has item rows, and has no unfinished redrive that needs them.
async fn oldest_with_failures(store: &Store, before: WallMs) -> Result<Option<i64>, StoreError> {
    use task::Column as C;
    let rows = Query::select()
        .column(item::Column::TaskId)
        .from(item::Entity)
        .and_where(Expr::col((item::Entity, item::Column::TaskId)).equals((task::Entity, C::Id)))
        .to_owned();
    let child = Alias::new("child");
    let redrives = Query::select()
        .column((child.clone(), C::Id))
        .from_as(task::Entity, child.clone())
        .and_where(Expr::col((child.clone(), C::ParentId)).equals((task::Entity, C::Id)))
        .and_where(Expr::col((child, C::Status)).is_not_in(ENDED.map(Status::as_str)))
        .to_owned();
    let found = task::Entity::find()
        .filter(C::Status.is_in(ENDED.map(Status::as_str)))
        .filter(C::FinishedAt.lt(before.0))
        .filter(Expr::exists(rows))
        .filter(Expr::exists(redrives).not());
    Ok(ids(store, found, 1).await?.first().map(|id| id.0))
}

/// Matches tasks that are not marked as dormant.
fn is_awake() -> Condition {
    let reason = task::Column::StatusReason;
    Condition::any().add(reason.is_null()).add(reason.ne(DORMANT))
}

/// Selects the shards of a task that have an owner, or that `runnable` finds at some time. Leaves out those that wait
/// for another shard: their `not_before` is the end of time.
fn active(before: WallMs) -> SelectStatement {
    use shard::Column as C;
    let told_to_wait = Condition::all()
        .add(C::NotBefore.gte(Ord::max(before.0, 1)))
        .add(C::NotBefore.lt(i64::MAX));
    let is_active = Condition::any()
        .add(C::SessionId.is_not_null())
        .add(C::UpdatedAt.gte(before.0))
        .add(told_to_wait);
    Query::select()
        .expr(Expr::value(1))
        .from(shard::Entity)
        .and_where(Expr::col((shard::Entity, C::TaskId)).equals((task::Entity, task::Column::Id)))
        .and_where(C::State.ne(ShardState::Done.as_str()))
        .cond_where(is_active)
        .to_owned()
}
