//! Client for a single exchange with a peer.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use hyper::{Request, Response, StatusCode};

use crate::{Outbound, OwnClient, tls};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::ownership::peers::{
    ANSWER_BYTES_MAX, PATH, Peer, PeerReply, PeerSeal, Peers, Question, Seal, Unreachable,
};

/// Timeout for an exchange. People wait for its result.
const TIMEOUT: Duration = Duration::from_secs(2);

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

/// Client that asks peers over HTTP.
pub struct PeerClient {
    node: String,
    seal: Arc<dyn PeerSeal>,
    clock: Arc<dyn Clock>,
    tls: PeerTls,
    plain: OwnClient,
    /// Created with the first request to such an address, since reading the system's certificates takes a while.
    secure: OnceLock<OwnClient>,
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
            plain: OwnClient::new(None),
            secure: OnceLock::new(),
        };
        if client.tls.ca_file.is_some() {
            client.secure = OnceLock::from(client.make_secure()?);
        }
        Ok(client)
    }

    fn make_secure(&self) -> Result<OwnClient, String> {
        Ok(OwnClient::new(Some(tls::config(&self.tls.options())?)))
    }

    fn pool(&self, address: &str) -> Result<&OwnClient, String> {
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
        let client = self.pool(&peer.address)?;
        let response = client.send(request, ANSWER_BYTES_MAX, TIMEOUT).await?;
        let (status, body) = (response.status(), response.body());
        let proof = header(&response, "windrow-peer-proof").unwrap_or_default();
        match status {
            StatusCode::OK if self.seal.is_proved(&seal.nonce, body, &proof) => {
                let answer = serde_json::from_slice(body);
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

fn request(peer: &Peer, seal: &Seal, body: Vec<u8>) -> Result<Request<Bytes>, String> {
    Request::post(format!("{}{PATH}", peer.address.trim_end_matches('/')))
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("windrow/", env!("CARGO_PKG_VERSION")))
        .header("windrow-peer-to", seal.to.0.to_string())
        .header("windrow-peer-from", &seal.from)
        .header("windrow-peer-time", seal.at.0.to_string())
        .header("windrow-peer-nonce", &seal.nonce)
        .header("windrow-peer-proof", &seal.proof)
        .body(Bytes::from(body))
        .map_err(|_| {
            format!(
                "its address {:?} is invalid; check http.advertise on that node",
                peer.address
            )
        })
}

fn header(response: &Response<Bytes>, name: &str) -> Option<String> {
    response
        .headers()
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

#[async_trait]
impl Peers for PeerClient {
    async fn ask(&self, peer: &Peer, question: &Question) -> Result<PeerReply, Unreachable> {
        let silent = |why| Unreachable {
            node: peer.node.clone(),
            why,
        };
        self.exchange(peer, question).await.map_err(silent)
    }
}
