//! What differs between databases: connections, the write lock, migrations, error codes. SQLite only, so far.

use std::collections::BTreeSet;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use migration::{Migrator, MigratorTrait};
use sea_orm::sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
use sea_orm::sqlx::{self, Connection, SqliteConnection};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbErr,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait,
};

use super::error;
use crate::ports::StoreError;

/// Connections for reading; more bring nothing on the small machines that use SQLite.
pub(super) const READERS: u32 = 4;
/// How long a statement waits for another process's write lock (a second `windrow` reading, a backup).
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a locked database is asked again within that time.
const CONNECT_TRIES: u32 = 100;
/// How long a caller waits for a connection: longer than one busy wait, so that the cause shows, not the queue.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// The table in which the migrator keeps the names of the steps done.
const STEPS_DONE: &str = "seaql_migrations";

/// Refuses a file that can't be the database, with a reason better than the database's own.
pub(super) fn check_file(path: &Path) -> Result<(), StoreError> {
    let refuse = |why: &str, hint: &str| {
        Err(StoreError::Refused(format!("can't use the database {}: {why}; {hint}", path.display())))
    };
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => refuse("it is a directory", "name a file"),
        Ok(found) if found.permissions().readonly() => {
            refuse("it is read-only", "make it writable or use another state directory")
        }
        Ok(_) => Ok(()),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            make_file(path).or_else(|cause| refuse(&cause.to_string(), "check the path and its permissions"))
        }
        Err(cause) => refuse(&cause.to_string(), "check the path and its permissions"),
    }
}

/// An empty file that only its owner may read, whatever its directory allows; SQLite gives its journals the same mode.
fn make_file(path: &Path) -> std::io::Result<()> {
    // Not truncated: another process may be making it.
    std::fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path).map(drop)
}

/// A pool of connections to the file. Every one commits durably (`synchronous = FULL`).
///
/// SQLite's busy handler does not cover the switch to WAL, which fails at once while another process makes the same
/// file; so a locked database is asked again here, for as long as that handler would have waited.
pub(super) async fn connect(path: &Path, connections: u32) -> Result<DatabaseConnection, StoreError> {
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
    options.max_connections(connections).min_connections(1).sqlx_logging(false);
    options.acquire_timeout(ACQUIRE_TIMEOUT).idle_timeout(None).max_lifetime(None).test_before_acquire(false);
    options.map_sqlx_sqlite_pool_opts(|pool| {
        pool.before_acquire(|connection, _| Box::pin(is_whole(connection)))
    });
    // The path goes around the URL, where `?` and `%` in it would mean something.
    options.map_sqlx_sqlite_opts(move |sqlite| {
        sqlite
            .in_memory(false)
            .shared_cache(false)
            .filename(&file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true)
    });
    let opened = Database::connect(options).await;
    opened.map_err(|cause| match error(cause) {
        StoreError::Refused(text) => {
            StoreError::Refused(format!("can't open the database {}: {text}", path.display()))
        }
        other => other,
    })
}

/// A connection that only looks: nothing is made, nothing is brought up to date, nobody is kept from writing.
pub(super) async fn look(path: &Path) -> Result<DatabaseConnection, StoreError> {
    let file = path.to_owned();
    let mut options = ConnectOptions::new("sqlite::memory:");
    options.max_connections(1).min_connections(1).sqlx_logging(false);
    options.acquire_timeout(ACQUIRE_TIMEOUT).idle_timeout(None).max_lifetime(None).test_before_acquire(false);
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

/// Whether a connection is outside of every transaction; one that isn't is thrown away, and another opened.
///
/// When a disk is full, SQLite rolls back by itself; sqlx's own rollback fails then, and sqlx believes for ever that
/// the transaction is open: nothing could be written until the process ends, even when the disk has room again.
async fn is_whole(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let is_whole = !connection.is_in_transaction();
    if !is_whole {
        tracing::debug!("a connection was left inside a transaction; it is replaced");
    }
    Ok(is_whole)
}

/// A transaction that takes the write lock at once: a lock taken at the first write can't be waited for.
pub(super) async fn begin_write(writer: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    writer.begin_with_options(options).await
}

/// Applies the steps that are missing. The write lock around them lets a second process wait and then find nothing
/// left to do.
pub(super) async fn migrate(writer: &DatabaseConnection) -> Result<(), StoreError> {
    if !is_step_missing(writer).await? {
        return Ok(());
    }
    let transaction = begin_write(writer).await.map_err(error)?;
    if is_step_missing(&transaction).await? {
        Migrator::up(&transaction, None).await.map_err(error)?;
    }
    transaction.commit().await.map_err(error)
}

/// Whether a step of this program isn't in the database; an error when the database has one that this program
/// doesn't know.
async fn is_step_missing<C: ConnectionTrait>(db: &C) -> Result<bool, StoreError> {
    let done = steps_done(db).await?;
    let known: BTreeSet<String> = steps_known().into_iter().collect();
    match done.difference(&known).next() {
        Some(unknown) => Err(StoreError::NewerSchema(unknown.clone())),
        None => Ok(known.len() > done.len()),
    }
}

/// The steps of this program, in their order.
pub(super) fn steps_known() -> Vec<String> {
    Migrator::migrations().iter().map(|step| step.name().to_owned()).collect()
}

/// The steps that a database has.
pub(super) async fn steps_done<C: ConnectionTrait>(db: &C) -> Result<BTreeSet<String>, StoreError> {
    let backend = db.get_database_backend();
    let table = format!("SELECT name FROM sqlite_master WHERE type = 'table' AND name = '{STEPS_DONE}'");
    if db.query_one_raw(Statement::from_string(backend, table)).await.map_err(error)?.is_none() {
        return Ok(BTreeSet::new());
    }
    let names = Statement::from_string(backend, format!("SELECT version FROM {STEPS_DONE}"));
    let rows = db.query_all_raw(names).await.map_err(error)?;
    rows.iter().map(|row| row.try_get::<String>("", "version").map_err(error)).collect()
}

/// Journal mode and `synchronous` of a connection, read back.
pub(super) async fn settings(db: &DatabaseConnection) -> Result<(String, i64), StoreError> {
    let ask = |pragma: &str| Statement::from_string(db.get_database_backend(), format!("PRAGMA {pragma}"));
    let missing = || StoreError::Refused("the database doesn't tell its settings".to_owned());
    let journal = db.query_one_raw(ask("journal_mode")).await.map_err(error)?.ok_or_else(missing)?;
    let level = db.query_one_raw(ask("synchronous")).await.map_err(error)?.ok_or_else(missing)?;
    Ok((journal.try_get_by_index(0).map_err(error)?, level.try_get_by_index(0).map_err(error)?))
}

/// Whether another try may help. The primary result codes of SQLite are the low byte of the extended ones.
pub(super) fn is_transient(cause: &sqlx::Error) -> bool {
    const BUSY: u32 = 5;
    const LOCKED: u32 = 6;
    const NO_MEMORY: u32 = 7;
    const INTERRUPTED: u32 = 9;
    const IO: u32 = 10;
    const DISK_FULL: u32 = 13;
    const LOCK_PROTOCOL: u32 = 15;
    match cause {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(inner) => {
            let code = inner.code().and_then(|code| code.parse::<u32>().ok()).map(|code| code & 0xff);
            matches!(code, Some(BUSY | LOCKED | NO_MEMORY | INTERRUPTED | IO | DISK_FULL | LOCK_PROTOCOL))
        }
        _ => false,
    }
}
