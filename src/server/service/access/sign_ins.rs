//! Sign-ins of browsers: a person gives their token once, and has a cookie that stands for it. The cookie is a secret of its
//! own: it ends by itself and with its token, can be ended alone, and the token can't be read out of it.

use crate::service::ServiceError;
use crate::service::access::tokens::{TOKEN_PREFIX, hash, make};
use crate::service::access::{Access, Identity, refuse};
use windrow_core::ids::WallMs;
use windrow_engine::ports::access::sign_in_store::{NewSignIn, SignInView};
use windrow_engine::ports::tasks::store::{Actor, Write};

/// The beginning of what every cookie holds.
pub const COOKIE_PREFIX: &str = "wss_";

/// A sign-in that was made, and its cookie, which only the browser has from now on.
#[derive(Clone)]
pub struct SignedIn {
    /// What is known of it.
    pub view: SignInView,
    /// `wss_…`
    pub cookie: String,
}

/// The sign-in by which a caller is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignIn {
    /// Its number.
    pub id: i64,
    /// Not believed from then on.
    pub expires_at: WallMs,
}

impl Access {
    /// Gives a cookie for a token; not for a start token, which is a program's.
    ///
    /// # Errors
    /// `Unauthenticated` where the token is unknown, expired or revoked.
    pub async fn sign_in(
        &self,
        token: &str,
        address: Option<String>,
        request_id: String,
    ) -> Result<SignedIn, ServiceError> {
        if !token.starts_with(TOKEN_PREFIX) {
            return Err(refuse("unknown token"));
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

    /// Ends the sign-in of a cookie; one that there is none of is over already.
    ///
    /// # Errors
    /// Only what the store says.
    pub async fn sign_out(&self, cookie: &str, request_id: String) -> Result<(), ServiceError> {
        let Some(found) = self.sign_ins.sign_in(&hash(cookie)).await? else {
            return Ok(());
        };
        let write = of_browser(found.token.name.clone(), Some(request_id));
        self.sign_ins.end_sign_in(&found, &write, self.node.now()).await?;
        tracing::info!(name = found.token.name, session = found.id, "signed out");
        Ok(())
    }

    /// Ends a sign-in of anybody.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn end_sign_in(&self, id: i64, write: &Write) -> Result<SignInView, ServiceError> {
        let found = self.sign_ins.sign_in_of_row(id).await?;
        let found = found.ok_or_else(|| ServiceError::not_found("session", id))?;
        self.sign_ins.end_sign_in(&found, write, self.node.now()).await?;
        Ok(found)
    }

    /// Who holds a cookie: whoever its token says.
    pub(super) async fn by_cookie(&self, cookie: &str) -> Result<Identity, ServiceError> {
        let found = self.sign_ins.sign_in(&hash(cookie)).await?;
        let found = found.filter(|found| found.is_live(self.node.now()));
        let view = found.ok_or_else(|| refuse("the session is over"))?;
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
        reason: None,
        request_id,
    };
    actor.writes()
}
