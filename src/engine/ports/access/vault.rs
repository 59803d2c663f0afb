//! Seals what must not lie open in the store.

/// What was sealed can't be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unopenable {
    /// Another key sealed it.
    #[error(
        "a stored secret was sealed with another key; auth.key_file must be the key that it was stored under"
    )]
    OtherKey,
    /// It was changed, or moved from another row.
    #[error("a stored secret is damaged; restore the database from a backup, or set the secret again")]
    Damaged,
}

/// Seals and opens.
pub trait Vault: Send + Sync {
    /// Seals a text under the node's key; `belongs_to` (for instance `business/push`) is bound to it, so that a
    /// sealed value can't be moved to another row.
    fn seal(&self, belongs_to: &str, plain: &[u8]) -> Vec<u8>;

    /// Opens what [`Vault::seal`] made with the same `belongs_to`.
    fn open(&self, belongs_to: &str, sealed: &[u8]) -> Result<Vec<u8>, Unopenable>;
}
