//! Calls of the façade that may fail, since that is what happens here.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// How long a call may take; a node that is frozen answers never.
const LIMIT: Duration = Duration::from_secs(5);

/// Status and body, or why there is none.
pub(crate) async fn call(
    port: u16,
    method: &str,
    path: &str,
    key: Option<&str>,
    body: &Value,
) -> Result<(u16, Value), String> {
    let exchange = exchange(port, method, path, key, body);
    match tokio::time::timeout(LIMIT, exchange).await {
        Ok(answer) => answer.map_err(|fault| fault.to_string()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One request on a connection of its own.
async fn exchange(
    port: u16,
    method: &str,
    path: &str,
    key: Option<&str>,
    body: &Value,
) -> Result<(u16, Value), Failure> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Its fault is the exchange's.
    let driving = tokio::spawn(async move { connection.await.ok() });
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", format!("127.0.0.1:{port}"));
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let text = if body.is_null() {
        Bytes::new()
    } else {
        Bytes::from(body.to_string())
    };
    if !text.is_empty() {
        request = request.header("content-type", "application/json");
    }
    let answer = sender.send_request(request.body(Full::new(text))?).await?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await?.to_bytes();
    driving.abort();
    Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
