//! HTTP client of a node's API, used by the command line: requests and responses, uploads, downloads, the event
//! stream.
//!
//! | part | does |
//! |---|---|
//! | `request`, `answer` | what is asked, what comes back |
//! | `send` | one exchange; tried again where that is safe |
//! | `upload`, `download`, `events` | what is longer than memory, or never ends |
//! | `error` | what went wrong; what a node says of itself that didn't answer in time |
//! | `local` | connections to a node of this machine that has no address |
//! | `tap`, `tls` | shows the exchange with its secrets masked; which certificates are trusted, and who speaks TLS |
//!
//! Depends only on the wire format: the crates `api` and `tls`. Never prints, prompts, or reads the environment.
//! Redirects are not followed, so a token goes only to the server that was named.

mod answer;
mod download;
mod error;
mod events;
mod local;
mod request;
mod send;
mod tap;
mod tls;
mod upload;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client as Connections, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;
use windrow_tls::idn::with_ascii_host;
use windrow_tls::proxy::Proxy;

pub use self::answer::Answer;
pub use self::download::Download;
pub use self::error::ClientError;
pub use self::events::{Event, Events, StreamNews};
pub use self::local::{Dial, Duplex};
pub use self::request::{Request, segment};
pub use self::tap::{Depth, Tap};
pub use windrow_api::{Problem, ProblemField, Readiness};
pub use windrow_tls::environment::EnvironmentProxies;

/// Body of an outgoing request.
type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Connection options of a client.
#[derive(Debug)]
pub struct Options {
    /// Address of the node: `http://host:port` or `https://host:port`, without a path.
    pub server: String,
    /// Token of the caller; not needed by a node without access control.
    pub token: Option<String>,
    /// Maximum time for a request including retries, or for a stream without progress.
    pub timeout: Duration,
    /// PEM file with a private CA; without one, the system's authorities are trusted.
    pub ca_file: Option<PathBuf>,
    /// Proxy settings from the environment.
    pub proxies: EnvironmentProxies,
    /// Observer of each exchange.
    pub tap: Tap,
}

/// Connection pool, over the network or to a local node.
#[derive(Debug)]
enum Pool {
    Net(Connections<HttpsConnector<tls::Tcp>, Body>),
    Here(Connections<local::Dialled, Body>),
}

impl Pool {
    fn request(&self, request: hyper::Request<Body>) -> ResponseFuture {
        match self {
            Pool::Net(connections) => connections.request(request),
            Pool::Here(connections) => connections.request(request),
        }
    }
}

/// Base URL for requests to a node without an address.
const HERE: &str = "http://localhost";

/// Client of a single node.
#[derive(Debug)]
pub struct Client {
    server: String,
    authorization: Option<HeaderValue>,
    /// `Proxy-Authorization` sent with plain HTTP requests.
    proxy_authorization: Option<HeaderValue>,
    timeout: Duration,
    tap: Tap,
    pool: Pool,
}

impl Client {
    /// Creates a client, which connects on its first request.
    ///
    /// # Errors
    /// [`ClientError::Address`], [`ClientError::Token`] or [`ClientError::Trust`].
    pub fn new(options: Options) -> Result<Client, ClientError> {
        let server = address(&options.server)?;
        let authorization = options.token.as_deref().map(authorization).transpose()?;
        let proxy = proxy(&server, &options.proxies)?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(options.timeout));
        let proxy_authorization = proxy
            .as_ref()
            .and_then(|proxy| proxy.authorization().cloned())
            .filter(|_| server.starts_with("http:"));
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls::config(
                server.starts_with("https:"),
                options.ca_file.as_deref(),
            )?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tls::Tcp { connector, proxy });
        let pool = Pool::Net(pool().build(connector));
        Ok(Client {
            server,
            authorization,
            proxy_authorization,
            timeout: options.timeout,
            tap: options.tap,
            pool,
        })
    }

    /// Creates a client of a node on this machine, reached by `dial`. `timeout` limits each request including
    /// retries.
    pub fn here(dial: Dial, timeout: Duration, tap: Tap) -> Client {
        Client {
            server: HERE.to_owned(),
            authorization: None,
            proxy_authorization: None,
            timeout,
            tap,
            pool: Pool::Here(pool().build(local::Dialled(dial))),
        }
    }

    /// Returns the address of the node.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Sends a GET for a path.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn get(&self, path: &str) -> Result<Answer, ClientError> {
        self.send(Request::get(path)).await
    }

    /// Sends a POST with a JSON body. The request has an idempotency key, so it takes effect once even if it is sent
    /// repeatedly.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer, ClientError> {
        self.send(Request::post(path).json(body)).await
    }

    /// Sends a PATCH (merge patch) for a path.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn patch(&self, path: &str, body: &Value) -> Result<Answer, ClientError> {
        self.send(Request::patch(path).json(body)).await
    }
}

fn pool() -> Builder {
    let mut builder = Connections::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new());
    builder
}

/// Checks the address and returns it without a trailing slash.
fn address(server: &str) -> Result<String, ClientError> {
    let bad = |why: &str| ClientError::Address {
        server: server.to_owned(),
        why: why.to_owned(),
    };
    let ascii = with_ascii_host(server);
    let uri: Uri = ascii.parse().map_err(|_| bad("it is not a URL"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(bad("it must begin with http:// or https://"));
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err(bad("it has no host"));
    }
    if uri
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return Err(bad("it contains a user; pass a token instead"));
    }
    if uri.path() != "/" || uri.query().is_some() {
        return Err(bad("it has a path; give only scheme, host and port"));
    }
    Ok(ascii.trim_end_matches('/').to_owned())
}

/// Returns the proxy for the node, if any.
fn proxy(server: &str, proxies: &EnvironmentProxies) -> Result<Option<Proxy>, ClientError> {
    let bad = |why: String| ClientError::Address {
        server: server.to_owned(),
        why,
    };
    let url: Uri = server.parse().map_err(|_| bad("it is not a URL".to_owned()))?;
    proxies.of(&url).map(Option::<&Proxy>::cloned).map_err(bad)
}

fn authorization(token: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| ClientError::Token("it contains invalid characters".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_scheme_host_and_port() {
        for good in ["http://127.0.0.1:7700", "https://n1", "http://[::1]:7700/"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "n1:7700",
            "ftp://n1",
            "http://n1/v1",
            "http://n1?x=1",
            "http://u:p@n1",
            "",
            "http://",
            "a b",
        ] {
            assert!(matches!(address(bad), Err(ClientError::Address { .. })), "{bad}");
        }
        assert_eq!(address("http://n1:7700/").expect("good"), "http://n1:7700");
    }

    #[test]
    fn a_token_never_shows_in_debug_text() {
        let value = authorization("wrk_secret").expect("a header");
        assert!(!format!("{value:?}").contains("secret"));
        assert!(authorization("a\nb").is_err());
    }
}
