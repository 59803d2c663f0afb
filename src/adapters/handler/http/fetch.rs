//! Fetches the file behind a URL, once, when a task is made of it.
//!
//! The same guard as for callbacks: the name is resolved once, each address is judged, and no redirect is followed.
//! Messages name the host only: a path or query may hold secrets.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http_body_util::{BodyExt, Empty};
use hyper::{Request, Uri, header};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::timeout;

use super::connect::Connector;
use super::{HttpOptions, tls};

/// How long the answer may take to begin.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the body may pause.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest URL. Unit: bytes.
const URL_BYTES_MAX: usize = 2048;

/// Fetches files under the rules of `[handler.http]`.
pub struct Fetcher {
    options: HttpOptions,
}

/// The body of an answer.
pub(in crate::adapters) type Fetched = BoxStream<'static, Result<Bytes, String>>;

impl Fetcher {
    /// The options' URL, headers and secrets are not used.
    pub fn new(options: HttpOptions) -> Fetcher {
        Fetcher { options }
    }

    /// Asks for a file; its body comes as a stream that fails when it pauses too long.
    ///
    /// # Errors
    /// A sentence for people.
    pub(in crate::adapters) async fn get(&self, url: &str) -> Result<Fetched, String> {
        let uri = checked(url)?;
        let host = uri.host().unwrap_or_default().to_owned();
        let tls = tls::config(&self.options)?;
        let tcp = Connector::direct(self.options.egress.clone(), self.options.connect_timeout);
        let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build::<_, Empty<Bytes>>(https.wrap_connector(tcp));
        let agent = format!("windrow/{}", env!("CARGO_PKG_VERSION"));
        let request = Request::get(uri).header(header::USER_AGENT, agent).header(header::ACCEPT, "*/*");
        let request = request.body(Empty::new()).map_err(|_| "the url can't be asked for".to_owned())?;
        let answered = timeout(HEAD_TIMEOUT, client.request(request)).await;
        let late = |_| format!("{host} did not begin to answer within {} s", HEAD_TIMEOUT.as_secs());
        let answer = answered.map_err(late)?.map_err(|error| format!("{host}: {}", deepest(&error)))?;
        let status = answer.status();
        if status.is_redirection() {
            return Err(format!(
                "{host} answered {status}: redirects are not followed; name the file's own url"
            ));
        }
        if status != hyper::StatusCode::OK {
            return Err(format!("{host} answered {status}; the file must be there without further headers"));
        }
        Ok(unpaused(answer.into_body(), host).boxed())
    }
}

fn checked(url: &str) -> Result<Uri, String> {
    if url.len() > URL_BYTES_MAX {
        return Err(format!("the url is longer than {URL_BYTES_MAX} bytes"));
    }
    let uri: Uri = url.parse().map_err(|_| "the url is none".to_owned())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    if !is_http || uri.host().is_none_or(str::is_empty) {
        return Err("the url must begin with http:// or https:// and a host".to_owned());
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("the url must not hold a user or password".to_owned());
    }
    Ok(uri)
}

/// The chunks of a body, or an error when it pauses too long or breaks.
fn unpaused(
    body: hyper::body::Incoming,
    host: String,
) -> impl futures_util::Stream<Item = Result<Bytes, String>> + Send + 'static {
    stream::unfold(Some((body, host)), |state| async move {
        let (mut body, host) = state?;
        loop {
            match timeout(PAUSE_TIMEOUT, body.frame()).await {
                Err(_) => {
                    let text = format!("{host} sent nothing for {} s", PAUSE_TIMEOUT.as_secs());
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
    })
}

/// The cause at the bottom says it best.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_urls_are_fetched() {
        for url in ["https://example.org/users.csv?x=1", "http://10.0.0.1:8080/u.ndjson"] {
            assert!(checked(url).is_ok(), "{url}");
        }
        for url in
            ["ftp://example.org/u", "/etc/passwd", "file:///etc/passwd", "https://u:p@example.org/", ""]
        {
            assert!(checked(url).is_err(), "{url}");
        }
    }
}
