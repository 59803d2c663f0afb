//! The state directory from outside: for people who look after it, not for a node that serves it.

use std::io;
use std::path::{Path, PathBuf};

use super::{StateDir, Store};
pub use crate::adapters::sql::inspect::{BackupError, Finding, Inspection, Schema};
use crate::config::{Config, StoreUrl};
use crate::ports::StoreError;

/// The database that a node with this configuration has.
pub fn path(config: &Config) -> PathBuf {
    match &config.store.url {
        StoreUrl::Sqlite(path) => path.clone(),
        // Servers are refused when the configuration is checked.
        StoreUrl::Auto | StoreUrl::Postgres(_) | StoreUrl::MySql(_) => {
            StateDir::database_in(&config.node.data_dir)
        }
    }
}

/// Brings the schema of a database up to date. The caller holds its state directory.
///
/// # Errors
/// `NewerSchema` before anything is written; `Refused` when it can't be written or is no database.
pub async fn migrate(database: &Path, _held: &StateDir) -> Result<(), StoreError> {
    Store::open(database).await?.close().await
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
    Ok(Room { free: bytes(found.f_bavail), total: bytes(found.f_blocks) })
}
