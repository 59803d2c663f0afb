//! Facts about the database file only: its schema, refusals, durability, hooks.

use std::path::Path;

use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement};
use windrow_core::ids::{Epoch, ItemIndex};
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{ClaimOutcome, RunClose, RunStore};
use windrow_engine::ports::ownership::session_store::SessionStore;
use windrow_engine::ports::tasks::store::{TaskCommand, TaskStore};
use windrow_store::sql::Store;

use crate::fixture::{BUSINESS, Harness, NOW, at, closing, new_session, request, task, write};

/// The file through a connection of our own, as an administrator would look at it.
async fn inspect(path: &Path) -> DatabaseConnection {
    Database::connect(format!("sqlite://{}?mode=rw", path.display()))
        .await
        .unwrap()
}

async fn texts(db: &DatabaseConnection, sql: &str) -> Vec<String> {
    let rows = db
        .query_all_raw(Statement::from_string(db.get_database_backend(), sql))
        .await
        .unwrap();
    rows.iter()
        .map(|row| row.try_get_by_index::<String>(0).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_openers_at_once_make_one_schema() {
    for _ in 0..5 {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("windrow.db");
        let openers: Vec<_> = (0..4)
            .map(|_| {
                let path = path.clone();
                tokio::spawn(async move { Store::open(&path).await })
            })
            .collect();
        let mut ids = Vec::new();
        for opener in openers {
            ids.push(opener.await.unwrap().unwrap().store_id().await.unwrap());
        }
        assert!(ids.iter().all(|id| *id == ids[0]), "one store, one id: {ids:?}");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_before_anything_is_written() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("windrow.db");
    Store::open(&path).await.unwrap().close().await.unwrap();
    let db = inspect(&path).await;
    db.execute_unprepared("INSERT INTO seaql_migrations VALUES ('m9999_tomorrow', 0)")
        .await
        .unwrap();
    db.close().await.unwrap();
    let before = std::fs::read(&path).unwrap();
    let refused = Store::open(&path).await.unwrap_err();
    assert_eq!(refused, StoreError::NewerSchema("m9999_tomorrow".to_owned()));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_second_opening_leaves_the_schema_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("windrow.db");
    Store::open(&path).await.unwrap().close().await.unwrap();
    let db = inspect(&path).await;
    let schema = "SELECT coalesce(sql, name) FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name";
    let steps = "SELECT version || ' ' || applied_at FROM seaql_migrations";
    let first = (texts(&db, schema).await, texts(&db, steps).await);
    assert_eq!(first.1.len(), 1, "{first:?}");
    Store::open(&path).await.unwrap().close().await.unwrap();
    assert_eq!((texts(&db, schema).await, texts(&db, steps).await), first);
}

#[tokio::test]
async fn a_file_that_can_not_be_the_database_is_refused_with_its_name() {
    let place = tempfile::tempdir().unwrap();
    let read_only = place.path().join("read_only.db");
    Store::open(&read_only).await.unwrap().close().await.unwrap();
    let mut permissions = std::fs::metadata(&read_only).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&read_only, permissions).unwrap();
    let garbage = place.path().join("garbage.db");
    std::fs::write(
        &garbage,
        "no database at all, but long enough to have a header ".repeat(50),
    )
    .unwrap();
    let nowhere = place.path().join("no/such/directory/windrow.db");
    for (path, word) in [
        (read_only.as_path(), "read-only"),
        (&garbage, "not a database"),
        (place.path(), "directory"),
    ] {
        let refused = Store::open(path).await.unwrap_err();
        assert!(
            matches!(&refused, StoreError::Refused(text) if text.contains(word)),
            "{word}: {refused}"
        );
        assert!(refused.to_string().contains(path.to_str().unwrap()), "{refused}");
    }
    let refused = Store::open(&nowhere).await.unwrap_err();
    assert!(refused.to_string().contains("no/such/directory"), "{refused}");
}

#[tokio::test]
async fn a_locked_database_is_unavailable_not_damaged() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("windrow.db");
    let store = Store::open(&path).await.unwrap();
    let other = inspect(&path).await;
    other.execute_unprepared("BEGIN IMMEDIATE").await.unwrap();
    let refused = store.ensure_business(BUSINESS, &write(), NOW).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    other.execute_unprepared("ROLLBACK").await.unwrap();
    store.ensure_business(BUSINESS, &write(), NOW).await.unwrap();
}

#[tokio::test]
async fn everything_is_there_after_the_file_is_opened_again() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("windrow.db");
    let store = Store::open(&path).await.unwrap();
    store.ensure_business(BUSINESS, &write(), NOW).await.unwrap();
    let made = store.create(&task(10), &write(), NOW).await.unwrap();
    store
        .command(made.id, &TaskCommand::Start, &write(), NOW)
        .await
        .unwrap();
    let session = windrow_core::ids::SessionId(uuid::Uuid::new_v4());
    store.begin(&new_session(session)).await.unwrap();
    let shard = windrow_core::ids::ShardId { task: made.id, no: 0 };
    let ClaimOutcome::Claimed(run) = store.claim(request(shard, Epoch(0), session)).await.unwrap() else {
        panic!("free")
    };
    store.checkpoint(&[at(&run, 1, 6)]).await.unwrap();
    let before = store.get(made.id).await.unwrap();
    drop(store);
    let store = Store::open(&path).await.unwrap();
    assert_eq!(store.get(made.id).await.unwrap(), before);
    let me = windrow_core::ids::SessionId(uuid::Uuid::new_v4());
    store.begin(&new_session(me)).await.unwrap();
    assert_eq!(store.fence_all_but(me).await.unwrap(), 1);
    let ClaimOutcome::Claimed(next) = store.claim(request(shard, run.epoch, me)).await.unwrap() else {
        panic!("its owner is dead")
    };
    assert_eq!(next.watermark, ItemIndex(6));
}

#[tokio::test]
async fn commits_are_flushed_to_the_disk() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("windrow.db");
    let store = Store::open(&path).await.unwrap();
    let settings = store.settings().await.unwrap();
    assert_eq!(
        (settings.0.as_str(), settings.1),
        ("wal", 2),
        "synchronous FULL is 2"
    );
}

#[tokio::test]
async fn a_statement_with_a_limit_is_compiled_once() {
    let db = Database::connect("sqlite::memory:").await.unwrap();
    let options = texts(&db, "PRAGMA compile_options").await;
    // Set in .cargo/config.toml.
    assert!(
        options.iter().any(|option| option == "ENABLE_QPSG"),
        "{options:?}"
    );
}

#[tokio::test]
async fn hooks_are_left_in_the_outbox_once_per_change() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("windrow.db");
    let store = Store::open(&path).await.unwrap();
    let db = inspect(&path).await;
    let harness = Harness::over(store);
    let quiet = harness.running(1).await;
    harness.stored(closing(&quiet, 1, 1, RunClose::Done)).await;
    let hooks = r#"UPDATE business SET hooks = '{"stopped":{},"finished":{"url":"http://127.0.0.1:1"}}'"#;
    db.execute_unprepared(hooks).await.unwrap();
    let run = harness.running(10).await;
    let close = RunClose::stopped(StopReason::Business, "enough".to_owned());
    let last = closing(&run, 1, 3, close);
    harness.stored(last.clone()).await;
    harness.stored(last).await;
    harness.command(run.shard.task, TaskCommand::Start).await;
    let stop = TaskCommand::Stop {
        reason: StopReason::Operator,
    };
    assert_eq!(
        harness.command(run.shard.task, stop).await.status,
        Status::Stopped
    );
    harness.command(run.shard.task, TaskCommand::Start).await;
    let session = harness.session().await;
    let run = harness.claimed(run.shard, run.epoch, session).await;
    harness.stored(closing(&run, 1, 10, RunClose::Done)).await;
    let calls = texts(&db, "SELECT kind || ' ' || start_no FROM outbox ORDER BY id").await;
    assert_eq!(calls, ["task.stopped 1", "task.stopped 2", "task.finished 3"]);
    let runs = texts(
        &db,
        "SELECT end_reason FROM run WHERE task_id = 2 ORDER BY run_no",
    )
    .await;
    assert_eq!(runs, ["stopped", "done"]);
}

#[tokio::test]
async fn the_files_of_a_database_are_their_owner_s_alone_wherever_they_lie() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let store = Store::open(&place.path().join("windrow.db")).await.unwrap();
    store.ensure_business("push", &write(), NOW).await.unwrap();
    let modes: Vec<u32> = std::fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        .collect();
    assert!(modes.len() >= 2, "the database and its journal");
    assert!(modes.iter().all(|mode| *mode == 0o600), "{modes:?}");
}
