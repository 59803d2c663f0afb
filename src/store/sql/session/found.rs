//! Limits that autopilots found, a row for each shard. Nothing depends on them, so they are written without locks.

use async_trait::async_trait;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::sql::entity::found;
use crate::sql::{Fetch, Pluck, Run, Store, damaged, settled, words};
use found::Column as C;
use windrow_core::execution::Found;
use windrow_core::ids::{ShardId, TaskId, WallMs};
use windrow_core::pilot::News;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::found_store::{FoundRow, FoundStore};
use windrow_engine::ports::tasks::upkeep::SWEEP_MAX;

#[async_trait]
impl FoundStore for Store {
    async fn tell_found(&self, row: &FoundRow) -> Result<Vec<FoundRow>, StoreError> {
        settled(|| write(self, row)).await?;
        let others = found::Entity::find()
            .filter(C::TaskId.eq(row.shard.task.0))
            .filter(C::ShardNo.ne(words::shard_no(row.shard)))
            .order_by_asc(C::ShardNo)
            .rows(&self.readers)
            .await?;
        others.into_iter().map(read).collect()
    }

    async fn last_found(
        &self,
        business: &str,
        service: &str,
        since: WallMs,
    ) -> Result<Option<Found>, StoreError> {
        let last = found::Entity::find()
            .filter(C::Business.eq(business))
            .filter(C::Service.eq(service))
            .filter(C::ToldAt.gte(since.0))
            .order_by_desc(C::ToldAt)
            .limit(1)
            .row(&self.readers)
            .await?;
        let found = |row: FoundRow| Found {
            knowledge: row.news.knowledge,
            at: row.at,
        };
        Ok(last.map(read).transpose()?.map(found))
    }
}

async fn write(store: &Store, row: &FoundRow) -> Result<(), StoreError> {
    let news = serde_json::to_string(&row.news).map_err(|fault| StoreError::Refused(fault.to_string()))?;
    let written = found::ActiveModel {
        task_id: Set(row.shard.task.0),
        shard_no: Set(words::shard_no(row.shard)),
        business: Set(row.business.clone()),
        service: Set(row.service.clone()),
        news: Set(news),
        told_at: Set(row.at.0),
    };
    let conflict = OnConflict::columns([C::TaskId, C::ShardNo])
        .update_columns([C::Business, C::Service, C::News, C::ToldAt])
        .to_owned();
    let insert = found::Entity::insert(written).on_conflict(conflict);
    insert.run(&store.writer).await.map(drop)
}

fn read(row: found::Model) -> Result<FoundRow, StoreError> {
    let news: News = serde_json::from_str(&row.news).map_err(|_| damaged("found.news", &row.news))?;
    Ok(FoundRow {
        shard: ShardId {
            task: TaskId(row.task_id),
            no: row.shard_no.cast_unsigned(),
        },
        business: row.business,
        service: row.service,
        news,
        at: WallMs(row.told_at),
    })
}

/// Removes rows told before a time, the oldest first.
pub(crate) async fn expire(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    let last: Option<i64> = found::Entity::find()
        .filter(C::ToldAt.lt(before.0))
        .order_by_asc(C::ToldAt)
        .offset(SWEEP_MAX)
        .limit(1)
        .pluck_one([C::ToldAt], &store.readers)
        .await?;
    let old = found::Entity::delete_many().filter(C::ToldAt.lt(before.0));
    let old = match last {
        Some(last) => old.filter(C::ToldAt.lte(last)),
        None => old,
    };
    old.run(&store.writer).await
}
