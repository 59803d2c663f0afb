//! Calls of the `http` handler, one after the other, and the server that answers them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::time::Instant;
use windrow_core::ids::{Attempt, ItemIndex};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::Dispatch;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{Call, CallItems, CallRows, HandlerFactory, Reply};
use windrow_engine::ports::sources::source::RowChunk;
use windrow_handlers::http::{HttpHandlerFactory, HttpOptions};

use crate::clock::VirtualClock;
use crate::run::{ROW, context};

/// How late each answer comes: later than a counted client needs to wait for it, so that it waits each time. An answer that is
/// there before saves a poll, and whether it is depends on what else the machine does.
const LATE: Duration = Duration::from_millis(5);

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap()
}

/// Makes so many calls of one item each.
pub(crate) fn run(address: &str, count: u64) {
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock {
        start: Instant::now(),
    });
    let options = HttpOptions {
        batch: 1,
        ..HttpOptions::new(format!("http://{address}/"))
    };
    let factory = HttpHandlerFactory::new(options, clock.clone());
    let ends = vec![u32::try_from(ROW.len()).unwrap()];
    let chunk = Arc::new(RowChunk::new(
        ItemIndex(0),
        Bytes::from_static(ROW.as_bytes()),
        ends,
    ));
    runtime().block_on(async {
        let handler = factory.open(context()).unwrap();
        for _ in 0..count {
            let run = IndexRun::new(ItemIndex(0), 1).unwrap();
            let call = Call {
                items: CallItems::One(Dispatch {
                    run,
                    attempt: Attempt::FIRST,
                }),
                rows: CallRows {
                    chunks: vec![chunk.clone()],
                    positions: None,
                },
                gate_time: clock.now(),
                timeout: Duration::from_secs(600),
            };
            assert_eq!(handler.process(call).await, Reply::AllOk);
        }
        handler.close().await;
    });
}

async fn answer(request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    // A body that is cut off belongs to a client that ended.
    request.into_body().collect().await.ok();
    tokio::time::sleep(LATE).await;
    Ok(Response::builder().status(204).body(Empty::new()).unwrap())
}

/// Says where, and answers until its process ends.
pub(crate) fn serve() {
    runtime().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            tokio::spawn(async move {
                let served = hyper::server::conn::http1::Builder::new();
                // Clients hang up when they are done.
                served
                    .serve_connection(TokioIo::new(stream), service_fn(answer))
                    .await
                    .ok();
            });
        }
    });
}
