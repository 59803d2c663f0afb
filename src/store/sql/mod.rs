//! Store ports over a SQL database, through sea-orm.
//!
//! One file per aggregate; SQL only here. [`Store::open`] is the entry point: it migrates, and refuses a schema that
//! a newer program wrote; [`Store::connect`] does the same for a server. Differences between databases are in
//! `dialect`.
//!
//! - Every write states the condition under which it may happen, and checks the rows affected.
//! - A transaction that reads and then writes locks before it reads: SQLite's whole file, or on servers the task's
//!   row, then those of its shards, each in ascending order. It awaits nothing but its own statements.

pub mod archive;
pub mod business;
pub mod dataset;
pub mod log;
pub mod run;
pub mod schedule;
pub mod session;
pub mod source;
mod statements;
pub mod statistics;
pub mod task;

mod dialect;
mod entity;
pub mod inspect;
mod locks;
mod place;
pub mod restored;
use windrow_words::store as say;
#[cfg(test)]
mod tests;
mod upkeep;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use async_trait::async_trait;
use sea_orm::{DatabaseConnection, EntityTrait};

use self::dialect::{ANSWER_MAX, Anchor, Bounded, Reply, Talk, Transaction, error, settled};
pub use self::dialect::{ServerAddress, ServerKind};
use self::statements::{Fetch, Pluck, Run};
use crate::folder::Folder;

use windrow_core::ids::StoreId;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::durability::{Durability, Durable};
use windrow_engine::ports::handling::meters::Meters;
use windrow_engine::ports::tasks::result_bytes::ResultBytes;
use windrow_engine::ports::tasks::store::Write;
use windrow_host::vault::KeyVault;

/// A database with Windrow's schema. Cheap to share behind an `Arc`.
pub struct Store {
    /// Writer's connections. With SQLite there is one: it has one writer, and queueing here is fairer than waiting for its lock.
    writer: Bounded<DatabaseConnection>,
    /// Writer's connections on a server.
    readers: Bounded<DatabaseConnection>,
    /// Connections of the heartbeat alone, so that a queue of writes can't make a session look dead.
    pulse: Bounded<DatabaseConnection>,
    id: StoreId,
    meters: Arc<Meters>,
    /// Database file, or `None` on a server.
    file: Option<PathBuf>,
    /// Folder for the bytes of results, or `None` if the database holds them.
    result_bytes: Option<Arc<dyn ResultBytes>>,
    /// Archive to which tasks are written before they are deleted.
    archive: Option<Folder>,
    /// Time up to which bytes without a row were looked for. Unit: milliseconds of the wall clock.
    result_bytes_swept: AtomicI64,
    /// Key that seals start tokens until they are delivered, or `None` if no business has hooks.
    vault: Option<Arc<KeyVault>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens or creates the database file at `path` and migrates its schema. Several processes may do it at once.
    ///
    /// # Errors
    /// `NewerSchema` before anything is written; `Refused` if the file is read-only or isn't a database.
    pub async fn open(path: &Path) -> Result<Store, StoreError> {
        use dialect::sqlite;
        sqlite::check_file(path)?;
        let meters = Arc::new(Meters::default());
        let writer = metered(sqlite::connect(path, 1).await?, &meters, None);
        dialect::apply_steps(writer.unbounded()).await?;
        let readers = metered(sqlite::connect(path, sqlite::READERS).await?, &meters, None);
        let pulse = metered(sqlite::connect(path, 1).await?, &meters, None);
        let id = store_id(&writer).await?;
        let anchor = Anchor::of(path).map_err(|cause| StoreError::Unavailable(cause.to_string()))?;
        let anchor = Arc::new(anchor);
        Ok(Store {
            writer: writer.anchored(&anchor),
            readers: readers.anchored(&anchor),
            pulse: pulse.anchored(&anchor),
            id,
            meters,
            file: Some(path.to_owned()),
            result_bytes: None,
            archive: None,
            result_bytes_swept: AtomicI64::new(0),
            vault: None,
        })
    }

    /// Connects to a database server and waits while it is unreachable. The schema must be this program's, unless `migrates`
    /// is set: then it is migrated, which several nodes may do at once.
    ///
    /// # Errors
    /// `OlderSchema` or `NewerSchema` before anything is written; `Unavailable` if the server doesn't answer; `Refused`
    /// if it rejects this user.
    pub async fn connect(address: &ServerAddress, migrates: bool) -> Result<Store, StoreError> {
        dialect::patiently(address, |patience| {
            Store::connect_once(address, patience, migrates)
        })
        .await
    }

    async fn connect_once(
        address: &ServerAddress,
        patience: Duration,
        migrates: bool,
    ) -> Result<Store, StoreError> {
        let single = dialect::open_one(address, patience).await?;
        let prepared = prepare(&single, migrates).await;
        single.close().await.map_err(error)?;
        prepared?;
        let meters = Arc::new(Meters::default());
        let pools = dialect::open(address).await?;
        let writer = metered(pools.usual, &meters, Some(ANSWER_MAX));
        let pulse = metered(pools.pulse, &meters, Some(ANSWER_MAX));
        let id = store_id(&writer).await?;
        let store = Store {
            readers: writer.clone(),
            writer,
            pulse,
            id,
            meters,
            file: None,
            result_bytes: None,
            archive: None,
            result_bytes_swept: AtomicI64::new(0),
            vault: None,
        };
        let durability = store.durability().await?;
        if !durability.is_durable {
            let setting = durability.setting;
            tracing::warn!(
                setting,
                "the database acknowledges commits before they are on disk: a power cut can lose progress \
                 and claims"
            );
        }
        Ok(store)
    }

    /// Returns this store with a key that seals start tokens. Without one, hooks that prepare a business can't be called.
    #[must_use]
    pub fn sealing(self, vault: Arc<KeyVault>) -> Store {
        Store {
            vault: Some(vault),
            ..self
        }
    }

    /// Closes all connections, even if others hold the store. Afterwards the database file alone (without `-wal`) holds
    /// everything, and every call fails.
    ///
    /// # Errors
    /// If a connection isn't returned in time or can't be closed; nothing acknowledged is lost then.
    pub async fn close(&self) -> Result<(), StoreError> {
        let connections = [&self.pulse, &self.readers, &self.writer];
        dialect::close_all(&connections).await.map_err(error)
    }

    /// Returns the counters of its statements.
    pub fn meters(&self) -> &Arc<Meters> {
        &self.meters
    }

    /// Returns the writer's actual journal mode and durability level, for `doctor` and tests.
    ///
    /// # Errors
    /// If the database can't be read.
    pub async fn settings(&self) -> Result<(String, i64), StoreError> {
        dialect::settings(self.writer.unbounded()).await
    }

    /// Begins a transaction that reads and writes (see [`dialect`]); dropped without a commit it changes nothing.
    async fn write(&self) -> Result<Transaction, StoreError> {
        self.writer.begin_write().await.map_err(error)
    }

    /// Returns a connection that takes several statements in one round trip, or `None` for the embedded database.
    async fn talk(&self) -> Result<Option<Talk>, StoreError> {
        self.readers.talk(&self.meters).await.map_err(error)
    }

    /// Begins a transaction that reads one moment of the store.
    async fn snapshot(&self) -> Result<Transaction, StoreError> {
        self.readers.begin_read().await.map_err(error)
    }
}

#[async_trait]
impl Durable for Store {
    async fn durability(&self) -> Result<Durability, StoreError> {
        dialect::durability(self.writer.unbounded()).await
    }
}

/// Checks or migrates the schema, so that it is this program's.
async fn prepare(single: &DatabaseConnection, migrates: bool) -> Result<(), StoreError> {
    if migrates {
        return dialect::apply_steps(single).await;
    }
    if dialect::is_step_missing(single).await? {
        Err(StoreError::OlderSchema)
    } else {
        Ok(())
    }
}

async fn store_id(db: &Bounded<DatabaseConnection>) -> Result<StoreId, StoreError> {
    let fact = entity::meta::Entity::find_by_id("store_id".to_owned())
        .row(db)
        .await?;
    let fact = fact.ok_or_else(|| StoreError::Refused(say::no_store_id().to_string()))?;
    Ok(StoreId(fact.val))
}

/// Commits a transaction, or rolls back that of a dry run.
async fn keep(transaction: Transaction, write: &Write) -> Result<(), StoreError> {
    if write.dry_run {
        transaction.rollback().await
    } else {
        transaction.commit().await
    }
}

/// Opens a connection on which every statement is counted, timed and bounded.
fn metered(
    mut connection: DatabaseConnection,
    meters: &Arc<Meters>,
    limit: Option<Duration>,
) -> Bounded<DatabaseConnection> {
    let meters = meters.clone();
    connection.set_metric_callback(move |info| {
        meters.queried(operation(&info.statement.sql), info.elapsed, info.failed);
    });
    Bounded::new(connection, limit)
}

/// Returns the kind of a statement by its first word.
fn operation(sql: &str) -> &'static str {
    const KNOWN: [&str; 4] = ["select", "insert", "update", "delete"];
    let word = sql
        .trim_start()
        .split(|c: char| !c.is_ascii_alphabetic())
        .next()
        .unwrap_or_default();
    KNOWN
        .into_iter()
        .find(|known| word.eq_ignore_ascii_case(known))
        .unwrap_or("other")
}

/// Makes the error of a stored value that no version of this program wrote.
fn damaged(what: &str, found: &str) -> StoreError {
    StoreError::Refused(say::damaged(format!("{found:?}"), what).to_string())
}
