//! Serves the façade's router on a listener: bounded in every direction, so that slow or hostile clients cost a
//! connection and nothing else.
//!
//! A connection over the limit is answered with 503 at once instead of waiting in the backlog: whoever asks for the
//! node's health must hear something. A client that doesn't finish a request's head in time, stalls in its body or
//! doesn't read its answer is cut off.

mod patient;
mod steady;
#[cfg(test)]
mod tests;
mod tls;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use self::patient::Patient;
use self::steady::Steady;
pub use self::tls::{BadTls, acceptor};

/// What clients may take of the node.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
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
/// Connections that are being refused at once; more are dropped.
const REFUSALS_MAX: usize = 64;
/// After an error of the listener (no more file descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const REFUSAL: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
    retry-after: 1\r\nconnection: close\r\ncontent-length: 191\r\n\r\n";
const REFUSAL_BODY: &str = r#"{"type":"/problems/too-many-requests","title":"Too many connections","status":503,"detail":"the node serves as many connections as it may","try":["send it again in a second"],"request_id":""}"#;

/// A façade on a port.
pub struct Server {
    /// Where it listens.
    pub listener: TcpListener,
    /// Over TLS, if so.
    pub tls: Option<TlsAcceptor>,
    /// What it serves.
    pub router: Router,
    /// What clients may take.
    pub limits: Limits,
}

/// What each connection is given.
struct Serving {
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: Limits,
    builder: Builder<TokioExecutor>,
}

impl Server {
    /// Serves until `ending` is over; then takes no connection any more, lets requests end, and says whether all did
    /// in time. Streams without an end must hear of the end by themselves.
    pub async fn serve(self, ending: impl Future<Output = ()>) -> bool {
        let Server { listener, tls, router, limits } = self;
        let serving = Arc::new(Serving { tls, router, limits, builder: builder(&limits) });
        let graceful = GracefulShutdown::new();
        let room = Arc::new(Semaphore::new(limits.connections));
        let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
        tokio::pin!(ending);
        loop {
            let accepted = tokio::select! {
                () = &mut ending => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => match room.clone().try_acquire_owned() {
                    Ok(permit) => {
                        tokio::spawn(serving.clone().connection(stream, peer, graceful.watcher(), permit));
                    }
                    Err(_) => refuse(stream, &serving, &refusals),
                },
                Err(error) => {
                    tracing::warn!(%error, "a connection was not taken");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        tokio::time::timeout(limits.end_patience, graceful.shutdown()).await.is_ok()
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_patience)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(limits.head_patience)
        .keep_alive_timeout(limits.head_patience);
    builder
}

impl Serving {
    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        watcher: Watcher,
        permit: OwnedSemaphorePermit,
    ) {
        let Some(tls) = &self.tls else {
            // The version is not guessed: a client that says nothing would keep the guess waiting for ever.
            self.serve(stream, peer, watcher, self.builder.clone().http1_only()).await;
            return drop(permit);
        };
        match tokio::time::timeout(self.limits.head_patience, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let builder = self.builder.clone();
                let builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
                self.serve(stream, peer, watcher, builder).await;
            }
            Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS connection"),
            Err(_) => tracing::debug!(%peer, "no TLS connection in time"),
        }
        drop(permit);
    }

    async fn serve<S>(&self, stream: S, peer: SocketAddr, watcher: Watcher, builder: Builder<TokioExecutor>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (router, patience) = (self.router.clone(), self.limits.body_patience);
        let service =
            hyper::service::service_fn(move |request| answer(router.clone(), request, peer, patience));
        let stream = TokioIo::new(Patient::new(stream, self.limits.write_patience));
        let connection = builder.serve_connection(stream, service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%peer, error, "a connection ended badly");
        }
    }
}

async fn answer(
    router: Router,
    request: hyper::Request<Incoming>,
    peer: SocketAddr,
    patience: Duration,
) -> Result<Response, Infallible> {
    let mut request: Request = request.map(|body| Body::new(Steady::new(body, patience)));
    request.extensions_mut().insert(ConnectInfo(peer));
    router.oneshot(request).await
}

/// Tells a connection that there is no room. What can't be told in plain text, or to too many at once, is dropped.
fn refuse(stream: TcpStream, serving: &Serving, refusals: &Arc<Semaphore>) {
    let permit = refusals.clone().try_acquire_owned();
    if let (None, Ok(permit)) = (&serving.tls, permit) {
        let patience = serving.limits.head_patience;
        tokio::spawn(async move {
            if !matches!(tokio::time::timeout(patience, say_no(stream)).await, Ok(Ok(()))) {
                tracing::debug!("a refused connection was not told why");
            }
            drop(permit);
        });
    }
}

async fn say_no(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(REFUSAL.as_bytes()).await?;
    stream.write_all(REFUSAL_BODY.as_bytes()).await?;
    stream.shutdown().await?;
    // A close with unread bytes would reset the connection, and the client would never see the answer.
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
