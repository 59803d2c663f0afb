//! Somebody else's JSON API, which knows nothing of Windrow: it answers each call for an order with JSON that names the
//! order and the call, and remembers which call was for which.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How long a call takes.
const TAKES: Duration = Duration::from_millis(3);

struct Shared {
    /// The order of each call, in the order in which they came.
    calls: Mutex<Vec<String>>,
    called: watch::Sender<usize>,
    connections: watch::Sender<usize>,
}

/// See the module.
pub(crate) struct Vendor {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Vendor {
    pub(crate) async fn start() -> Vendor {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            calls: Mutex::default(),
            called: watch::Sender::new(0),
            connections: watch::Sender::new(0),
        });
        let accepting = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepting.connections.send_modify(|open| *open += 1);
                let shared = accepting.clone();
                tokio::spawn(async move {
                    serve(stream, &shared).await;
                    shared.connections.send_modify(|open| *open -= 1);
                });
            }
        });
        Vendor { address, shared }
    }

    /// Waits until nobody is connected, and says how many calls there were: the next one is of a new life.
    pub(crate) async fn calls_of_the_dead(&self) -> usize {
        let mut connections = self.shared.connections.subscribe();
        connections
            .wait_for(|open| *open == 0)
            .await
            .expect("the vendor lives");
        *self.shared.called.borrow()
    }

    /// Waits until there were more calls than so many.
    pub(crate) async fn more_calls_than(&self, known: usize) {
        let mut called = self.shared.called.subscribe();
        called
            .wait_for(|calls| *calls > known)
            .await
            .expect("the vendor lives");
    }

    /// The order of each call.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.shared
            .calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

async fn serve(stream: TcpStream, shared: &Shared) {
    let service = service_fn(|request| answer(request, shared));
    // A peer that was killed is what these tests are about.
    drop(
        hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

async fn answer(request: Request<Incoming>, shared: &Shared) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body: Value = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap_or_default();
    let Some(order) = head.uri.path().strip_prefix("/v1/orders/") else {
        let not_found = Response::builder().status(404).body(Full::default());
        return Ok(not_found.expect("a response"));
    };
    let call = {
        let mut calls = shared.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(order.to_owned());
        calls.len()
    };
    shared.called.send_modify(|called| *called = call.max(*called));
    tokio::time::sleep(TAKES).await;
    let answer = json!({"order": order, "n": body["n"], "call": call - 1});
    Ok(Response::new(Full::from(answer.to_string())))
}
