//! Connections to checked addresses: a name is resolved once, each address is judged, and the connection goes to one
//! of those, never to the name again.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::Scheme;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use super::egress::Egress;
use super::names::{HANDLERS, Names, OTHERS};
use super::outbound::Proxies;
use super::proxy::{Proxy, tunnel};
use windrow_core::business::network::Network;
use windrow_tls::stream::Stream;

/// Reason why no connection was made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name has no address; may be temporary.
    #[error("{0:?} can't be resolved: {1}; check the name in the url")]
    Unresolved(String, String),
    /// Every address of the name is forbidden.
    #[error("{0:?} may not be called: {1}; change the url, or the networks in [handler.http]")]
    Denied(String, String),
    /// The address refuses, is unreachable or doesn't answer.
    #[error("can't connect to {0}: {1}; check that the handler is running and listening there")]
    Unreachable(SocketAddr, String),
    /// The forward proxy doesn't connect to the handler.
    #[error("the proxy {0} can't connect to {1}: {2}; check the proxy's address and its rules")]
    Proxy(String, String, String),
    /// The proxy that the environment names can't be used.
    #[error("{0}")]
    NoProxy(String),
}

/// Connector that makes guarded TCP connections.
#[derive(Clone)]
pub struct Connector {
    names: &'static Names,
    egress: Arc<Egress>,
    timeout: Duration,
    proxies: Arc<Proxies>,
    made: Arc<AtomicUsize>,
    /// Port of this machine that is never connected to: the node's own.
    shut: Option<u16>,
}

impl Connector {
    /// Returns the header for the proxy that takes a request to this URL, if that proxy wants credentials.
    pub fn proxy_authorization(&self, url: &Uri) -> Option<HeaderValue> {
        let proxy = self.proxies.of(url).ok().flatten()?;
        proxy.authorization().cloned()
    }

    /// Creates a connector to hosts that requests name, which don't delay the resolution of handlers' names.
    pub(super) fn to_others(egress: Egress, timeout: Duration, proxies: Proxies) -> Connector {
        Connector {
            names: &OTHERS,
            ..Connector::new(egress, timeout, proxies, Arc::default())
        }
    }

    /// Creates a connector to handlers that counts in `made`.
    pub(super) fn new(
        egress: Egress,
        timeout: Duration,
        proxies: Proxies,
        made: Arc<AtomicUsize>,
    ) -> Connector {
        Connector {
            names: &HANDLERS,
            egress: Arc::new(egress),
            timeout,
            proxies: Arc::new(proxies),
            made,
            shut: None,
        }
    }

    /// Restricts the connector for users who may not reach all that the node can: public addresses and these private
    /// networks, and never the node's own port. The proxy itself is exempt.
    pub(super) fn guarded(mut self, private: Vec<Network>, own_port: u16) -> Connector {
        self.egress = Arc::new(Egress {
            private: Some(private),
            ..(*self.egress).clone()
        });
        self.shut = Some(own_port);
        self
    }

    /// Returns the reason to refuse an address.
    fn refusal(&self, address: SocketAddr) -> Option<String> {
        let is_own = self.shut == Some(address.port()) && is_of_this_machine(address.ip());
        if is_own {
            Some(format!("{address} belongs to this node"))
        } else {
            self.egress.refusal(address.ip())
        }
    }

    /// Returns the allowed addresses of a host.
    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        let found = self.resolve(host, port).await?;
        let mut refusals = Vec::new();
        let mut allowed = found;
        allowed.retain(|address| match self.refusal(*address) {
            Some(why) => {
                refusals.push(why);
                false
            }
            None => true,
        });
        match (allowed.is_empty(), refusals.into_iter().next()) {
            (true, Some(why)) => Err(ConnectError::Denied(host.to_owned(), why)),
            (true, None) => Err(ConnectError::Unresolved(
                host.to_owned(),
                "it has no address".into(),
            )),
            (false, _) => Ok(allowed),
        }
    }

    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        let found = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => {
                let found = self.names.resolve(host).await;
                found.map_err(|why| ConnectError::Unresolved(host.to_owned(), why))?
            }
        };
        Ok(found
            .into_iter()
            .map(|address| SocketAddr::new(address, port))
            .collect())
    }

    async fn connect(self, uri: Uri) -> Result<Stream, ConnectError> {
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host().unwrap_or_default();
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let proxy = self.proxies.of(&uri).map_err(ConnectError::NoProxy)?;
        let stream = match proxy {
            None => Stream::new(TokioIo::new(self.reach(host, port).await?), is_https),
            Some(proxy) => self.through(proxy, host, port, is_https).await?,
        };
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(stream)
    }

    /// Connects to an allowed address of a host.
    async fn reach(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let host = bare(host);
        let addresses = self.addresses(host, port).await?;
        let each = self.timeout / u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let mut last = None;
        for address in addresses {
            match connect_to(address, each).await {
                Ok(stream) => return Ok(stream),
                Err(why) => last = Some(why),
            }
        }
        Err(last.unwrap_or_else(|| ConnectError::Unresolved(host.to_owned(), "it has no address".into())))
    }

    async fn through(
        &self,
        proxy: &Proxy,
        host: &str,
        port: u16,
        is_https: bool,
    ) -> Result<Stream, ConnectError> {
        // The proxy resolves names; an address can be judged here, and for a guarded user also the addresses known
        // here for a name.
        let known = match bare(host).parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) if self.shut.is_some() => self.resolve(host, port).await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        if let Some(why) = known.into_iter().find_map(|address| self.refusal(address)) {
            return Err(ConnectError::Denied(host.to_owned(), why));
        }
        let egress = Arc::new(Egress {
            private: None,
            ..(*self.egress).clone()
        });
        let to_proxy = Connector {
            egress,
            shut: None,
            ..self.clone()
        };
        let refused = |why: String| ConnectError::Proxy(proxy.told(), format!("{host}:{port}"), why);
        let reached = to_proxy.reach(&proxy.host, proxy.port).await;
        let mut stream = reached.map_err(|why| match why {
            ConnectError::Unreachable(at, why) => refused(format!("can't connect to {at}: {why}")),
            ConnectError::Unresolved(name, why) => refused(format!("{name:?} can't be resolved: {why}")),
            other => other,
        })?;
        if is_https {
            let asked = timeout(self.timeout, tunnel(proxy, &mut stream, host, port)).await;
            asked
                .map_err(|_| refused("no answer in time".into()))?
                .map_err(refused)?;
        }
        Ok(Stream::new(TokioIo::new(stream), is_https).proxied(!is_https))
    }
}

/// Returns true if an address leads to this machine: anyone who can listen on it is there.
fn is_of_this_machine(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified() || UdpSocket::bind((address, 0)).is_ok()
}

/// Returns an IPv6 address without its brackets.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

async fn connect_to(address: SocketAddr, wait: Duration) -> Result<TcpStream, ConnectError> {
    let unreachable = |why: String| ConnectError::Unreachable(address, why);
    let stream = timeout(wait, TcpStream::connect(address)).await;
    let stream =
        stream.map_err(|_| unreachable(format!("no answer within {}", humantime::format_duration(wait))))?;
    let stream = stream.map_err(|why| unreachable(why.to_string()))?;
    // Small requests must not wait for the acknowledgement of earlier ones.
    stream
        .set_nodelay(true)
        .map_err(|why| unreachable(why.to_string()))?;
    Ok(stream)
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Stream, ConnectError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}
