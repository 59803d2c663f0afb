//! A second place for the bytes of results, beside the database that knows of them.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::WallMs;

/// Bytes by name, such as `t42/0-17-3-1055`: written before the transaction that names them commits.
///
/// # Errors
/// Of each method: `Unavailable` while the place can't be reached.
#[async_trait]
pub trait ResultBytes: Send + Sync {
    /// Writes bytes so that they outlive a crash of this machine. The same name again has the same bytes.
    async fn put(&self, name: String, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// The bytes of a name.
    async fn get(&self, name: String) -> Result<Vec<u8>, StoreError>;

    /// What may still be written; none where that isn't known. Unit: bytes.
    async fn free(&self) -> Option<u64>;

    /// Forgets names; those that aren't there are forgotten already.
    async fn remove(&self, names: Vec<String>) -> Result<(), StoreError>;

    /// Names that were last written before a time.
    async fn written_before(&self, before: WallMs) -> Result<Vec<String>, StoreError>;
}
