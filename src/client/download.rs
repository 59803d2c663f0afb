//! Answers that are longer than memory: exports.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use tokio::time::{Instant, timeout};

use super::Client;
use super::error::ClientError;
use super::request::Request;

/// An answer whose body arrives piece by piece.
#[derive(Debug)]
pub struct Download<'a> {
    /// The HTTP status, from 200 to 299.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    body: Incoming,
    client: &'a Client,
}

impl Client {
    /// Sends a request whose answer is read piece by piece. It isn't tried again.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn download(&self, request: Request) -> Result<Download<'_>, ClientError> {
        request.check()?;
        let begun = Instant::now();
        self.tap.sent(&request, Some(&request.body));
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let exchange = timeout(self.timeout, self.exchange_once(&request, body));
        let response = exchange.await.map_err(|_| self.late())??;
        let status = response.status();
        self.tap.answered(&request, status.as_u16(), begun.elapsed());
        if !status.is_success() {
            return Err(self.refused(response).await);
        }
        let (head, body) = response.into_parts();
        self.tap.received(&head.headers, None);
        Ok(Download {
            status: status.as_u16(),
            headers: head.headers,
            body,
            client: self,
        })
    }
}

impl Download<'_> {
    /// The next piece; none at the end. Cancel safe.
    ///
    /// # Errors
    /// When the connection breaks off, or nothing comes for as long as a request may take.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        let client = self.client;
        let piece = timeout(client.timeout, self.piece()).await;
        piece.unwrap_or_else(|_| Err(client.late()))
    }

    /// The same, however long it takes. Cancel safe.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => return Err(self.client.broken_off(error)),
            }
        }
    }
}
