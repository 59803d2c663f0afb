//! Differences between databases: connections, locks, isolation, migrations, error codes. One file per database; what
//! they share is here.
//!
//! - SQLite has one writer: a writing transaction locks the whole file from its beginning.
//! - Servers lock rows. A transaction that reads and then writes locks what it read (`locks`), tasks before shards,
//!   both in ascending order; at READ COMMITTED each statement sees what was committed before it.
//! - A statement that loses to another writer is a conflict: nothing of its transaction was kept, so the store
//!   repeats it ([`settled`]) before the caller sees an error.

#[cfg(not(all(feature = "mysql", feature = "postgres")))]
mod absent;
mod anchor;
mod batch;
mod bounded;
pub(super) mod counters;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod driver;
mod migrate;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod server;
pub(super) mod sqlite;

use std::future::Future;
use std::time::Duration;

use sea_orm::sea_query::{Expr, ExprTrait as _};
use sea_orm::sqlx;
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, IsolationLevel,
    RuntimeErr, SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait,
};

#[cfg(not(feature = "mysql"))]
use self::absent as mysql;
#[cfg(not(feature = "postgres"))]
use self::absent as postgres;

pub(super) use self::anchor::Anchor;
pub(super) use self::batch::{Reply, Talk};
pub(super) use self::bounded::{Bounded, Transaction, close_all};
pub(super) use self::migrate::{apply_steps, is_step_missing, steps_done, steps_known};
pub use self::server::{ServerAddress, ServerKind};
pub(super) use self::server::{open, open_one, open_to_look, patiently};
use windrow_core::ids::WallMs;
use windrow_engine::ports::datasets::store::DatasetError;
use windrow_engine::ports::durability::Durability;
use windrow_engine::ports::schedules::store::ScheduleError;
use windrow_engine::ports::sources::append::AppendError;
use windrow_engine::ports::tasks::store::{CommandError, CreateError};
use windrow_engine::ports::{FILE_GONE, StoreError};
use windrow_words::store as say;

/// Maximum attempts of a transaction that conflicts with other writers.
const CONFLICT_TRIES: u32 = 5;
/// Delay before the second attempt; doubles with each further one. Random jitter keeps two victims apart.
const CONFLICT_WAIT: Duration = Duration::from_millis(5);
/// Limit for a statement. One that takes longer is on a connection that vanished silently, since a server ends it
/// sooner (`server`).
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(35);
/// Limit for a whole transaction that a run waits for and that may be sent twice.
pub(super) const CHECKPOINT_MAX: Duration = Duration::from_secs(10);
/// Prefix of a conflict's error text.
const CONFLICT: &str = "another writer was first";

/// Begins a transaction that reads and writes; no other write comes in between.
pub(super) async fn begin_write(writer: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    match writer.get_database_backend() {
        // SQLite can't wait for a lock that is taken at the first write.
        DbBackend::Sqlite => {
            let options = TransactionOptions {
                sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
                ..TransactionOptions::default()
            };
            writer.begin_with_options(options).await
        }
        // READ COMMITTED, which is set on every connection.
        _ => writer.begin().await,
    }
}

/// Begins a transaction that reads one snapshot of the store.
pub(super) async fn begin_read(readers: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    match readers.get_database_backend() {
        DbBackend::Sqlite => readers.begin().await,
        _ => {
            let level = Some(IsolationLevel::RepeatableRead);
            readers.begin_with_config(level, Some(AccessMode::ReadOnly)).await
        }
    }
}

/// Returns a sum cast to a 64-bit integer: servers return decimals, and each has its own name for the integer type.
pub(super) fn whole_sum<C: ConnectionTrait>(db: &C, of: impl Into<Expr>) -> Expr {
    of.into().sum().cast_as(match db.get_database_backend() {
        DbBackend::MySql => "signed",
        _ => "bigint",
    })
}

/// Runs `work`, and repeats it while another writer is in its way; the database has rolled back what was begun.
pub(super) async fn settled<T, E, F>(work: impl Fn() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: MaybeConflict,
{
    let mut wait = CONFLICT_WAIT;
    for _ in 1..CONFLICT_TRIES {
        match work().await {
            Err(error) if error.store_error().is_some_and(is_conflict) => {
                tracing::debug!("transaction met another writer; restarting it");
                tokio::time::sleep(wait + wait.mul_f64(chance())).await;
                wait *= 2;
            }
            outcome => return outcome,
        }
    }
    work().await
}

/// Error that may contain one of the store.
pub(super) trait MaybeConflict {
    /// Returns the store's error, if it is one.
    fn store_error(&self) -> Option<&StoreError>;
}

impl MaybeConflict for StoreError {
    fn store_error(&self) -> Option<&StoreError> {
        Some(self)
    }
}

impl MaybeConflict for CommandError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            CommandError::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl MaybeConflict for ScheduleError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            ScheduleError::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl MaybeConflict for CreateError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            CreateError::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl MaybeConflict for AppendError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            AppendError::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl MaybeConflict for DatasetError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            DatasetError::Store(error) => Some(error),
            _ => None,
        }
    }
}

/// Returns a random number of at least 0 and less than 1.
fn chance() -> f64 {
    let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
    f64::from((random >> 40) as u32) / f64::from(1 << 24)
}

fn is_conflict(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(text) if text.starts_with(CONFLICT))
}

/// Translates a database error to what it means for the caller.
pub(super) fn error(cause: DbErr) -> StoreError {
    let text = text_of(&cause);
    let runtime = match &cause {
        DbErr::Conn(runtime) | DbErr::Exec(runtime) | DbErr::Query(runtime) => runtime,
        DbErr::ConnectionAcquire(_) => return StoreError::Unavailable(text),
        DbErr::Custom(text) if text.starts_with(FILE_GONE) => {
            return StoreError::Unavailable(text.clone());
        }
        _ => return StoreError::Refused(text),
    };
    let RuntimeErr::SqlxError(inner) = runtime else {
        return StoreError::Refused(text);
    };
    match sort(inner) {
        Sort::Conflict => StoreError::Unavailable(format!("{CONFLICT}: {text}")),
        Sort::Transient => StoreError::Unavailable(text),
        Sort::Permanent => StoreError::Refused(text),
    }
}

/// Returns an error's text without the source line that PostgreSQL adds, which people take for a line of their own
/// file.
fn text_of(cause: &DbErr) -> String {
    let text = cause.to_string();
    let (DbErr::Conn(RuntimeErr::SqlxError(inner))
    | DbErr::Exec(RuntimeErr::SqlxError(inner))
    | DbErr::Query(RuntimeErr::SqlxError(inner))) = cause
    else {
        return text;
    };
    let Some(refused) = inner.as_database_error() else {
        return text;
    };
    let whole = refused.to_string();
    let line = whole
        .strip_prefix(refused.message())
        .filter(|rest| rest.starts_with(" at line "));
    match line {
        Some(line) => text.strip_suffix(line).unwrap_or(&text).to_owned(),
        None => text,
    }
}

/// Class of a database error, by the effect of another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Another writer was in the way. Nothing was kept; the same transaction works the next time.
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres")),
        expect(dead_code, reason = "SQLite has one writer")
    )]
    Conflict,
    /// Another attempt may help; the outcome may be unknown.
    Transient,
    /// Another attempt cannot help.
    Permanent,
}

fn sort(cause: &sqlx::Error) -> Sort {
    match cause {
        // `Protocol` is the error of a connection that was cut in the middle of a message.
        sqlx::Error::Io(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => Sort::Transient,
        sqlx::Error::Database(inner) => {
            let sorted = postgres::sorted(&**inner).or_else(|| mysql::sorted(&**inner));
            let code = inner.code().and_then(|code| code.parse().ok());
            sorted.unwrap_or_else(|| match sqlite::is_transient(code) {
                true => Sort::Transient,
                false => Sort::Permanent,
            })
        }
        _ => Sort::Permanent,
    }
}

/// Reads back how durable commits over this connection are.
pub(super) async fn durability(db: &DatabaseConnection) -> Result<Durability, StoreError> {
    match db.get_database_backend() {
        DbBackend::Postgres => postgres::durability(db).await,
        DbBackend::MySql => mysql::durability(db).await,
        _ => {
            let (journal, level) = sqlite::settings(db).await?;
            let setting = format!("journal_mode {journal}, synchronous {level}");
            Ok(Durability {
                setting,
                is_durable: journal == "wal" && level >= 2,
            })
        }
    }
}

/// Returns the time of the database's clock; for SQLite, the machine's.
pub(super) async fn time(db: &impl ConnectionTrait) -> Result<WallMs, StoreError> {
    let backend = db.get_database_backend();
    let sql = match backend {
        DbBackend::Postgres => {
            "SELECT CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT) AS ms"
        }
        // UTC, so the session's time zone has no effect.
        DbBackend::MySql => {
            "SELECT CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 AS SIGNED) AS ms"
        }
        _ => "SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) AS ms",
    };
    let row = db
        .query_one_raw(Statement::from_string(backend, sql))
        .await
        .map_err(error)?;
    let row = row.ok_or_else(|| StoreError::Unavailable(say::no_time().to_string()))?;
    Ok(WallMs(row.try_get("", "ms").map_err(error)?))
}

/// Returns journal mode and `synchronous` of an SQLite connection.
pub(super) async fn settings(db: &DatabaseConnection) -> Result<(String, i64), StoreError> {
    sqlite::settings(db).await
}
