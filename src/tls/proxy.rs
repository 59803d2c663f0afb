//! Forward proxy: its address, and the tunnel that https needs through it.
//!
//! A call to `http://…` goes to the proxy with the whole URL in its first line; for `https://…` the proxy is asked to
//! `CONNECT`, and TLS is spoken with the handler itself. The proxy resolves the name in the handler's URL, so the
//! egress guard judges the proxy's address, and the handler's only if it is written as one.

use std::fmt;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::Scheme;
use hyper_util::client::proxy::matcher::Matcher;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Maximum size of the response to `CONNECT`, in bytes.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

/// Address of a proxy. `Debug` shows no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Host name or address of the proxy.
    pub host: String,
    /// Port of the proxy, 1 to 65535.
    pub port: u16,
    /// `Basic …`, if the proxy wants credentials.
    authorization: Option<HeaderValue>,
    /// Setting or variable that names the proxy.
    named: &'static str,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told())
    }
}

impl Proxy {
    /// Parses `http://host:port`, as in the setting `proxy`.
    ///
    /// # Errors
    /// A sentence for people, without passwords.
    pub fn parse(text: &str) -> Result<Proxy, String> {
        let authority = text.split_once("://").map_or("", |(_, behind)| behind);
        if authority.contains('@') {
            return Err(unusable(
                "it contains a user or password, which can't be kept secret there",
            ));
        }
        Proxy::of(text, "`proxy`")
    }

    /// Parses the value of a variable: the scheme may be left out, and there may be a user and a password.
    ///
    /// # Errors
    /// As for [`Proxy::parse`].
    pub(crate) fn named(text: &str, variable: &'static str) -> Result<Proxy, String> {
        let text = text.trim();
        let text = match text.contains("://") {
            true => text.to_owned(),
            false => format!("http://{text}"),
        };
        let Some((user, host)) = text
            .strip_prefix("http://")
            .and_then(|rest| rest.rsplit_once('@'))
        else {
            return Proxy::of(&text, variable);
        };
        let proxy = Proxy::of(&format!("http://{host}"), variable)?;
        // Parses the credentials like other clients, which take them percent-encoded.
        let matcher = Matcher::builder().http(format!("http://{user}@host")).build();
        let found = matcher.intercept(&Uri::from_static("http://any/"));
        let authorization = found.and_then(|found| found.basic_auth().cloned());
        match authorization {
            Some(_) => Ok(Proxy {
                authorization,
                ..proxy
            }),
            None => Err(unusable(
                "its user and password can't be parsed; percent-encode them",
            )),
        }
    }

    /// Returns the value of `proxy-authorization` for it.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Formats the proxy and its setting or variable, for messages.
    pub fn told(&self) -> String {
        format!("{}:{} ({})", self.host, self.port, self.named)
    }

    fn of(text: &str, named: &'static str) -> Result<Proxy, String> {
        let bad = unusable;
        let uri: Uri = text.parse().map_err(|_| bad("it is not a URL"))?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(bad(
                "only plain HTTP proxies are supported, so it must begin with http://",
            ));
        }
        let authority = uri
            .authority()
            .map(|authority| authority.as_str())
            .unwrap_or_default();
        if !matches!(
            uri.path_and_query().map(|path| path.as_str()),
            None | Some("" | "/")
        ) {
            return Err(bad("it has a path; a proxy is only a host and a port"));
        }
        let host = uri.host().unwrap_or_default();
        let port = match authority.strip_prefix(host).filter(|_| !host.is_empty()) {
            Some("") => Some(80),
            Some(port) => port
                .strip_prefix(':')
                .and_then(|port| port.parse().ok())
                .filter(|port| *port > 0),
            None => None,
        };
        let port = port.ok_or_else(|| bad("it has no host, or a port that is not within 1 to 65535"))?;
        Ok(Proxy {
            host: host.to_owned(),
            port,
            authorization: None,
            named,
        })
    }
}

fn unusable(why: &str) -> String {
    format!("can't use the proxy: {why}; example: http://proxy:3128")
}

/// Asks the proxy at the other end for a tunnel to `host:port`.
///
/// # Errors
/// The response of the proxy, if it refuses.
pub async fn tunnel(proxy: &Proxy, stream: &mut TcpStream, host: &str, port: u16) -> Result<(), String> {
    let mut ask = format!("CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\n").into_bytes();
    if let Some(authorization) = &proxy.authorization {
        ask.extend_from_slice(b"proxy-authorization: ");
        ask.extend_from_slice(authorization.as_bytes());
        ask.extend_from_slice(b"\r\n");
    }
    ask.extend_from_slice(b"\r\n");
    stream.write_all(&ask).await.map_err(|why| why.to_string())?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        // One byte at a time: everything after the response belongs to the handler.
        let byte = stream
            .read_u8()
            .await
            .map_err(|_| "it closed the connection".to_owned())?;
        answer.push(byte);
        if answer.len() > ANSWER_BYTES_MAX {
            return Err("its response is too long".to_owned());
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let first = text.lines().next().unwrap_or_default();
    let status = first.split_whitespace().nth(1).unwrap_or_default();
    if first.starts_with("HTTP/1.") && status.len() == 3 && status.starts_with('2') {
        return Ok(());
    }
    let shown: String = first.chars().filter(|c| !c.is_control()).take(80).collect();
    Err(format!("it answered {shown:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_a_host_and_a_port() {
        let proxy = |host: &str, port| {
            Ok(Proxy {
                host: host.to_owned(),
                port,
                authorization: None,
                named: "`proxy`",
            })
        };
        assert_eq!(Proxy::parse("http://proxy:3128"), proxy("proxy", 3128));
        assert_eq!(Proxy::parse("http://10.0.0.1/"), proxy("10.0.0.1", 80));
        assert_eq!(Proxy::parse("http://[::1]:8080"), proxy("[::1]", 8080));
        for wrong in [
            "",
            "proxy:3128",
            "https://proxy:3128",
            "socks5://proxy:1080",
            "http://ann:geheim@proxy:3128",
            "http://proxy:99999",
            "http://proxy:0",
            "http://proxy:3128/path",
            "http://:3128",
        ] {
            let why = Proxy::parse(wrong).expect_err(wrong);
            assert!(!why.contains("geheim"), "{why}");
        }
    }
}
