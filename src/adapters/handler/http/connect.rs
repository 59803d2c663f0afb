//! Connects to an address that was checked: a name is resolved once, each address is judged, and the connection
//! goes to one of those, never to the name again. Environment proxies are not looked at.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::Uri;
use hyper::http::uri::Scheme;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tower_service::Service;

use crate::adapters::handler::egress::Egress;

/// No connection came about.
#[derive(Clone, Debug, thiserror::Error)]
pub(in crate::adapters) enum ConnectError {
    /// The name has no address; may come back.
    #[error("{0:?} can't be resolved: {1}; check the name in the url")]
    Unresolved(String, String),
    /// Each address of the name is forbidden.
    #[error("{0:?} may not be called: {1}; change the url, or the networks in [handler.http]")]
    Denied(String, String),
    /// Refused, unreachable or silent.
    #[error("{0} can't be connected to: {1}; is the handler running and listening there?")]
    Unreachable(SocketAddr, String),
}

/// Makes TCP connections.
#[derive(Clone, Debug)]
pub(in crate::adapters) struct Connector {
    egress: Arc<Egress>,
    timeout: Duration,
}

impl Connector {
    pub(in crate::adapters) fn new(egress: Egress, timeout: Duration) -> Connector {
        Connector { egress: Arc::new(egress), timeout }
    }

    /// The allowed addresses of a host.
    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        let found = resolve(host, port).await?;
        let mut refusals = Vec::new();
        let mut allowed = found;
        allowed.retain(|address| match self.egress.refusal(address.ip()) {
            Some(why) => {
                refusals.push(why);
                false
            }
            None => true,
        });
        match (allowed.is_empty(), refusals.into_iter().next()) {
            (true, Some(why)) => Err(ConnectError::Denied(host.to_owned(), why)),
            (true, None) => Err(ConnectError::Unresolved(host.to_owned(), "it has no address".into())),
            (false, _) => Ok(allowed),
        }
    }

    async fn connect(self, uri: Uri) -> Result<TokioIo<TcpStream>, ConnectError> {
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port_usual = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        let addresses = self.addresses(host, uri.port_u16().unwrap_or(port_usual)).await?;
        let each = self.timeout / u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let mut last = None;
        for address in addresses {
            match connect_to(address, each).await {
                Ok(stream) => return Ok(TokioIo::new(stream)),
                Err(why) => last = Some(why),
            }
        }
        Err(last.unwrap_or_else(|| ConnectError::Unresolved(host.to_owned(), "it has no address".into())))
    }
}

async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = lookup_host((host, port)).await;
    let found = found.map_err(|why| ConnectError::Unresolved(host.to_owned(), why.to_string()))?;
    Ok(found.collect())
}

async fn connect_to(address: SocketAddr, wait: Duration) -> Result<TcpStream, ConnectError> {
    let unreachable = |why: String| ConnectError::Unreachable(address, why);
    let stream = timeout(wait, TcpStream::connect(address)).await;
    let stream =
        stream.map_err(|_| unreachable(format!("no answer within {}", humantime::format_duration(wait))))?;
    let stream = stream.map_err(|why| unreachable(why.to_string()))?;
    // Small requests must not wait for the acknowledgement of the ones before.
    stream.set_nodelay(true).map_err(|why| unreachable(why.to_string()))?;
    Ok(stream)
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<TokioIo<TcpStream>, ConnectError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}
