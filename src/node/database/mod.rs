//! The store of a configuration: opened for a node, and its file looked at by people who look after it.

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

/// The file with the password of a server, whichever it is.
const PASSWORD: SecretFile = SecretFile {
    what: "password file",
    setting: "store.password_file",
    form: "has no password in its first line",
    refused: 0o006,
};

/// Opens the store of a node, but for its folders.
///
/// # Errors
/// See [`Store::open`] and [`Store::connect`]; `Refused` when the password can't be read.
pub async fn open(config: &Config) -> Result<Store, StoreError> {
    match address(config)? {
        None => Store::open(&path(config)).await,
        Some(server) => Store::connect(&server, config.store.migrate_on_start).await,
    }
}

/// Refuses a data directory whose database is gone: an empty one in its place would be taken for all that there ever was.
///
/// # Errors
/// `Lost`.
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

/// Has the store keep the bytes of results, and write tasks before they are deleted, where the configuration says.
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

/// The database server of a configuration; none for a file.
///
/// # Errors
/// `Refused` when the password can't be read.
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

/// The first line of a file that not everybody can read.
fn password(file: &Path) -> Result<String, StoreError> {
    let text = PASSWORD.read(file);
    let line = text.and_then(|text| match text.lines().next() {
        None | Some("") => Err(PASSWORD.malformed(file)),
        Some(line) => Ok(line.to_owned()),
    });
    line.map_err(|error| StoreError::Refused(error.to_string()))
}

/// The database file that a node with this configuration has.
pub fn path(config: &Config) -> PathBuf {
    match &config.store.url {
        StoreUrl::Sqlite(path) => path.clone(),
        // A server's node has no file; its directory is where one would be.
        StoreUrl::Auto | StoreUrl::Postgres(_) | StoreUrl::MySql(_) => {
            StateDir::database_in(&config.node.data_dir)
        }
    }
}

/// Brings the schema of a server up to date, whatever `store.migrate_on_start` says; safe while others do it.
///
/// # Errors
/// `NewerSchema` before anything is written; see [`Store::connect`].
pub async fn migrate_server(server: &ServerAddress) -> Result<(), StoreError> {
    Store::connect(server, true).await?.close().await
}

/// Brings the schema of a database file up to date. The caller holds its state directory.
///
/// # Errors
/// `NewerSchema` before anything is written; `Refused` when it can't be written or is no database.
pub async fn migrate(database: &Path, _held: &StateDir) -> Result<(), StoreError> {
    Store::open(database).await?.close().await
}

/// Marks a database file that was put in its place by hand as one that was restored. The caller holds its state directory.
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

/// Marks the database of a server as one that was restored. No node may use it meanwhile.
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

/// How much room there is where something lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// What may still be written. Unit: bytes.
    pub free: u64,
    /// The whole file system. Unit: bytes.
    pub total: u64,
}

/// The room on the file system of a path.
///
/// # Errors
/// When the path isn't there, or may not be looked at.
pub fn room(path: &Path) -> io::Result<Room> {
    let found = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok(Room {
        free: bytes(found.f_bavail),
        total: bytes(found.f_blocks),
    })
}
