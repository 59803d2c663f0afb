//! Download of the file behind a URL, once, when a task is created from it.
//!
//! The same guard as for callbacks: the name is resolved once, each address is judged, no redirect is followed, and
//! the same proxy is used. A business reaches less: public addresses and `source_networks`, never this node. Every
//! failure to get a response reads the same to it; otherwise it could find open ports where only the node has access.
//! Messages name only the host, since a path or query may hold secrets.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::{Request, Response, Uri, header};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::timeout;

use super::connect::{ConnectError, Connector};
use super::idn::with_ascii_host;
use super::{Outbound, is_port, tls};
use windrow_core::business::network::Network;
use windrow_tls::{TlsFault, causes, deepest};

/// Time within which the response must begin.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum pause within the body.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of a URL, in bytes.
const URL_BYTES_MAX: usize = 2048;

/// Client that fetches files under the rules of `[handler.http]`.
pub struct Fetcher {
    options: Outbound,
    guard: Guard,
}

/// Limits to what a business may reach.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Private networks that a business may reach.
    pub networks: Vec<Network>,
    /// Port that this node listens on.
    pub own_port: u16,
    /// Addresses under which others reach this node.
    pub own_urls: Vec<String>,
}

/// Body of a response, as a stream of chunks.
pub type Fetched = BoxStream<'static, Result<Bytes, String>>;

impl Fetcher {
    /// Creates a fetcher with these settings for connections.
    pub fn new(options: Outbound, guard: Guard) -> Fetcher {
        Fetcher { options, guard }
    }

    /// Requests a file. The body is a stream that fails if it pauses too long.
    ///
    /// # Errors
    /// A sentence for people.
    pub async fn get(&self, url: &str, is_guarded: bool) -> Result<Fetched, String> {
        let uri = checked_url(url)?;
        let host = uri.host().unwrap_or_default().to_owned();
        let answer = match self.ask(uri, &host, is_guarded).await {
            Err(why) if is_guarded => {
                tracing::info!(host, why, "fetch of a business's source failed");
                return Err(format!(
                    "can't fetch anything from {host}: it doesn't answer, or businesses may not reach it; \
                     allow private networks in handler.http.source_networks; see the node's log"
                ));
            }
            answer => answer?,
        };
        let status = answer.status();
        if status.is_redirection() {
            return Err(format!(
                "{host} answered {status}: redirects are not followed; use the file's final url"
            ));
        }
        if status != hyper::StatusCode::OK {
            return Err(format!(
                "{host} answered {status}; the file must be available without extra headers"
            ));
        }
        Ok(unpaused(answer.into_body(), host).boxed())
    }

    /// Returns the response, whatever its status.
    async fn ask(&self, uri: Uri, host: &str, is_guarded: bool) -> Result<Response<Incoming>, String> {
        if is_guarded && self.guard.own_urls.iter().any(|own| leads_to(own, &uri)) {
            return Err(format!("{host} is this node"));
        }
        let options = &self.options;
        let tls = tls::config(options)?;
        let proxies = options.proxies()?;
        let tcp = Connector::to_others(options.egress.clone(), options.connect_timeout, proxies);
        let guard = &self.guard;
        let tcp = if is_guarded {
            tcp.guarded(guard.networks.clone(), guard.own_port)
        } else {
            tcp
        };
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build::<_, Empty<Bytes>>(https.wrap_connector(tcp));
        let agent = format!("windrow/{}", env!("CARGO_PKG_VERSION"));
        let request = Request::get(uri)
            .header(header::USER_AGENT, agent)
            .header(header::ACCEPT, "*/*")
            // Without it any encoding is acceptable (RFC 9110, 12.5.3).
            .header(header::ACCEPT_ENCODING, "identity");
        let request = request
            .body(Empty::new())
            .map_err(|_| "the url can't be requested".to_owned())?;
        let answered = timeout(HEAD_TIMEOUT, client.request(request)).await;
        let late = |_| format!("no response from {host} within {} s", HEAD_TIMEOUT.as_secs());
        answered.map_err(late)?.map_err(|error| told(host, &error))
    }
}

/// Parses an http or https URL without a user.
///
/// # Errors
/// A sentence for people.
pub fn checked_url(url: &str) -> Result<Uri, String> {
    if url.len() > URL_BYTES_MAX {
        return Err(format!("the url is longer than {URL_BYTES_MAX} bytes"));
    }
    let uri: Uri = with_ascii_host(url)
        .parse()
        .map_err(|_| "the url is invalid".to_owned())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    if !is_http || uri.host().is_none_or(str::is_empty) {
        return Err("the url must begin with http:// or https:// and a host".to_owned());
    }
    let authority = uri
        .authority()
        .map(|authority| authority.as_str())
        .unwrap_or_default();
    if authority.contains('@') {
        return Err("the url must not contain a user or password".to_owned());
    }
    if !authority
        .strip_prefix(uri.host().unwrap_or_default())
        .is_some_and(is_port)
    {
        return Err("the url's port is not within 1 to 65535".to_owned());
    }
    Ok(uri)
}

/// Returns true if a URL has the host and port of this one.
fn leads_to(own: &str, uri: &Uri) -> bool {
    let place = |uri: &Uri| {
        let usual = if uri.scheme_str() == Some("https") {
            443
        } else {
            80
        };
        let host = uri.host()?.trim_end_matches('.').to_ascii_lowercase();
        Some((host, uri.port_u16().unwrap_or(usual)))
    };
    own.parse::<Uri>()
        .is_ok_and(|own| place(&own).is_some() && place(&own) == place(uri))
}

/// Explains why there is no response. The innermost cause is the clearest; the connector's text is about handlers.
fn told(host: &str, error: &legacy::Error) -> String {
    match causes(error).find_map(|cause| cause.downcast_ref::<ConnectError>()) {
        Some(ConnectError::Unreachable(address, why)) => {
            format!("can't connect to {address}: {why}; check that the file's server is running there")
        }
        Some(why) => why.to_string(),
        None => match TlsFault::of(error) {
            Some(tls_fault @ TlsFault::WantsHttps) => format!("{host}: {tls_fault}: use https in the url"),
            Some(tls_fault @ TlsFault::WantsHttp) => format!("{host}: {tls_fault}: use http in the url"),
            Some(tls_fault) => format!("{host}: {tls_fault}"),
            None => format!("{host}: {}", deepest(error)),
        },
    }
}

/// Returns the chunks of a body, or an error if it pauses too long or breaks. After the end, it returns the end
/// again.
fn unpaused(
    body: Incoming,
    host: String,
) -> impl futures_util::Stream<Item = Result<Bytes, String>> + Send + 'static {
    let chunks = stream::unfold(Some((body, host)), |state| async move {
        let (mut body, host) = state?;
        loop {
            match timeout(PAUSE_TIMEOUT, body.frame()).await {
                Err(_) => {
                    let text = format!("{host} sent no data for {} s", PAUSE_TIMEOUT.as_secs());
                    return Some((Err(text), None));
                }
                Ok(None) => return None,
                Ok(Some(Err(error))) => return Some((Err(format!("{host}: {}", deepest(&error))), None)),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Some((Ok(data), Some((body, host))));
                    }
                }
            }
        }
    });
    chunks.fuse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_urls_are_fetched() {
        for url in [
            "https://example.org/users.csv?x=1",
            "http://10.0.0.1:8080/u.ndjson",
        ] {
            assert!(checked_url(url).is_ok(), "{url}");
        }
        for url in [
            "ftp://example.org/u",
            "/etc/passwd",
            "file:///etc/passwd",
            "https://u:p@example.org/",
            "http://example.org:99999/u.csv",
            "http://example.org:0/u.csv",
            "http://example.org:/u.csv",
            "",
        ] {
            assert!(checked_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_nodes_urls_lead_to_it_whatever_the_path() {
        let leads = |own: &str, url: &'static str| leads_to(own, &Uri::from_static(url));
        assert!(leads(
            "https://windrow.example.org",
            "https://WINDROW.example.org.:443/u.csv"
        ));
        assert!(leads("http://10.0.0.5:7700/x", "http://10.0.0.5:7700/metrics"));
        assert!(!leads("http://10.0.0.5:7700", "http://10.0.0.5:7701/") && !leads("", "http://a/"));
    }
}
