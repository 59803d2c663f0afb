//! What is numbered anew after a database went back to an earlier state: on servers, whose counters are their own.

use sea_orm::{ConnectionTrait, Database, Statement};
use windrow_core::ids::TaskId;
use windrow_core::limit::key::LimitKey;
use windrow_core::meter::amount::Amount;
use windrow_engine::ports::ownership::limit_store::LimitStore as _;
use windrow_store::sql::restored::STEP;

use crate::engines::{Engine, runtime};
use crate::fixture::{Harness, NOW, task};

async fn begins_far_above(engine: &Engine) {
    let harness: Harness = engine.harness().await;
    let store = engine.store().await;
    let first = harness.created(&task(3)).await.id;
    let shard = harness.queued(3).await;
    harness
        .meter_limit("openai", &["64 calls", "100 calls/day"])
        .await;
    let marked = store.mark_restored(false, NOW).await.unwrap();
    assert_eq!(marked.first_task, TaskId(shard.task.0 + STEP + 1));
    assert_eq!(harness.created(&task(3)).await.id, marked.first_task);
    assert_eq!(
        harness.view(first).await.id,
        first,
        "what was there keeps its number"
    );
    let used = store.uses(&LimitKey::Named("openai").text()).await.unwrap();
    let unsure: Vec<_> = used.iter().map(|used| (used.spent, used.unsure)).collect();
    let all = [100, 64].map(|calls| (Amount::ZERO, Amount::units(calls)));
    assert!(
        all.iter().all(|all| unsure.contains(all)),
        "nobody knows what was used since: {unsure:?}"
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
