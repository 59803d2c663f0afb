//! Connection that is cut off if it is dropped in the middle of a call: nothing more of the request is sent.
//!
//! Data that a slow link holds back stays in the kernel, which continues to send it after an ordinary close: requests
//! of calls that had timed out long ago reached the handler when the link recovered, after the task was confirmed to
//! be stopped. So a connection that still awaits a response is reset instead (`SO_LINGER` of zero), which discards
//! unsent data. Over HTTP/2, calls share a connection and end separately, so data already under way is not taken
//! back.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tower_service::Service;

use super::connect::Connector;
use windrow_tls::stream::Stream;

/// Connector that makes cut-off lines to hosts.
#[derive(Clone)]
pub struct Lines {
    https: HttpsConnector<Connector>,
    tcp: Connector,
}

impl Lines {
    /// Creates lines over connections like those of `tcp`, which `https` makes too.
    pub fn new(https: HttpsConnector<Connector>, tcp: Connector) -> Lines {
        Lines { https, tcp }
    }

    /// Returns the header for the proxy, see [`Connector::proxy_authorization`].
    pub fn proxy_authorization(&self, url: &Uri) -> Option<HeaderValue> {
        self.tcp.proxy_authorization(url)
    }

    /// Connects a line to the host of this URL.
    ///
    /// # Errors
    /// If there is no connection, or no TLS session.
    pub async fn connect(&self, target: Uri) -> Result<Line, <Lines as Service<Uri>>::Error> {
        let mut own = self.clone();
        std::future::poll_fn(|context| own.poll_ready(context)).await?;
        own.call(target).await
    }
}

impl Service<Uri> for Lines {
    type Response = Line;
    type Error = <HttpsConnector<Connector> as Service<Uri>>::Error;
    type Future = BoxFuture<'static, Result<Line, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let made = self.https.call(uri);
        Box::pin(async move {
            let io = made.await?;
            let is_shared = io.connected().is_negotiated_h2();
            Ok(Line {
                io,
                is_shared,
                owes_answer: false,
                last: Arc::default(),
            })
        })
    }
}

/// Connection to a host, cut off if dropped while a response is due.
pub struct Line {
    io: MaybeHttpsStream<Stream>,
    is_shared: bool,
    /// Set when something is sent; reset when something comes back.
    owes_answer: bool,
    last: Arc<LastRequest>,
}

/// Last request sent on an HTTP/1.1 line. Only the call that uses the line changes and reads it.
#[derive(Debug, Default)]
pub struct LastRequest {
    /// True if something came back before the request was sent.
    is_on_kept_line: AtomicBool,
    /// Number of reads since: pieces of its response, and the end of the line.
    reads: AtomicU32,
}

impl LastRequest {
    /// Returns true if the line ended without a byte of a response, after an earlier request had one: the server
    /// closed it as this request was sent.
    pub fn is_unheard(&self) -> bool {
        self.is_on_kept_line.load(Ordering::Relaxed) && self.reads.load(Ordering::Relaxed) <= 1
    }

    fn begin(&self) {
        let is_kept = self.reads.swap(0, Ordering::Relaxed) > 0;
        self.is_on_kept_line.store(is_kept, Ordering::Relaxed);
    }

    fn read(&self) {
        let reads = self.reads.load(Ordering::Relaxed);
        self.reads.store(reads.saturating_add(1), Ordering::Relaxed);
    }
}

impl Line {
    /// Returns the facts of the last request; a general client finds them among the extras of its errors' connection.
    pub fn last_request(&self) -> Arc<LastRequest> {
        self.last.clone()
    }

    fn is_given_up(&self) -> bool {
        self.owes_answer && !self.is_shared
    }

    fn on_written(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let has_left = matches!(written, Poll::Ready(Ok(bytes)) if bytes > 0);
        if has_left && !self.owes_answer {
            self.owes_answer = true;
            self.last.begin();
        }
        written
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.is_given_up() {
            let stream = match &self.io {
                MaybeHttpsStream::Http(stream) => stream,
                MaybeHttpsStream::Https(tls) => tls.inner().get_ref().0.inner(),
            };
            stream.cut_off();
        }
    }
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        self.io.connected().extra(self.last.clone())
    }
}

impl Read for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        if read.is_ready() {
            self.owes_answer = false;
            self.last.read();
        }
        read
    }
}

impl Write for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.on_written(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_given_up() {
            Poll::Ready(Ok(()))
        } else {
            Pin::new(&mut self.io).poll_shutdown(context)
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, parts);
        self.on_written(written)
    }
}
