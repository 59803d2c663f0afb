//! HTTP/1.1 connections, each driven by the call that uses it.
//!
//! An HTTP/1.1 connection serves one call at a time, so the call's own future reads and writes it: no task stands
//! between a call and its socket, and nothing is woken across threads. (With a task for each connection, as in a
//! general client, a small call took 1.3 times the processor time:
//! `docs/decisions/0051-calls-drive-their-connections.md`.) An idle connection is checked from time to time, and
//! dropped once it was closed or has been idle for too long.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::http::uri::{Authority, Scheme};
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::connect::Connection as _;

use super::client::{GatedBody, HEADER_BYTES_MAX, HEADERS_MAX};
use super::fault::RequestError;
use windrow_net::line::{LastRequest, Line, Lines};
use windrow_tls::TlsFault;

/// Shortest and longest interval between checks of idle connections.
const LOOKS_EVERY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// HTTP/1.1 connection. Passed on in a box, since it is large.
pub(super) struct Wire {
    sender: SendRequest<GatedBody>,
    /// Future that reads and writes the connection; `None` once it is over.
    driver: Option<Connection<Line, GatedBody>>,
    host: Arc<str>,
    is_proxied: bool,
    /// Header that each request sends to a proxy that wants credentials.
    proxy_authorization: Option<HeaderValue>,
    last: Arc<LastRequest>,
    idle_for: Duration,
}

impl Wire {
    /// Runs `work` while the connection is read and written; returns its output.
    pub(super) async fn drive<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        poll_fn(|cx| {
            self.poll_driver(cx);
            work.as_mut().poll(cx)
        })
        .await
    }

    fn poll_driver(&mut self, cx: &mut Context<'_>) {
        let driver = self.driver.as_mut();
        if driver.is_some_and(|driver| Pin::new(driver).poll(cx).is_ready()) {
            self.driver = None;
        }
    }

    /// Returns true if another request may be sent on it.
    fn is_free(&mut self, cx: &mut Context<'_>) -> bool {
        self.poll_driver(cx);
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// Choice of connection for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connect {
    IfNoneIsIdle,
    Anew,
}

/// Idle connections, by host as it is written: an `Authority` is hashed and compared character by character, which
/// took a twentieth of a small call's instructions.
#[derive(Default)]
#[allow(clippy::vec_box, reason = "they come and go in their boxes")]
struct Idle {
    wires: HashMap<Arc<str>, Vec<Box<Wire>>>,
    is_looked_after: bool,
}

/// Pool of HTTP/1.1 connections to handlers.
pub(super) struct Direct {
    lines: Lines,
    idle_max: Duration,
    idle: Arc<Mutex<Idle>>,
}

impl Direct {
    /// Creates a pool that keeps idle connections for `idle_max`.
    pub(super) fn new(lines: Lines, idle_max: Duration) -> Direct {
        Direct {
            lines,
            idle_max,
            idle: Arc::default(),
        }
    }

    /// Sends a request over an idle connection, or over a new one. The connection stays in `used`, to be driven until
    /// the response is read. A request that a closed connection didn't take is sent over another. Dropping it closes
    /// the connection.
    ///
    /// # Errors
    /// `Unheard` if an idle connection ended before any byte of the response: the server closed it as the request was
    /// sent.
    pub(super) async fn send(
        &self,
        mut request: Request<GatedBody>,
        used: &mut Option<Box<Wire>>,
        connection: Connect,
    ) -> Result<Response<Incoming>, RequestError> {
        let target = request.uri().clone();
        let host = target.authority().cloned().ok_or(RequestError::NoHost)?;
        request
            .headers_mut()
            .entry(HOST)
            .or_insert_with(|| host_header(&target, &host));
        loop {
            let idle = match connection {
                Connect::IfNoneIsIdle => poll_fn(|cx| self.take(&host, cx).into()).await,
                Connect::Anew => None,
            };
            let (wire, is_fresh) = match idle {
                Some(wire) => (wire, false),
                // Boxed: connecting is rare, and would make the future of every call large.
                None => (Box::pin(self.connect(&target, &host)).await?, true),
            };
            let wire = used.insert(wire);
            *request.uri_mut() = written(&target, wire.is_proxied);
            if let Some(authorization) = &wire.proxy_authorization {
                request
                    .headers_mut()
                    .insert(PROXY_AUTHORIZATION, authorization.clone());
            }
            let sent = wire.sender.try_send_request(request);
            let mut error = match wire.drive(sent).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            match error.take_message() {
                Some(not_sent) if !is_fresh => request = not_sent,
                None if wire.last.is_unheard() => {
                    return Err(RequestError::Unheard(error.into_error()));
                }
                _ => return Err(RequestError::Broken(error.into_error())),
            }
        }
    }

    fn take(&self, host: &Authority, cx: &mut Context<'_>) -> Option<Box<Wire>> {
        let mut idle = lock(&self.idle);
        let wires = idle.wires.get_mut(host.as_str())?;
        std::iter::from_fn(|| wires.pop()).find_map(|mut wire| wire.is_free(cx).then_some(wire))
    }

    async fn connect(&self, target: &Uri, host: &Authority) -> Result<Box<Wire>, RequestError> {
        let made = self.lines.connect(target.clone()).await;
        let line = made.map_err(RequestError::Unconnected)?;
        let authorization = self.lines.proxy_authorization(target);
        let (is_proxied, last) = (line.connected().is_proxied(), line.last_request());
        let begun = Builder::new()
            .max_buf_size(HEADER_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .handshake(line)
            .await;
        let (sender, driver) = begun.map_err(RequestError::Broken)?;
        Ok(Box::new(Wire {
            sender,
            driver: Some(driver),
            host: host.as_str().into(),
            is_proxied,
            proxy_authorization: authorization.filter(|_| is_proxied),
            last,
            idle_for: Duration::ZERO,
        }))
    }

    /// Tests if TLS is spoken; see [`super::transport::Pool::speaks_tls`].
    pub(super) async fn speaks_tls(&self, plain: &Uri) -> bool {
        let mut parts = plain.clone().into_parts();
        parts.scheme = Some(Scheme::HTTPS);
        let Ok(secure) = Uri::from_parts(parts) else {
            return false;
        };
        match self.lines.connect(secure).await {
            Ok(_) => true,
            Err(why) => matches!(
                TlsFault::of(&*why),
                Some(TlsFault::Certificate(_) | TlsFault::ClientCertificate(_) | TlsFault::Handshake(_))
            ),
        }
    }

    /// Takes back a connection whose response was read; closes one that can't be used again.
    pub(super) fn keep(&self, mut wire: Box<Wire>) {
        // Only the end of a response may still be missing; it wakes whoever takes the connection next.
        if !wire.is_free(&mut Context::from_waker(Waker::noop())) {
            return;
        }
        wire.idle_for = Duration::ZERO;
        let mut idle = lock(&self.idle);
        match idle.wires.get_mut(&wire.host) {
            Some(wires) => wires.push(wire),
            None => drop(idle.wires.insert(wire.host.clone(), vec![wire])),
        }
        if !std::mem::replace(&mut idle.is_looked_after, true) {
            tokio::spawn(look_after(Arc::downgrade(&self.idle), self.idle_max));
        }
    }
}

/// Closes idle connections in time; ends when none is left.
async fn look_after(idle: Weak<Mutex<Idle>>, idle_max: Duration) {
    let pause = (idle_max / 4).clamp(LOOKS_EVERY.0, LOOKS_EVERY.1);
    loop {
        tokio::time::sleep(pause).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut idle = lock(&idle);
        let mut context = Context::from_waker(Waker::noop());
        idle.wires.retain(|_, wires| {
            wires.retain_mut(|wire| {
                wire.idle_for += pause;
                wire.idle_for < idle_max && wire.is_free(&mut context)
            });
            !wires.is_empty()
        });
        idle.is_looked_after = !idle.wires.is_empty();
        if !idle.is_looked_after {
            return;
        }
    }
}

/// Returns the target as the first line of a request has it: complete for a proxy, otherwise without the host.
fn written(target: &Uri, is_proxied: bool) -> Uri {
    match target.path_and_query() {
        Some(path) if !is_proxied => Uri::from(path.clone()),
        _ => target.clone(),
    }
}

/// Returns the host with its port, unless that is the scheme's default.
pub(super) fn host_header(target: &Uri, host: &Authority) -> HeaderValue {
    let own = if target.scheme() == Some(&Scheme::HTTPS) {
        443
    } else {
        80
    };
    let text = match host.port_u16() {
        Some(port) if port == own => host.host(),
        _ => host.as_str(),
    };
    HeaderValue::from_str(text).expect("a host has no characters that no header may have")
}

fn lock(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
