//! Tokens of the façade: only hashes are stored.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::tasks::store::Write;
use windrow_core::business::access::Role;
use windrow_core::ids::WallMs;

/// A token as it is stored, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenView {
    /// Its row.
    pub id: i64,
    /// Who holds it, for the audit.
    pub name: String,
    /// Its first characters, so that people can tell tokens apart.
    pub prefix: String,
    /// What it allows.
    pub role: Role,
    /// The business that a [`Role::Business`] token belongs to.
    pub business: Option<String>,
    /// Not believed from then on.
    pub expires_at: Option<WallMs>,
    /// Not believed since then.
    pub revoked_at: Option<WallMs>,
    /// When it was made.
    pub created_at: WallMs,
    /// Who made it.
    pub created_by: String,
}

/// What a token is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenGrant {
    /// Who will hold it, for the audit.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The business, for [`Role::Business`].
    pub business: Option<String>,
    /// Not believed from then on.
    pub expires_at: Option<WallMs>,
}

/// A token to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// SHA-256 of the token, hexadecimal.
    pub hash: String,
    /// See [`TokenView::prefix`].
    pub prefix: String,
    /// What it is.
    pub grant: TokenGrant,
}

/// Keeps tokens. Every change keeps an audit entry in its transaction.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Stores a token; one with the same hash is left as it is.
    ///
    /// # Errors
    /// When the store can't be written, or the business isn't there (`Refused`).
    async fn add_token(&self, token: &NewToken, write: &Write, now: WallMs) -> Result<TokenView, StoreError>;

    /// The token of a hash, also an expired or revoked one.
    async fn token(&self, hash: &str) -> Result<Option<TokenView>, StoreError>;

    /// All tokens after a row, in the order in which they were made.
    async fn tokens(&self, after: Option<i64>, limit: u32) -> Result<Vec<TokenView>, StoreError>;

    /// Takes a token's validity away; none when there is no such token.
    async fn revoke_token(
        &self,
        id: i64,
        write: &Write,
        now: WallMs,
    ) -> Result<Option<TokenView>, StoreError>;
}
