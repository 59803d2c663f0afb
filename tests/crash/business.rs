//! A business over HTTP that remembers every delivery: how often an index came, in which run, when the gate let it go.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// One call as it came in.
pub(crate) struct Call {
    pub(crate) run: u32,
    /// Unit: microseconds since the Unix epoch.
    pub(crate) gate: i64,
    /// Index and attempt of each item.
    pub(crate) items: Vec<(u64, u32)>,
    pub(crate) body: Bytes,
}

/// What one run delivered.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) deliveries: u64,
    pub(crate) lowest: u64,
    /// Items that this run was the last to deliver before another one delivered them again.
    pub(crate) repeated: u64,
    /// Items that this run delivered more than once.
    pub(crate) retried: u64,
}

/// Everything that was ever delivered.
#[derive(Default)]
pub(crate) struct Record {
    /// Deliveries of each index.
    pub(crate) counts: Vec<u8>,
    last_run: Vec<u32>,
    pub(crate) runs: BTreeMap<u32, Run>,
    /// Gate time and items of each call. Unit: microseconds since the Unix epoch.
    pub(crate) gates: Vec<(i64, u32)>,
}

impl Record {
    fn add(&mut self, call: &Call) {
        self.gates
            .push((call.gate, u32::try_from(call.items.len()).expect("small calls")));
        for (index, _) in &call.items {
            let at = usize::try_from(*index).expect("small indexes");
            self.counts[at] = self.counts[at].saturating_add(1);
            // A call that was under way at a kill may be seen after the next run's first.
            let last = std::mem::replace(&mut self.last_run[at], call.run);
            let run = self.runs.entry(call.run).or_insert_with(Run::new);
            run.deliveries += 1;
            run.lowest = run.lowest.min(*index);
            match last {
                0 => {}
                last if last == call.run => run.retried += 1,
                last => self.runs.get_mut(&last).expect("it delivered").repeated += 1,
            }
        }
    }

    pub(crate) fn never_delivered(&self) -> usize {
        self.counts.iter().filter(|count| **count == 0).count()
    }

    pub(crate) fn repeats(&self) -> u64 {
        self.counts
            .iter()
            .map(|count| u64::from(count.saturating_sub(1)))
            .sum()
    }

    pub(crate) fn newest(&self) -> u32 {
        self.runs.last_key_value().map_or(0, |(run, _)| *run)
    }
}

impl Run {
    fn new() -> Run {
        Run {
            deliveries: 0,
            lowest: u64::MAX,
            repeated: 0,
            retried: 0,
        }
    }
}

type Act = Box<dyn Fn(&Call) -> (u16, String) + Send + Sync>;

struct Shared {
    record: Mutex<Record>,
    act: Act,
    /// How long a call takes.
    takes: Duration,
    newest: watch::Sender<u32>,
}

/// See the module.
pub(crate) struct Business {
    address: SocketAddr,
    shared: Arc<Shared>,
    newest: watch::Receiver<u32>,
}

impl Business {
    /// A business of so many items; each call takes a while.
    pub(crate) async fn start(
        items: usize,
        takes: Duration,
        act: impl Fn(&Call) -> (u16, String) + Send + Sync + 'static,
    ) -> Business {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let record = Record {
            counts: vec![0; items],
            last_run: vec![0; items],
            ..Record::default()
        };
        let (sender, newest) = watch::channel(0);
        let shared = Arc::new(Shared {
            record: Mutex::new(record),
            act: Box::new(act),
            takes,
            newest: sender,
        });
        let accepting = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, accepting.clone()));
            }
        });
        Business {
            address,
            shared,
            newest,
        }
    }

    /// One that is content with everything.
    pub(crate) async fn content(items: usize, takes: Duration) -> Business {
        Business::start(items, takes, |_| (204, String::new())).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/windrow", self.address)
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.shared.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the first delivery of a run that is newer than this one.
    pub(crate) async fn newer_than(&self, run: u32) -> u32 {
        *self
            .newest
            .clone()
            .wait_for(|newest| *newest > run)
            .await
            .expect("the business lives")
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { respond(request, &shared).await }
    });
    // A peer that was killed is what these tests are about.
    drop(
        hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

async fn respond(request: Request<Incoming>, shared: &Shared) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let call = Call {
        run: run_of(&parts.headers),
        gate: gate_of(&parts.headers),
        items: items_of(&body),
        body,
    };
    assert!(!call.items.is_empty(), "no items in {:?}", call.body);
    shared
        .record
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .add(&call);
    shared
        .newest
        .send_if_modified(|newest| call.run > std::mem::replace(newest, call.run.max(*newest)));
    let (status, answer) = (shared.act)(&call);
    if !shared.takes.is_zero() {
        tokio::time::sleep(shared.takes).await;
    }
    Ok(Response::builder()
        .status(status)
        .body(Full::from(answer))
        .expect("a response"))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_else(|| panic!("no {name}"))
}

fn run_of(headers: &HeaderMap) -> u32 {
    header(headers, "windrow-run").parse().expect("a number")
}

fn gate_of(headers: &HeaderMap) -> i64 {
    let time = OffsetDateTime::parse(header(headers, "windrow-gate-time"), &Rfc3339).expect("RFC 3339");
    i64::try_from(time.unix_timestamp_nanos() / 1000).expect("this century")
}

/// What each item of a body begins with.
const ITEM: &[u8] = br#"{"index":"#;
const ATTEMPT: &[u8] = br#","attempt":"#;

/// The items of a body, without the cost of reading all of its JSON.
fn items_of(body: &[u8]) -> Vec<(u64, u32)> {
    let (mut items, mut rest) = (Vec::new(), body);
    while let Some(at) = rest.iter().position(|byte| *byte == b'{') {
        rest = &rest[at..];
        if let Some(number) = rest.strip_prefix(ITEM) {
            let (index, after) = digits(number);
            let (attempt, after) = digits(after.strip_prefix(ATTEMPT).expect("an attempt follows the index"));
            items.push((index, u32::try_from(attempt).expect("few attempts")));
            rest = after;
        } else {
            rest = &rest[1..];
        }
    }
    items
}

fn digits(bytes: &[u8]) -> (u64, &[u8]) {
    let len = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (
        std::str::from_utf8(&bytes[..len])
            .expect("digits")
            .parse()
            .expect("a number"),
        &bytes[len..],
    )
}
