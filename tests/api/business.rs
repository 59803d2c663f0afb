//! A scripted business: an HTTP server that records every call and answers as it was told.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A call as the business saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) headers: HeaderMap,
    pub(crate) raw: Bytes,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn kind(&self) -> &str {
        self.body["type"].as_str().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("printable"))
    }

    /// The items of the call, single or batched, with their attempts.
    pub(crate) fn items(&self) -> Vec<(u64, u64)> {
        let single = self.body.get("item").into_iter();
        let many = self
            .body
            .get("items")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let number = |value: &Value| value.as_u64().expect("a number");
        single
            .chain(many)
            .map(|item| (number(&item["index"]), number(&item["attempt"])))
            .collect()
    }

    pub(crate) fn task(&self) -> &str {
        self.body["task"]["id"].as_str().unwrap_or_default()
    }
}

/// What it does with a call.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
    pub(crate) after: Duration,
    /// It says nothing until this is true.
    pub(crate) gate: Option<watch::Receiver<bool>>,
}

impl Act {
    pub(crate) fn ok() -> Act {
        Act::status(204)
    }

    pub(crate) fn status(status: u16) -> Act {
        Act {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            after: Duration::ZERO,
            gate: None,
        }
    }

    pub(crate) fn json(status: u16, body: Value) -> Act {
        Act {
            body: body.to_string().into(),
            ..Act::status(status)
        }
    }

    pub(crate) fn bytes(body: Vec<u8>) -> Act {
        Act {
            body: body.into(),
            ..Act::status(200)
        }
    }

    pub(crate) fn after(mut self, wait: Duration) -> Act {
        self.after = wait;
        self
    }

    /// Once that is true.
    #[allow(dead_code, reason = "tests of clients only need it")]
    pub(crate) fn once(mut self, gate: &watch::Receiver<bool>) -> Act {
        self.gate = Some(gate.clone());
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Act {
        self.headers.push((name, value.to_owned()));
        self
    }
}

type Script = dyn Fn(&Seen) -> Act + Send + Sync;

/// A business that listens on a free port.
#[derive(Clone)]
pub(crate) struct Business {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    script: Arc<Mutex<Arc<Script>>>,
}

impl Business {
    /// One that answers by a script.
    pub(crate) async fn start(script: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Business {
        Business::on(
            TcpListener::bind("127.0.0.1:0").await.expect("a free port"),
            script,
        )
    }

    /// One that listens there.
    pub(crate) fn on(
        listener: TcpListener,
        script: impl Fn(&Seen) -> Act + Send + Sync + 'static,
    ) -> Business {
        let business = Business {
            address: listener.local_addr().expect("an address"),
            seen: Arc::default(),
            script: Arc::new(Mutex::new(Arc::new(script))),
        };
        let served = business.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("no delay");
                let business = served.clone();
                tokio::spawn(async move {
                    let answer = service_fn(move |request| {
                        let business = business.clone();
                        async move { business.answer(request).await }
                    });
                    let served = auto::Builder::new(TokioExecutor::new());
                    served.serve_connection(TokioIo::new(stream), answer).await.ok();
                });
            }
        });
        business
    }

    /// One that does everything that it is asked.
    pub(crate) async fn willing() -> Business {
        Business::start(|_| Act::ok()).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/windrow", self.address)
    }

    /// Another script from now on.
    pub(crate) fn becomes(&self, script: impl Fn(&Seen) -> Act + Send + Sync + 'static) {
        *self.script.lock().expect("not poisoned") = Arc::new(script);
    }

    /// Every call so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("not poisoned").clone()
    }

    /// Keeps nothing of the calls so far: each takes 11 KB.
    #[allow(dead_code, reason = "long tests of nodes only need it")]
    pub(crate) fn forget(&self) {
        self.seen.lock().expect("not poisoned").clear();
    }

    /// Every item of every call so far, with its attempt.
    pub(crate) fn items(&self) -> Vec<(u64, u64)> {
        self.seen().iter().flat_map(Seen::items).collect()
    }

    /// The calls of this type.
    pub(crate) fn of_kind(&self, kind: &str) -> Vec<Seen> {
        self.seen()
            .into_iter()
            .filter(|seen| seen.kind() == kind)
            .collect()
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let raw = body
            .collect()
            .await
            .map(|body| body.to_bytes())
            .unwrap_or_default();
        let body = serde_json::from_slice(&raw).unwrap_or(Value::Null);
        let seen = Seen {
            at: Instant::now(),
            headers: head.headers,
            raw,
            body,
        };
        let script = self.script.lock().expect("not poisoned").clone();
        let act = script(&seen);
        self.seen.lock().expect("not poisoned").push(seen);
        if !act.after.is_zero() {
            tokio::time::sleep(act.after).await;
        }
        if let Some(mut gate) = act.gate {
            // Whoever would open it may be gone.
            gate.wait_for(|is_open| *is_open).await.ok();
        }
        let mut response = Response::builder().status(act.status);
        for (name, value) in act.headers {
            response = response.header(name, value);
        }
        Ok(response.body(Full::new(act.body)).expect("an answer"))
    }
}
