//! Store of a configuration: opened for a node, or inspected for maintenance.

pub mod restore;

use std::io;
use std::path::{Path, PathBuf};

use super::serve::ServeError;
use super::{ServerAddress, ServerKind, StateDir, Store};
use windrow_config::{Config, StoreUrl};
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_host::secret_file::SecretFile;
use windrow_host::vault::KeyVault;
pub use windrow_store::sql::inspect::sessions::Heartbeat;
pub use windrow_store::sql::inspect::{BackupError, Finding, Inspection, Schema};
pub use windrow_store::sql::restored::{Restored, STEP, restoring};

/// Rules for a database server's password file.
const PASSWORD: SecretFile = SecretFile {
    what: "password file",
    setting: "store.password_file",
    form: "has no password on its first line",
    refused: 0o006,
};

/// Opens the store of a node, without its directories for results and archive.
///
/// # Errors
/// See [`Store::open`] and [`Store::connect`]; `Refused` if the password can't be read.
pub async fn open(config: &Config) -> Result<Store, StoreError> {
    match address(config)? {
        None => Store::open(&path(config)).await,
        Some(server) => Store::connect(&server, config.store.migrate_on_start).await,
    }
}

/// Refuses a data directory whose database has disappeared: a new, empty one would pass for the complete data.
///
/// # Errors
/// `Lost` if the database is missing.
pub(crate) fn refuse_lost(config: &Config) -> Result<(), ServeError> {
    let (directory, database) = (&config.node.data_dir, path(config));
    let is_file = !config.store.url.is_server();
    let is_known = StateDir::was_held(directory) && KeyVault::made_in(directory).is_some();
    match is_file && is_known && !database.exists() {
        true => Err(ServeError::Lost {
            directory: directory.clone(),
            database,
        }),
        false => Ok(()),
    }
}

/// Sets the configured directories for results and for the archive of deleted tasks.
///
/// # Errors
/// See [`Store::keep_results_in`] and [`Store::archive_in`].
pub async fn place(store: &mut Store, config: &Config) -> Result<(), StoreError> {
    if let Some(folder) = &config.results.location {
        store.keep_results_in(folder).await?;
    }
    if let Some(folder) = &config.archive.location {
        store.archive_in(folder).await?;
    }
    Ok(())
}

/// Returns the configured database server, or `None` for a database file.
///
/// # Errors
/// `Refused` if the password can't be read.
pub fn address(config: &Config) -> Result<Option<ServerAddress>, StoreError> {
    let (kind, url) = match &config.store.url {
        StoreUrl::Auto | StoreUrl::Sqlite(_) => return Ok(None),
        StoreUrl::Postgres(url) => (ServerKind::Postgres, url),
        StoreUrl::MySql(url) => (ServerKind::MySql, url),
    };
    let password = config.store.password_file.as_deref().map(password).transpose()?;
    Ok(Some(ServerAddress::new(
        kind,
        url.clone(),
        password,
        config.store.max_connections.get(),
    )))
}

/// Reads the password from the first line of a file, which must not be readable by everyone.
fn password(file: &Path) -> Result<String, StoreError> {
    let text = PASSWORD.read(file);
    let line = text.and_then(|text| match text.lines().next() {
        None | Some("") => Err(PASSWORD.malformed(file)),
        Some(line) => Ok(line.to_owned()),
    });
    line.map_err(|error| StoreError::Refused(error.to_string()))
}

/// Returns the path of the node's database file.
pub fn path(config: &Config) -> PathBuf {
    match &config.store.url {
        StoreUrl::Sqlite(path) => path.clone(),
        // With a database server there is no file; this path is used for its directory.
        StoreUrl::Auto | StoreUrl::Postgres(_) | StoreUrl::MySql(_) => {
            StateDir::database_in(&config.node.data_dir)
        }
    }
}

/// Migrates the schema of a database server, regardless of `store.migrate_on_start`. Safe to run concurrently.
///
/// # Errors
/// `NewerSchema` before anything is written; see [`Store::connect`].
pub async fn migrate_server(server: &ServerAddress) -> Result<(), StoreError> {
    Store::connect(server, true).await?.close().await
}

/// Migrates the schema of a database file. The caller holds its state directory.
///
/// # Errors
/// `NewerSchema` before anything is written; `Refused` if it can't be written or is not a database.
pub async fn migrate(database: &Path, _held: &StateDir) -> Result<(), StoreError> {
    Store::open(database).await?.close().await
}

/// Marks a database file that was copied into place by hand as restored. The caller holds its state directory.
///
/// # Errors
/// As [`migrate`].
pub async fn mark(
    database: &Path,
    _held: &StateDir,
    (pauses, now): (bool, WallMs),
) -> Result<Restored, StoreError> {
    marked(Store::open(database).await?, (pauses, now)).await
}

/// Marks the database of a server as restored. No node may use it at the same time.
///
/// # Errors
/// `OlderSchema`, `NewerSchema` before anything is written; see [`Store::connect`].
pub async fn mark_server(
    server: &ServerAddress,
    (pauses, now): (bool, WallMs),
) -> Result<Restored, StoreError> {
    marked(Store::connect(server, false).await?, (pauses, now)).await
}

async fn marked(store: Store, (pauses, now): (bool, WallMs)) -> Result<Restored, StoreError> {
    let marked = store.mark_restored(pauses, now).await;
    store.close().await?;
    marked
}

/// Space on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Space available for writing, in bytes.
    pub free: u64,
    /// Size of the whole file system, in bytes.
    pub total: u64,
}

/// Returns the space on the file system of a path.
///
/// # Errors
/// Fails if the path doesn't exist or can't be accessed.
pub fn room(path: &Path) -> io::Result<Room> {
    let found = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok(Room {
        free: bytes(found.f_bavail),
        total: bytes(found.f_blocks),
    })
}
