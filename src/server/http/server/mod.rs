//! Serves the façade's router on a listener: bounded in every direction, so that slow or hostile clients cost a
//! connection and nothing else.
//!
//! One address has a share of the connections. Whoever gets none is not left in the backlog: a few more connections are
//! kept, on which the node tells of its health, and refuses all else with 503. A client that doesn't finish a request's head
//! in time, stalls in its body or doesn't read its answer is cut off.

mod body_timeout;
mod listener;
mod places;
#[cfg(test)]
mod tests;
mod tls;
mod write_timeout;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::{Body as _, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
pub use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use self::body_timeout::BodyTimeout;
use self::listener::Accepted;
pub use self::listener::Listener;
use self::places::{Place, Places};
pub use self::tls::{BadTls, acceptor};
use self::write_timeout::WriteTimeout;
use windrow_core::business::network::Network;

/// What clients may take of the node.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: u32,
    /// Those of one address.
    pub per_peer: u32,
    /// Proxies, whose connections are many people's: their addresses have no share.
    pub proxies: Vec<Network>,
    /// From the end of one request, or the first byte of the connection, to the end of the next head. An idle
    /// connection is closed after it.
    pub head_patience: Duration,
    /// How long one may wait for 16 KiB of a body, or its end.
    pub body_patience: Duration,
    /// How long a client may not read its answer.
    pub write_patience: Duration,
    /// How long requests may take to end when the server does.
    pub end_patience: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            connections: 1024,
            per_peer: 1024,
            proxies: Vec::new(),
            head_patience: seconds(10),
            body_patience: seconds(30),
            write_patience: seconds(30),
            end_patience: seconds(10),
        }
    }
}

/// Headers of a request.
const HEADERS_MAX: usize = 100;
/// All headers of a request. Unit: bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Requests at once on a connection of HTTP/2.
const STREAMS_MAX: u32 = 64;
/// What is answered on the connections that are kept for health.
const HEALTH: [&str; 3] = ["/healthz", "/readyz", "/version"];
/// How long such a connection may say nothing.
const BRIEF: Duration = Duration::from_secs(2);
/// After an error of the listener (no more file descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A façade on a port, on a socket of this machine, or in this process alone.
pub struct Server {
    /// Where it listens.
    pub listener: Listener,
    /// What it serves.
    pub router: Router,
    /// What clients may take.
    pub limits: Limits,
}

/// Marks a request for which the node has no connection: its peer, or all of them, have too many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowded;

/// What each connection is given.
struct Serving {
    router: Router,
    limits: Limits,
    builder: Builder<TokioExecutor>,
    /// Of connections that are kept for health.
    brief: Builder<TokioExecutor>,
}

impl Server {
    /// Serves until `ending` is over; then takes no connection any more, lets requests end, and says whether all did
    /// in time. Streams without an end must hear of the end by themselves.
    pub async fn serve(self, ending: impl Future<Output = ()>) -> bool {
        let Server {
            mut listener,
            router,
            limits,
        } = self;
        let (builder, brief) = (
            builder(limits.head_patience),
            builder(limits.head_patience.min(BRIEF)),
        );
        let end_patience = limits.end_patience;
        let places = Places::new(&limits);
        let serving = Arc::new(Serving {
            router,
            limits,
            builder,
            brief,
        });
        let graceful = GracefulShutdown::new();
        tokio::pin!(ending);
        loop {
            let accepted = tokio::select! {
                () = &mut ending => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok(accepted) => match places.take(accepted.peer().ip()) {
                    Some(place) => {
                        tokio::spawn(serving.clone().connection(accepted, graceful.watcher(), place));
                    }
                    None => {
                        tracing::debug!(peer = %accepted.peer(), "a connection too many was dropped");
                    }
                },
                Err(error) => {
                    tracing::warn!(%error, "a connection was not taken");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        tokio::time::timeout(end_patience, graceful.shutdown())
            .await
            .is_ok()
    }
}

fn builder(head_patience: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(head_patience)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(head_patience)
        .keep_alive_timeout(head_patience);
    builder
}

impl Serving {
    async fn connection(self: Arc<Self>, accepted: Accepted, watcher: Watcher, place: Place) {
        let peer = accepted.peer();
        // The version is not guessed: a client that says nothing would keep the guess waiting for ever.
        let (stream, tls) = match accepted {
            Accepted::Tcp(stream, _, Some(tls)) => (stream, tls),
            Accepted::Tcp(stream, _, None) => return self.serve(stream, peer, watcher, place, false).await,
            Accepted::Unix(stream) => return self.serve(stream, peer, watcher, place, false).await,
            Accepted::Memory(stream) => return self.serve(stream, peer, watcher, place, false).await,
        };
        match tokio::time::timeout(self.limits.head_patience, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                self.serve(stream, peer, watcher, place, is_http2).await;
            }
            Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS connection"),
            Err(_) => tracing::debug!(%peer, "no TLS connection in time"),
        }
    }

    async fn serve<S>(&self, stream: S, peer: SocketAddr, watcher: Watcher, place: Place, is_http2: bool)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let unread = Arc::new(AtomicBool::new(false));
        let builder = if place.is_for_health() {
            &self.brief
        } else {
            &self.builder
        }
        .clone();
        let builder = if is_http2 {
            builder.http2_only()
        } else {
            builder.http1_only()
        };
        let stream = TokioIo::new(WriteTimeout::new(
            stream,
            self.limits.write_patience,
            unread.clone(),
        ));
        let (router, patience) = (self.router.clone(), self.limits.body_patience);
        let is_for_health = place.is_for_health();
        let service = hyper::service::service_fn(move |request| {
            let context = RequestContext {
                peer,
                patience,
                is_http2,
                is_for_health,
                unread: unread.clone(),
            };
            context.answer(router.clone(), request)
        });
        let connection = builder.serve_connection(stream, service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%peer, error, "a connection ended badly");
        }
        drop(place);
    }
}

/// What is known of a request beside itself.
struct RequestContext {
    peer: SocketAddr,
    patience: Duration,
    is_http2: bool,
    /// Whether its connection is kept for health.
    is_for_health: bool,
    /// Says to the connection that a request's body was not read to its end.
    unread: Arc<AtomicBool>,
}

impl RequestContext {
    async fn answer(self, router: Router, request: hyper::Request<Incoming>) -> Result<Response, Infallible> {
        let is_read = Arc::new(AtomicBool::new(request.body().is_end_stream()));
        let mut request: Request =
            request.map(|body| Body::new(BodyTimeout::new(body, self.patience, is_read.clone())));
        request.extensions_mut().insert(ConnectInfo(self.peer));
        if self.is_for_health && !HEALTH.contains(&request.uri().path()) {
            request.extensions_mut().insert(Crowded);
        }
        let mut response = router.oneshot(request).await?;
        let is_cut = !is_read.load(Ordering::Acquire);
        if is_cut {
            self.unread.store(true, Ordering::Release);
        }
        // Said, or the client sends its next request into a connection that ends.
        if (is_cut || self.is_for_health) && !self.is_http2 {
            response
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }
}
