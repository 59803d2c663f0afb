//! Identity and authentication of callers.

pub mod sign_ins;
pub(crate) mod start_tokens;
pub mod tokens;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use self::sign_ins::SignIn;
use super::ServiceError;
use crate::service::access::tokens::{START_TOKEN_PREFIX, hash};
use crate::service::node::ThisNode;
use windrow_config::{Auth, AuthMode};
use windrow_core::business::access::Role;
use windrow_core::ids::TaskId;
use windrow_core::text::names;
use windrow_engine::ports::access::business_store::BusinessStore;
use windrow_engine::ports::access::sign_in_store::SignInStore;
use windrow_engine::ports::access::token_store::{TokenStore, TokenView};
use windrow_engine::ports::tasks::store::TaskStore;

/// Longest user name accepted from a proxy, in characters; the width of the audit log's column.
const PROXY_NAME_MAX: usize = 190;

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
    /// a trusted address is the operator named in the header. Otherwise the token decides, or the cookie that stands
    /// for it. The store is queried each time, so that a revocation takes effect immediately.
    ///
    /// # Errors
    /// `Unauthenticated` if the token is missing, unknown, expired or revoked; `StaleStart` for the token of an
    /// earlier start; `StoreUnavailable` after a short time if the store doesn't respond.
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
        if let Some(person) = behind_proxy(&config.auth, credentials) {
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

/// Returns the user named by a trusted proxy; `None` if the peer isn't one or names nobody.
fn behind_proxy(auth: &Auth, credentials: Credentials<'_>) -> Option<Identity> {
    if auth.mode != AuthMode::Proxy {
        return None;
    }
    // On a dual-stack socket, IPv4 peers appear as mapped IPv6 addresses.
    let peer = credentials.peer?.to_canonical();
    let is_trusted = auth.proxy_trust.iter().any(|network| network.contains(peer));
    let name = credentials
        .proxy_user
        .map(str::trim)
        .filter(|name| !name.is_empty())?;
    let fits = name.chars().count() <= PROXY_NAME_MAX && names::fault(name).is_none();
    let person = || Identity::new(name.to_owned(), format!("proxy {name}"), Role::Operator);
    (is_trusted && fits).then(person)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(mode: AuthMode) -> Auth {
        Auth {
            mode,
            proxy_trust: vec!["10.0.0.0/8".parse().expect("a network")],
            ..Auth::default()
        }
    }

    #[test]
    fn a_trusted_proxy_names_an_operator_and_nobody_else_does() {
        let says = |peer: Option<&str>, user| Credentials {
            token: None,
            cookie: None,
            peer: peer.map(|text| text.parse().expect(text)),
            proxy_user: user,
        };
        let proxy = auth(AuthMode::Proxy);
        let ann = behind_proxy(&proxy, says(Some("10.1.2.3"), Some(" ann "))).expect("trusted");
        assert_eq!((ann.name.as_str(), ann.role), ("ann", Role::Operator));
        assert!(behind_proxy(&proxy, says(Some("::ffff:10.1.2.3"), Some("ann"))).is_some());
        for (peer, user) in [
            (Some("11.1.2.3"), Some("ann")),
            (Some("10.1.2.3"), None),
            (Some("10.1.2.3"), Some(" ")),
            (Some("10.1.2.3"), Some("a\tb")),
            (None, Some("ann")),
        ] {
            assert_eq!(behind_proxy(&proxy, says(peer, user)), None, "{peer:?} {user:?}");
        }
        assert_eq!(
            behind_proxy(&auth(AuthMode::Token), says(Some("10.1.2.3"), Some("ann"))),
            None
        );
    }
}
