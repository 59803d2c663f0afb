//! Bodies that don't fit into memory: item sources from a file or a pipe.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::stream::unfold;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, sleep};

use super::answer::Answer;
use super::error::ClientError;
use super::request::Request;
use super::{Body, Client};

/// Read size, in bytes; large enough that system calls don't dominate.
const CHUNK_BYTES: usize = 64 * 1024;

/// Progress of an upload.
#[derive(Default)]
struct Meter {
    /// Bytes passed to the connection.
    bytes: AtomicU64,
    /// Set while waiting for the input: a slow pipe must not time out.
    is_reading: AtomicBool,
    /// Error that ended the input early.
    fault: Mutex<Option<String>>,
}

impl Client {
    /// Sends all of `input` as the request body, e.g. `POST /v1/uploads`, and reads the response. `progress` receives
    /// the number of bytes sent so far. Never retried, since a pipe can't be read twice.
    ///
    /// # Errors
    /// [`ClientError::Input`] if the input fails; otherwise as [`Client::send`].
    pub async fn upload(
        &self,
        request: Request,
        input: impl AsyncRead + Send + Unpin + 'static,
        progress: impl Fn(u64) + Send + 'static,
    ) -> Result<Answer, ClientError> {
        request.check()?;
        let begun = Instant::now();
        self.tap.sent(&request, None);
        let meter = Arc::new(Meter::default());
        let exchange = self.exchange_once(&request, body(input, meter.clone(), progress));
        let response = tokio::select! {
            response = exchange => response,
            () = self.stands_still(&meter) => Err(self.late()),
        };
        if let Some(why) = meter.fault.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(ClientError::Input(why));
        }
        let response = response?;
        let status = response.status();
        self.tap.answered(&request, status.as_u16(), begun.elapsed());
        if !status.is_success() {
            return Err(self.refused(response).await);
        }
        let (head, body) = response.into_parts();
        let body = body.collect().await;
        let body = body.map_err(|error| ClientError::of_exchange(&self.server, &error))?;
        let answer = self.answer(status, head.headers, body.to_bytes());
        self.tap.received(&answer.headers, Some(&answer.body));
        Ok(answer)
    }

    /// Completes when nothing has moved for the length of the request timeout.
    async fn stands_still(&self, meter: &Meter) {
        let mut last = None;
        loop {
            let bytes = meter.bytes.load(Ordering::Relaxed);
            if last == Some(bytes) && !meter.is_reading.load(Ordering::Relaxed) {
                return;
            }
            last = Some(bytes);
            sleep(self.timeout).await;
        }
    }
}

fn body(
    input: impl AsyncRead + Send + Unpin + 'static,
    meter: Arc<Meter>,
    progress: impl Fn(u64) + Send + 'static,
) -> Body {
    let chunks = unfold(
        (input, meter, progress),
        |(mut input, meter, progress)| async move {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            meter.is_reading.store(true, Ordering::Relaxed);
            let read = input.read_buf(&mut chunk).await;
            meter.is_reading.store(false, Ordering::Relaxed);
            match read {
                Ok(0) => None,
                Ok(count) => {
                    let sum = meter.bytes.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
                    progress(sum);
                    Some((Ok(Frame::data(Bytes::from(chunk))), (input, meter, progress)))
                }
                Err(error) => {
                    *meter.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                    Some((Err(io::Error::other(error)), (input, meter, progress)))
                }
            }
        },
    );
    StreamBody::new(chunks).boxed_unsync()
}
