//! Results of items: written by checkpoints, read in index order.

use async_trait::async_trait;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Condition, Expr, ExprTrait as _, OnConflict, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect,
};
use windrow_words::store as say;

use crate::packed;
use crate::sql::dataset::sweep;
use crate::sql::dialect::whole_sum;
use crate::sql::entity::{item, result_segment, shard_head, task};
use crate::sql::run::{items, result_place};
use crate::sql::task::delete;
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, damaged, words};
use windrow_core::ids::{Epoch, ItemIndex, ShardId, TaskId, WallMs};
use windrow_core::task::lifecycle::Status;
use windrow_core::task::room::Sample;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::ShardCheckpoint;
use windrow_engine::ports::tasks::results::{
    ResultShard, ResultStore, ResultSum, Segment, SegmentPlace, StoredSegment,
};
use windrow_engine::ports::tasks::upkeep::SWEEP_MAX;

/// Approximate size of a statement in bytes: MariaDB takes packets of 16 MiB.
const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// Segments sampled to estimate the size of others: 1 MiB of outputs.
const SAMPLED: u64 = 4;

/// Returns the segments of a checkpoint, packed and stored before its transaction begins.
pub(crate) async fn prepare(
    store: &Store,
    checkpoint: &ShardCheckpoint,
) -> Result<Vec<result_segment::ActiveModel>, StoreError> {
    let segments = checkpoint.results.iter();
    let rows = segments.filter_map(|segment| row(checkpoint, segment).transpose());
    let mut rows: Vec<result_segment::ActiveModel> = rows.collect::<Result<_, _>>()?;
    result_place::stow(store, checkpoint, &mut rows).await?;
    Ok(rows)
}

fn row(
    checkpoint: &ShardCheckpoint,
    segment: &Segment,
) -> Result<Option<result_segment::ActiveModel>, StoreError> {
    let (Some(first), Some(last)) = (segment.outputs.first(), segment.outputs.last()) else {
        return Ok(None);
    };
    let bytes: usize = segment.outputs.iter().map(|output| output.json.len()).sum();
    Ok(Some(result_segment::ActiveModel {
        task_id: Set(checkpoint.shard.task.0),
        shard_no: Set(words::shard_no(checkpoint.shard)),
        epoch: Set(checkpoint.epoch.0.cast_signed()),
        seg_no: Set(segment.no.cast_signed()),
        first_index: Set(first.index.0.cast_signed()),
        last_index: Set(last.index.0.cast_signed()),
        items: Set(segment.outputs.len() as i64),
        byte_size: Set(bytes as i64),
        body: Set(packed::pack(&segment.outputs)?),
        location: Set(None),
    }))
}

/// Writes the segments of a checkpoint whose compare-and-set just succeeded. A segment that has grown replaces its
/// older version.
pub(crate) async fn write(
    transaction: &Transaction,
    segments: Vec<result_segment::ActiveModel>,
) -> Result<(), StoreError> {
    use result_segment::Column as C;
    let mut rest = segments;
    while !rest.is_empty() {
        let later = rest.split_off(fitting(&rest));
        let grown = OnConflict::columns([C::TaskId, C::ShardNo, C::Epoch, C::SegNo])
            .update_columns([
                C::FirstIndex,
                C::LastIndex,
                C::Items,
                C::ByteSize,
                C::Body,
                C::Location,
            ])
            .to_owned();
        result_segment::Entity::insert_many(rest)
            .on_conflict(grown)
            .run(transaction)
            .await?;
        rest = later;
    }
    Ok(())
}

/// Returns the number of segments that fit one statement, at least one.
fn fitting(segments: &[result_segment::ActiveModel]) -> usize {
    let mut bytes = 0;
    let fits = |segment: &&result_segment::ActiveModel| {
        bytes += segment.body.try_as_ref().map_or(0, Vec::len);
        bytes <= STATEMENT_BYTES_MAX
    };
    segments.iter().take_while(fits).count().max(1)
}

/// Counts the results in the segments of a task, to compare them with its counters.
pub(crate) async fn count<C: ConnectionTrait>(db: &C, task: i64) -> Result<u64, StoreError> {
    let sums = sums(db, task).await?;
    Ok(sums.iter().map(|sum| sum.items.cast_unsigned()).sum())
}

/// Number of results of a shard, and their size in bytes.
#[derive(FromQueryResult)]
struct Sum {
    shard_no: i32,
    items: i64,
    bytes: i64,
}

async fn sums<C: ConnectionTrait>(db: &C, task: i64) -> Result<Vec<Sum>, StoreError> {
    use result_segment::Column as C;
    result_segment::Entity::find()
        .select_only()
        .column(C::ShardNo)
        .column_as(whole_sum(db, Expr::col(C::Items)), "items")
        .column_as(whole_sum(db, Expr::col(C::ByteSize)), "bytes")
        .filter(C::TaskId.eq(task))
        .group_by(C::ShardNo)
        .order_by_asc(C::ShardNo)
        .into_model()
        .rows(db)
        .await
}

/// Removes results of tasks that ended before a time, one task per call.
pub(crate) async fn expire(store: &Store, before: WallMs) -> Result<u64, StoreError> {
    let Some(task) = oldest(store, before).await? else {
        return Ok(0);
    };
    result_place::forget(store, TaskId(task)).await?;
    delete::clear_results(store, TaskId(task)).await?;
    // Another task may be left.
    Ok(SWEEP_MAX)
}

/// Returns a task that ended before a time and has results that no generation owns.
async fn oldest(store: &Store, before: WallMs) -> Result<Option<i64>, StoreError> {
    use task::Column as C;
    let rows = Query::select()
        .column(result_segment::Column::TaskId)
        .from(result_segment::Entity)
        .and_where(
            Expr::col((result_segment::Entity, result_segment::Column::TaskId)).equals((task::Entity, C::Id)),
        )
        .to_owned();
    task::Entity::find()
        .filter(C::Status.is_in([Status::Finished, Status::Cancelled].map(Status::as_str)))
        .filter(C::FinishedAt.lt(before.0))
        .filter(Expr::exists(rows))
        .filter(Expr::exists(sweep::owners_of_task()).not())
        .order_by_asc(C::FinishedAt)
        .pluck_one([C::Id], &store.readers)
        .await
}

#[async_trait]
impl ResultStore for Store {
    async fn result_shards(&self, task: TaskId) -> Result<Vec<ResultShard>, StoreError> {
        let snapshot = self.snapshot().await?;
        let rows = shard_head::Entity::find()
            .filter(shard_head::Column::TaskId.eq(task.0))
            .order_by_asc(shard_head::Column::FirstIndex)
            .rows(&snapshot)
            .await?;
        let parked: Vec<(i32, i64)> = item::Entity::find()
            .select_only()
            .column(item::Column::ShardNo)
            .column_as(item::Column::Idx.min(), "lowest")
            .filter(item::Column::TaskId.eq(task.0))
            .filter(item::Column::State.eq(items::PARKED))
            .group_by(item::Column::ShardNo)
            .into_tuple()
            .rows(&snapshot)
            .await?;
        let of = |row: &shard_head::Model| {
            let lowest = parked.iter().find(|(no, _)| *no == row.shard_no);
            let frontier = lowest.map_or(row.watermark, |(_, lowest)| Ord::min(row.watermark, *lowest));
            ResultShard {
                shard: ShardId {
                    task,
                    no: row.shard_no.cast_unsigned(),
                },
                end: ItemIndex(row.end_index.cast_unsigned()),
                frontier: ItemIndex(frontier.cast_unsigned()),
                kept: row.results.cast_unsigned(),
            }
        };
        Ok(rows.iter().map(of).collect())
    }

    async fn result_sums(&self, task: TaskId) -> Result<Vec<ResultSum>, StoreError> {
        let of = |sum: Sum| ResultSum {
            shard: ShardId {
                task,
                no: sum.shard_no.cast_unsigned(),
            },
            items: sum.items.cast_unsigned(),
            bytes: sum.bytes.cast_unsigned(),
        };
        Ok(sums(&self.readers, task.0).await?.into_iter().map(of).collect())
    }

    async fn result_room(&self, task: TaskId) -> Result<(Sample, Option<u64>), StoreError> {
        use result_segment::Column as C;
        let rows = result_segment::Entity::find()
            .filter(C::TaskId.eq(task.0))
            .order_by_desc(C::ShardNo)
            .order_by_desc(C::Epoch)
            .order_by_desc(C::SegNo)
            .limit(SAMPLED)
            .rows(&self.readers)
            .await?;
        let mut sample = Sample::default();
        for mut row in rows {
            sample.results += row.items.cast_unsigned();
            sample.bytes += result_place::body(self, &mut row).await?.len() as u64;
        }
        Ok((sample, result_place::free(self).await))
    }

    async fn segments(
        &self,
        shard: ShardId,
        from: ItemIndex,
        after: Option<SegmentPlace>,
        limit: u32,
    ) -> Result<Vec<StoredSegment>, StoreError> {
        use result_segment::Column as C;
        let mut of_shard = of_shard(shard).filter(C::LastIndex.gte(from.0.cast_signed()));
        if let Some(after) = after {
            of_shard = of_shard.filter(behind(after));
        }
        let rows = of_shard
            .order_by_asc(C::FirstIndex)
            .order_by_asc(C::Epoch)
            .order_by_asc(C::SegNo)
            .limit(u64::from(limit))
            .rows(&self.readers)
            .await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            found.push(stored(self, row).await?);
        }
        Ok(found)
    }

    async fn output(&self, shard: ShardId, index: ItemIndex) -> Result<Option<Box<str>>, StoreError> {
        use result_segment::Column as C;
        let at = index.0.cast_signed();
        let rows = of_shard(shard)
            .filter(C::FirstIndex.lte(at))
            .filter(C::LastIndex.gte(at))
            .rows(&self.readers)
            .await?;
        for row in rows {
            let found = stored(self, row).await?;
            if let Ok(place) = found.outputs.binary_search_by_key(&index, |output| output.index) {
                return Ok(found.outputs.into_iter().nth(place).map(|output| output.json));
            }
        }
        Ok(None)
    }
}

fn of_shard(shard: ShardId) -> sea_orm::Select<result_segment::Entity> {
    use result_segment::Column as C;
    result_segment::Entity::find()
        .filter(C::TaskId.eq(shard.task.0))
        .filter(C::ShardNo.eq(words::shard_no(shard)))
}

/// Matches segments after a place, in the order of places. The first condition is the one that uses an index.
fn behind(place: SegmentPlace) -> Condition {
    use result_segment::Column as C;
    let (first, epoch) = (place.first.0.cast_signed(), place.epoch.0.cast_signed());
    let later_of_run = C::Epoch.eq(epoch).and(C::SegNo.gt(place.no.cast_signed()));
    let later = Condition::any()
        .add(C::FirstIndex.gt(first))
        .add(C::Epoch.gt(epoch))
        .add(later_of_run);
    Condition::all().add(C::FirstIndex.gte(first)).add(later)
}

async fn stored(store: &Store, mut row: result_segment::Model) -> Result<StoredSegment, StoreError> {
    let place = SegmentPlace {
        first: ItemIndex(row.first_index.cast_unsigned()),
        epoch: Epoch(row.epoch.cast_unsigned()),
        no: row.seg_no.cast_unsigned(),
    };
    let outputs = packed::unpack(&result_place::body(store, &mut row).await?).map_err(|why| {
        let shard = format!("t{}.{}", row.task_id, row.shard_no);
        let text = say::segment(row.seg_no.to_string(), row.epoch.to_string(), shard, why);
        damaged("results", &text.to_string())
    })?;
    Ok(StoredSegment { place, outputs })
}
