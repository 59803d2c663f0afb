//! The server of benches: hyper on one thread. It remembers the first request of each connection for `/last`.

#![allow(clippy::unwrap_used, reason = "a benchmark ends where something is wrong")]

use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Items of a batched call.
pub const BATCH: u64 = 100;

/// The last request that was looked at: the first of a connection.
type Last = Arc<Mutex<(HeaderMap, Bytes)>>;

/// Serves until its process or thread ends; says where.
pub fn serve(say: impl FnOnce(SocketAddr)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        say(listener.local_addr().unwrap());
        let last = Last::default();
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            let last = last.clone();
            tokio::spawn(async move {
                let looks = Mutex::new(Some(last));
                let service = service_fn(|request| {
                    let is_first = looks.lock().unwrap().take();
                    respond(request, is_first)
                });
                let io = TokioIo::new(stream);
                // Clients hang up when they are done.
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(io, service)
                    .await
                    .ok();
            });
        }
    });
}

async fn respond(
    request: Request<Incoming>,
    last: Option<Last>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let (status, reply) = match parts.uri.path() {
        "/empty" => (204, Bytes::new()),
        "/default" => (200, Bytes::from_static(br#"{"default":"ok"}"#)),
        "/results" => (200, results(&body)),
        _ => {
            let (headers, body) = last.expect("a fresh connection").lock().unwrap().clone();
            let mut response = Response::new(Full::new(body));
            *response.headers_mut() = headers;
            return Ok(response);
        }
    };
    if let Some(last) = last {
        *last.lock().unwrap() = (parts.headers, body);
    }
    let response = Response::builder().status(status).body(Full::new(reply));
    Ok(response.unwrap())
}

/// Results of the items that a body names, from its first index on.
fn results(body: &[u8]) -> Bytes {
    const KEY: &[u8] = br#""index":"#;
    let at = body
        .windows(KEY.len())
        .position(|part| part == KEY)
        .map_or(0, |at| at + KEY.len());
    let digits = body[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let first = digits.fold(0, |number: u64, digit| number * 10 + u64::from(digit - b'0'));
    let mut reply = Vec::with_capacity(40 * BATCH as usize);
    reply.extend_from_slice(br#"{"results":["#);
    for index in first..first + BATCH {
        if index > first {
            reply.push(b',');
        }
        write!(reply, r#"{{"index":{index},"result":"ok"}}"#).unwrap();
    }
    reply.extend_from_slice(b"]}");
    Bytes::from(reply)
}
