//! Sends requests over kept connections. With `transport` the only place that knows which client does it, so that
//! another kind of pool can take its place.
//!
//! Redirects are never followed, and plain answers are asked for. A request that was given up on (deadline, or its
//! future dropped) closes its connection instead of returning it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::http::StatusCode;
use hyper::http::response::Parts;
use hyper::{Request, Uri};
use tokio::sync::OnceCell;

use super::fault::Fault;
use super::packed;
use super::transport::{Exchange, Lease, Pool};
use crate::classify::Answer;
use crate::deadline::Deadline;
use windrow_core::ids::Moment;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{Call, RunContext};
use windrow_net::Outbound;
use windrow_tls::Trouble;

/// The longest headers of an answer. Unit: bytes.
pub(crate) const HEADER_BYTES_MAX: usize = 64 * 1024;
/// The most headers of an answer. (The client's own bound is 100; beyond that it keeps them on the heap.)
pub(super) const HEADERS_MAX: usize = 300;
/// What is read of a body that decides nothing: enough to quote it and to keep the connection. Unit: bytes.
const QUOTED_BYTES_MAX: usize = 64 * 1024;
/// How long a handshake of TLS may take where it is asked whether TLS is spoken at all.
const PROBE_MAX: Duration = Duration::from_secs(2);

/// Until when a call may take, if it may leave now.
pub(crate) fn leaves_until(
    context: &RunContext,
    clock: &Arc<dyn Clock>,
    call: &Call,
) -> Result<Moment, Fault> {
    let now = clock.now();
    if !context.gate.is_open(now) {
        return Err(Fault::NotSent);
    }
    let until = call.gate_time.plus(call.timeout);
    if until <= now {
        let stage = "no time was left when it was to be sent";
        return Err(Fault::late(call.timeout, stage));
    }
    Ok(until)
}

/// The connections of one handler.
pub(crate) struct CallbackClient {
    /// None once closed.
    pool: RwLock<Option<Lease>>,
    reply_bytes_max: usize,
    first_contact: Option<Duration>,
    /// Whether anything ever came back.
    has_answered: AtomicBool,
    /// Whether TLS is spoken where plain HTTP was closed without any answer; asked once.
    speaks_tls: OnceCell<bool>,
}

impl CallbackClient {
    pub(crate) fn new(lease: Lease, outbound: &Outbound, reply_bytes_max: usize) -> CallbackClient {
        CallbackClient {
            pool: RwLock::new(Some(lease)),
            reply_bytes_max,
            first_contact: outbound.first_contact,
            has_answered: AtomicBool::new(false),
            speaks_tls: OnceCell::new(),
        }
    }

    /// Sends a request and reads its answer until `deadline`; `timeout` is for the message. The body is read whole where
    /// the status says that it decides anything, else only to quote it. `again` makes the same request once more, where the
    /// server closed a kept connection as the first one left. Cancel safe: dropping it closes the connection.
    pub(crate) async fn send(
        &self,
        request: Request<GatedBody>,
        again: impl FnOnce() -> Option<Request<GatedBody>>,
        deadline: &mut Deadline<'_>,
        timeout: Duration,
        needs_body: impl Fn(StatusCode) -> bool,
    ) -> Result<Answer, Fault> {
        let has_left = request.body().has_left.clone();
        let is_first = !self.has_answered.load(Ordering::Relaxed);
        let target = request.uri();
        let plain = (is_first && target.scheme_str() == Some("http")).then(|| target.clone());
        let connects = self.first_contact.filter(|within| is_first && *within < timeout);
        let (pool, has_begun) = (self.pool()?, || has_left.load(Ordering::Relaxed));
        let mut exchange = pool.exchange();
        let sent = exchange.send(request, again);
        let answered = match connects {
            None => deadline.cut_short(sent).await,
            Some(within) => Box::pin(deadline.cut_short_unless_begun(sent, within, has_begun)).await,
        };
        let answered = answered.ok_or_else(|| {
            if has_begun() {
                let late = Fault::late(timeout, "the handler did not begin to answer");
                if plain.is_some() {
                    late.guessing_tls()
                } else {
                    late
                }
            } else {
                Fault::unsent(connects.unwrap_or(timeout))
            }
        })?;
        let (parts, body) = match answered {
            Ok(response) => response.into_parts(),
            Err(why) => {
                return Err(self
                    .told_apart(Fault::of_request(&why), plain, &pool, deadline)
                    .await);
            }
        };
        self.has_answered.store(true, Ordering::Relaxed);
        if is_too_long(&parts) {
            return Err(Fault::Garbled(format!(
                "its headers are longer than {HEADER_BYTES_MAX} bytes"
            )));
        }
        let reads_whole = needs_body(parts.status);
        self.read(exchange, (parts, body), reads_whole, (deadline, timeout))
            .await
    }

    /// Reads an answer's body, whole or as much as is quoted of it; `timeout` is for the message.
    async fn read(
        &self,
        mut exchange: Exchange<'_>,
        (mut parts, body): (Parts, Incoming),
        reads_whole: bool,
        (deadline, timeout): (&mut Deadline<'_>, Duration),
    ) -> Result<Answer, Fault> {
        if reads_whole {
            let whole = exchange.read(read_all(body, self.reply_bytes_max));
            let read = deadline.cut_short(whole).await;
            let body = read.ok_or_else(|| Fault::late(timeout, "the reply began but did not end"))??;
            exchange.end();
            let body = packed::unpacked(&mut parts, body, self.reply_bytes_max)?;
            return Ok(answer(parts, body));
        }
        let mut quoted = BytesMut::new();
        // Such an answer means the same whether its body arrives or not.
        let some = exchange.read(read_into(body, QUOTED_BYTES_MAX, &mut quoted));
        if let Some(Ok(())) = deadline.cut_short(some).await {
            exchange.end();
        }
        let body = packed::beginning(&mut parts, quoted.freeze(), QUOTED_BYTES_MAX);
        Ok(answer(parts, body))
    }

    /// What a connection means that was closed without an answer, where none ever came: many servers that speak TLS close so,
    /// without the alert that would tell.
    async fn told_apart(
        &self,
        fault: Fault,
        plain: Option<Uri>,
        pool: &Pool,
        deadline: &mut Deadline<'_>,
    ) -> Fault {
        let (Fault::Reset(_), Some(target)) = (&fault, &plain) else {
            return fault;
        };
        let asked = self.speaks_tls.get_or_init(|| {
            tokio::time::timeout(PROBE_MAX, pool.speaks_tls(target)).map(|told| told.unwrap_or(false))
        });
        match Box::pin(deadline.cut_short(asked)).await {
            Some(true) => Fault::Tls(Trouble::WantsHttps),
            _ => fault,
        }
    }

    fn pool(&self) -> Result<Arc<Pool>, Fault> {
        let lease = self.pool.read().unwrap_or_else(PoisonError::into_inner);
        lease
            .as_ref()
            .map(|lease| lease.pool.clone())
            .ok_or(Fault::NotSent)
    }

    /// How many connections were made so far.
    pub(crate) fn connections(&self) -> usize {
        self.pool().map_or(0, |pool| pool.made.load(Ordering::Relaxed))
    }

    /// Lets go of all connections; those in use end with their calls.
    pub(crate) fn close(&self) {
        let lease = self.pool.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(lease);
    }
}

/// The client reads up to twice its buffer before it refuses, so the exact limit is kept here.
fn is_too_long(parts: &Parts) -> bool {
    let bytes = parts
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len());
    bytes.sum::<usize>() > HEADER_BYTES_MAX
}

fn answer(parts: Parts, body: Bytes) -> Answer {
    Answer {
        status: parts.status,
        headers: parts.headers,
        body,
    }
}

/// The whole body; without a copy when it comes in one piece, as nearly all do.
async fn read_all(mut body: Incoming, bytes_max: usize) -> Result<Bytes, Fault> {
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(Fault::TooBig(bytes_max));
    }
    let mut first = Bytes::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|why| Fault::of_body(&why))?.into_data() else {
            continue;
        };
        if data.len() > bytes_max {
            return Err(Fault::TooBig(bytes_max));
        }
        if first.is_empty() {
            first = data;
            continue;
        }
        let mut whole = BytesMut::from(first);
        whole.extend_from_slice(&data);
        if whole.len() > bytes_max {
            return Err(Fault::TooBig(bytes_max));
        }
        read_into(body, bytes_max, &mut whole).await?;
        return Ok(whole.freeze());
    }
    Ok(first)
}

async fn read_into(mut body: Incoming, bytes_max: usize, whole: &mut BytesMut) -> Result<(), Fault> {
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|why| Fault::of_body(&why))?.into_data() else {
            continue;
        };
        if whole.len() + data.len() > bytes_max {
            return Err(Fault::TooBig(bytes_max));
        }
        whole.extend_from_slice(&data);
    }
    Ok(())
}

/// The gate shut after a connection was made and before the body left.
#[derive(Debug, thiserror::Error)]
#[error("the gate is shut")]
pub(crate) struct GateShut;

/// A request's body, which asks the gate at the moment when the client takes it: only then is there a connection.
/// A refusal leaves the request without its body, which no server can take for a request. Of an empty body the connection
/// asks only whether it is at its end: while the gate is open it is, and the request leaves with its head; once it is shut
/// a body is announced that never comes.
pub(crate) struct GatedBody {
    bytes: Option<Bytes>,
    /// None for calls that belong to no run.
    gate: Option<(Arc<RunContext>, Arc<dyn Clock>)>,
    /// Whether a connection took it.
    has_left: Arc<AtomicBool>,
}

impl GatedBody {
    pub(crate) fn new(bytes: Bytes, context: Arc<RunContext>, clock: Arc<dyn Clock>) -> GatedBody {
        GatedBody {
            gate: Some((context, clock)),
            ..GatedBody::free(bytes)
        }
    }

    fn is_open(&self) -> bool {
        let gate = self.gate.as_ref();
        gate.is_none_or(|(run, clock)| run.gate.is_open(clock.now()))
    }

    /// A body that always leaves: of a hook or a ping.
    pub(crate) fn free(bytes: Bytes) -> GatedBody {
        GatedBody {
            bytes: Some(bytes),
            gate: None,
            has_left: Arc::default(),
        }
    }
}

impl Body for GatedBody {
    type Data = Bytes;
    type Error = GateShut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GateShut>>> {
        let is_open = self.is_open();
        let Some(bytes) = self.bytes.take() else {
            return Poll::Ready(None);
        };
        self.has_left.store(is_open, Ordering::Relaxed);
        Poll::Ready(Some(if is_open {
            Ok(Frame::data(bytes))
        } else {
            Err(GateShut)
        }))
    }

    fn is_end_stream(&self) -> bool {
        match &self.bytes {
            None => true,
            Some(bytes) if bytes.is_empty() && self.is_open() => {
                self.has_left.store(true, Ordering::Relaxed);
                true
            }
            Some(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.bytes {
            // Not "exactly nothing": that would leave without a question.
            Some(bytes) if bytes.is_empty() => SizeHint::default(),
            bytes => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
        }
    }
}
