//! Runnable shards without a live owner (decision 0020, rule 12).
//!
//! One query a state, all side by side, along the index `shard(state, task_id, shard_no)`: a page costs what is on it. Only what a
//! candidate needs is read, and of the settings only the rate, since thousands of tasks may wait at every scan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use sea_orm::sea_query::SelectStatement;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use serde::Deserialize;

use crate::sql::entity::{business, session, shard_head, task};
use crate::sql::run::claim::{ENDING, unfenced};
use crate::sql::{Store, damaged, error, words};
use windrow_core::business::POOL_DEFAULT;
use windrow_core::ids::{Epoch, SessionId, ShardId, TaskId, WallMs};
use windrow_core::settings::RateLimit;
use windrow_core::shards::Share;
use windrow_core::task::lifecycle::{ShardState, Wish};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{
    CLAIMABLE, Candidate, CandidateCursor, CandidatePage, CandidateQuery,
};

/// What a candidate is made of.
#[derive(Debug)]
struct Row {
    task_id: i64,
    shard_no: i32,
    epoch: i64,
    session_id: Option<String>,
    wish: String,
    tuning: String,
    priority: i32,
    queued_at: i64,
    business_id: i64,
    rate_share: Option<i64>,
    move_to: Option<String>,
    updated_at: i64,
}

/// The columns of a row in their order: found by their place, since looking up twelve names costs more than
/// reading twelve values.
type Columns = (
    i64,
    i32,
    i64,
    Option<String>,
    String,
    Option<i64>,
    Option<String>,
    i64,
    String,
    i32,
    i64,
    i64,
);

impl From<Columns> for Row {
    fn from(columns: Columns) -> Row {
        let (
            task_id,
            shard_no,
            epoch,
            session_id,
            wish,
            rate_share,
            move_to,
            updated_at,
            tuning,
            priority,
            queued_at,
            business_id,
        ) = columns;
        Row {
            task_id,
            shard_no,
            epoch,
            session_id,
            wish,
            tuning,
            priority,
            queued_at,
            business_id,
            rate_share,
            move_to,
            updated_at,
        }
    }
}

/// The one setting that a candidate needs.
#[derive(Deserialize)]
struct Pace {
    rate: RateLimit,
}

type Owners = BTreeMap<i64, Arc<str>>;

/// See [`windrow_engine::ports::ownership::run_store::RunStore::candidates`].
pub(crate) async fn candidates(store: &Store, hunt: &CandidateQuery) -> Result<CandidatePage, StoreError> {
    let from = hunt.after.map_or(CLAIMABLE[0], |place| place.state);
    let pages = CLAIMABLE
        .into_iter()
        .skip_while(|state| *state != from)
        .map(|state| async move {
            let after = hunt
                .after
                .filter(|place| place.state == state)
                .map(|place| place.shard);
            let found: Vec<Columns> = page(hunt, state, after)
                .into_tuple()
                .all(&store.readers)
                .await
                .map_err(error)?;
            Ok::<_, StoreError>(found.into_iter().map(move |columns| (state, Row::from(columns))))
        });
    let mut found: Vec<(ShardState, Row)> = try_join_all(pages).await?.into_iter().flatten().collect();
    let limit = hunt.limit as usize;
    found.truncate(limit);
    let last = found.last().filter(|_| found.len() == limit);
    let next = last.map(|(state, row)| CandidateCursor {
        state: *state,
        shard: shard(row),
    });
    let rows: Vec<Row> = found.into_iter().map(|(_, row)| row).collect();
    let owners = owners(store, &rows).await?;
    let counts = counts(store, &rows).await?;
    let found = rows
        .iter()
        .filter_map(|row| words::readable("shard", candidate(row, hunt, (&owners, &counts))))
        .collect();
    Ok(CandidatePage { found, next })
}

fn page(
    hunt: &CandidateQuery,
    state: ShardState,
    after: Option<ShardId>,
) -> sea_orm::Select<shard_head::Entity> {
    use shard_head::Column as C;
    let alive = hunt.alive.iter().map(|id| words::session_text(*id));
    let owners = unfenced().and_where(session::Column::Id.is_in(alive)).to_owned();
    let mut query = shard_head::Entity::find()
        .select_only()
        .columns([
            C::TaskId,
            C::ShardNo,
            C::Epoch,
            C::SessionId,
            C::Wish,
            C::RateShare,
            C::MoveTo,
            C::UpdatedAt,
        ])
        .columns([
            task::Column::Tuning,
            task::Column::Priority,
            task::Column::QueuedAt,
            task::Column::BusinessId,
        ])
        .join(sea_orm::JoinType::InnerJoin, task_of_shard())
        .filter(C::State.eq(state.as_str()))
        .filter(
            Condition::any()
                .add(to_run(hunt))
                .add(C::Wish.is_in(ENDING.map(Wish::as_str))),
        )
        .filter(not_owned_by(owners));
    if let Some(after) = after {
        let same = Condition::all()
            .add(C::TaskId.eq(after.task.0))
            .add(C::ShardNo.gt(words::shard_no(after)));
        // The first condition alone is one that an index can begin with.
        query = query
            .filter(C::TaskId.gte(after.task.0))
            .filter(Condition::any().add(C::TaskId.gt(after.task.0)).add(same));
    }
    query
        .order_by_asc(C::TaskId)
        .order_by_asc(C::ShardNo)
        .limit(u64::from(hunt.limit))
}

/// What is due, of a pool that is served, and of a task that was active (or was told to wait until) not long ago and
/// whose deadline lies ahead.
fn to_run(hunt: &CandidateQuery) -> Condition {
    use shard_head::Column as C;
    let window = i64::try_from(hunt.restore_window.as_millis()).unwrap_or(i64::MAX);
    let oldest = hunt.now.0.saturating_sub(window);
    let mut runs = Condition::all()
        .add(C::Wish.eq(Wish::Run.as_str()))
        .add(C::NotBefore.lte(hunt.now.0))
        .add(
            Condition::any()
                .add(task::Column::Deadline.is_null())
                .add(task::Column::Deadline.gt(hunt.now.0)),
        )
        .add(
            Condition::any()
                .add(C::UpdatedAt.gte(oldest))
                .add(C::NotBefore.gte(oldest.max(1))),
        )
        .add(
            Condition::any()
                .add(C::MoveTo.is_null())
                .add(C::MoveTo.eq(&hunt.node))
                .add(C::MoveUntil.lte(hunt.now.0)),
        );
    if let Some(pools) = &hunt.pools {
        let mut served = Condition::any().add(task::Column::Pool.is_in(pools.clone()));
        if pools.iter().any(|pool| pool == POOL_DEFAULT) {
            served = served.add(task::Column::Pool.is_null());
        }
        runs = runs.add(served);
    }
    runs
}

/// Released, or owned by a session that isn't among `owners`: a fenced or missing one never is.
fn not_owned_by(owners: SelectStatement) -> Condition {
    Condition::any()
        .add(shard_head::Column::SessionId.is_null())
        .add(shard_head::Column::SessionId.not_in_subquery(owners))
}

fn task_of_shard() -> sea_orm::RelationDef {
    shard_head::Entity::belongs_to(task::Entity)
        .from(shard_head::Column::TaskId)
        .to(task::Column::Id)
        .into()
}

fn shard(row: &Row) -> ShardId {
    ShardId {
        task: TaskId(row.task_id),
        no: row.shard_no.cast_unsigned(),
    }
}

/// The businesses of some rows, each read once.
async fn owners(store: &Store, rows: &[Row]) -> Result<Owners, StoreError> {
    use business::Column as C;
    let ids: BTreeSet<i64> = rows.iter().map(|row| row.business_id).collect();
    if ids.is_empty() {
        return Ok(Owners::new());
    }
    let found: Vec<(i64, String)> = business::Entity::find()
        .select_only()
        .columns([C::Id, C::Slug])
        .filter(C::Id.is_in(ids))
        .into_tuple()
        .all(&store.readers)
        .await
        .map_err(error)?;
    Ok(found.into_iter().map(|(id, slug)| (id, slug.into())).collect())
}

/// How many shards the tasks have that have several.
async fn counts(store: &Store, rows: &[Row]) -> Result<BTreeMap<i64, i64>, StoreError> {
    use shard_head::Column as C;
    let shared = rows.iter().filter(|row| row.rate_share.is_some());
    let ids: BTreeSet<i64> = shared.map(|row| row.task_id).collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found: Vec<(i64, i64)> = shard_head::Entity::find()
        .select_only()
        .column(C::TaskId)
        .column_as(C::ShardNo.count(), "shards")
        .filter(C::TaskId.is_in(ids))
        .group_by(C::TaskId)
        .into_tuple()
        .all(&store.readers)
        .await
        .map_err(error)?;
    Ok(found.into_iter().collect())
}

fn candidate(
    row: &Row,
    hunt: &CandidateQuery,
    (owners, counts): (&Owners, &BTreeMap<i64, i64>),
) -> Result<Candidate, StoreError> {
    let task = || TaskId(row.task_id).to_string();
    let business = owners
        .get(&row.business_id)
        .cloned()
        .ok_or_else(|| damaged("a task without a business", &task()))?;
    let pace: Pace =
        serde_json::from_str(&row.tuning).map_err(|fault| damaged("settings", &fault.to_string()))?;
    let count = counts
        .get(&row.task_id)
        .and_then(|count| usize::try_from(*count).ok());
    let share = count.map_or(Share::ALL, Share::of_each);
    Ok(Candidate {
        shard: shard(row),
        epoch: Epoch(row.epoch.cast_unsigned()),
        session: row
            .session_id
            .as_deref()
            .map(words::uuid)
            .transpose()?
            .map(SessionId),
        wish: words::wish(&row.wish)?,
        rate: share.of_limit(pace.rate),
        share,
        priority: row.priority,
        waiting_since: WallMs(row.queued_at),
        business,
        is_sent_here: row.move_to.as_deref() == Some(hunt.node.as_str()),
        written_at: WallMs(row.updated_at),
    })
}
