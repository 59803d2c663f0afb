//! Failed items, listed by index or by group, or looked up one by one.

use async_trait::async_trait;
use sea_orm::sea_query::Query;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use windrow_words::store as say;

use crate::sql::entity::{failure_group, item, shard};
use crate::sql::run::items;
use crate::sql::{Fetch, Pluck, Store, damaged};
use windrow_core::ids::{ItemIndex, TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::failure_list::{
    AMONG_MAX, FailureList, FailurePage, RecordedItem, RecordedState, WaitingCode,
};
use windrow_engine::ports::tasks::store::FailureGroup;

/// Maximum number of indexes in one `IN (…)`.
const INDEXES_PER_STATEMENT: usize = 5_000;

#[async_trait]
impl FailureList for Store {
    async fn groups(&self, task: TaskId) -> Result<Vec<FailureGroup>, StoreError> {
        groups(&self.readers, task).await
    }

    async fn waiting(&self, task: TaskId) -> Result<Vec<WaitingCode>, StoreError> {
        use item::Column as C;
        // By shard and state, like the index: a task may have millions of failed items.
        let shards = Query::select()
            .column(shard::Column::ShardNo)
            .from(shard::Entity)
            .and_where(shard::Column::TaskId.eq(task.0))
            .to_owned();
        let found: Vec<(String, i64)> = item::Entity::find()
            .select_only()
            .column(C::Code)
            .column_as(C::Idx.count(), "items")
            .filter(C::TaskId.eq(task.0))
            .filter(C::ShardNo.in_subquery(shards))
            .filter(C::State.is_in([items::RETRYING, items::PARKED]))
            .filter(C::Code.is_not_null())
            .group_by(C::Code)
            .into_tuple()
            .rows(&self.readers)
            .await?;
        let found = found.into_iter().map(|(code, items)| WaitingCode {
            code,
            items: items.cast_unsigned(),
        });
        let mut found: Vec<WaitingCode> = found.collect();
        found.sort_by(|one, other| {
            other
                .items
                .cmp(&one.items)
                .then_with(|| one.code.cmp(&other.code))
        });
        Ok(found)
    }

    async fn page(
        &self,
        task: TaskId,
        page: &FailurePage,
        limit: u32,
    ) -> Result<Vec<RecordedItem>, StoreError> {
        use item::Column as C;
        let of_task = item::Entity::find().filter(C::TaskId.eq(task.0));
        let wanted = match page {
            FailurePage::ByIndex(after) => of_task
                .filter(C::State.eq(items::FAILED))
                .filter(C::Idx.gt(after.map_or(-1, |index| index.0.cast_signed())))
                .order_by_asc(C::Idx),
            FailurePage::OfGroup(code, first) => of_task
                .filter(C::Grp.eq(code.as_str()))
                .filter(C::GrpNo.gte(first.cast_signed()))
                .order_by_asc(C::GrpNo),
        };
        let rows = wanted.limit(u64::from(limit)).rows(&self.readers).await?;
        rows.into_iter().map(recorded).collect()
    }

    async fn places(
        &self,
        task: TaskId,
        group: &str,
        first: u64,
        count: u32,
    ) -> Result<Vec<ItemIndex>, StoreError> {
        use item::Column as C;
        let end = first.saturating_add(u64::from(count));
        let indexes: Vec<i64> = item::Entity::find()
            .filter(C::TaskId.eq(task.0))
            .filter(C::Grp.eq(group))
            .filter(C::GrpNo.gte(first.cast_signed()))
            .filter(C::GrpNo.lt(end.cast_signed()))
            .order_by_asc(C::GrpNo)
            .pluck([C::Idx], &self.readers)
            .await?;
        Ok(indexes_of(indexes))
    }

    async fn among(&self, task: TaskId, indexes: &[ItemIndex]) -> Result<Vec<RecordedItem>, StoreError> {
        use item::Column as C;
        if indexes.len() > AMONG_MAX {
            return Err(StoreError::Refused(
                say::too_many_indexes(indexes.len(), AMONG_MAX).to_string(),
            ));
        }
        let mut found = Vec::new();
        for chunk in indexes.chunks(INDEXES_PER_STATEMENT) {
            let rows = item::Entity::find()
                .filter(C::TaskId.eq(task.0))
                .filter(C::Idx.is_in(chunk.iter().map(|index| index.0.cast_signed())))
                .filter(C::State.eq(items::FAILED))
                .rows(&self.readers)
                .await?;
            found.extend(rows);
        }
        found.sort_unstable_by_key(|row| row.idx);
        found.into_iter().map(recorded).collect()
    }

    async fn unconfirmed(
        &self,
        task: TaskId,
        groups: &[String],
        after: Option<ItemIndex>,
        limit: u32,
    ) -> Result<Vec<ItemIndex>, StoreError> {
        use item::Column as C;
        let mut found = item::Entity::find()
            .filter(C::TaskId.eq(task.0))
            .filter(C::State.eq(items::FAILED))
            .filter(C::Unconfirmed.eq(1))
            .filter(C::Idx.gt(after.map_or(-1, |index| index.0.cast_signed())));
        if !groups.is_empty() {
            found = found.filter(C::Grp.is_in(groups.iter().map(String::as_str)));
        }
        let indexes: Vec<i64> = found
            .order_by_asc(C::Idx)
            .limit(u64::from(limit))
            .pluck([C::Idx], &self.readers)
            .await?;
        Ok(indexes_of(indexes))
    }

    async fn item(&self, task: TaskId, index: ItemIndex) -> Result<Option<RecordedItem>, StoreError> {
        let key = (task.0, index.0.cast_signed());
        let row = item::Entity::find_by_id(key).row(&self.readers).await?;
        row.map(recorded).transpose()
    }
}

fn indexes_of(numbers: Vec<i64>) -> Vec<ItemIndex> {
    let index = |number: i64| ItemIndex(number.cast_unsigned());
    numbers.into_iter().map(index).collect()
}

fn recorded(row: item::Model) -> Result<RecordedItem, StoreError> {
    let state = match row.state.as_str() {
        items::RETRYING => RecordedState::Retrying,
        items::PARKED => RecordedState::Parked,
        items::FAILED => RecordedState::Failed,
        other => return Err(damaged("item.state", other)),
    };
    let charged = items::charged(&row);
    Ok(RecordedItem {
        index: ItemIndex(row.idx.cast_unsigned()),
        shard: row.shard_no.cast_unsigned(),
        state,
        attempts: row.attempts.cast_unsigned(),
        charged,
        is_unconfirmed: row.unconfirmed == Some(1),
        others_answered: row.others_answered.map(i64::cast_unsigned),
        due_at: (state == RecordedState::Parked).then_some(WallMs(row.due_at)),
        code: row.code,
        message: row.message,
        output: row.output,
        first_at: WallMs(row.first_at),
        last_at: WallMs(row.last_at),
        history: row.history,
        place: row.grp.zip(row.grp_no.map(i64::cast_unsigned)),
    })
}

/// Returns the failure groups of a task, most frequent first.
pub(crate) async fn groups<C: ConnectionTrait>(
    db: &C,
    task: TaskId,
) -> Result<Vec<FailureGroup>, StoreError> {
    use failure_group::Column as C;
    let rows = failure_group::Entity::find()
        .filter(C::TaskId.eq(task.0))
        .order_by_desc(C::N)
        .order_by_asc(C::Code)
        .rows(db)
        .await?;
    let group = |row: failure_group::Model| FailureGroup {
        code: row.code,
        count: row.n.cast_unsigned(),
        first_at: WallMs(row.first_at),
        last_at: WallMs(row.last_at),
        example_index: ItemIndex(row.example_idx.cast_unsigned()),
        example: row.example,
        unconfirmed: row.unconfirmed.cast_unsigned(),
    };
    Ok(rows.into_iter().map(group).collect())
}
