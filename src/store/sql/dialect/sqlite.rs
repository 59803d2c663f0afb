//! SQLite: one file, one writer, write-ahead log.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windrow_words::{Message, store as say};

use sea_orm::sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
use sea_orm::sqlx::{self, Connection, SqliteConnection};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement};

use crate::sql::error;
use windrow_engine::ports::{RESTORE_CUT_OFF, StoreError};

/// Connections for reading; more are no faster on the small machines that use SQLite.
pub(crate) const READERS: u32 = 4;
/// Time a statement waits for another process's write lock (a second `windrow` reading, a backup).
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Attempts to open a locked database within `BUSY_TIMEOUT`.
const CONNECT_TRIES: u32 = 100;
/// Timeout for a caller waiting for a connection: longer than one busy wait, so that the error names the cause, not
/// the queue.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the path of a backup's copy that is about to replace a database.
pub fn restoring(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".restoring");
    name.into()
}

/// Refuses a file that cannot be the database, with a clearer reason than the database's own.
pub(crate) fn check_file(path: &Path) -> Result<(), StoreError> {
    let refuse = |why: Message, advice: Message| {
        let refused = say::database_unusable(path.display().to_string(), why, advice);
        Err(StoreError::Refused(refused.to_string()))
    };
    let by_system = |cause: std::io::Error| refuse(say::by_system(cause.to_string()), say::check_path());
    let half = restoring(path);
    if half.exists() {
        // The present file may lack its last commits, which a restore sets aside before it completes.
        let why = say::half_restored(RESTORE_CUT_OFF, half.display().to_string());
        return refuse(why, say::restore_again());
    }
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => refuse(say::is_directory(), say::name_a_file()),
        Ok(found) if found.permissions().readonly() => refuse(say::is_read_only(), say::make_writable()),
        Ok(_) => Ok(()),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => make_file(path).or_else(by_system),
        Err(cause) => by_system(cause),
    }
}

/// Creates an empty file readable only by its owner, whatever the directory allows; SQLite gives its journals the
/// same mode.
fn make_file(path: &Path) -> std::io::Result<()> {
    // Not truncated: another process may be creating it.
    std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map(drop)
}

/// Opens a pool of connections to the file. Every one commits durably (`synchronous = FULL`).
///
/// SQLite's busy handler does not cover the switch to WAL, which fails at once while another process creates the same
/// file. So a locked database is retried here, for as long as that handler would wait.
pub(crate) async fn connect(path: &Path, connections: u32) -> Result<DatabaseConnection, StoreError> {
    let mut tries = 0;
    loop {
        match connect_once(path, connections).await {
            Err(StoreError::Unavailable(_)) if tries < CONNECT_TRIES => {
                tries += 1;
                tokio::time::sleep(BUSY_TIMEOUT / CONNECT_TRIES).await;
            }
            outcome => return outcome,
        }
    }
}

async fn connect_once(path: &Path, connections: u32) -> Result<DatabaseConnection, StoreError> {
    let file = path.to_owned();
    let mut options = ConnectOptions::new("sqlite::memory:");
    options
        .max_connections(connections)
        .min_connections(1)
        .sqlx_logging(false);
    options
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false);
    options.map_sqlx_sqlite_pool_opts(|pool| {
        pool.before_acquire(|connection, _| Box::pin(is_whole(connection)))
    });
    // The path bypasses the URL, in which `?` and `%` have a meaning.
    options.map_sqlx_sqlite_opts(move |sqlite| {
        sqlite
            .in_memory(false)
            .shared_cache(false)
            .filename(&file)
            // `check_file` created it. A connection opened later must not put an empty file in place of a lost one.
            .create_if_missing(false)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true)
            // Deleted or overwritten data may have been a secret: no page keeps it.
            .pragma("secure_delete", "ON")
    });
    let opened = Database::connect(options).await;
    opened.map_err(|cause| match error(cause) {
        StoreError::Refused(text) => {
            StoreError::Refused(say::cant_open(path.display().to_string(), text).to_string())
        }
        other => other,
    })
}

/// Opens a read-only connection: creates nothing, migrates nothing, blocks no writer.
pub(crate) async fn look(path: &Path) -> Result<DatabaseConnection, StoreError> {
    let file = path.to_owned();
    let mut options = ConnectOptions::new("sqlite::memory:");
    options.max_connections(1).min_connections(1).sqlx_logging(false);
    options
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false);
    options.map_sqlx_sqlite_opts(move |sqlite| {
        sqlite
            .in_memory(false)
            .shared_cache(false)
            .filename(&file)
            .create_if_missing(false)
            .read_only(true)
            .busy_timeout(BUSY_TIMEOUT)
    });
    Database::connect(options).await.map_err(error)
}

/// Returns true if a connection is outside any transaction; otherwise the pool closes it and opens another.
///
/// When a disk is full, SQLite rolls back on its own. sqlx's own rollback then fails, and sqlx believes forever that
/// the transaction is open: nothing could be written until the process ends, even once the disk has room again.
async fn is_whole(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let is_whole = !connection.is_in_transaction();
    if !is_whole {
        tracing::debug!("connection left inside a transaction; replacing it");
    }
    Ok(is_whole)
}

/// Reads back the journal mode and `synchronous` of a connection.
pub(super) async fn settings(db: &DatabaseConnection) -> Result<(String, i64), StoreError> {
    let ask = |pragma: &str| Statement::from_string(db.get_database_backend(), format!("PRAGMA {pragma}"));
    let missing = || StoreError::Refused(say::no_settings().to_string());
    let journal = db
        .query_one_raw(ask("journal_mode"))
        .await
        .map_err(error)?
        .ok_or_else(missing)?;
    let level = db
        .query_one_raw(ask("synchronous"))
        .await
        .map_err(error)?
        .ok_or_else(missing)?;
    Ok((
        journal.try_get_by_index(0).map_err(error)?,
        level.try_get_by_index(0).map_err(error)?,
    ))
}

/// Returns true if another attempt may help. The primary result code of SQLite is the low byte of the extended one.
pub(super) fn is_transient(code: Option<u32>) -> bool {
    const BUSY: u32 = 5;
    const LOCKED: u32 = 6;
    const NO_MEMORY: u32 = 7;
    const INTERRUPTED: u32 = 9;
    const IO: u32 = 10;
    const DISK_FULL: u32 = 13;
    const LOCK_PROTOCOL: u32 = 15;
    let code = code.map(|code| code & 0xff);
    matches!(
        code,
        Some(BUSY | LOCKED | NO_MEMORY | INTERRUPTED | IO | DISK_FULL | LOCK_PROTOCOL)
    )
}
