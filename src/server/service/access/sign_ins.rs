//! Browser sessions. A person enters their token once and gets a cookie that stands for it. The cookie is a separate
//! secret: it expires on its own and together with its token, can be revoked alone, and doesn't reveal the token.

use crate::service::ServiceError;
use crate::service::access::tokens::{TOKEN_PREFIX, hash, make};
use crate::service::access::{Access, Identity, refuse};
use windrow_core::ids::WallMs;
use windrow_engine::ports::access::sign_in_store::{NewSignIn, SignInView};
use windrow_engine::ports::tasks::store::{Actor, Write};

/// Prefix of every session cookie.
pub const COOKIE_PREFIX: &str = "wss_";

/// New session with its cookie, which from now on only the browser knows.
#[derive(Clone)]
pub struct SignedIn {
    /// Stored data of the session.
    pub view: SignInView,
    /// Text of the cookie, `wss_…`
    pub cookie: String,
}

/// Session that identifies a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignIn {
    /// Id of the session.
    pub id: i64,
    /// End of the session's validity.
    pub expires_at: WallMs,
}

impl Access {
    /// Creates a session for a token, but not for a start token, which is meant for programs.
    ///
    /// # Errors
    /// `Unauthenticated` if the token is unknown, expired or revoked.
    pub async fn sign_in(
        &self,
        token: &str,
        address: Option<String>,
        request_id: String,
    ) -> Result<SignedIn, ServiceError> {
        if !token.starts_with(TOKEN_PREFIX) {
            return Err(refuse("the node doesn't know this token"));
        }
        let (now, token) = (self.node.now(), self.live_token(token).await?);
        let life = i64::try_from(self.node.config().auth.session_life.as_millis()).unwrap_or(i64::MAX);
        let end = WallMs(now.0.saturating_add(life));
        let cookie = make(COOKIE_PREFIX)?;
        let new = NewSignIn {
            hash: hash(&cookie),
            address,
            expires_at: token.expires_at.map_or(end, |at| at.min(end)),
        };
        let write = of_browser(token.name.clone(), Some(request_id));
        let view = self.sign_ins.add_sign_in(&token, &new, &write, now).await?;
        tracing::info!(
            token = token.prefix,
            name = token.name,
            session = view.id,
            "signed in"
        );
        Ok(SignedIn { view, cookie })
    }

    /// Ends the session of a cookie; does nothing if there is none.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn sign_out(&self, cookie: &str, request_id: String) -> Result<(), ServiceError> {
        let Some(found) = self.sign_ins.sign_in(&hash(cookie)).await? else {
            return Ok(());
        };
        let write = of_browser(found.token.name.clone(), Some(request_id));
        self.sign_ins.end_sign_in(&found, &write, self.node.now()).await?;
        tracing::info!(name = found.token.name, session = found.id, "signed out");
        Ok(())
    }

    /// Ends any session by its id.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn end_sign_in(&self, id: i64, write: &Write) -> Result<SignInView, ServiceError> {
        let found = self.sign_ins.sign_in_of_row(id).await?;
        let found = found.ok_or_else(|| ServiceError::not_found("session", id))?;
        self.sign_ins.end_sign_in(&found, write, self.node.now()).await?;
        Ok(found)
    }

    /// Returns the identity behind a cookie, which is that of its token.
    pub(super) async fn by_cookie(&self, cookie: &str) -> Result<Identity, ServiceError> {
        let found = self.sign_ins.sign_in(&hash(cookie)).await?;
        let found = found.filter(|found| found.is_live(self.node.now()));
        let view = found.ok_or_else(|| refuse("the session has ended"))?;
        Ok(Identity {
            sign_in: Some(SignIn {
                id: view.id,
                expires_at: view.expires_at,
            }),
            ..Identity::of_token(view.token)
        })
    }
}

fn of_browser(name: String, request_id: Option<String>) -> Write {
    let actor = Actor {
        name,
        source: "ui",
        request_id,
        ..Actor::windrow(None)
    };
    actor.writes()
}
