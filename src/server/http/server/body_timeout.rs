//! Request body that fails if its client stalls or sends too slowly.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

/// Amount that must arrive within the timeout to restart it, in bytes.
const STEP: usize = 16 << 10;

/// Body with a timeout, which counts only while someone waits for the client.
pub(super) struct BodyTimeout<B> {
    inner: B,
    patience: Duration,
    /// Time already waited in the current step.
    waited: Duration,
    /// Bytes received in the current step.
    arrived: usize,
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
    /// Set once the body is read to its end.
    is_read: Arc<AtomicBool>,
}

impl<B> BodyTimeout<B> {
    pub(super) fn new(inner: B, patience: Duration, is_read: Arc<AtomicBool>) -> BodyTimeout<B> {
        BodyTimeout {
            inner,
            patience,
            waited: Duration::ZERO,
            arrived: 0,
            waiting: None,
            is_read,
        }
    }

    fn on_frame(&mut self, bytes: usize) {
        if let Some((since, _)) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        self.arrived += bytes;
        if self.arrived >= STEP {
            (self.arrived, self.waited) = (0, Duration::ZERO);
        }
    }

    fn on_wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let left = self.patience.saturating_sub(self.waited);
        let (_, sleep) = self
            .waiting
            .get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(left))));
        sleep.as_mut().poll(context)
    }
}

impl<B> Body for BodyTimeout<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let me = self.get_mut();
        match Pin::new(&mut me.inner).poll_frame(context) {
            Poll::Ready(frame) => {
                let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
                me.on_frame(data.map_or(0, Bytes::len));
                if frame.is_none() || me.inner.is_end_stream() {
                    me.is_read.store(true, Ordering::Release);
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => me.on_wait(context).map(|()| {
                let text = "the client stopped sending its body";
                Some(Err(io::Error::new(io::ErrorKind::TimedOut, text).into()))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
