//! Every store port over a SQL database through sea-orm.
//!
//! One file per aggregate; SQL only here. [`Store::open`] is the only way in: it migrates, and refuses a schema that
//! a newer program wrote. What differs between databases is in `dialect`; today that is SQLite alone.
//!
//! - Every write says under which condition it may happen, and looks at the rows affected.
//! - A transaction that reads and then writes takes the write lock at its beginning, and awaits nothing but its own
//!   statements.

mod audit_list;
mod business_store;
mod data_log;
mod data_log_expire;
mod data_log_search;
mod dialect;
mod entity;
mod failure_groups;
mod failure_list;
mod idempotency;
pub mod inspect;
mod items;
mod node_audit;
mod outbox;
mod report_store;
mod run_checkpoint;
mod run_claim;
mod run_close;
mod run_hunt;
mod run_store;
mod session_store;
mod shards;
mod source_store;
mod task_command;
mod task_create;
mod task_delete;
mod task_edit;
mod task_finish;
mod task_hooks;
mod task_list;
mod task_record;
mod task_start;
mod task_store;
mod task_view;
mod task_wait;
#[cfg(test)]
mod tests;
mod token_store;
mod upkeep;
mod upload_use;
mod uploads;
mod words;

use std::path::Path;
use std::sync::Arc;

use sea_orm::{DatabaseConnection, DatabaseTransaction, DbErr, EntityTrait, RuntimeErr};

use crate::domain::ids::StoreId;
use crate::ports::StoreError;
use crate::ports::meters::Meters;
use crate::ports::task_store::Actor;

/// A database with Windrow's schema. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct Store {
    /// One connection: SQLite has one writer, and queueing here is fairer than waiting for its lock.
    writer: DatabaseConnection,
    readers: DatabaseConnection,
    /// The heartbeat's own, so that no queue of writes can make a session look dead.
    pulse: DatabaseConnection,
    id: StoreId,
    meters: Arc<Meters>,
}

impl Store {
    /// Opens (or makes) the database file at `path` and brings its schema up to date. Safe when several processes
    /// do it at once.
    ///
    /// # Errors
    /// `NewerSchema` before anything is written; `Refused` when the file is read-only or is no database.
    pub async fn open(path: &Path) -> Result<Store, StoreError> {
        dialect::check_file(path)?;
        let meters = Arc::new(Meters::default());
        let writer = metered(dialect::connect(path, 1).await?, &meters);
        dialect::migrate(&writer).await?;
        let fact =
            entity::meta::Entity::find_by_id("store_id".to_owned()).one(&writer).await.map_err(error)?;
        let fact = fact.ok_or_else(|| StoreError::Refused("the database has no store id".to_owned()))?;
        let readers = metered(dialect::connect(path, dialect::READERS).await?, &meters);
        let pulse = metered(dialect::connect(path, 1).await?, &meters);
        Ok(Store { writer, readers, pulse, id: StoreId(fact.val), meters })
    }

    /// Closes all connections; afterwards the database file alone (without `-wal`) holds everything.
    ///
    /// # Errors
    /// When a connection can't be closed; nothing that was acknowledged is lost then.
    pub async fn close(self) -> Result<(), StoreError> {
        for connection in [self.pulse, self.readers, self.writer] {
            connection.close().await.map_err(error)?;
        }
        Ok(())
    }

    /// Where its statements are counted.
    pub fn meters(&self) -> &Arc<Meters> {
        &self.meters
    }

    /// The journal mode and the level of durability that the writer really has, for `doctor` and tests.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn settings(&self) -> Result<(String, i64), StoreError> {
        dialect::settings(&self.writer).await
    }

    /// A transaction that holds the write lock from its beginning; dropped without a commit it leaves nothing.
    async fn write(&self) -> Result<DatabaseTransaction, StoreError> {
        dialect::begin_write(&self.writer).await.map_err(error)
    }
}

/// Keeps what a transaction did; of a rehearsal nothing stays.
async fn keep(transaction: DatabaseTransaction, actor: &Actor) -> Result<(), StoreError> {
    let ended = if actor.rehearses { transaction.rollback().await } else { transaction.commit().await };
    ended.map_err(error)
}

/// The connection, with every statement counted and timed.
fn metered(mut connection: DatabaseConnection, meters: &Arc<Meters>) -> DatabaseConnection {
    let meters = meters.clone();
    connection.set_metric_callback(move |info| {
        meters.queried(operation(&info.statement.sql), info.elapsed, info.failed);
    });
    connection
}

/// The kind of a statement, by its first word.
fn operation(sql: &str) -> &'static str {
    const KNOWN: [&str; 4] = ["select", "insert", "update", "delete"];
    let word = sql.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    KNOWN.into_iter().find(|known| word.eq_ignore_ascii_case(known)).unwrap_or("other")
}

/// What a database error means to its caller.
fn error(cause: DbErr) -> StoreError {
    let text = cause.to_string();
    let runtime = match &cause {
        DbErr::Conn(runtime) | DbErr::Exec(runtime) | DbErr::Query(runtime) => runtime,
        DbErr::ConnectionAcquire(_) => return StoreError::Unavailable(text),
        _ => return StoreError::Refused(text),
    };
    match runtime {
        RuntimeErr::SqlxError(inner) if dialect::is_transient(inner) => StoreError::Unavailable(text),
        _ => StoreError::Refused(text),
    }
}

/// A value in the database that no version of this program wrote.
fn damaged(what: &str, found: &str) -> StoreError {
    StoreError::Refused(format!("the database holds {found:?} as {what}; restore it from a backup"))
}
