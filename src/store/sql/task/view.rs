//! View of a task and its progress as every surface shows it, read from one snapshot.

use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait as _,
};
use windrow_words::store as say;

use crate::sql::entity::{business, session, shard_head, task};
use crate::sql::task::{life, record};
use crate::sql::{Fetch, Talk, damaged, words};
use windrow_core::business::POOL_DEFAULT;
use windrow_core::ids::{ScheduleId, TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::store::{FireKey, TaskView};

/// Builds the view of a task, reading what its row doesn't contain.
pub(crate) async fn view<C: ConnectionTrait>(db: &C, row: task::Model) -> Result<TaskView, StoreError> {
    let owner = business::Entity::find_by_id(row.business_id).row(db).await?;
    let owner = owner.ok_or_else(|| damaged("task.business_id", &row.business_id.to_string()))?;
    let shards = shard_head::Entity::find()
        .filter(shard_head::Column::TaskId.eq(row.id))
        .order_by_asc(shard_head::Column::FirstIndex)
        .rows(db)
        .await?;
    together(row, owner.slug, &shards)
}

/// Builds the view of a task with the names of the nodes that own its shards.
pub(crate) async fn view_with_owners<C: ConnectionTrait>(
    db: &C,
    row: task::Model,
) -> Result<TaskView, StoreError> {
    let mut task = view(db, row).await?;
    name_owners(db, &mut task).await?;
    Ok(task)
}

/// Reads a task with the names of the nodes that own its shards, in one round trip.
pub(crate) async fn read_batch(mut talk: Talk, id: TaskId) -> Result<Option<TaskView>, StoreError> {
    let of_task = task::Entity::find_by_id(id.0)
        .select_only()
        .column(task::Column::BusinessId)
        .into_query();
    let owners = shard_head::Entity::find()
        .select_only()
        .column(shard_head::Column::SessionId)
        .filter(shard_head::Column::TaskId.eq(id.0))
        .filter(shard_head::Column::SessionId.is_not_null())
        .into_query();
    let business = business::Entity::find().filter(business::Column::Id.in_subquery(of_task));
    let sessions = session::Entity::find().filter(session::Column::Id.in_subquery(owners));
    let replies = talk
        .read(vec![
            talk.text(&task::Entity::find_by_id(id.0)),
            talk.text(&business),
            talk.text(&record::all_shards(id)),
            talk.text(&sessions),
        ])
        .await?;
    let [row, owner, shards, sessions, _] = replies.as_slice() else {
        return Err(StoreError::Unavailable(
            say::answers(replies.len(), 5_u32).to_string(),
        ));
    };
    let Some(row) = row.one::<task::Model>()? else {
        return Ok(None);
    };
    let owner: Option<business::Model> = owner.one()?;
    let owner = owner.ok_or_else(|| damaged("task.business_id", &row.business_id.to_string()))?;
    let mut task = together(row, owner.slug, &shards.all::<shard_head::Model>()?)?;
    name(&mut task, &sessions.all()?);
    Ok(Some(task))
}

async fn name_owners<C: ConnectionTrait>(db: &C, task: &mut TaskView) -> Result<(), StoreError> {
    use session::Column as S;
    let ids: Vec<String> = task
        .shards
        .iter()
        .filter_map(|shard| shard.session)
        .map(words::session_text)
        .collect();
    if ids.is_empty() {
        return Ok(());
    }
    let found = session::Entity::find().filter(S::Id.is_in(ids)).rows(db).await?;
    name(task, &found);
    Ok(())
}

fn name(task: &mut TaskView, sessions: &[session::Model]) {
    for shard in &task.life.shards {
        let id = shard.session.map(words::session_text);
        if let Some(row) = sessions.iter().find(|row| Some(&row.id) == id.as_ref()) {
            task.owners.insert(shard.no, row.node.clone());
        }
    }
}

/// Returns the fire that made a task.
fn fire_of(row: &task::Model) -> Option<FireKey> {
    Some(FireKey {
        schedule: ScheduleId(row.schedule_id?),
        time: WallMs(row.fire_time?),
    })
}

pub(crate) fn together(
    row: task::Model,
    business: String,
    shards: &[shard_head::Model],
) -> Result<TaskView, StoreError> {
    Ok(TaskView {
        business,
        version: row.version.cast_unsigned(),
        created_at: WallMs(row.created_at),
        parent: row.parent_id.map(TaskId),
        fire: fire_of(&row),
        pool: row.pool.clone().unwrap_or_else(|| POOL_DEFAULT.to_owned()),
        ..TaskView::of(life::read(&row, shards)?)
    })
}
