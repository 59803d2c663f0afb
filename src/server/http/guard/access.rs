//! Authentication and authorization of requests. The policy comes from the OpenAPI document: each operation lists its
//! roles in `security`, or is public with `security(())`. An operation without either is refused to everybody.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::header::{ALLOW, AUTHORIZATION};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use utoipa::Modify;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{OpenApi, PathItem};

use crate::http::answer::held;
use crate::http::front::App;
use crate::http::guard::caller::Caller;
use crate::http::guard::visitor::{self, Names};
use crate::http::problem::{HttpResult, Problem, RequestId, Slug};
use crate::http::tokens::session;
use crate::service::ServiceError;
use crate::service::access::Credentials;
use crate::service::access::proxy::Sent;
use windrow_core::business::access::Role;
use windrow_core::ids::TaskId;

/// Name of the security scheme in the OpenAPI document.
pub const SCHEME: &str = "bearer";

/// Modifier that adds the security scheme to the OpenAPI document.
pub struct Scheme;

impl Modify for Scheme {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_default();
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme(SCHEME, scheme);
    }
}

/// Callers allowed on a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody, without a token: `security(())`.
    Public,
    /// Callers with one of the roles, and anybody on this machine: `security((), ("bearer" = […]))`.
    Local(Vec<Role>),
    /// Callers with one of the roles; an empty list means nobody.
    Roles(Vec<Role>),
}

/// Allowed callers per route, and the accepted names of the node.
#[derive(Debug, Default)]
pub struct Policy {
    routes: HashMap<(String, String), Access>,
    names: Names,
}

impl Policy {
    /// Reads the policy from the OpenAPI document.
    pub(crate) fn of(document: &OpenApi, names: Names) -> Policy {
        let mut routes = HashMap::new();
        for (path, item) in &document.paths.paths {
            for (method, operation) in operations(item) {
                routes.insert((method.to_owned(), path.clone()), access_of(operation));
            }
        }
        Policy { routes, names }
    }

    /// Returns the access of a route; nobody if the document states nothing.
    pub fn access(&self, method: &Method, path: &str) -> Access {
        // HEAD follows the policy of GET.
        let method = if method == Method::HEAD {
            "GET"
        } else {
            method.as_str()
        };
        let known = self.routes.get(&(method.to_owned(), path.to_owned()));
        known.cloned().unwrap_or(Access::Roles(Vec::new()))
    }

    /// Returns the methods of a path that doesn't allow this one; `None` for an unknown path.
    fn others(&self, method: &Method, path: &str) -> Option<String> {
        let mut known: Vec<&str> = self
            .routes
            .keys()
            .filter(|(_, at)| at == path)
            .map(|(name, _)| name.as_str())
            .collect();
        if known.contains(&"GET") {
            known.push("HEAD");
        }
        known.sort_unstable();
        (!known.is_empty() && !known.contains(&method.as_str())).then(|| known.join(", "))
    }
}

/// Returns the access that an operation states.
pub(crate) fn access_of(operation: &Operation) -> Access {
    let requirements = operation.security.as_deref().unwrap_or_default();
    let is_open = requirements
        .iter()
        .any(|requirement| *requirement == SecurityRequirement::default());
    let scopes = requirements.iter().flat_map(scopes_of);
    let roles: Vec<Role> = scopes.filter_map(|scope| Role::parse(&scope)).collect();
    match (is_open, roles.is_empty()) {
        (true, true) => Access::Public,
        (true, false) => Access::Local(roles),
        (false, _) => Access::Roles(roles),
    }
}

pub(crate) fn operations(item: &PathItem) -> Vec<(&'static str, &Operation)> {
    let all = [
        ("GET", &item.get),
        ("POST", &item.post),
        ("PUT", &item.put),
        ("PATCH", &item.patch),
        ("DELETE", &item.delete),
    ];
    all.into_iter()
        .filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
        .collect()
}

fn scopes_of(requirement: &SecurityRequirement) -> Vec<String> {
    // The type hides its map, but its JSON form is `{"bearer":["operator"]}`.
    let value = serde_json::to_value(requirement).unwrap_or_default();
    let scopes = value
        .get(SCHEME)
        .and_then(|scopes| scopes.as_array().cloned())
        .unwrap_or_default();
    scopes
        .iter()
        .filter_map(|scope| scope.as_str().map(str::to_owned))
        .collect()
}

/// Middleware that passes on only requests that their caller may make.
pub async fn guard(
    State((app, policy)): State<(App, Arc<Policy>)>,
    path: MatchedPath,
    request: Request,
    next: Next,
) -> HttpResult {
    if let Some(others) = policy.others(request.method(), path.as_str()) {
        return Ok(method_not_allowed(&request, &others));
    }
    let (roles, is_open_here) = match policy.access(request.method(), path.as_str()) {
        // Skip the Host and Origin checks, since watchdogs send odd requests and the response is the same for
        // everybody. Not for writes: a foreign page must not sign anybody in.
        Access::Public if request.method().is_safe() => return Ok(next.run(request).await),
        Access::Public => (None, false),
        Access::Local(roles) => (Some(roles), !app.service.config().auth.always_token),
        Access::Roles(roles) => (Some(roles), false),
    };
    let judged = policy
        .names
        .judge(request.method(), request.uri(), request.headers());
    judged.map_err(|(slug, text)| Problem::new(slug, text))?;
    let Some(roles) = roles.filter(|_| !(is_open_here && is_local(&request))) else {
        return Ok(next.run(request).await);
    };
    let id = request.extensions().get::<RequestId>();
    let id = id.map(|id| id.0.clone()).unwrap_or_default();
    let caller = authenticate(&app, request.headers(), peer(&request), id).await?;
    let is_by_cookie = caller.sign_in.is_some() && !request.method().is_safe();
    if is_by_cookie && !visitor::is_own_page(request.headers()) {
        let text = "a session may make changes only from the node's own pages, and the request has neither \
                    Origin nor Sec-Fetch-Site: same-origin";
        return Err(Problem::new(Slug::ForeignPage, text));
    }
    if !roles.iter().any(|role| caller.role.allows(*role)) {
        let needed: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        let (name, role) = (&caller.name, caller.role.as_str());
        let text = format!(
            "{name} has the role {role}; this requires {}",
            needed.join(" or ")
        );
        return Err(ServiceError::Forbidden(text).into());
    }
    if let Some(task) = caller.task {
        keep_to(task, path.as_str(), request.uri().path())?;
    }
    Ok(held::run_for(caller, request, next).await)
}

/// Builds the 405 response, which lists the allowed methods (RFC 9110, §15.5.6).
fn method_not_allowed(request: &Request, others: &str) -> Response {
    let (path, method) = (request.uri().path(), request.method());
    let problem = Problem::new(
        Slug::MethodNotAllowed,
        format!("{path} accepts {others}, not {method}"),
    );
    let mut response = problem.into_response();
    let allow = others.parse().ok().map(|others| (ALLOW, others));
    response.headers_mut().extend(allow);
    response
}

/// Returns the peer address of the request.
fn peer(request: &Request) -> Option<IpAddr> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map(|info| info.0.ip())
}

/// Routes that a start token may use beside its own task; there it sees only that task.
const BESIDE_THE_TASK: [&str; 3] = ["/v1/whoami", "/v1/logs", "/v1/events"];
/// Routes that would create more tasks, closed to start tokens.
const MORE_TASKS: [&str; 3] = [
    "/v1/tasks/{task}/clone",
    "/v1/tasks/{task}/redrives",
    "/v1/tasks/{task}/replays",
];

/// Restricts a start token to its own task, regardless of the route.
///
/// # Errors
/// `NotFound` for other tasks, `Forbidden` for anything that isn't part of a task.
fn keep_to(task: TaskId, route: &str, path: &str) -> Result<(), ServiceError> {
    if BESIDE_THE_TASK.contains(&route) {
        return Ok(());
    }
    let mut parts = route.split('/').zip(path.split('/'));
    match parts.find(|(part, _)| *part == "{task}") {
        Some((_, asked)) if asked != task.to_string() => Err(ServiceError::no_task(asked)),
        Some(_) if !MORE_TASKS.contains(&route) => Ok(()),
        _ => {
            let text = format!("this start token is only valid for {task}");
            Err(ServiceError::Forbidden(text))
        }
    }
}

/// Interval at which a stream's token is checked again. A revoked or expired token must stop receiving within 5 s.
const LOOK_AGAIN_EVERY: Duration = Duration::from_secs(3);

/// Waits until these credentials become invalid, for responses without an end. Cancel safe.
pub(crate) async fn no_longer_known(app: &App, headers: &HeaderMap, peer: Option<IpAddr>) {
    loop {
        tokio::time::sleep(LOOK_AGAIN_EVERY).await;
        let known = authenticate(app, headers, peer, String::new()).await;
        // An unreadable store must not end the stream.
        if let Err(ServiceError::Unauthenticated(_) | ServiceError::StaleStart(_) | ServiceError::NoRole(_)) =
            known
        {
            return;
        }
    }
}

/// Checks that these credentials are still valid, after a long wait.
///
/// # Errors
/// `Unauthenticated` if the token has been revoked or has expired.
pub(crate) async fn still_known(
    app: &App,
    headers: &HeaderMap,
    peer: Option<IpAddr>,
) -> Result<(), ServiceError> {
    authenticate(app, headers, peer, String::new()).await.map(drop)
}

/// Returns true for a client on this machine, unless the request came through a proxy.
pub(crate) fn is_local(request: &Request) -> bool {
    let by_proxy = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];
    let is_forwarded = by_proxy.iter().any(|name| request.headers().contains_key(*name));
    peer(request).is_some_and(|peer| peer.to_canonical().is_loopback()) && !is_forwarded
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
        cookie: session::cookie(headers),
        peer,
        proxy_user: header(headers, &config.auth.proxy_header),
        proxy_groups: groups(headers, config.auth.proxy_groups_header.as_deref()),
    };
    let identity = app.service.access.authenticate(credentials).await?;
    let source = match header(headers, "windrow-client") {
        _ if identity.sign_in.is_some() => "ui",
        Some("cli") => "cli",
        Some("ui") => "ui",
        _ => "api",
    };
    Ok(Caller {
        name: identity.name,
        subject: identity.subject,
        role: identity.role,
        role_from: identity.role_from,
        business: identity.business,
        task: identity.task,
        sign_in: identity.sign_in,
        source,
        request_id,
    })
}

/// Returns the value of a header; `None` if it is missing, not text, or repeated (no value can be trusted then).
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none());
    value.and_then(|value| value.to_str().ok())
}

/// Returns the groups sent by a proxy. An unusable header isn't a missing one: the two have different roles.
fn groups<'a>(headers: &'a HeaderMap, name: Option<&str>) -> Sent<'a> {
    let Some(name) = name.filter(|name| headers.contains_key(*name)) else {
        return Sent::Nothing;
    };
    header(headers, name).map_or(Sent::Unusable, Sent::Text)
}

/// Returns the token of `Bearer …`; the scheme is case-insensitive (RFC 9110, §11.1).
fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_token_is_kept_to_the_routes_of_its_task() {
        let keeps = |route, path| keep_to(TaskId(7), route, path).is_ok();
        assert!(keeps("/v1/tasks/{task}/ready", "/v1/tasks/t7/ready") && keeps("/v1/whoami", "/v1/whoami"));
        assert!(!keeps("/v1/tasks/{task}", "/v1/tasks/t77"));
        assert!(!keeps("/v1/tasks/{task}/clone", "/v1/tasks/t7/clone"));
        assert!(!keeps("/v1/uploads", "/v1/uploads") && !keeps("/v1/uploads/{u}", "/v1/uploads/t7"));
    }

    #[test]
    fn a_bearer_token_is_read_in_any_case_and_only_if_there_is_one() {
        let mut headers = HeaderMap::new();
        headers.append(AUTHORIZATION, "bEaReR  wrk_x".parse().expect("a value"));
        let token = |headers: &HeaderMap| {
            header(headers, "authorization")
                .and_then(bearer)
                .map(str::to_owned)
        };
        assert_eq!(token(&headers).as_deref(), Some("wrk_x"));
        headers.append(AUTHORIZATION, "Bearer wrk_y".parse().expect("a value"));
        assert_eq!(token(&headers), None);
        assert_eq!(bearer("Basic abc"), None);
    }
}
