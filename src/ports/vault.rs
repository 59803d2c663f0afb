//! Seals what must not lie open in the store.

/// What was sealed can't be opened: another key, or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a stored secret can't be opened: auth.key_file is not the key that sealed it, or the row is damaged"
)]
pub struct Unopenable;

/// Seals and opens.
pub trait Vault: Send + Sync {
    /// Seals a text under the node's key; `belongs_to` (for instance `business/push`) is bound to it, so that a
    /// sealed value can't be moved to another row.
    fn seal(&self, belongs_to: &str, plain: &[u8]) -> Vec<u8>;

    /// Opens what [`Vault::seal`] made with the same `belongs_to`.
    ///
    /// # Errors
    /// See [`Unopenable`].
    fn open(&self, belongs_to: &str, sealed: &[u8]) -> Result<Vec<u8>, Unopenable>;
}
