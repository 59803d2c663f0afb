//! A database is looked at and copied while it is in use. What is broken in one is found on every engine: the suite of the
//! stores says so.

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

const BUSINESS: &str = "INSERT INTO business (id, slug, revision, version, created_at, updated_at) \
    VALUES (1, 'push', 1, 1, 0, 0)";

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
        "UPDATE seaql_migrations SET version = 'm9999_later' WHERE version LIKE 'm0001%'",
    )
    .await;
    let schema = inspection.schema().await.expect("read");
    assert_eq!(schema.pending, dialect::steps_known()[..1]);
    assert_eq!(schema.unknown, ["m9999_later"]);
    let missing = Inspection::open(&place.path().join("none.db")).await;
    assert!(matches!(missing, Err(StoreError::Refused(_))), "nothing is made");
    assert!(!place.path().join("none.db").exists());
}
