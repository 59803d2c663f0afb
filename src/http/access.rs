//! Who calls, and whether the called route is for them. The policy is the OpenAPI document's: each operation names
//! the role it asks for in its `security`; one that names none is refused to everybody.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use utoipa::Modify;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi, PathItem};

use super::App;
use super::problem::{Problem, RequestId};
use crate::domain::access::Role;
use crate::ports::task_store::Actor;
use crate::service::ServiceError;
use crate::service::access::Credentials;

/// The name of the scheme in the document.
pub const SCHEME: &str = "bearer";

/// Adds the scheme to the document.
pub struct Scheme;

impl Modify for Scheme {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_default();
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme(SCHEME, scheme);
    }
}

/// Who calls, as the token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Their name, for the audit.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// The business that they are, for [`Role::Business`].
    pub business: Option<String>,
    /// `api`, `cli` or `ui`; what the client says of itself, for the audit.
    pub source: &'static str,
    /// The request.
    pub request_id: String,
}

impl Caller {
    /// The caller as the audit shows them, with their reason.
    pub fn actor(&self, reason: Option<String>) -> Actor {
        let source = if self.role == Role::Business { "business" } else { self.source };
        Actor { name: self.name.clone(), source, reason, request_id: Some(self.request_id.clone()) }
    }

    /// Whether they may see things of this business: everybody but another business.
    ///
    /// # Errors
    /// As if it weren't there: one business doesn't learn what others have.
    pub fn may_see(&self, business: &str, what: &'static str, name: &str) -> Result<(), ServiceError> {
        match (self.role, self.business.as_deref()) {
            (Role::Business, own) if own != Some(business) => {
                Err(ServiceError::NotFound { what, name: name.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.ok_or_else(|| ServiceError::Unauthenticated("nobody is known here".to_owned()).into())
    }
}

/// The roles that each route asks for: one of them is enough.
#[derive(Debug, Default)]
pub struct Policy(HashMap<(String, String), Vec<Role>>);

impl Policy {
    /// Reads it from the document.
    pub fn of(document: &OpenApi) -> Policy {
        let mut policy = HashMap::new();
        for (path, item) in &document.paths.paths {
            for (method, operation) in operations(item) {
                let scopes = operation.security.iter().flatten().flat_map(scopes_of);
                let roles: Vec<Role> = scopes.filter_map(|scope| Role::parse(&scope)).collect();
                policy.insert((method.to_owned(), path.clone()), roles);
            }
        }
        Policy(policy)
    }

    /// The roles that a route asks for; none forbids it to everybody.
    pub fn needed(&self, method: &Method, path: &str) -> &[Role] {
        // Who may GET may HEAD.
        let method = if method == Method::HEAD { "GET" } else { method.as_str() };
        self.0.get(&(method.to_owned(), path.to_owned())).map_or(&[], Vec::as_slice)
    }
}

fn operations(item: &PathItem) -> Vec<(&'static str, &utoipa::openapi::path::Operation)> {
    let all = [
        ("GET", &item.get),
        ("POST", &item.post),
        ("PUT", &item.put),
        ("PATCH", &item.patch),
        ("DELETE", &item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_ref()?))).collect()
}

fn scopes_of(requirement: &utoipa::openapi::security::SecurityRequirement) -> Vec<String> {
    // The type keeps its map to itself; its JSON form is `{"bearer":["operator"]}`.
    let value = serde_json::to_value(requirement).unwrap_or_default();
    let scopes = value.get(SCHEME).and_then(|scopes| scopes.as_array().cloned()).unwrap_or_default();
    scopes.iter().filter_map(|scope| scope.as_str().map(str::to_owned)).collect()
}

/// Lets a request through to its handler if its caller may call it.
pub async fn guard(
    State((app, policy)): State<(App, Arc<Policy>)>,
    path: MatchedPath,
    mut request: Request,
    next: Next,
) -> Response {
    let request_id = request.extensions().get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let caller = match authenticate(&app, request.headers(), peer, request_id).await {
        Ok(caller) => caller,
        Err(error) => return Problem::from(error).into_response(),
    };
    let needed = policy.needed(request.method(), path.as_str());
    if !needed.iter().any(|role| caller.role.allows(*role)) {
        let needed: Vec<&str> = needed.iter().map(|role| role.as_str()).collect();
        let (name, role) = (&caller.name, caller.role.as_str());
        let text = format!("{name} is {role}; this needs {}", needed.join(" or "));
        return Problem::from(ServiceError::Forbidden(text)).into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

async fn authenticate(
    app: &App,
    headers: &HeaderMap,
    peer: Option<IpAddr>,
    request_id: String,
) -> Result<Caller, ServiceError> {
    let config = app.service.config();
    let credentials = Credentials {
        token: header(headers, AUTHORIZATION.as_str()).and_then(bearer),
        peer,
        proxy_user: header(headers, &config.auth.proxy_header),
    };
    let identity = app.service.authenticate(credentials).await?;
    let source = match header(headers, "windrow-client") {
        Some("cli") => "cli",
        Some("ui") => "ui",
        _ => "api",
    };
    Ok(Caller { name: identity.name, role: identity.role, business: identity.business, source, request_id })
}

/// The one value of a header; none when it is absent, repeated (whom to believe?) or no text.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none());
    value.and_then(|value| value.to_str().ok())
}

/// The token of `Bearer …`; the word counts in any case (RFC 9110, §11.1).
fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
