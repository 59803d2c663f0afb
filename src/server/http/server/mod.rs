//! HTTP server for the API router, bounded in every respect, so that a slow or hostile client costs no more than a
//! connection.
//!
//! Each address has a share of the connections. Surplus clients aren't left in the backlog: a few reserve connections
//! serve the health endpoints and respond 503 to everything else. A client that doesn't finish a request head in
//! time, stalls in its body or doesn't read its response is disconnected.

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

/// Limits on the resources that clients may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of connections.
    pub connections: u32,
    /// Maximum number of connections per address.
    pub per_peer: u32,
    /// Proxies, whose connections belong to many people, so that the limit per address doesn't apply to them.
    pub proxies: Vec<Network>,
    /// Time from the end of one request, or the first byte of the connection, to the end of the next head. Idle
    /// connections are closed after it.
    pub head_patience: Duration,
    /// Longest wait for 16 KiB of a body, or for its end.
    pub body_patience: Duration,
    /// Longest time in which a client doesn't read its response.
    pub write_patience: Duration,
    /// Time that requests have to finish when the server shuts down.
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

/// Most headers per request.
const HEADERS_MAX: usize = 100;
/// Largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Most concurrent requests per HTTP/2 connection.
const STREAMS_MAX: u32 = 64;
/// Paths served on the reserve connections for health checks.
const HEALTH: [&str; 3] = ["/healthz", "/readyz", "/version"];
/// Idle timeout of a reserve connection.
const BRIEF: Duration = Duration::from_secs(2);
/// Pause after an error of the listener, such as running out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// API server on a TCP port, on a Unix socket, or within this process only.
pub struct Server {
    /// Source of its connections.
    pub listener: Listener,
    /// Router that serves the requests.
    pub router: Router,
    /// Limits for its clients.
    pub limits: Limits,
}

/// Marks a request on a surplus connection: its address or the server has too many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowded;

/// State shared by all connections.
struct Serving {
    router: Router,
    limits: Limits,
    builder: Builder<TokioExecutor>,
    /// Builder for the reserve connections.
    brief: Builder<TokioExecutor>,
}

impl Server {
    /// Serves until `ending` resolves. Then accepts no more connections, lets requests finish, and returns true if
    /// all did so in time. Endless streams must detect the shutdown themselves.
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
                        tracing::debug!(peer = %accepted.peer(), "connection over the limit dropped");
                    }
                },
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
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
        // Don't detect the HTTP version: a silent client would keep the detection waiting forever.
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
            Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "TLS handshake timed out"),
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
            tracing::debug!(%peer, error, "connection failed");
        }
        drop(place);
    }
}

/// Facts about a request's connection.
struct RequestContext {
    peer: SocketAddr,
    patience: Duration,
    is_http2: bool,
    /// True if the connection is a reserve slot for health checks.
    is_for_health: bool,
    /// Tells the connection that a request's body wasn't read to its end.
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
        // Announce the close, or the client sends its next request into a closing connection.
        if (is_cut || self.is_for_health) && !self.is_http2 {
            response
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }
}
