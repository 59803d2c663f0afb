//! Client that sends requests over kept connections. Only `transport` and this module know which HTTP client is used,
//! so that another kind of pool can replace it.
//!
//! Never follows redirects, and asks for plain responses. A request that was cut short (deadline, or its future
//! dropped) closes its connection instead of returning it.

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
use crate::scrub::Scrubber;
use windrow_core::ids::Moment;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{Call, RunContext};
use windrow_net::Outbound;
use windrow_tls::TlsFault;

/// Maximum size of a response's headers, in bytes.
pub(crate) const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of headers of a response. (The client's own limit is 100; beyond that it keeps them on the heap.)
pub(super) const HEADERS_MAX: usize = 300;
/// Maximum number of bytes read of a body that decides nothing: enough to quote it and to keep the connection.
const QUOTED_BYTES_MAX: usize = 64 * 1024;
/// Timeout of a TLS handshake that only tests if TLS is spoken at all.
const PROBE_MAX: Duration = Duration::from_secs(2);

/// Returns the deadline of a call, if it may be sent now.
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
        let stage = "no time was left to send the request";
        return Err(Fault::late(call.timeout, stage));
    }
    Ok(until)
}

/// Part of a body that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// All of it: without it, or with more than is allowed, there is no response.
    Whole,
    /// As much as is allowed, for what else it says: the response means the same without it.
    UpToMax,
    /// The beginning, to quote it.
    Quoted,
}

impl Reads {
    /// Returns the part for a body that decides what the response means, or decides nothing.
    pub(crate) fn decisive(is_decisive: bool) -> Reads {
        match is_decisive {
            true => Reads::Whole,
            false => Reads::Quoted,
        }
    }
}

/// Connections of one handler.
pub(crate) struct CallbackClient {
    /// Lease on the connections; `None` once closed.
    pool: RwLock<Option<Lease>>,
    reply_bytes_max: usize,
    /// Scrubber that removes the secrets of requests from responses.
    scrubber: Arc<Scrubber>,
    first_contact: Option<Duration>,
    /// True once a response has arrived.
    has_answered: AtomicBool,
    /// True if TLS is spoken where plain HTTP was closed without a response; tested once.
    speaks_tls: OnceCell<bool>,
}

impl CallbackClient {
    pub(crate) fn new(
        lease: Lease,
        outbound: &Outbound,
        reply_bytes_max: usize,
        scrubber: Arc<Scrubber>,
    ) -> CallbackClient {
        CallbackClient {
            pool: RwLock::new(Some(lease)),
            reply_bytes_max,
            scrubber,
            first_contact: outbound.first_contact,
            has_answered: AtomicBool::new(false),
            speaks_tls: OnceCell::new(),
        }
    }

    /// Sends a request and reads its response until `deadline`; `timeout` is for the message. The status decides how
    /// much of the body is read; secrets of this handler are removed from it.
    /// `again` makes the same request once more, if the server closed a kept connection as the first one was sent.
    /// Cancel safe: dropping it closes the connection.
    pub(crate) async fn send(
        &self,
        request: Request<GatedBody>,
        again: impl FnOnce() -> Option<Request<GatedBody>>,
        deadline: &mut Deadline<'_>,
        timeout: Duration,
        reads: impl Fn(StatusCode) -> Reads,
    ) -> Result<Answer, Fault> {
        let answered = self.exchange(request, again, deadline, timeout, reads).await;
        answered.map(|answer| self.scrubber.answer(answer))
    }

    async fn exchange(
        &self,
        request: Request<GatedBody>,
        again: impl FnOnce() -> Option<Request<GatedBody>>,
        deadline: &mut Deadline<'_>,
        timeout: Duration,
        reads: impl Fn(StatusCode) -> Reads,
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
                let late = Fault::late(timeout, "no response began");
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
        let reads = reads(parts.status);
        self.read(exchange, (parts, body), reads, (deadline, timeout))
            .await
    }

    /// Reads a response's body, or a part of it; `timeout` is for the message.
    async fn read(
        &self,
        mut exchange: Exchange<'_>,
        (mut parts, body): (Parts, Incoming),
        reads: Reads,
        (deadline, timeout): (&mut Deadline<'_>, Duration),
    ) -> Result<Answer, Fault> {
        if reads == Reads::Whole {
            let whole = exchange.read(read_all(body, self.reply_bytes_max));
            let read = deadline.cut_short(whole).await;
            let body =
                read.ok_or_else(|| Fault::late(timeout, "the response began but did not finish"))??;
            exchange.end();
            let body = packed::unpacked(&mut parts, body, self.reply_bytes_max)?;
            return Ok(answer(parts, body));
        }
        let bytes_max = match reads {
            Reads::UpToMax => self.reply_bytes_max,
            Reads::Whole | Reads::Quoted => QUOTED_BYTES_MAX,
        };
        let mut quoted = BytesMut::new();
        // Such a response means the same with or without its body.
        let some = exchange.read(read_into(body, bytes_max, &mut quoted));
        if let Some(Ok(())) = deadline.cut_short(some).await {
            exchange.end();
        }
        let body = packed::beginning(&mut parts, quoted.freeze(), bytes_max);
        Ok(answer(parts, body))
    }

    /// Interprets a connection that was closed without a response where none ever arrived: many servers that speak
    /// TLS close so, without the alert that would tell.
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
            Some(true) => Fault::Tls(TlsFault::WantsHttps),
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

    /// Returns the number of connections made so far.
    pub(crate) fn connections(&self) -> usize {
        self.pool().map_or(0, |pool| pool.made.load(Ordering::Relaxed))
    }

    /// Releases all connections; those in use end with their calls.
    pub(crate) fn close(&self) {
        let lease = self.pool.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(lease);
    }
}

/// Checks the exact limit, since the client reads up to twice its buffer before it refuses.
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

/// Reads the whole body, without a copy if it comes in one piece, as nearly all do.
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

/// Error for a dispatch gate that shut after a connection was made and before the body was sent.
#[derive(Debug, thiserror::Error)]
#[error("the dispatch gate is closed")]
pub(crate) struct GateShut;

/// Body of a request, which checks the dispatch gate at the moment when the client takes it: only then is there a
/// connection. A refusal leaves the request without its body, which no server can take for a request. Of an empty
/// body, the connection asks only if it is at its end: while the gate is open it is, and the request is sent with its
/// head; once the gate is shut, a body is announced that never comes.
pub(crate) struct GatedBody {
    bytes: Option<Bytes>,
    /// Run and clock of the gate; `None` for calls that belong to no run.
    gate: Option<(Arc<RunContext>, Arc<dyn Clock>)>,
    /// True once a connection took the body.
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

    /// Creates a body that is always sent, for a hook or a ping.
    pub(crate) fn free(bytes: Bytes) -> GatedBody {
        GatedBody {
            bytes: Some(bytes),
            gate: None,
            has_left: Arc::default(),
        }
    }
}

impl GatedBody {
    /// Returns the length of the body, which is the whole until a connection takes it.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)
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
            // Not exactly zero: such a body would be sent without a check.
            Some(bytes) if bytes.is_empty() => SizeHint::default(),
            bytes => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
        }
    }
}
