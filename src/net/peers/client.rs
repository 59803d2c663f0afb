//! Client for a single exchange with a peer.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use hyper::{Request, Response, StatusCode, body::Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::timeout;

use crate::{Outbound, tls};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::ownership::peers::{
    ANSWER_BYTES_MAX, PATH, Peer, PeerReply, PeerSeal, Peers, Question, Seal, Unreachable,
};
use windrow_tls::{TlsFault, deepest};

/// Timeout for an exchange. People wait for its result.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for making a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for which an unused connection is kept. (A peer closes idle ones after 10 s.)
const IDLE: Duration = Duration::from_secs(5);

/// Trust settings for peers whose address begins with `https`.
#[derive(Clone, Debug, Default)]
pub struct PeerTls {
    /// File with authorities' certificates (PEM); `None` means the system's.
    pub ca_file: Option<PathBuf>,
}

impl PeerTls {
    /// Checks that `ca_file`, if set, contains something to trust.
    ///
    /// # Errors
    /// A sentence if it does not.
    pub fn look(&self) -> Result<(), String> {
        if self.ca_file.is_some() {
            tls::config(&self.options()).map(drop)
        } else {
            Ok(())
        }
    }

    fn options(&self) -> Outbound {
        Outbound {
            ca_file: self.ca_file.clone(),
            ..Outbound::default()
        }
    }
}

type Pool = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Client that asks peers over HTTP.
pub struct PeerClient {
    node: String,
    seal: Arc<dyn PeerSeal>,
    clock: Arc<dyn Clock>,
    tls: PeerTls,
    plain: Pool,
    /// Created with the first request to such an address, since reading the system's certificates takes a while.
    secure: OnceLock<Pool>,
}

impl PeerClient {
    /// Creates a client of the node of this name.
    ///
    /// # Errors
    /// A sentence if `tls.ca_file` contains nothing to trust.
    pub fn new(
        node: &str,
        seal: Arc<dyn PeerSeal>,
        clock: Arc<dyn Clock>,
        tls: PeerTls,
    ) -> Result<PeerClient, String> {
        let mut client = PeerClient {
            node: node.to_owned(),
            seal,
            clock,
            tls,
            plain: pool(None),
            secure: OnceLock::new(),
        };
        if client.tls.ca_file.is_some() {
            client.secure = OnceLock::from(client.make_secure()?);
        }
        Ok(client)
    }

    fn make_secure(&self) -> Result<Pool, String> {
        Ok(pool(Some(tls::config(&self.tls.options())?)))
    }

    fn pool(&self, address: &str) -> Result<&Pool, String> {
        if !address.starts_with("https:") {
            return Ok(&self.plain);
        }
        if self.secure.get().is_none() {
            let made = self.make_secure()?;
            // Another request may have been quicker; its pool is as good.
            drop(self.secure.set(made));
        }
        self.secure.get().ok_or_else(|| "can't connect".to_owned())
    }

    async fn exchange(&self, peer: &Peer, question: &Question) -> Result<PeerReply, String> {
        let body = serde_json::to_vec(question).map_err(|error| error.to_string())?;
        let seal = self.seal.seal(peer.session, &self.node, &body, self.clock.wall());
        let request = request(peer, &seal, body)?;
        let sent = self.pool(&peer.address)?.request(request).await;
        let response = sent.map_err(|error| reason(&error))?;
        let status = response.status();
        let proof = header(&response, "windrow-peer-proof").unwrap_or_default();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await;
        let body = body
            .map_err(|error| format!("the response broke off: {error}"))?
            .to_bytes();
        match status {
            StatusCode::OK if self.seal.is_proved(&seal.nonce, &body, &proof) => {
                let answer = serde_json::from_slice(&body);
                answer.map_err(|error| format!("the response is from another version: {error}"))
            }
            StatusCode::OK => Err("the response isn't sealed with this node's key".to_owned()),
            StatusCode::NOT_FOUND => Err(
                "it rejected this node: auth.key_file must be the same on all nodes, clocks within a minute \
                 of each other, and http.advertise unique to each node"
                    .to_owned(),
            ),
            status => Err(format!("it answered {status}")),
        }
    }
}

fn pool(trust: Option<rustls::ClientConfig>) -> Pool {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_nodelay(true);
    let trust = trust.unwrap_or_else(tls::trusting_nobody);
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(trust)
        .https_or_http()
        .enable_http1();
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(https.wrap_connector(tcp))
}

fn request(peer: &Peer, seal: &Seal, body: Vec<u8>) -> Result<Request<Full<Bytes>>, String> {
    Request::post(format!("{}{PATH}", peer.address.trim_end_matches('/')))
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("windrow/", env!("CARGO_PKG_VERSION")))
        .header("windrow-peer-to", seal.to.0.to_string())
        .header("windrow-peer-from", &seal.from)
        .header("windrow-peer-time", seal.at.0.to_string())
        .header("windrow-peer-nonce", &seal.nonce)
        .header("windrow-peer-proof", &seal.proof)
        .body(Full::from(body))
        .map_err(|_| {
            format!(
                "its address {:?} is invalid; check http.advertise on that node",
                peer.address
            )
        })
}

fn header(response: &Response<Incoming>, name: &str) -> Option<String> {
    response
        .headers()
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

/// Returns the TLS problem, or the innermost cause, which says most.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    TlsFault::of(error).map_or_else(|| deepest(error), |tls_fault| tls_fault.to_string())
}

#[async_trait]
impl Peers for PeerClient {
    async fn ask(&self, peer: &Peer, question: &Question) -> Result<PeerReply, Unreachable> {
        let silent = |why| Unreachable {
            node: peer.node.clone(),
            why,
        };
        match timeout(TIMEOUT, self.exchange(peer, question)).await {
            Ok(answered) => answered.map_err(silent),
            Err(_) => Err(silent(format!("no answer within {} s", TIMEOUT.as_secs()))),
        }
    }
}
