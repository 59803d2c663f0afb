//! A business that writes down every delivery before it answers, and misbehaves as its script says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::evidence::{Delivery, HookCall, Verdict, now};
use crate::script::{Act, Mood, act};

/// Everything that ever came.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) hooks: Vec<HookCall>,
}

struct Shared {
    record: Mutex<Record>,
    mood: watch::Sender<Mood>,
    count: watch::Sender<u64>,
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Business {
    address: SocketAddr,
    shared: Arc<Shared>,
}

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

impl Business {
    pub(crate) async fn start() -> Business {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            record: Mutex::default(),
            mood: watch::Sender::default(),
            count: watch::Sender::default(),
        });
        let accepting = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, accepting.clone()));
            }
        });
        Business { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/windrow", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How it is from now on.
    pub(crate) fn becomes(&self, mood: Mood) {
        self.shared.mood.send_replace(mood);
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.shared.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many deliveries came so far.
    pub(crate) fn count(&self) -> u64 {
        *self.shared.count.borrow()
    }

    /// Waits until so many deliveries came.
    pub(crate) async fn reaches(&self, count: u64) {
        let mut counts = self.shared.count.subscribe();
        counts
            .wait_for(|now| *now >= count)
            .await
            .expect("the business lives");
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let stream = stream.into_std().expect("a socket");
    // The same socket: it tells how it is closed.
    let twin = stream
        .try_clone()
        .and_then(TcpStream::from_std)
        .expect("a socket");
    let stream = TcpStream::from_std(stream).expect("a socket");
    let service = service_fn(|request| respond(request, &shared, &twin));
    // A peer that was killed is what these tests are about.
    drop(
        hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

/// No answer: the connection is closed instead.
#[derive(Debug, thiserror::Error)]
#[error("no answer")]
struct NoAnswer;

async fn respond(
    request: Request<Incoming>,
    shared: &Shared,
    socket: &TcpStream,
) -> Result<Response<Body>, NoAnswer> {
    let (head, body) = request.into_parts();
    let at = now();
    let body = body.collect().await.map_err(|_| NoAnswer)?.to_bytes();
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return Ok(plain(400, Bytes::new()));
    };
    let kind = body["type"].as_str().unwrap_or_default();
    if kind != "item.process" {
        note_hook(shared, &head.headers, &body, at);
        return Ok(plain(if kind == "ping" { 200 } else { 204 }, Bytes::new()));
    }
    let mut delivery = delivery(&head.headers, &body, at);
    let mood = *shared.mood.borrow();
    let act = act(&mood, delivery.index, delivery.attempt);
    delivery.verdict = act.verdict();
    let place = {
        let mut record = shared.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.deliveries.push(delivery);
        record.deliveries.len() - 1
    };
    shared.count.send_modify(|count| *count += 1);
    tokio::time::sleep(mood.takes).await;
    answer(act, shared, socket, place).await
}

async fn answer(
    act: Act,
    shared: &Shared,
    socket: &TcpStream,
    place: usize,
) -> Result<Response<Body>, NoAnswer> {
    if let Act::Slow(span) = act {
        tokio::time::sleep(span).await;
    }
    let told = || {
        let mut record = shared.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.deliveries[place].answered = Some(now());
    };
    match act {
        Act::Reset => {
            socket.set_zero_linger().ok();
            return Err(NoAnswer);
        }
        // Longer than any call may take.
        Act::Hang => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            return Err(NoAnswer);
        }
        _ => told(),
    }
    Ok(match act {
        Act::Trickle => trickle(),
        _ => {
            let (status, text) = act.reply();
            let mut response = plain(status, text);
            if status == 429 {
                response
                    .headers_mut()
                    .insert("retry-after", "1".parse().expect("a header"));
            }
            response
        }
    })
}

fn plain(status: u16, body: Bytes) -> Response<Body> {
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(status).body(body).expect("a response")
}

/// A byte a second, without an end.
fn trickle() -> Response<Body> {
    let bytes = futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Some((Ok(Frame::data(Bytes::from_static(b" "))), ()))
    });
    Response::builder()
        .status(200)
        .body(StreamBody::new(bytes).boxed_unsync())
        .expect("one")
}

fn note_hook(shared: &Shared, headers: &HeaderMap, body: &Value, at: i64) {
    let call = HookCall {
        at,
        task: body["task"]["id"].as_str().map_or(0, task_number),
        kind: body["type"].as_str().unwrap_or_default().to_owned(),
        id: header(headers, "webhook-id").to_owned(),
    };
    shared
        .record
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .hooks
        .push(call);
}

fn delivery(headers: &HeaderMap, body: &Value, at: i64) -> Delivery {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("no number in {body}"));
    let gate = OffsetDateTime::parse(header(headers, "windrow-gate-time"), &Rfc3339).expect("RFC 3339");
    let agent = header(headers, "user-agent");
    let node = agent
        .rsplit_once("(+")
        .map_or("", |(_, node)| node.trim_end_matches(')'));
    Delivery {
        at,
        gate: i64::try_from(gate.unix_timestamp_nanos() / 1000).expect("this century"),
        node: node.to_owned(),
        task: task_number(header(headers, "windrow-task")),
        shard: header(headers, "windrow-shard").parse().expect("a number"),
        epoch: header(headers, "windrow-epoch").parse().expect("a number"),
        index: number(&body["item"]["index"]),
        attempt: u32::try_from(number(&body["item"]["attempt"])).expect("few attempts"),
        key: body["item"]["key"].as_str().unwrap_or_default().to_owned(),
        verdict: Verdict::Nothing,
        answered: None,
    }
}

/// 42 of `t42`.
pub(crate) fn task_number(id: &str) -> i64 {
    id.trim_start_matches('t')
        .parse()
        .unwrap_or_else(|_| panic!("{id} is no task"))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_else(|| panic!("no {name}"))
}

/// How these items end, in the words of the API.
pub(crate) fn expected(items: Vec<u64>) -> BTreeMap<String, u64> {
    let mut ends: BTreeMap<String, u64> = ["succeeded", "skipped", "failed"]
        .map(|end| (end.to_owned(), 0))
        .into();
    for index in items {
        let end = match crate::script::end(index) {
            Verdict::Skipped => "skipped",
            Verdict::Failed => "failed",
            _ => "succeeded",
        };
        *ends.get_mut(end).expect("one of them") += 1;
    }
    ends
}
