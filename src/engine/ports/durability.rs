//! Durability of acknowledged writes across a power cut of the store's machine.

use async_trait::async_trait;

use crate::ports::StoreError;

/// Durability of commits: the database's name for it, and whether an acknowledged commit can be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durability {
    /// Setting in the database's words.
    pub setting: String,
    /// True if a power cut of the server takes nothing that was acknowledged.
    pub is_durable: bool,
}

/// Store that knows its durability.
///
/// # Errors
/// Every method fails if the store can't be read.
#[async_trait]
pub trait Durable: Send + Sync {
    /// Returns the current durability of commits, read back from the database.
    async fn durability(&self) -> Result<Durability, StoreError>;
}
