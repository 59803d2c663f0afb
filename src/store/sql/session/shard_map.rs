//! Owners of shards, and counts of shards by state.

use async_trait::async_trait;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use crate::sql::entity::shard_head::{Column as C, Entity as Shards, Model};
use crate::sql::task::life;
use crate::sql::{Fetch, Pluck, Store, error, words};
use windrow_core::ids::{RunNo, SessionId, TaskId};
use windrow_core::task::lifecycle::{Desired, ShardState};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::shard_map::{Holding, ShardMap, StoredShard};

/// States of shards that have work left.
const OPEN: [ShardState; 3] = [ShardState::Idle, ShardState::Running, ShardState::Recovering];

#[async_trait]
impl ShardMap for Store {
    async fn shards_of(&self, tasks: &[TaskId]) -> Result<Vec<StoredShard>, StoreError> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let rows = Shards::find().filter(C::TaskId.is_in(tasks.iter().map(|task| task.0)));
        let rows = rows
            .order_by_asc(C::TaskId)
            .order_by_asc(C::ShardNo)
            .all(&self.readers)
            .await;
        let owned = |row: &Model| {
            Ok(StoredShard {
                shard: words::shard_id(row),
                life: life::shard_life(row)?,
                outage: words::outage(row),
            })
        };
        rows.map_err(error)?.iter().map(owned).collect()
    }

    async fn holdings(&self, of: Option<SessionId>, limit: u32) -> Result<Vec<Holding>, StoreError> {
        let rows = Shards::find()
            .filter(C::SessionId.is_not_null())
            .apply_if(of, |query, of| {
                query.filter(C::SessionId.eq(words::session_text(of)))
            })
            .order_by_asc(C::TaskId)
            .order_by_asc(C::ShardNo)
            .limit(u64::from(limit))
            .rows(&self.readers)
            .await?;
        let held = |row: &Model| {
            let owner = row.session_id.as_deref().unwrap_or_default();
            let run = RunNo(row.run_no.cast_unsigned());
            Ok(Holding {
                shard: words::shard_id(row),
                run,
                session: session(owner)?,
            })
        };
        rows.iter().map(held).collect()
    }

    async fn shard_counts(&self, most: u32) -> Result<Vec<(ShardState, bool, u64)>, StoreError> {
        let mut counts = Vec::new();
        for state in OPEN {
            for is_owned in [false, true] {
                let owner = if is_owned {
                    C::SessionId.is_not_null()
                } else {
                    C::SessionId.is_null()
                };
                let some = Shards::find()
                    .filter(C::State.eq(state.as_str()))
                    .filter(owner)
                    .apply_if((!is_owned).then_some(Desired::Rest), |query, rest| {
                        query.filter(C::Desired.ne(rest.as_str()))
                    })
                    .limit(u64::from(most))
                    .pluck::<i32>([C::ShardNo], &self.readers)
                    .await?;
                counts.push((state, is_owned, some.len() as u64));
            }
        }
        Ok(counts)
    }
}

fn session(text: &str) -> Result<SessionId, StoreError> {
    words::uuid(text).map(SessionId)
}
