//! A scripted business over HTTP, raw peers, and what a call needs. No assertions about the handler.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use windrow_core::ids::{Attempt, Epoch, ItemIndex, RunNo, ShardId, StoreId, TaskId};
use windrow_core::items::run::IndexRun;
use windrow_core::items::trace::Sampling;
use windrow_core::items::verdict::{Dispatch, Failure};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{
    Call, CallFailure, CallItems, CallRows, Handler, HandlerFactory,
};
use windrow_engine::ports::handling::handler::{Mode, Reply, RunContext};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_engine::ports::sources::source::RowChunk;
use windrow_handlers::http::{HttpHandlerFactory, HttpOptions};
use windrow_host::clock::SystemClock;

/// A request as the business saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .get(name)
            .map(|value| value.to_str().expect("printable"))
    }
}

/// What the business does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Answer(u16, Vec<(&'static str, String)>, String),
    Hang,
}

pub(crate) fn answer(status: u16, body: &str) -> Act {
    Act::Answer(status, Vec::new(), body.to_owned())
}

/// A business that listens on a free port.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: watch::Receiver<Vec<Seen>>,
    /// Connections ever made and open now.
    connections: watch::Receiver<(usize, usize)>,
}

struct Script {
    act: Box<dyn Fn(&Seen) -> Act + Send + Sync>,
    seen: watch::Sender<Vec<Seen>>,
    connections: watch::Sender<(usize, usize)>,
}

impl Server {
    pub(crate) async fn start(act: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Server {
        Server::start_with(act, None).await
    }

    pub(crate) async fn start_with(
        act: impl Fn(&Seen) -> Act + Send + Sync + 'static,
        tls: Option<tokio_rustls::TlsAcceptor>,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (seen, seen_rx) = watch::channel(Vec::new());
        let (connections, connections_rx) = watch::channel((0, 0));
        let script = Arc::new(Script {
            act: Box::new(act),
            seen,
            connections,
        });
        tokio::spawn(accept(listener, script, tls));
        Server {
            address,
            seen: seen_rx,
            connections: connections_rx,
        }
    }

    /// One answer to everything.
    pub(crate) async fn always(status: u16, body: &str) -> Server {
        let act = answer(status, body);
        Server::start(move |_| act.clone()).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/windrow", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.borrow().0
    }

    pub(crate) async fn until_seen(&mut self, count: usize) {
        self.seen
            .wait_for(|seen| seen.len() >= count)
            .await
            .expect("the server lives");
    }

    pub(crate) async fn until_open(&mut self, count: usize) {
        let wait = self.connections.wait_for(|(_, open)| *open == count);
        tokio::time::timeout(Duration::from_secs(10), wait)
            .await
            .expect("in time")
            .expect("the server lives");
    }
}

async fn accept(listener: TcpListener, script: Arc<Script>, tls: Option<tokio_rustls::TlsAcceptor>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (script, tls) = (script.clone(), tls.clone());
        script
            .connections
            .send_modify(|(ever, open)| (*ever, *open) = (*ever + 1, *open + 1));
        tokio::spawn(async move {
            match tls {
                None => serve(stream, script.clone()).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, script.clone()).await;
                    }
                }
            }
            script.connections.send_modify(|(_, open)| *open -= 1);
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, script: Arc<Script>) {
    let service = service_fn(move |request| {
        let script = script.clone();
        async move { respond(request, &script).await }
    });
    // A peer that hangs up is what some tests are about.
    drop(
        auto::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

async fn respond(request: Request<Incoming>, script: &Script) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let seen = Seen {
        method: parts.method,
        uri: parts.uri,
        version: parts.version,
        headers: parts.headers,
        body,
    };
    let act = (script.act)(&seen);
    script.seen.send_modify(|all| all.push(seen));
    let Act::Answer(status, headers, body) = act else {
        std::future::pending().await
    };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::from(body)).expect("a response"))
}

/// A peer that does anything with each connection; returns its address.
pub(crate) async fn raw<F, Fut>(peer: F) -> SocketAddr
where
    F: Fn(TcpStream) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(peer(stream));
        }
    });
    address
}

/// Reads one request of HTTP/1.1.
pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, Infallible> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) {
                return Ok(read);
            }
        }
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return Ok(read);
        }
    }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// The run of the examples in the protocol's description.
pub(crate) fn context(gate: Gate) -> Arc<RunContext> {
    let params = serde_json::value::RawValue::from_string(r#"{"template":"bf26"}"#.into()).expect("JSON");
    Arc::new(RunContext {
        shard: ShardId {
            task: TaskId(1042),
            no: 0,
        },
        task_name: Some("black-friday".into()),
        task_revision: 4,
        business: "push-campaign".into(),
        params: Some(params),
        run: RunNo(3),
        epoch: Epoch(1_795_194_100_123),
        store: StoreId("k7f3q2".into()),
        keys_of: None,
        is_proven: false,
        keeps_results: false,
        mode: Mode::Live,
        sampling: Sampling::default(),
        metering: Arc::default(),
        gate: Arc::new(gate),
    })
}

pub(crate) fn open(options: HttpOptions) -> Arc<dyn Handler> {
    HttpHandlerFactory::new(options, clock())
        .open(context(Gate::always_open()))
        .expect("opens")
}

/// Items without data, each run with its attempt.
pub(crate) fn items(runs: &[(u64, u32, u32)]) -> CallItems {
    let dispatch = |(first, len, attempt): &(u64, u32, u32)| Dispatch {
        run: IndexRun::new(ItemIndex(*first), *len).expect("not empty"),
        attempt: Attempt::new(*attempt),
    };
    match runs {
        [one] => CallItems::One(dispatch(one)),
        many => CallItems::Many(many.iter().map(dispatch).collect()),
    }
}

pub(crate) fn call(items: CallItems) -> Call {
    Call {
        items,
        rows: CallRows::default(),
        gate_time: clock().now(),
        timeout: Duration::from_secs(30),
    }
}

/// The call for item 3817, attempt 2.
pub(crate) fn single() -> Call {
    call(items(&[(3817, 1, 2)]))
}

/// Rows from `first` on.
pub(crate) fn rows(first: u64, texts: &[&str]) -> CallRows {
    let (mut buffer, mut ends) = (String::new(), Vec::new());
    for text in texts {
        buffer.push_str(text);
        ends.push(buffer.len() as u32);
    }
    CallRows {
        chunks: vec![Arc::new(RowChunk::new(
            ItemIndex(first),
            Bytes::from(buffer),
            ends,
        ))],
        positions: None,
    }
}

/// The failure of a call, by kind.
pub(crate) fn failure(reply: Reply) -> (&'static str, Failure) {
    let Reply::Failed(failed) = reply else {
        panic!("not a failed call: {reply:?}")
    };
    match *failed {
        CallFailure::Failed { class, failure, .. } => (class.as_str(), failure),
        CallFailure::Final(failure) => ("failed", failure),
        CallFailure::BadReply(failure) => ("bad reply", failure),
        CallFailure::Rejected(failure) => ("rejected", failure),
        CallFailure::Unstarted(failure) => ("unstarted", failure),
        CallFailure::Gone(failure) => ("gone", failure),
        CallFailure::BackPressure { failure, .. } => ("back pressure", failure),
        CallFailure::Unsendable(failure) => ("unsendable", failure),
        other @ (CallFailure::Fenced | CallFailure::NotSent) => panic!("no failure to show: {other:?}"),
    }
}
