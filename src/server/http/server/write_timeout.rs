//! Connection that times out if its client doesn't read, and that isn't closed before the client could read the
//! response.
//!
//! Closing a socket with unread input resets it, which may destroy the response. After a response to a request with
//! an unread body, further input is therefore read and discarded for a while.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Longest time a rejected client may continue to send; after it, the connection is closed.
const LINGER: Duration = Duration::from_secs(5);
/// Bytes discarded before the task yields.
const THROWN_AT_ONCE: usize = 64 << 10;

/// Connection with a write timeout and a lingering close.
pub(super) struct WriteTimeout<S> {
    stream: S,
    patience: Duration,
    /// Write timeout; set while a write is pending.
    waiting: Option<Pin<Box<Sleep>>>,
    /// True while a request body isn't read to its end.
    unread: Arc<AtomicBool>,
    /// Linger timeout; set once the write side is shut down.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S, patience: Duration, unread: Arc<AtomicBool>) -> WriteTimeout<S> {
        WriteTimeout {
            stream,
            patience,
            waiting: None,
            unread,
            lingering: None,
        }
    }

    /// Returns the outcome of a write; starts, checks or clears the write timeout.
    fn watch<T>(&mut self, outcome: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let patience = self.patience;
        let sleep = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        sleep
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> WriteTimeout<S> {
    /// Discards input until the client closes or the linger timeout expires.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self
            .lingering
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER.min(self.patience))));
        if sleep.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut space = [MaybeUninit::uninit(); 8 << 10];
        for _ in 0..THROWN_AT_ONCE / space.len() {
            let mut buffer = ReadBuf::uninit(&mut space);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watch(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(outcome, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
            let outcome = ready!(self.watch(outcome, context));
            if outcome.is_err() || !self.unread.load(Ordering::Acquire) {
                return Poll::Ready(outcome);
            }
        }
        self.poll_linger(context).map(Ok)
    }
}
