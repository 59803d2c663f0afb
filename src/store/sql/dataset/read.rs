//! Datasets and generations as readers and people see them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use async_trait::async_trait;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, Iterable, QueryFilter, QueryOrder, QuerySelect};

use super::{change, keys, pointer, sink, state};
use crate::sql::business::businesses;
use crate::sql::entity::{business, dataset, generation};
use crate::sql::{Fetch, Pluck, Store, damaged, settled};
use windrow_core::dataset::{GenerationNo, GenerationState, KEEP_DEFAULT};
use windrow_core::ids::{Epoch, ItemIndex, ShardId, TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::datasets::store::{
    Dataset, DatasetChange, DatasetError, DatasetStore, Generation, NewDataset, Reading, SinkView, Which,
};
use windrow_engine::ports::tasks::results::ResultShard;
use windrow_engine::ports::tasks::store::Write;

#[async_trait]
impl DatasetStore for Store {
    async fn dataset(&self, name: &str) -> Result<Option<Dataset>, StoreError> {
        let snapshot = self.snapshot().await?;
        match find(&snapshot, name).await? {
            Some(row) => Ok(Some(view(&snapshot, row).await?)),
            None => Ok(None),
        }
    }

    async fn datasets(
        &self,
        of: Option<&str>,
        after: Option<&str>,
        count: u32,
    ) -> Result<Vec<Dataset>, StoreError> {
        use dataset::Column as C;
        let mut query = dataset::Entity::find().filter(C::Name.gt(after.unwrap_or_default()));
        if let Some(slug) = of {
            let Some(owner) = businesses::find(&self.readers, slug).await? else {
                return Ok(Vec::new());
            };
            query = query.filter(C::BusinessId.eq(owner.id));
        }
        let rows = query
            .order_by_asc(C::Name)
            .limit(u64::from(count))
            .rows(&self.readers)
            .await?;
        let owners: BTreeSet<i64> = rows.iter().map(|row| row.business_id).collect();
        let owners: Vec<(i64, String)> = business::Entity::find()
            .filter(business::Column::Id.is_in(owners))
            .pluck([business::Column::Id, business::Column::Slug], &self.readers)
            .await?;
        let owners: BTreeMap<i64, String> = owners.into_iter().collect();
        let mut sinks = sink::views(&self.readers, rows.iter().map(|row| row.id)).await?;
        let of = |row: dataset::Model| {
            let (owner, sink) = (owners.get(&row.business_id).cloned(), sinks.remove(&row.id));
            together(row, owner.unwrap_or_default(), sink)
        };
        Ok(rows.into_iter().map(of).collect())
    }

    async fn reading(&self, name: &str, which: Which) -> Result<Option<Reading>, StoreError> {
        let snapshot = self.snapshot().await?;
        let Some(row) = find(&snapshot, name).await? else {
            return Ok(None);
        };
        let no = match which {
            Which::Current => pointer(&row).current,
            Which::No(no) => Some(no),
        };
        let Some(no) = no else { return Ok(None) };
        let found = generation::Entity::find_by_id((row.id, no.0.cast_signed()))
            .row(&snapshot)
            .await?;
        let Some(mut found) = found else { return Ok(None) };
        let summary = found.summary.take().map(String::into_boxed_str);
        Ok(Some(Reading {
            dataset: view(&snapshot, row).await?,
            generation: of_row(found)?,
            summary,
        }))
    }

    async fn generations(
        &self,
        name: &str,
        below: Option<GenerationNo>,
        count: u32,
    ) -> Result<Vec<Generation>, StoreError> {
        use generation::Column as C;
        let Some(row) = find(&self.readers, name).await? else {
            return Ok(Vec::new());
        };
        let below = below.map_or(i64::MAX, |no| no.0.cast_signed());
        // Leave out summaries, which can be a megabyte each.
        let rows = generation::Entity::find()
            .select_only()
            .columns(C::iter().filter(|column| !matches!(column, C::Summary)))
            .expr_as(sea_orm::sea_query::Expr::value(None::<String>), "summary")
            .filter(C::DatasetId.eq(row.id))
            .filter(C::No.lt(below))
            .filter(C::State.ne(GenerationState::Expired.as_str()))
            .order_by_desc(C::No)
            .limit(u64::from(count))
            .rows(&self.readers)
            .await?;
        rows.into_iter().map(of_row).collect()
    }

    async fn key_indexes(
        &self,
        task: TaskId,
        epoch: Epoch,
        hash: u64,
        from: ItemIndex,
        count: u32,
    ) -> Result<Vec<ItemIndex>, StoreError> {
        keys::find(self, (task, epoch), hash, from, count).await
    }

    async fn create_dataset(
        &self,
        new: &NewDataset,
        write: &Write,
        now: WallMs,
    ) -> Result<Dataset, DatasetError> {
        settled(|| change::create(self, new, write, now)).await
    }

    async fn change_dataset(
        &self,
        name: &str,
        expected: Option<u64>,
        wanted: DatasetChange,
        write: &Write,
        now: WallMs,
    ) -> Result<Dataset, DatasetError> {
        settled(|| change::change(self, (name, expected), wanted, write, now)).await
    }

    async fn delete_dataset(&self, name: &str, write: &Write, now: WallMs) -> Result<Dataset, DatasetError> {
        settled(|| change::delete(self, name, write, now)).await
    }
}

/// Returns a dataset by its name.
pub(super) async fn find(
    db: &impl ConnectionTrait,
    name: &str,
) -> Result<Option<dataset::Model>, StoreError> {
    let found = dataset::Entity::find().filter(dataset::Column::Name.eq(name));
    found.row(db).await
}

/// Returns a dataset as people see it, with its business and its sink.
pub(super) async fn view(db: &impl ConnectionTrait, row: dataset::Model) -> Result<Dataset, StoreError> {
    let owner = business::Entity::find_by_id(row.business_id).row(db).await?;
    let owner = owner.ok_or_else(|| damaged("dataset.business_id", &row.business_id.to_string()))?;
    let sink = sink::views(db, [row.id]).await?.remove(&row.id);
    Ok(together(row, owner.slug, sink))
}

fn together(row: dataset::Model, business: String, sink: Option<SinkView>) -> Dataset {
    Dataset {
        pointer: pointer(&row),
        id: row.id,
        business,
        keep: NonZeroU32::new(row.keep_count.cast_unsigned()).unwrap_or(KEEP_DEFAULT),
        published_at: row.published_at.map(WallMs),
        last: GenerationNo(row.last_no.cast_unsigned()),
        version: row.version.cast_unsigned(),
        created_at: WallMs(row.created_at),
        updated_at: WallMs(row.updated_at),
        name: row.name,
        sink,
    }
}

fn of_row(row: generation::Model) -> Result<Generation, StoreError> {
    let task = TaskId(row.task_id);
    let epoch = row.key_epoch.map(|epoch| Epoch(epoch.cast_unsigned()));
    Ok(Generation {
        no: GenerationNo(row.no.cast_unsigned()),
        task,
        state: state(&row)?,
        pinned: row.pinned,
        results: row.results.cast_unsigned(),
        shards: shards(task, row.shards.as_deref())?,
        key: row.key_member.zip(epoch),
        publication: row.publication_no.map(i64::cast_unsigned),
        why: row.why,
        created_at: WallMs(row.created_at),
        published_at: row.published_at.map(WallMs),
    })
}

fn shards(task: TaskId, text: Option<&str>) -> Result<Vec<ResultShard>, StoreError> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let read: Vec<(u32, u64, u64)> =
        serde_json::from_str(text).map_err(|_| damaged("generation.shards", text))?;
    let shard = |(no, end, kept)| ResultShard {
        shard: ShardId { task, no },
        end: ItemIndex(end),
        frontier: ItemIndex(end),
        kept,
    };
    Ok(read.into_iter().map(shard).collect())
}
