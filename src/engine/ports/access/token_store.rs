//! Tokens of the API server: only hashes are stored.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::tasks::store::Write;
use windrow_core::business::access::Role;
use windrow_core::ids::WallMs;

/// Token as stored, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenView {
    /// Id of its row.
    pub id: i64,
    /// Holder of the token, for the audit.
    pub name: String,
    /// First characters of the token, so that people can tell tokens apart.
    pub prefix: String,
    /// Role that the token grants.
    pub role: Role,
    /// Business that a [`Role::Business`] token belongs to.
    pub business: Option<String>,
    /// Time from which it is no longer accepted.
    pub expires_at: Option<WallMs>,
    /// Time at which it was revoked.
    pub revoked_at: Option<WallMs>,
    /// Time at which it was created.
    pub created_at: WallMs,
    /// Name of its creator.
    pub created_by: String,
}

/// Holder, role and lifetime of a token to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenGrant {
    /// Holder of the token, for the audit.
    pub name: String,
    /// Role that the token grants.
    pub role: Role,
    /// Business that it belongs to, for [`Role::Business`].
    pub business: Option<String>,
    /// Time from which it is no longer accepted.
    pub expires_at: Option<WallMs>,
}

/// Token to be stored, as its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// SHA-256 of the token, hexadecimal.
    pub hash: String,
    /// First characters of the token; see [`TokenView::prefix`].
    pub prefix: String,
    /// Holder, role and lifetime.
    pub grant: TokenGrant,
}

/// Store of tokens. Every change keeps an audit entry in its transaction.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Stores a token; one with the same hash is left as it is.
    ///
    /// # Errors
    /// If the store can't be written, or the business doesn't exist (`Refused`).
    async fn add_token(&self, token: &NewToken, write: &Write, now: WallMs) -> Result<TokenView, StoreError>;

    /// Returns the token of a hash, even if it is expired or revoked.
    async fn token(&self, hash: &str) -> Result<Option<TokenView>, StoreError>;

    /// Returns tokens after a row, in the order of their creation.
    async fn tokens(&self, after: Option<i64>, limit: u32) -> Result<Vec<TokenView>, StoreError>;

    /// Revokes a token. Returns `None` if there is no such token.
    async fn revoke_token(
        &self,
        id: i64,
        write: &Write,
        now: WallMs,
    ) -> Result<Option<TokenView>, StoreError>;
}
