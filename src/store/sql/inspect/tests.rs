//! A database is looked at and copied while it is in use; what is broken in it is found.

use super::*;
use crate::sql::Store;

async fn made(place: &tempfile::TempDir) -> (Store, PathBuf) {
    let path = place.path().join("windrow.db");
    (Store::open(&path).await.expect("a store"), path)
}

async fn run(store: &Store, sql: &str) {
    let backend = store.writer.get_database_backend();
    store
        .writer
        .execute_raw(Statement::from_string(backend, sql))
        .await
        .expect("done");
}

async fn faults(path: &Path) -> Vec<(&'static str, String)> {
    let inspection = Inspection::open(path).await.expect("a database");
    let found = inspection.check().await.expect("checked");
    inspection.close().await.expect("closed");
    found
        .into_iter()
        .filter_map(|finding| Some((finding.rule, finding.faults.first()?.clone())))
        .collect()
}

const TASK: &str = "INSERT INTO task (id, business_id, status, status_since, wish, tuning, control_rev, version, start_no, \
    total, skip_first, shards_wanted, source, meaning_hash, priority, not_before, created_at, updated_at, queued_at, \
    send_params) VALUES (7, 1, 'finished', 0, 'rest', '{}', 1, 1, 1, 10, 0, 1, '{}', 0, 0, 0, 0, 0, 0, 1)";
const BUSINESS: &str = "INSERT INTO business (id, slug, revision, version, created_at, updated_at) \
    VALUES (1, 'push', 1, 1, 0, 0)";
const SHARD: &str = "INSERT INTO shard (task_id, shard_no, first_index, end_index, range_end, state, wish, control_rev, \
    run_no, epoch, ckpt_seq, low_water, high_water, succeeded, skipped, abandoned, parked, ckpt_blob, stall_count, \
    recoveries, last_claim_lw, not_before, created_at, updated_at) \
    VALUES (7, 0, 0, 10, 10, 'done', 'rest', 1, 1, 1, 1, 10, 10, 8, 1, 1, 0, x'', 0, 0, -1, 0, 0, 0)";

const DAY: &str =
    "INSERT INTO shard_day (task_id, shard_no, day, succeeded, skipped, abandoned) VALUES (7, 0, 9, 5, 1, 0)";
const NEXT_DAY: &str = "UPDATE shard SET day = 10, day_succeeded = 5, day_skipped = 1";

#[tokio::test]
async fn a_whole_database_has_no_faults_and_each_broken_rule_is_found() {
    let place = tempfile::tempdir().expect("a directory");
    let (store, path) = made(&place).await;
    assert_eq!(faults(&path).await, []);
    for sql in [BUSINESS, TASK, SHARD, DAY, NEXT_DAY] {
        run(&store, sql).await;
    }
    assert_eq!(faults(&path).await, []);
    for (broken, mended, rule) in [
        (
            "UPDATE task SET business_id = 2",
            "UPDATE task SET business_id = 1",
            RULES[0].0,
        ),
        (
            "UPDATE task SET total = 11",
            "UPDATE task SET total = 10",
            RULES[2].0,
        ),
        (
            "UPDATE shard SET high_water = 9",
            "UPDATE shard SET high_water = 10",
            RULES[3].0,
        ),
        (
            "UPDATE shard SET succeeded = 9",
            "UPDATE shard SET succeeded = 8",
            RULES[4].0,
        ),
        (
            "UPDATE shard SET succeeded = 7",
            "UPDATE shard SET succeeded = 8",
            RULES[5].0,
        ),
        (
            "UPDATE shard_day SET skipped = 0",
            "UPDATE shard_day SET skipped = 1",
            RULES[7].0,
        ),
    ] {
        run(&store, broken).await;
        let found = faults(&path).await;
        assert!(
            found.contains(&(rule, "not so for t7".to_owned())),
            "{broken}: {found:?}"
        );
        run(&store, mended).await;
        assert_eq!(faults(&path).await, [], "{mended}");
    }
    run(&store, "UPDATE shard SET task_id = 8").await;
    let rules: Vec<_> = faults(&path).await.into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(rules, [RULES[1].0, RULES[2].0, RULES[7].0]);
}

#[tokio::test]
async fn a_backup_is_whole_private_and_overwrites_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().expect("a directory");
    let (store, path) = made(&place).await;
    run(&store, BUSINESS).await;
    let inspection = Inspection::open(&path).await.expect("a database");
    let copy = place.path().join("copy of it?.db");
    inspection
        .backup(&copy)
        .await
        .expect("a copy, while the store is open");
    assert_eq!(
        fs::metadata(&copy).expect("there").permissions().mode() & 0o777,
        0o600
    );
    let again = inspection.backup(&copy).await.expect_err("it is there");
    assert!(matches!(again, BackupError::Exists(_)), "{again}");
    let nowhere = inspection
        .backup(&place.path().join("no/such/folder"))
        .await
        .expect_err("no folder");
    assert!(matches!(nowhere, BackupError::Io { .. }), "{nowhere}");
    let read = Inspection::open(&copy).await.expect("a database");
    assert_eq!(
        read.rows("SELECT slug FROM business").await.expect("rows").len(),
        1
    );
    assert_eq!(read.schema().await, inspection.schema().await);
    let left: Vec<_> = fs::read_dir(place.path())
        .expect("a folder")
        .filter_map(|entry| entry.ok())
        .collect();
    assert!(
        left.iter()
            .all(|entry| !entry.file_name().to_string_lossy().ends_with(".part")),
        "{left:?}"
    );
}

#[tokio::test]
async fn the_schema_tells_what_is_missing_and_what_is_newer() {
    let place = tempfile::tempdir().expect("a directory");
    let (store, path) = made(&place).await;
    let inspection = Inspection::open(&path).await.expect("a database");
    let schema = inspection.schema().await.expect("read");
    assert_eq!((schema.done, schema.pending.len()), (dialect::steps_known(), 0));
    run(
        &store,
        "UPDATE seaql_migrations SET version = 'm9999_later' WHERE version LIKE 'm0003%'",
    )
    .await;
    let schema = inspection.schema().await.expect("read");
    assert_eq!(schema.pending, dialect::steps_known()[2..3]);
    assert_eq!(schema.unknown, ["m9999_later"]);
    let missing = Inspection::open(&place.path().join("none.db")).await;
    assert!(matches!(missing, Err(StoreError::Refused(_))), "nothing is made");
    assert!(!place.path().join("none.db").exists());
}
