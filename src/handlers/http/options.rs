//! Settings of an `http` handler (`[handler.http]` and a business's own settings), and their check.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::Scheme;
use hyper::{Method, Uri};

use crate::classify::Pointer;
use crate::scrub::{SECRET_BYTES_MIN, Scrubber};
use crate::sign::{KeyRing, Signer};
use windrow_config::HttpHandler;
use windrow_core::business::secrets::{BusinessSecrets, is_secret_header, origin};
use windrow_core::business::{BusinessSpec, HandlerSpec, LimitsFrom};
use windrow_core::ids::WallMs;
use windrow_core::items::verdict::Failure;
use windrow_engine::ports::handling::handler::{BAD_HANDLER, OpenError};
use windrow_net::idn::with_ascii_host;
use windrow_net::{ClientCertificate, Outbound, is_port};

/// Default maximum size of a reply, in bytes.
pub const REPLY_BYTES_MAX_DEFAULT: usize = 1 << 20;

/// Headers that Windrow sets itself, or that belong to a connection.
const RESERVED_HEADERS: [&str; 14] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "proxy-connection",
    "accept-encoding",
    "idempotency-key",
    "traceparent",
    "expect",
];
/// Prefixes of header names that are reserved for Windrow.
const RESERVED_PREFIXES: [&str; 2] = ["webhook-", "windrow-"];

/// Settings of an `http` handler. `Debug` shows neither secrets nor values of headers.
#[derive(Clone)]
pub struct HttpOptions {
    /// Address at which the business listens, `http://` or `https://`.
    pub url: String,
    /// HTTP method, `POST` unless a business needs another.
    pub method: String,
    /// Additional headers to send, such as `authorization`; their values aren't shown.
    pub headers: Vec<(String, String)>,
    /// Names of headers whose values are secrets, besides those that are secret by name.
    pub secret_headers: Vec<String>,
    /// Signing secrets `whsec_…`, newest first; two during a rotation. Callbacks are unsigned if there are none.
    pub secrets: Vec<String>,
    /// Signer used instead of the secrets, if they may change during a run.
    pub ring: Option<Arc<KeyRing>>,
    /// Location of the result in a reply (RFC 6901); empty means the whole reply.
    pub response_pointer: String,
    /// Source of the limits that the handler describes.
    pub limits_from: LimitsFrom,
    /// Settings for making connections.
    pub outbound: Outbound,
    /// Maximum size of a reply, in bytes.
    pub reply_bytes_max: usize,
    /// Name of this node, for `user-agent`.
    pub node: String,
    /// Items per call: above 1, every call is a batched one, whatever it holds.
    pub batch: u32,
}

impl HttpOptions {
    /// Returns the defaults of `config.toml` for a url.
    pub fn new(url: impl Into<String>) -> HttpOptions {
        HttpOptions {
            url: url.into(),
            method: "POST".into(),
            headers: Vec::new(),
            secret_headers: Vec::new(),
            secrets: Vec::new(),
            ring: None,
            response_pointer: String::new(),
            limits_from: LimitsFrom::Off,
            outbound: Outbound::default(),
            reply_bytes_max: REPLY_BYTES_MAX_DEFAULT,
            node: "n1".into(),
            batch: 1,
        }
    }

    /// Sets the settings for making connections.
    #[must_use]
    pub fn through(mut self, outbound: Outbound) -> HttpOptions {
        self.outbound = outbound;
        self
    }

    /// Returns the configuration's options for all handlers, with a url.
    pub fn of(config: &HttpHandler, url: impl Into<String>) -> HttpOptions {
        HttpOptions::new(url).through(Outbound::to_handlers(config))
    }

    /// Returns a business's options on top of the configuration's, for its own url or a hook's. A business whose
    /// handler is a command has none of its own. Secret headers are sent only to the origin of its own url.
    pub fn for_business(
        config: &HttpHandler,
        url: &str,
        spec: &BusinessSpec,
        secrets: &BusinessSecrets,
        now: WallMs,
    ) -> HttpOptions {
        let mut options = HttpOptions {
            secrets: secrets.signing(now),
            ..HttpOptions::of(config, url)
        };
        let HandlerSpec::Http(http) = &spec.handler else {
            return options;
        };
        // Credentials belong to their recipient: a hook elsewhere verifies the signature instead.
        let is_at_home = origin(url).is_some() && origin(url) == origin(&http.url);
        let secret = secrets.headers.iter().filter(|_| is_at_home);
        let own = http.headers.iter().chain(secret);
        options.headers = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        options.secret_headers = secrets.headers.keys().cloned().collect();
        options.response_pointer = http.response_pointer.clone();
        options.limits_from = http.limits_from.unwrap_or(options.limits_from);
        let client_cert = client_cert(&http.client_cert_pem, secrets).filter(|_| is_at_home);
        connect(
            &mut options.outbound,
            &http.proxy,
            &http.ca_pem,
            client_cert,
            http.insecure_skip_verify,
        );
        options
    }

    /// Parses the settings that are text.
    pub(super) fn check(&self) -> Result<Checked, OpenError> {
        let (uri, is_https) = uri(&self.url).map_err(refuse)?;
        self.outbound.proxies().map_err(refuse)?;
        let method = Method::from_bytes(self.method.as_bytes());
        let method =
            method.map_err(|_| refuse(format!("{:?} is not an HTTP method; POST is usual", self.method)))?;
        let signer = Signer::new(&self.secrets).map_err(refuse)?;
        let signer = self
            .ring
            .clone()
            .unwrap_or_else(|| Arc::new(KeyRing::new(signer)));
        let pointer = Pointer::new(&self.response_pointer).map_err(refuse)?;
        Ok(Checked {
            uri,
            is_https,
            method,
            headers: self.header_map()?,
            signer,
            pointer,
            scrubber: Arc::new(Scrubber::new(self.secret_values())),
        })
    }

    /// Returns the header values that are secrets: by their names, or because a business says so.
    fn secret_values(&self) -> impl Iterator<Item = &str> {
        let is_secret = |name: &str| {
            is_secret_header(name)
                || self
                    .secret_headers
                    .iter()
                    .any(|one| one.eq_ignore_ascii_case(name))
        };
        let secret = self.headers.iter().filter(move |(name, _)| is_secret(name));
        secret
            .map(|(_, value)| value.as_str())
            .filter(|value| value.len() >= SECRET_BYTES_MIN)
    }

    fn header_map(&self) -> Result<HeaderMap, OpenError> {
        let mut map = HeaderMap::with_capacity(self.headers.len() + 20);
        let mut seen = HashSet::new();
        for (name, value) in &self.headers {
            let (name, value) = header(name, value).map_err(refuse)?;
            if !seen.insert(name.clone()) {
                return Err(refuse(format!("the header {name} is set twice; remove one")));
            }
            map.insert(name, value);
        }
        Ok(map)
    }
}

/// Applies a business's settings for connections on top of the configuration's.
pub(crate) fn connect(
    outbound: &mut Outbound,
    proxy: &Option<String>,
    ca_pem: &Option<String>,
    client_cert: Option<ClientCertificate>,
    trusts_any: bool,
) {
    // A business that names an authority wants it checked, whatever holds for the others.
    let by_config = outbound.insecure_skip_verify && ca_pem.is_none();
    outbound.insecure_skip_verify = trusts_any || by_config;
    outbound.ca_pem.clone_from(ca_pem);
    if proxy.is_some() {
        outbound.proxy.clone_from(proxy);
    }
    if client_cert.is_some() {
        outbound.client_cert = client_cert;
    }
}

/// Returns the client certificate of a business, whose key is a secret.
pub(crate) fn client_cert(cert: &Option<String>, secrets: &BusinessSecrets) -> Option<ClientCertificate> {
    let (cert, key) = cert.clone().zip(secrets.client_key.clone())?;
    Some(ClientCertificate::Texts { cert, key })
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpOptions")
            .field("method", &self.method)
            .field("headers", &names)
            .field("secrets", &self.secrets.len())
            .field("batch", &self.batch)
            .field("ca_file", &self.outbound.ca_file)
            .field("insecure_skip_verify", &self.outbound.insecure_skip_verify)
            .finish_non_exhaustive()
    }
}

/// Parses a handler's url. Returns true with it if it is https.
///
/// # Errors
/// A sentence for people, without passwords.
pub(crate) fn uri(url: &str) -> Result<(Uri, bool), String> {
    let bad = |why: &str| {
        let shown = url
            .split_once('@')
            .map_or(url, |_| "(hidden: it contains a password)");
        format!(
            "the handler's url {shown:?} can't be used: {why}; an example is http://127.0.0.1:9000/windrow"
        )
    };
    let no_scheme = || match url.is_empty() || url.contains(['@', ' ']) {
        true => bad("it begins with neither http:// nor https://"),
        false => {
            let (scheme, rest) = match url.split_once(':') {
                Some((scheme @ ("http" | "https"), rest)) => (scheme, rest.trim_start_matches('/')),
                _ => ("http", url),
            };
            format!(
                "the handler's url {url:?} can't be used: it begins with neither http:// nor https://; did you mean \
                 \"{scheme}://{rest}\"?"
            )
        }
    };
    let uri: Uri = with_ascii_host(url)
        .parse()
        .map_err(|why: hyper::http::uri::InvalidUri| match url.contains("://") {
            true => bad(&why.to_string()),
            false => no_scheme(),
        })?;
    let is_https = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => false,
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        Some(scheme) => return Err(bad(&format!("the scheme {scheme} is neither http nor https"))),
        None => return Err(no_scheme()),
    };
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        return Err(bad(
            "it contains a user or password; send them in a header instead, --header 'authorization: \
             Basic …'",
        ));
    }
    let host = uri.host().unwrap_or_default();
    if host.is_empty() || !authority.strip_prefix(host).is_some_and(is_port) {
        return Err(bad("it has no host, or its port is not 1 to 65535"));
    }
    Ok((uri, is_https))
}

/// Parses a header that a person may set.
///
/// # Errors
/// A sentence for people, without the value.
pub(super) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parsed = HeaderName::from_bytes(name.as_bytes());
    let name = parsed.map_err(|_| format!("{name:?} is not a valid header name"))?;
    let is_ours = RESERVED_HEADERS.contains(&name.as_str())
        || RESERVED_PREFIXES
            .iter()
            .any(|prefix| name.as_str().starts_with(prefix));
    if is_ours {
        return Err(format!(
            "the header {name} can't be set: windrow sets it itself; remove it"
        ));
    }
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("the value of header {name} has characters that headers can't contain"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Settings that passed their check.
pub(super) struct Checked {
    pub(super) uri: Uri,
    pub(super) is_https: bool,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) signer: Arc<KeyRing>,
    pub(super) pointer: Pointer,
    /// Scrubber of the values of secret headers.
    pub(super) scrubber: Arc<Scrubber>,
}

fn refuse(why: impl fmt::Display) -> OpenError {
    Failure::new(BAD_HANDLER, why.to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn an_address_with_half_a_scheme_is_given_back_whole() {
        for (wrong, meant) in [
            ("http:/127.0.0.1:9101", "\"http://127.0.0.1:9101\"?"),
            ("https:n1", "\"https://n1\"?"),
            ("127.0.0.1:9101", "\"http://127.0.0.1:9101\"?"),
        ] {
            let said = uri(wrong).expect_err("no url");
            assert!(said.ends_with(meant), "{said}");
        }
    }
}
