//! Runnable shards without a live owner (decision 0020, rule 12).
//!
//! One query per state, all in parallel, along the index `shard(state, task_id, shard_no)`: a page costs only what is
//! on it. Queries read only what a candidate needs, and of the settings only the rate, since thousands of tasks may
//! wait at every scan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use sea_orm::sea_query::{CaseStatement, Expr, SelectStatement};
use sea_orm::{
    ColumnTrait, Condition, DbErr, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QueryResult,
    QuerySelect, Select,
};
use serde::Deserialize;

use crate::sql::entity::{business, session, shard_head, task};
use crate::sql::run::claim::{ENDING, unfenced};
use crate::sql::task::spec;
use crate::sql::{Fetch, Reply, Store, damaged, error, words};
use windrow_core::business::POOL_DEFAULT;
use windrow_core::capacity::Rank;
use windrow_core::ids::{Epoch, SessionId, ShardId, TaskId, WallMs};
use windrow_core::settings::RateLimit;
use windrow_core::shards::Share;
use windrow_core::task::lifecycle::{Desired, ShardState};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{
    CLAIMABLE, Candidate, CandidateCursor, CandidatePage, CandidateQuery,
};

/// Columns that a candidate is built from.
#[derive(Debug)]
struct Row {
    task_id: i64,
    shard_no: i32,
    epoch: i64,
    session_id: Option<String>,
    desired: String,
    tuning: String,
    line: (i32, i64),
    business: String,
    rate_share: Option<i64>,
    move_to: Option<String>,
    updated_at: i64,
    left: Option<i64>,
}

/// Reads columns by position: looking up thirteen names costs more than reading thirteen values.
impl FromQueryResult for Row {
    fn from_query_result(row: &QueryResult, _: &str) -> Result<Row, DbErr> {
        Ok(Row {
            task_id: row.try_get_by_index(0)?,
            shard_no: row.try_get_by_index(1)?,
            epoch: row.try_get_by_index(2)?,
            session_id: row.try_get_by_index(3)?,
            desired: row.try_get_by_index(4)?,
            rate_share: row.try_get_by_index(5)?,
            move_to: row.try_get_by_index(6)?,
            updated_at: row.try_get_by_index(7)?,
            tuning: row.try_get_by_index(8)?,
            line: (row.try_get_by_index(9)?, row.try_get_by_index(10)?),
            business: row.try_get_by_index(11)?,
            left: row.try_get_by_index(12)?,
        })
    }
}

/// Part of the settings that a candidate needs.
#[derive(Deserialize)]
struct Pace {
    rate: RateLimit,
}

/// Implements [`windrow_engine::ports::ownership::run_store::RunStore::candidates`], state by state in a fixed order.
pub(crate) async fn candidates(store: &Store, hunt: &CandidateQuery) -> Result<CandidatePage, StoreError> {
    let from = hunt.after.map_or(CLAIMABLE[0], |place| place.state);
    let states = CLAIMABLE.into_iter().skip_while(|state| *state != from);
    let wanted = states.map(|state| {
        let after = hunt.after.filter(|place| place.state == state);
        (state, page(hunt, state, after.map(|place| place.shard)))
    });
    let mut found = pages(store, wanted.collect()).await?;
    let limit = hunt.limit as usize;
    found.truncate(limit);
    let last = found.last().filter(|_| found.len() == limit);
    let next = last.map(|(state, row)| CandidateCursor {
        state: *state,
        shard: shard(row),
    });
    let rows: Vec<Row> = found.into_iter().map(|(_, row)| row).collect();
    let counts = counts(store, &rows).await?;
    let mut slugs = BTreeSet::new();
    let found = rows
        .iter()
        .filter_map(|row| words::readable("shard", candidate(row, hunt, (&mut slugs, &counts))))
        .collect();
    Ok(CandidatePage { found, next })
}

/// Reads all pages in parallel; from a server in one round trip.
async fn pages(
    store: &Store,
    wanted: Vec<(ShardState, Select<shard_head::Entity>)>,
) -> Result<Vec<(ShardState, Row)>, StoreError> {
    let states: Vec<ShardState> = wanted.iter().map(|(state, _)| *state).collect();
    let found: Vec<Vec<Row>> = match store.talk().await? {
        Some(mut talk) => {
            let texts: Vec<String> = wanted.iter().map(|(_, page)| talk.text(page)).collect();
            let replies = talk.say(&texts).await?;
            replies.iter().map(Reply::all).collect::<Result<_, _>>()?
        }
        None => {
            let found = wanted
                .into_iter()
                .map(|(_, page)| page.into_model().all(&store.readers));
            try_join_all(found).await.map_err(error)?
        }
    };
    let found = states.into_iter().zip(found);
    let rows = found.flat_map(|(state, page)| page.into_iter().map(move |row| (state, row)));
    Ok(rows.collect())
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
            C::Desired,
            C::RateShare,
            C::MoveTo,
            C::UpdatedAt,
        ])
        .column(task::Column::Tuning)
        .columns(spec::LINE)
        .column(business::Column::Slug)
        .column_as(left(), "items_left")
        .join(sea_orm::JoinType::InnerJoin, task_of_shard())
        .join(sea_orm::JoinType::InnerJoin, business_of_task())
        .filter(C::State.eq(state.as_str()))
        .filter(
            Condition::any()
                .add(to_run(hunt))
                .add(C::Desired.is_in(ENDING.map(Desired::as_str))),
        )
        .filter(not_owned_by(owners));
    if let Some(after) = after {
        let same = Condition::all()
            .add(C::TaskId.eq(after.task.0))
            .add(C::ShardNo.gt(words::shard_no(after)));
        // Only the first condition can bound an index scan.
        query = query
            .filter(C::TaskId.gte(after.task.0))
            .filter(Condition::any().add(C::TaskId.gt(after.task.0)).add(same));
    }
    query
        .order_by_asc(C::TaskId)
        .order_by_asc(C::ShardNo)
        .limit(u64::from(hunt.limit))
}

/// Computes the number of unsettled items; null for an open task, which may get more.
fn left() -> Expr {
    use sea_orm::sea_query::ExprTrait as _;
    use shard_head::Column as C;
    let settled = [C::FirstIndex, C::Succeeded, C::Skipped, C::Failed];
    let left = settled.into_iter().fold(C::EndIndex.into_expr(), |left, column| {
        left.sub(column.into_expr())
    });
    CaseStatement::new()
        .case(ColumnTrait::is_null(&task::Column::Intake), left)
        .into()
}

/// Matches shards that are due, in a pool that is served, of a task that was active (or told to wait) within the
/// restore window and whose deadline is ahead.
fn to_run(hunt: &CandidateQuery) -> Condition {
    use shard_head::Column as C;
    let window = i64::try_from(hunt.restore_window.as_millis()).unwrap_or(i64::MAX);
    let oldest = hunt.now.0.saturating_sub(window);
    let mut runs = Condition::all()
        .add(C::Desired.eq(Desired::Run.as_str()))
        .add(C::NotBefore.lte(hunt.now.0))
        .add(
            Condition::any()
                .add(task::Column::Deadline.is_null())
                // Exempt, since its items are all settled: nothing of it is late.
                .add(C::ShardNo.eq(words::shard_no(ShardId::publication(TaskId(0)))))
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

/// Matches shards that are released, or owned by a session that is not among `owners`; a fenced or missing one never
/// is.
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

fn business_of_task() -> sea_orm::RelationDef {
    task::Entity::belongs_to(business::Entity)
        .from(task::Column::BusinessId)
        .to(business::Column::Id)
        .into()
}

fn shard(row: &Row) -> ShardId {
    ShardId {
        task: TaskId(row.task_id),
        no: row.shard_no.cast_unsigned(),
    }
}

/// Counts the shards of those tasks that have several.
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
        .rows(&store.readers)
        .await?;
    Ok(found.into_iter().collect())
}

fn candidate(
    row: &Row,
    hunt: &CandidateQuery,
    (slugs, counts): (&mut BTreeSet<Arc<str>>, &BTreeMap<i64, i64>),
) -> Result<Candidate, StoreError> {
    // One string per business: thousands of shards may wait.
    let known = slugs.get(row.business.as_str()).cloned();
    let business = known.unwrap_or_else(|| row.business.as_str().into());
    slugs.insert(business.clone());
    let pace: Pace =
        serde_json::from_str(&row.tuning).map_err(|fault| damaged("settings", &fault.to_string()))?;
    let count = counts
        .get(&row.task_id)
        .and_then(|count| usize::try_from(*count).ok());
    let share = count.map_or(Share::ALL, Share::of_each);
    Ok(Candidate {
        rank: Rank::new(row.line.0, WallMs(row.line.1), shard(row)),
        epoch: Epoch(row.epoch.cast_unsigned()),
        session: row
            .session_id
            .as_deref()
            .map(words::uuid)
            .transpose()?
            .map(SessionId),
        desired: words::desired(&row.desired)?,
        rate: share.of_limit(pace.rate),
        share,
        business,
        is_sent_here: row.move_to.as_deref() == Some(hunt.node.as_str()),
        written_at: WallMs(row.updated_at),
        // A total that people lowered may be below what was settled.
        left: row.left.map(|left| left.max(0).cast_unsigned()),
    })
}
