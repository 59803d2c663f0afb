//! Windrow's `http` handler against a bare client of the same kind that does the same POST, side by side.
//!
//! Run with `cargo bench --bench http`. The server is hyper on a thread of its own; both clients run on one
//! thread with 64 calls at a time. Rounds alternate, and the ratio is taken within a round, because the machine
//! is shared; absolute numbers are only orientation. Goals: single ≥ 0.75, batched no worse. Beside it the `request`
//! handler, which fills templates: ≥ 0.9 of `http`.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(
    unreachable_pub,
    dead_code,
    reason = "a benchmark exports nothing, and doesn't use all that is shared"
)]

#[path = "http/request.rs"]
mod request;
#[path = "shared/run.rs"]
mod run;
#[path = "shared/server.rs"]
mod server;
#[path = "shared/smoke.rs"]
mod smoke;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::HeaderMap;
use hyper::{Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::runtime::{Builder, Runtime};

use windrow_core::ids::{Attempt, ItemIndex};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::Dispatch;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{Call, CallItems, CallRows, Handler, HandlerFactory, Reply};
use windrow_engine::ports::sources::source::RowChunk;
use windrow_handlers::http::{HttpHandlerFactory, HttpOptions};
use windrow_host::clock::SystemClock;

use run::{ROW, context};

const IN_FLIGHT: u64 = 64;
const BATCH: u32 = server::BATCH as u32;

/// One comparison.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    items: u32,
    path: &'static str,
    calls: u64,
}

const CASES: [Case; 3] = [
    Case {
        name: "single, reply 204",
        items: 1,
        path: "/empty",
        calls: 20_000,
    },
    Case {
        name: "batch of 100, reply {\"default\":\"ok\"}",
        items: BATCH,
        path: "/default",
        calls: 6_000,
    },
    Case {
        name: "batch of 100, reply with 100 results",
        items: BATCH,
        path: "/results",
        calls: 6_000,
    },
];

fn main() {
    let (rounds, share) = smoke::sized((7, 1), (1, 100));
    let address = serve();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let title = "calls/s (median of rounds)";
    println!(
        "{title:<40} {:>10} {:>10} {:>10}  windrow ÷ bare: min / median / max",
        "windrow", "bare", "makes"
    );
    println!(
        "(bare sends one prebuilt body again and again, with the same headers; \"makes\" is bare that makes each body with serde_json, as any client has to)"
    );
    for case in CASES {
        compare(
            &runtime,
            address,
            Case {
                calls: case.calls / share,
                ..case
            },
            rounds,
        );
    }
    let single = Case {
        calls: CASES[0].calls / share,
        ..CASES[0]
    };
    request::compare(&runtime, address, single, rounds);
}

fn compare(runtime: &Runtime, address: SocketAddr, case: Case, rounds: usize) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let url = format!("http://{address}{}", case.path);
    let options = HttpOptions {
        batch: case.items,
        ..HttpOptions::new(&url)
    };
    let handler = HttpHandlerFactory::new(options, clock.clone())
        .open(context())
        .expect("opens");
    let (headers, body) = runtime.block_on(captured(&handler, &clock, address, case));
    let bare = bare_client();
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 0..=rounds {
        let mut measured = [0.0; 3];
        for step in 0..3 {
            let which = (step + round) % 3;
            measured[which] = match which {
                0 => runtime.block_on(run_windrow(&handler, &clock, case)),
                1 => runtime.block_on(run_bare(&bare, &url, &headers, Some(&body), case)),
                _ => runtime.block_on(run_bare(&bare, &url, &headers, None, case)),
            };
        }
        // The first round warms up.
        if round > 0 {
            rates
                .iter_mut()
                .zip(measured)
                .for_each(|(all, rate)| all.push(rate));
        }
    }
    report(case, &rates);
}

fn report(case: Case, rates: &[Vec<f64>; 3]) {
    let spread = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        (values[0], values[values.len() / 2], values[values.len() - 1])
    };
    let ratio = |other: &[f64]| {
        spread(
            rates[0]
                .iter()
                .zip(other)
                .map(|(one, other)| one / other)
                .collect(),
        )
    };
    let median = |which: usize| spread(rates[which].clone()).1;
    let (same, makes) = (ratio(&rates[1]), ratio(&rates[2]));
    println!(
        "{:<40} {:>10.0} {:>10.0} {:>10.0}  {:.2} / {:.2} / {:.2}   (makes: {:.2} / {:.2} / {:.2})",
        case.name,
        median(0),
        median(1),
        median(2),
        same.0,
        same.1,
        same.2,
        makes.0,
        makes.1,
        makes.2
    );
}

/// Runs 64 loops that share `calls`; returns calls per second.
async fn race<F, Fut>(calls: u64, one: F) -> f64
where
    F: Fn(u64) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send,
{
    let begun = Instant::now();
    let each = (calls / IN_FLIGHT).max(1);
    let lanes = (0..IN_FLIGHT).map(|lane| {
        let one = one.clone();
        tokio::spawn(async move {
            for call in 0..each {
                one(lane * each + call).await;
            }
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.expect("a lane does not panic");
    }
    (each * IN_FLIGHT) as f64 / begun.elapsed().as_secs_f64()
}

async fn run_windrow(handler: &Arc<dyn Handler>, clock: &Arc<dyn Clock>, case: Case) -> f64 {
    let (handler, clock, chunk) = (handler.clone(), clock.clone(), chunk());
    race(case.calls, move |number| {
        let (handler, call) = (handler.clone(), call(&clock, &chunk, number, case));
        async move {
            let reply = handler.process(call).await;
            assert_eq!(reply, Reply::AllOk);
        }
    })
    .await
}

type Bare = Client<HttpConnector, Full<Bytes>>;

fn bare_client() -> Bare {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(connector)
}

async fn run_bare(client: &Bare, url: &str, headers: &HeaderMap, body: Option<&Bytes>, case: Case) -> f64 {
    let uri: hyper::Uri = url.parse().expect("a url");
    let (client, headers, body) = (client.clone(), headers.clone(), body.cloned());
    race(case.calls, move |number| {
        let body = body.clone().unwrap_or_else(|| made(number, case));
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = headers.clone();
        let client = client.clone();
        async move {
            let answered = tokio::time::timeout(Duration::from_secs(30), client.request(request)).await;
            let response = answered.expect("in time").expect("an answer");
            assert!(response.status().is_success());
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            check(&body, case);
        }
    })
    .await
}

/// The same members as Windrow sends, made the usual way.
fn made(number: u64, case: Case) -> Bytes {
    let data = serde_json::value::RawValue::from_string(ROW.to_owned()).expect("JSON");
    let first = if case.items == 1 {
        number % u64::from(BATCH)
    } else {
        0
    };
    let items: Vec<Item<'_>> = (first..first + u64::from(case.items))
        .map(|index| Item {
            index,
            attempt: 1,
            key: format!("k7f3q2-t1042-{index}"),
            data: &data,
        })
        .collect();
    let task = Task {
        id: "t1042",
        name: "black-friday",
        revision: 4,
    };
    let (business, epoch) = ("push-campaign", 1_795_194_100_123);
    let body = Body {
        r#type: "items.process",
        business,
        shard: 0,
        run: 3,
        epoch,
        task,
        items,
    };
    Bytes::from(serde_json::to_vec(&body).expect("JSON"))
}

#[derive(serde::Serialize)]
struct Body<'a> {
    r#type: &'a str,
    business: &'a str,
    shard: u32,
    run: u32,
    epoch: u64,
    task: Task<'a>,
    items: Vec<Item<'a>>,
}

#[derive(serde::Serialize)]
struct Task<'a> {
    id: &'a str,
    name: &'a str,
    revision: u64,
}

#[derive(serde::Serialize)]
struct Item<'a> {
    index: u64,
    attempt: u32,
    key: String,
    data: &'a serde_json::value::RawValue,
}

#[derive(serde::Deserialize)]
struct Results<'a> {
    #[serde(borrow, default)]
    results: Vec<OneResult<'a>>,
}

#[derive(serde::Deserialize)]
struct OneResult<'a> {
    index: u64,
    result: &'a str,
}

/// What any client has to do with a reply: read it.
fn check(body: &[u8], case: Case) {
    if case.items == 1 {
        assert!(body.is_empty());
        return;
    }
    let reply: Results<'_> = serde_json::from_slice(body).expect("JSON");
    assert!(
        reply
            .results
            .iter()
            .all(|one| one.result == "ok" && one.index < u64::from(BATCH))
    );
}

fn chunk() -> Arc<RowChunk> {
    let ends = (1..=BATCH).map(|row_no| row_no * ROW.len() as u32).collect();
    Arc::new(RowChunk::new(
        ItemIndex(0),
        Bytes::from(ROW.repeat(BATCH as usize)),
        ends,
    ))
}

fn call(clock: &Arc<dyn Clock>, chunk: &Arc<RowChunk>, number: u64, case: Case) -> Call {
    let first = if case.items == 1 {
        number % u64::from(BATCH)
    } else {
        0
    };
    let run = IndexRun::new(ItemIndex(first), case.items).expect("not empty");
    Call {
        items: CallItems::One(Dispatch {
            run,
            attempt: Attempt::FIRST,
        }),
        rows: CallRows {
            chunks: vec![chunk.clone()],
            positions: None,
        },
        gate_time: clock.now(),
        timeout: Duration::from_secs(30),
    }
}

/// The headers and the body of one of Windrow's requests, for the bare client to repeat.
async fn captured(
    handler: &Arc<dyn Handler>,
    clock: &Arc<dyn Clock>,
    address: SocketAddr,
    case: Case,
) -> (HeaderMap, Bytes) {
    let reply = handler.process(call(clock, &chunk(), 0, case)).await;
    assert_eq!(reply, Reply::AllOk);
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let last = client
        .get(format!("http://{address}/last").parse().expect("a url"))
        .await
        .expect("an answer");
    let mut headers = last.headers().clone();
    for name in ["host", "content-length", "date"] {
        headers.remove(name);
    }
    (
        headers,
        last.into_body().collect().await.expect("a body").to_bytes(),
    )
}

/// A server on a thread of its own.
fn serve() -> SocketAddr {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        server::serve(|address| sender.send(address).expect("the main thread waits"));
    });
    receiver.recv().expect("the server starts")
}
