//! Notes that explain why tasks wait.

use std::collections::{BTreeSet, HashMap};

use sea_orm::sea_query::{Expr, ExprTrait as _};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter};

use crate::sql::entity::task;
use crate::sql::{Fetch, Run, Store, words};
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::store::{COORDINATOR_DOWN, WaitNote};

/// Statuses of waiting tasks. A recovering one whose time has come waits in the same queue.
const WAITING: [Status; 2] = [Status::Queued, Status::Recovering];

/// Status of a task whose owner is silent but can't be replaced.
const RUNNING: &str = "running";

/// Tasks per transaction, so that it holds the write lock only briefly.
const TASKS_AT_ONCE: usize = 500;

/// Implements [`windrow_engine::ports::tasks::store::TaskStore::explain_waits`]; returns the tasks that now show
/// their note.
pub(crate) async fn explain(
    store: &Store,
    notes: &[WaitNote],
    now: WallMs,
) -> Result<BTreeSet<TaskId>, StoreError> {
    let mut say = BTreeSet::new();
    for some in notes.chunks(TASKS_AT_ONCE) {
        let (known, news) = news(store, some).await?;
        say.extend(known);
        if !news.is_empty() {
            say.extend(write(store, &news, now).await?);
        }
    }
    Ok(say)
}

/// Returns the tasks that show their note already, and the notes that are new. Reads without the write lock.
async fn news<'a>(
    store: &Store,
    notes: &'a [WaitNote],
) -> Result<(Vec<TaskId>, Vec<&'a WaitNote>), StoreError> {
    let rows = task::Entity::find()
        .filter(task::Column::Id.is_in(notes.iter().map(|note| note.task.0)))
        .filter(task::Column::Status.is_in(WAITING.map(Status::as_str).into_iter().chain([RUNNING])))
        .rows(&store.readers)
        .await?;
    let rows: HashMap<i64, task::Model> = rows.into_iter().map(|row| (row.id, row)).collect();
    let (mut known, mut news) = (Vec::new(), Vec::new());
    for note in notes {
        let Some(row) = rows.get(&note.task.0) else {
            continue;
        };
        let reason = row.status_reason.as_deref();
        if reason == Some(&note.reason) && row.status_text.as_deref() == Some(&note.text) {
            known.push(note.task);
        } else if words::status(row).is_ok_and(|status| note.is_for(status, reason)) {
            news.push(note);
        }
    }
    // Tasks are locked in this order.
    news.sort_by_key(|note| note.task);
    Ok((known, news))
}

/// Writes notes. Returns the tasks whose row took its note.
async fn write(store: &Store, notes: &[&WaitNote], now: WallMs) -> Result<Vec<TaskId>, StoreError> {
    use task::Column as C;
    let transaction = store.write().await?;
    let mut written = Vec::new();
    for note in notes {
        let text = |text: &str| Some(text.to_owned()).filter(|_| !note.reason.is_empty());
        // A task that no longer waits needs no explanation.
        let mut of = Condition::any().add(C::Status.is_in(WAITING.map(Status::as_str)));
        if note.reason.is_empty() || note.reason == COORDINATOR_DOWN {
            of = of.add(C::Status.eq(RUNNING));
        }
        if note.reason.is_empty() {
            of = Condition::all().add(of).add(C::StatusReason.eq(COORDINATOR_DOWN));
        }
        let done = task::Entity::update_many()
            .col_expr(C::StatusReason, Expr::value(text(&note.reason)))
            .col_expr(C::StatusText, Expr::value(text(&note.text)))
            .col_expr(C::NextAt, Expr::value(None::<i64>))
            .col_expr(C::Version, Expr::col(C::Version).add(1))
            .col_expr(C::UpdatedAt, Expr::value(now.0))
            .filter(C::Id.eq(note.task.0))
            .filter(of)
            .run(&transaction)
            .await?;
        if done > 0 {
            written.push(note.task);
        }
    }
    transaction.commit().await?;
    Ok(written)
}
