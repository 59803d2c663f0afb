//! Who a caller is.

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

/// The longest name that a proxy may give. Unit: characters. (The audit's column.)
const PROXY_NAME_MAX: usize = 190;

/// Who a caller is, as their token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Their name, for the audit.
    pub name: String,
    /// Which caller of that name: the token's number, the proxy's person, the start. What one caller did is never
    /// answered to another of the same name.
    pub subject: String,
    /// What they may do.
    pub role: Role,
    /// The business that they are, for [`Role::Business`].
    pub business: Option<String>,
    /// The only task that they may touch, for a start token.
    pub task: Option<TaskId>,
    /// The sign-in by which a browser is known.
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

/// The identity of every caller with `auth.mode = "off"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Everybody {
    /// Their name, for the audit.
    pub name: String,
    /// The role, for every route.
    pub role: Role,
}

/// What a caller brings.
#[derive(Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// The bearer token.
    pub token: Option<&'a str>,
    /// What the browser's cookie holds; not looked at where there is a token.
    pub cookie: Option<&'a str>,
    /// The address that the connection comes from.
    pub peer: Option<IpAddr>,
    /// The text of `auth.proxy_header`.
    pub proxy_user: Option<&'a str>,
}

/// How long the store may take to say who calls. Nothing was done yet, so that whoever calls is told and may ask again.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// Who may call: by tokens, by proxies, by the start of a task.
pub struct Access {
    pub(super) node: Arc<ThisNode>,
    /// The tokens.
    pub tokens: Arc<dyn TokenStore>,
    /// Sign-ins of browsers.
    pub sign_ins: Arc<dyn SignInStore>,
    pub(super) businesses: Arc<dyn BusinessStore>,
    pub(super) tasks: Arc<dyn TaskStore>,
    /// Every caller where nobody is asked who calls.
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

    /// Identifies a caller. With `auth.mode = "off"` everybody is the same; with `"proxy"` a caller from a
    /// trusted address is the operator that the header names. Otherwise their token decides, or the cookie that stands for
    /// one, and the store is asked each time, so that a revocation holds at once.
    ///
    /// # Errors
    /// `Unauthenticated` without a token, or with one that is unknown, expired or revoked; `StaleStart` with the token
    /// of an earlier start; `StoreUnavailable` soon, where a lost connection would be waited for much longer.
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

    /// What is known of a token that is believed now.
    async fn live_token(&self, token: &str) -> Result<TokenView, ServiceError> {
        let found = self.tokens.token(&hash(token)).await?;
        let view = found.ok_or_else(|| refuse("unknown token"))?;
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

/// The person that a trusted proxy names; none when there is no such proxy, or it names nobody.
fn behind_proxy(auth: &Auth, credentials: Credentials<'_>) -> Option<Identity> {
    if auth.mode != AuthMode::Proxy {
        return None;
    }
    // An IPv4 peer of a socket that serves both families.
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
