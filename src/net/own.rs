//! Requests to the operator's own services (other nodes, a collector): straight to their address, without a proxy and
//! without egress rules, which bind businesses.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tokio::time::timeout;

use crate::tls;
use windrow_tls::{TlsFault, deepest};

/// Timeout for making a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for which an unused connection is kept. (A peer closes idle ones after 10 s.)
const IDLE: Duration = Duration::from_secs(5);

/// Connections to the operator's own services.
#[derive(Clone, Debug)]
pub struct OwnClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl OwnClient {
    /// Creates a client. Without `trust` it can't use https.
    pub fn new(trust: Option<ClientConfig>) -> OwnClient {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(trust.unwrap_or_else(tls::trusting_nobody))
            .https_or_http()
            .enable_http1();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(https.wrap_connector(tcp));
        OwnClient(client)
    }

    /// Sends a request and reads a response of at most `bytes_max` bytes, both within `patience`.
    ///
    /// # Errors
    /// A sentence for people.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        bytes_max: usize,
        patience: Duration,
    ) -> Result<Response<Bytes>, String> {
        let exchange = async {
            let sent = self.0.request(request.map(Full::from)).await;
            let (head, body) = sent.map_err(|error| reason(&error))?.into_parts();
            let body = Limited::new(body, bytes_max).collect().await;
            let body = body.map_err(|error| format!("the response broke off: {error}"))?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        let late = |_| format!("no answer within {} s", patience.as_secs());
        timeout(patience, exchange).await.map_err(late)?
    }
}

/// Returns the TLS problem, or the innermost cause, which says most.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    TlsFault::of(error).map_or_else(|| deepest(error), |tls_fault| tls_fault.to_string())
}
