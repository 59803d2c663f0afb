//! Browser sign-ins: a cookie stands for a token, for a while. Only hashes of cookies are stored.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::access::token_store::TokenView;
use crate::ports::tasks::store::Write;
use windrow_core::ids::WallMs;

/// Maximum number of sign-ins kept of one token; a further one ends the oldest.
pub const SIGN_INS_MAX: u64 = 50;

/// Sign-in to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSignIn {
    /// SHA-256 of the cookie, hexadecimal.
    pub hash: String,
    /// Network address of the browser.
    pub address: Option<String>,
    /// Time from which it is no longer accepted.
    pub expires_at: WallMs,
}

/// Sign-in as stored, without its cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInView {
    /// Id of its row.
    pub id: i64,
    /// Token that it stands for; accepted only as long as this is.
    pub token: TokenView,
    /// Network address of the browser.
    pub address: Option<String>,
    /// Time at which it began.
    pub created_at: WallMs,
    /// Time from which it is no longer accepted.
    pub expires_at: WallMs,
}

impl SignInView {
    /// True if it stands for its token at this time.
    pub fn is_live(&self, now: WallMs) -> bool {
        let is_over = |at: WallMs| at <= now;
        let token = &self.token;
        !is_over(self.expires_at) && token.revoked_at.is_none() && !token.expires_at.is_some_and(is_over)
    }
}

/// Store of sign-ins. Every change keeps an audit entry in its transaction.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait SignInStore: Send + Sync {
    /// Stores a sign-in of a token, and removes those of this token that are over or above [`SIGN_INS_MAX`].
    async fn add_sign_in(
        &self,
        token: &TokenView,
        new: &NewSignIn,
        write: &Write,
        now: WallMs,
    ) -> Result<SignInView, StoreError>;

    /// Returns the sign-in of a cookie's hash, even if it is over.
    async fn sign_in(&self, hash: &str) -> Result<Option<SignInView>, StoreError>;

    /// Returns the sign-in of a row.
    async fn sign_in_of_row(&self, id: i64) -> Result<Option<SignInView>, StoreError>;

    /// Returns sign-ins after a row, in the order of their creation, including those that are over.
    async fn sign_ins(&self, after: Option<i64>, limit: u32) -> Result<Vec<SignInView>, StoreError>;

    /// Ends a sign-in by removing its row; one that is already gone is no error.
    async fn end_sign_in(&self, sign_in: &SignInView, write: &Write, now: WallMs) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::business::access::Role;

    #[test]
    fn a_sign_in_lives_as_long_as_its_token_and_no_longer_than_it_was_given() {
        let token = TokenView {
            id: 1,
            name: "ann".to_owned(),
            prefix: "wrk_abcd".to_owned(),
            role: Role::Viewer,
            business: None,
            expires_at: None,
            revoked_at: None,
            created_at: WallMs(0),
            created_by: "root".to_owned(),
        };
        let of = |token: TokenView| SignInView {
            id: 7,
            token,
            address: None,
            created_at: WallMs(0),
            expires_at: WallMs(100),
        };
        assert!(of(token.clone()).is_live(WallMs(99)));
        assert!(!of(token.clone()).is_live(WallMs(100)));
        let expired = TokenView {
            expires_at: Some(WallMs(50)),
            ..token.clone()
        };
        assert!(of(expired.clone()).is_live(WallMs(49)) && !of(expired).is_live(WallMs(50)));
        let revoked = TokenView {
            revoked_at: Some(WallMs(1)),
            ..token
        };
        assert!(!of(revoked).is_live(WallMs(2)));
    }
}
