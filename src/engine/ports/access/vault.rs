//! Sealing of values that must not be readable in the store.

use std::fmt;
use windrow_words::engine as say;

/// Name of a key: a hash of it, which reveals nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId(pub [u8; 8]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Error of opening a sealed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unopenable {
    /// Sealed with another key.
    #[error("{}", say::other_key(sealed.to_string(), own.to_string()))]
    OtherKey {
        /// Key that sealed it.
        sealed: KeyId,
        /// Key of this node.
        own: KeyId,
    },
    /// Changed, or moved from another row.
    #[error("{}", say::secret_damaged())]
    Damaged,
}

/// Sealing and opening under the node's key.
pub trait Vault: Send + Sync {
    /// Seals a text under the node's key. `belongs_to` (for instance `business/push`) is bound to it, so that a
    /// sealed value can't be moved to another row.
    fn seal(&self, belongs_to: &str, plain: &[u8]) -> Vec<u8>;

    /// Opens a value that [`Vault::seal`] made with the same `belongs_to`.
    fn open(&self, belongs_to: &str, sealed: &[u8]) -> Result<Vec<u8>, Unopenable>;
}
