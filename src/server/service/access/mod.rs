//! Identity and authentication of callers.

pub mod proxy;
pub mod sign_ins;
pub(crate) mod start_tokens;
pub mod tokens;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use self::proxy::Sent;
use self::sign_ins::SignIn;
use super::ServiceError;
use crate::service::access::tokens::{START_TOKEN_PREFIX, hash};
use crate::service::node::ThisNode;
use windrow_config::AuthMode;
use windrow_core::business::access::Role;
use windrow_core::ids::TaskId;
use windrow_engine::ports::access::business_store::BusinessStore;
use windrow_engine::ports::access::sign_in_store::SignInStore;
use windrow_engine::ports::access::token_store::{TokenStore, TokenView};
use windrow_engine::ports::tasks::store::TaskStore;

/// Authenticated identity of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the caller, for the audit log.
    pub name: String,
    /// Unique identity behind the name: the token's id, the proxy's user, or the start. Responses stored for one
    /// caller are never replayed to another of the same name.
    pub subject: String,
    /// Role that decides what the caller may do.
    pub role: Role,
    /// Origin of the role behind a proxy, such as `group ops` or `default`; `None` for a token.
    pub role_from: Option<String>,
    /// For [`Role::Business`], the caller's own business.
    pub business: Option<String>,
    /// For a start token, the only task it may access.
    pub task: Option<TaskId>,
    /// Browser session, if the caller signed in.
    pub sign_in: Option<SignIn>,
}

impl Identity {
    fn new(name: String, subject: String, role: Role) -> Identity {
        Identity {
            name,
            subject,
            role,
            role_from: None,
            business: None,
            task: None,
            sign_in: None,
        }
    }

    fn of_token(view: TokenView) -> Identity {
        Identity {
            business: view.business,
            ..Identity::new(view.name, format!("token {}", view.id), view.role)
        }
    }
}

/// Identity of every caller if `auth.mode = "off"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Everybody {
    /// Name of the caller, for the audit log.
    pub name: String,
    /// Role for all routes.
    pub role: Role,
}

/// Credentials sent with a request.
#[derive(Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// Bearer token of the request.
    pub token: Option<&'a str>,
    /// Value of the session cookie; ignored if there is a token.
    pub cookie: Option<&'a str>,
    /// Peer address of the connection.
    pub peer: Option<IpAddr>,
    /// Value of the header named by `auth.proxy_header`.
    pub proxy_user: Option<&'a str>,
    /// Value of the header named by `auth.proxy_groups_header`.
    pub proxy_groups: Sent<'a>,
}

/// Longest wait for the store during authentication. At this point nothing was done yet, so the caller can safely
/// retry.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// Authentication by tokens, browser sessions, proxies and start tokens.
pub struct Access {
    pub(super) node: Arc<ThisNode>,
    /// Store of access tokens.
    pub tokens: Arc<dyn TokenStore>,
    /// Store of browser sessions.
    pub sign_ins: Arc<dyn SignInStore>,
    pub(super) businesses: Arc<dyn BusinessStore>,
    pub(super) tasks: Arc<dyn TaskStore>,
    /// Identity of all callers while authentication is off.
    everybody: Everybody,
}

impl Access {
    pub(in crate::service) fn new<S>(node: Arc<ThisNode>, store: &Arc<S>, everybody: Everybody) -> Access
    where
        S: TokenStore + SignInStore + BusinessStore + TaskStore + 'static,
    {
        Access {
            node,
            tokens: store.clone(),
            sign_ins: store.clone(),
            businesses: store.clone(),
            tasks: store.clone(),
            everybody,
        }
    }

    /// Identifies a caller. With `auth.mode = "off"`, everybody has the same identity. With `"proxy"`, a request from
    /// a trusted address is the person named in the header, with the role of their groups. Otherwise the token decides, or the cookie that stands
    /// for it. The store is queried each time, so that a revocation takes effect immediately.
    ///
    /// # Errors
    /// `Unauthenticated` if the token is missing, unknown, expired or revoked; `StaleStart` for the token of an
    /// earlier start; `NoRole` for a person without one; `StoreUnavailable` after a short time if the store doesn't respond.
    pub async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Identity, ServiceError> {
        let known = tokio::time::timeout(STORE_PATIENCE, self.identify(credentials)).await;
        known.unwrap_or(Err(ServiceError::StoreUnavailable))
    }

    async fn identify(&self, credentials: Credentials<'_>) -> Result<Identity, ServiceError> {
        let config = self.node.config();
        if config.auth.mode == AuthMode::Off {
            let Everybody { name, role } = &self.everybody;
            return Ok(Identity::new(name.clone(), "local".to_owned(), *role));
        }
        if let Some(person) = proxy::person(&config.auth, credentials)? {
            return Ok(person);
        }
        if let (None, Some(cookie)) = (credentials.token, credentials.cookie) {
            return self.by_cookie(cookie).await;
        }
        let token = credentials.token.ok_or_else(|| refuse("no token"))?;
        if token.starts_with(START_TOKEN_PREFIX) {
            return self.identity_of_start(token).await;
        }
        self.live_token(token).await.map(Identity::of_token)
    }

    /// Returns a token that is known, not revoked and not expired.
    async fn live_token(&self, token: &str) -> Result<TokenView, ServiceError> {
        let found = self.tokens.token(&hash(token)).await?;
        let view = found.ok_or_else(|| refuse("the node doesn't know this token"))?;
        if view.revoked_at.is_some() {
            return Err(refuse("the token was revoked"));
        }
        if view.expires_at.is_some_and(|at| at <= self.node.now()) {
            return Err(refuse("the token has expired"));
        }
        Ok(view)
    }
}

fn refuse(text: &str) -> ServiceError {
    ServiceError::Unauthenticated(text.to_owned())
}
