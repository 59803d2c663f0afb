//! A task and its progress as every surface shows them, read from one snapshot.

use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder};

use super::entity::{business, session, shard_head, task};
use super::{damaged, error, words};
use crate::domain::business::POOL_DEFAULT;
use crate::domain::counters::Counters;
use crate::domain::ids::{ItemCount, ItemIndex, RunNo, SessionId, TaskId, WallMs};
use crate::domain::lifecycle::ShardState;
use crate::domain::shards::Share;
use crate::ports::StoreError;
use crate::ports::task_store::{ShardView, TaskView};

/// Reads what the task's row alone doesn't say and puts it together.
pub(super) async fn view<C: ConnectionTrait>(db: &C, row: task::Model) -> Result<TaskView, StoreError> {
    let owner = business::Entity::find_by_id(row.business_id).one(db).await.map_err(error)?;
    let owner = owner.ok_or_else(|| damaged("the business of a task", &row.business_id.to_string()))?;
    let shards = shard_head::Entity::find()
        .filter(shard_head::Column::TaskId.eq(row.id))
        .order_by_asc(shard_head::Column::FirstIndex)
        .all(db)
        .await
        .map_err(error)?;
    together(row, owner.slug, &shards)
}

/// The same, with the names of the nodes that own its shards.
pub(super) async fn view_with_owners<C: ConnectionTrait>(
    db: &C,
    row: task::Model,
) -> Result<TaskView, StoreError> {
    let mut task = view(db, row).await?;
    name_owners(db, &mut task).await?;
    Ok(task)
}

async fn name_owners<C: ConnectionTrait>(db: &C, task: &mut TaskView) -> Result<(), StoreError> {
    use session::Column as S;
    let ids: Vec<String> =
        task.shards.iter().filter_map(|shard| shard.session).map(words::session_text).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let found = session::Entity::find().filter(S::Id.is_in(ids)).all(db).await.map_err(error)?;
    for shard in &mut task.shards {
        let id = shard.session.map(words::session_text);
        shard.node = found.iter().find(|row| Some(&row.id) == id.as_ref()).map(|row| row.node.clone());
    }
    Ok(())
}

pub(super) fn together(
    row: task::Model,
    business: String,
    shards: &[shard_head::Model],
) -> Result<TaskView, StoreError> {
    Ok(TaskView {
        id: TaskId(row.id),
        business,
        status: words::status(&row)?,
        wish: words::wish(&row.wish)?,
        counters: counters(&row, shards),
        low_water: low_water(shards),
        shards: shards.iter().map(shard).collect::<Result<_, _>>()?,
        shards_wanted: words::shards_wanted(row.shards_wanted),
        tuning: words::tuning(&row.tuning)?,
        result: words::result(&row)?,
        stop_reason: words::stop_reason(&row)?,
        name: row.name,
        status_reason: row.status_reason,
        status_text: row.status_text,
        control_rev: row.control_rev.cast_unsigned(),
        version: row.version.cast_unsigned(),
        total: ItemCount(row.total.cast_unsigned()),
        params: row.params,
        source: row.source,
        meaning: row.meaning_hash.cast_unsigned(),
        start_no: row.start_no.cast_unsigned(),
        created_at: WallMs(row.created_at),
        started_at: row.started_at.map(WallMs),
        finished_at: row.finished_at.map(WallMs),
        since: WallMs(row.status_since),
        next_at: next_at(shards),
        skip_first: ItemIndex(row.skip_first.cast_unsigned()),
        labels: words::labels(row.labels.as_deref())?,
        priority: row.priority,
        pool: row.pool.unwrap_or_else(|| POOL_DEFAULT.to_owned()),
        send_params: row.send_params,
        limits: words::limits(row.limits.as_deref())?,
        canary: words::canary(row.canary.as_deref())?,
        abandonments: words::abandonments(row.abandonments.as_deref())?,
        start_at: (row.not_before > 0).then_some(WallMs(row.not_before)),
        deadline: row.deadline.map(WallMs),
        parent: row.parent_id.map(TaskId),
        awaiting_until: row.awaiting_until.map(WallMs),
        finish_at: row.finish_at.map(|end| ItemIndex(end.cast_unsigned())),
        recoveries: shards.iter().map(|shard| shard.recoveries).max().unwrap_or_default().cast_unsigned(),
    })
}

fn shard(row: &shard_head::Model) -> Result<ShardView, StoreError> {
    let index = |column: i64| ItemIndex(column.cast_unsigned());
    let state = words::shard_state(row)?;
    let excluded = (row.range_end - row.end_index).cast_unsigned();
    Ok(ShardView {
        no: row.shard_no.cast_unsigned(),
        first: index(row.first_index),
        end: index(row.end_index),
        range_end: index(row.range_end),
        state,
        session: row.session_id.as_deref().map(words::uuid).transpose()?.map(SessionId),
        node: None,
        run: RunNo(row.run_no.cast_unsigned()),
        low_water: index(row.low_water),
        high_water: index(row.high_water),
        counters: Counters { excluded, ..words::counters(row) },
        share: (state != ShardState::Done).then(|| Share::read(row.rate_share)),
        next_at: (state == ShardState::Recovering).then_some(WallMs(row.not_before)),
    })
}

/// The sums over all shards; excluded is what lies outside of their ranges.
fn counters(row: &task::Model, shards: &[shard_head::Model]) -> Counters {
    let sum = shards.iter().fold(Counters::default(), |sum, shard| sum.plus(&words::counters(shard)));
    let head = row.skip_first.min(row.total);
    let tails: i64 = shards.iter().map(|shard| shard.range_end - shard.end_index).sum();
    Counters { excluded: (head + tails).cast_unsigned(), ..sum }
}

/// The lowest of an unfinished shard; where none is left, the end of the last one.
fn low_water(shards: &[shard_head::Model]) -> ItemIndex {
    let open = shards.iter().find(|shard| shard.state != ShardState::Done.as_str());
    let shown = open.or_else(|| shards.last());
    ItemIndex(shown.map_or(0, |shard| shard.low_water).cast_unsigned())
}

/// When the first recovering shard may be claimed again.
fn next_at(shards: &[shard_head::Model]) -> Option<WallMs> {
    let waiting = shards.iter().filter(|shard| shard.state == ShardState::Recovering.as_str());
    waiting.map(|shard| WallMs(shard.not_before)).min()
}
