//! Whether what the store acknowledges survives a power cut of its machine.

use async_trait::async_trait;

use crate::ports::StoreError;

/// How durable commits are: the database's name for it, and whether a commit that was acknowledged can be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durability {
    /// In the database's words.
    pub setting: String,
    /// Whether a power cut of the server takes nothing that was acknowledged.
    pub is_durable: bool,
}

/// A store that knows how durable it is.
///
/// # Errors
/// Of each method: the store can't be read.
#[async_trait]
pub trait Durable: Send + Sync {
    /// How durable commits are now, read back from the database.
    async fn durability(&self) -> Result<Durability, StoreError>;
}
