//! Requests of OpenTelemetry's exporter, whose thread has no runtime of its own.

use std::time::Duration;

use bytes::Bytes;
use hyper::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError, ResponseExt};
use tokio::runtime::Handle;

use crate::OwnClient;

/// Time for one request to the collector.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a response that are read; collectors answer with a few.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Client of a collector.
#[derive(Debug)]
pub struct OtlpSender {
    client: OwnClient,
    runtime: Handle,
}

impl OtlpSender {
    /// Creates a sender whose requests run on this runtime.
    pub fn new(client: OwnClient, runtime: &Handle) -> OtlpSender {
        let runtime = runtime.clone();
        OtlpSender { client, runtime }
    }
}

#[async_trait::async_trait]
impl HttpClient for OtlpSender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sending = async move { client.send(request, ANSWER_BYTES_MAX, PATIENCE).await };
        Ok(self.runtime.spawn(sending).await??.error_for_status()?)
    }
}
