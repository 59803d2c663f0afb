//! Second place for the bytes of results, outside the database that knows of them.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::WallMs;

/// Bytes by name, such as `t42/0-17-3-1055`: written before the transaction that names them commits.
///
/// # Errors
/// Every method fails with `Unavailable` while the place is unreachable.
#[async_trait]
pub trait ResultBytes: Send + Sync {
    /// Writes bytes so that they outlive a crash of this machine. The same name always has the same bytes.
    async fn put(&self, name: String, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// Returns the bytes of a name.
    async fn get(&self, name: String) -> Result<Vec<u8>, StoreError>;

    /// Returns the bytes that may still be written; `None` if unknown.
    async fn free(&self) -> Option<u64>;

    /// Removes names; those that don't exist count as removed.
    async fn remove(&self, names: Vec<String>) -> Result<(), StoreError>;

    /// Returns the names that were last written before a time.
    async fn written_before(&self, before: WallMs) -> Result<Vec<String>, StoreError>;
}
