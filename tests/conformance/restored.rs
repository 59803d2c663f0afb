//! What is numbered anew after a database went back to an earlier state: on servers, whose counters are their own.

use sea_orm::{ConnectionTrait, Database, Statement};
use windrow_core::ids::TaskId;
use windrow_store::sql::restored::STEP;

use crate::engines::{Engine, runtime};
use crate::fixture::{Harness, NOW, task};

async fn begins_far_above(engine: &Engine) {
    let harness: Harness = engine.harness().await;
    let store = engine.store().await;
    let first = harness.created(&task(3)).await.id;
    let shard = harness.queued(3).await;
    let marked = store.mark_restored(false, NOW).await.unwrap();
    assert_eq!(marked.first_task, TaskId(shard.task.0 + STEP + 1));
    assert_eq!(harness.created(&task(3)).await.id, marked.first_task);
    assert_eq!(
        harness.view(first).await.id,
        first,
        "what was there keeps its number"
    );
    let again = store.mark_restored(false, NOW).await.unwrap();
    assert_eq!(again.first_task, TaskId(marked.first_task.0 + STEP + 1));
    let db = Database::connect(engine.url()).await.unwrap();
    let epochs = Statement::from_string(
        db.get_database_backend(),
        "SELECT MIN(epoch) AS n FROM shard WHERE task_id = 2",
    );
    let row = db.query_one_raw(epochs).await.unwrap().unwrap();
    assert!(row.try_get::<i64>("", "n").unwrap() >= 2 * STEP);
    store.close().await.unwrap();
}

#[test]
fn on_postgres_numbers_begin_where_none_was_given() {
    runtime().block_on(begins_far_above(&Engine::postgres()));
}

#[test]
fn on_mariadb_numbers_begin_where_none_was_given() {
    runtime().block_on(begins_far_above(&Engine::mariadb()));
}
