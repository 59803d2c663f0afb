//! Ownership and progress of shards: the methods of the port, one call each; the work is in the modules beside it.

use async_trait::async_trait;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use windrow_words::store as say;

use crate::sql::dialect::{CHECKPOINT_MAX, settled};
use crate::sql::entity::{item, shard_head, task};
use crate::sql::run::checkpoint;
use crate::sql::run::claim;
use crate::sql::run::close;
use crate::sql::run::items;
use crate::sql::run::runnable;
use crate::sql::task::record;
use crate::sql::task::spec;
use crate::sql::{Fetch, Reply, Store, words};
use windrow_core::execution::Shared;
use windrow_core::ids::{ClaimId, Epoch, ItemCount, ItemIndex, ShardId, WallMs};
use windrow_core::items::verdict::{FailingItem, ParkedItem};
use windrow_core::shards::Share;
use windrow_core::task::ShardRange;
use windrow_core::task::lifecycle::ShardState;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{
    CandidatePage, CandidateQuery, CheckpointAck, ClaimOutcome, ClaimRequest, Control, RunClose, RunStore,
    ShardCheckpoint,
};

#[async_trait]
impl RunStore for Store {
    async fn candidates(&self, hunt: &CandidateQuery) -> Result<CandidatePage, StoreError> {
        runnable::candidates(self, hunt).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        settled(|| claim::claim(self, request)).await
    }

    async fn checkpoint(&self, checkpoints: &[ShardCheckpoint]) -> Result<Vec<CheckpointAck>, StoreError> {
        let storing = Box::pin(settled(|| checkpoint::checkpoint(self, checkpoints)));
        self.writer.answers_within(CHECKPOINT_MAX, storing).await
    }

    async fn release(
        &self,
        shard: ShardId,
        epoch: Epoch,
        claim: ClaimId,
        close: &RunClose,
        now: WallMs,
    ) -> Result<CheckpointAck, StoreError> {
        settled(|| close::release(self, (shard, epoch, claim), close, now)).await
    }

    async fn parked_due(
        &self,
        shard: ShardId,
        before: WallMs,
        after: Option<(WallMs, ItemIndex)>,
        limit: u32,
    ) -> Result<Vec<ParkedItem>, StoreError> {
        use item::Column as C;
        let mut query = parked(shard).filter(C::DueAt.lte(before.0));
        if let Some((due_at, index)) = after {
            let same = Condition::all()
                .add(C::DueAt.eq(due_at.0))
                .add(C::Idx.gt(index.0.cast_signed()));
            query = query.filter(Condition::any().add(C::DueAt.gt(due_at.0)).add(same));
        }
        let query = query.limit(u64::from(limit));
        let rows = match self.talk().await? {
            Some(mut talk) => talk.all(&query).await?,
            None => query.rows(&self.readers).await?,
        };
        rows.into_iter().map(parked_item).collect()
    }

    async fn control(&self, shard: ShardId) -> Result<Control, StoreError> {
        let (row, shards) = task_and_shards(self, shard).await?;
        let row = row.ok_or_else(|| StoreError::Refused(say::no_task(shard.task.to_string()).to_string()))?;
        let own = shards.iter().find(|row| row.shard_no == words::shard_no(shard));
        let own = own.ok_or_else(|| StoreError::Refused(say::no_shard(shard.to_string()).to_string()))?;
        let attributes = spec::read(&row)?;
        let share = Share::read(own.rate_share);
        // A task's only shard has no share. The last one left has the whole rate, but still has others beside it.
        let (failed_elsewhere, all_down) = match own.rate_share {
            None => (0, true),
            Some(_) => elsewhere(own, &shards),
        };
        Ok(Control {
            desired: words::desired(&row.desired)?,
            rev: row.control_rev.cast_unsigned(),
            tuning: words::tuning(&row.tuning)?,
            finish_at: row.finish_at.map(|end| ItemIndex(end.cast_unsigned())),
            canary: attributes.canary,
            shared: Shared {
                share,
                items: ShardRange::of_task(ItemCount(row.total.cast_unsigned()), attributes.skip_first).len(),
                failed_elsewhere,
                all_down,
            },
            failed_codes: words::failed_codes(row.failed_codes.as_deref())?,
            skips: words::skips(row.skips.as_deref())?,
            pause: words::pause(&row)?,
            slow: words::slow(&row),
            deadline: attributes.deadline,
            supply: words::supply(&row)?,
        })
    }
}

/// Selects the parked items of a shard in the order in which they are due.
fn parked(shard: ShardId) -> sea_orm::Select<item::Entity> {
    use item::Column as C;
    item::Entity::find()
        .filter(C::TaskId.eq(shard.task.0))
        .filter(C::ShardNo.eq(words::shard_no(shard)))
        .filter(C::State.eq(items::PARKED))
        .order_by_asc(C::DueAt)
        .order_by_asc(C::Idx)
}

fn parked_item(row: item::Model) -> Result<ParkedItem, StoreError> {
    let due_at = WallMs(row.due_at);
    let FailingItem {
        index,
        attempts,
        charged,
        failure,
        at,
        history,
        ..
    } = items::retrying(row)?;
    Ok(ParkedItem {
        index,
        attempts,
        charged,
        failure,
        at,
        due_at,
        history,
    })
}

/// Reads a task and its shards. The embedded database is read twice in a row, which costs nothing there.
async fn task_and_shards(
    store: &Store,
    shard: ShardId,
) -> Result<(Option<task::Model>, Vec<shard_head::Model>), StoreError> {
    let (row, shards) = (
        task::Entity::find_by_id(shard.task.0),
        record::all_shards(shard.task),
    );
    let Some(mut talk) = store.talk().await? else {
        let row = row.row(&store.readers).await?;
        return Ok((row, shards.rows(&store.readers).await?));
    };
    let replies = talk.say(&[talk.text(&row), talk.text(&shards)]).await?;
    let (row, shards) = (replies.first(), replies.get(1));
    Ok((
        row.map_or(Ok(None), Reply::one)?,
        shards.map_or(Ok(Vec::new()), Reply::all)?,
    ))
}

/// Returns the number of items that failed in the other shards, and true if the handler is down for each of them that
/// is not done.
fn elsewhere(own: &shard_head::Model, all: &[shard_head::Model]) -> (u64, bool) {
    let others = || all.iter().filter(|other| other.shard_no != own.shard_no);
    let failed = others().map(|other| other.failed).sum::<i64>();
    let is_up =
        |other: &shard_head::Model| other.circuit_since.is_none() && other.state != ShardState::Done.as_str();
    (failed.cast_unsigned(), !others().any(is_up))
}
