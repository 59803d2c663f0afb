//! Responses that don't fit into memory, such as exports.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use tokio::time::{Instant, timeout};

use super::Client;
use super::error::ClientError;
use super::request::Request;

/// Response with a body that is read chunk by chunk.
#[derive(Debug)]
pub struct Download<'a> {
    /// HTTP status, from 200 to 299.
    pub status: u16,
    /// Headers of the response.
    pub headers: HeaderMap,
    body: Incoming,
    client: &'a Client,
}

impl Client {
    /// Sends a request and returns a response to be read chunk by chunk. Never retried.
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
    /// Returns the next chunk, or `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// Fails if the connection breaks, or if nothing arrives within the request timeout.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        let client = self.client;
        let piece = timeout(client.timeout, self.piece()).await;
        piece.unwrap_or_else(|_| Err(client.late()))
    }

    /// Returns the next chunk without a timeout. Cancel safe.
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
