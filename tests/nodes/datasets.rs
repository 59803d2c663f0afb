//! Generations of a dataset on three nodes, while nodes are killed and reduces fail: no reader ever sees a mix, the pointer
//! never goes back, and each summary is what anybody works out again from the results.
//!
//! `WINDROW_GENERATIONS=200 WINDROW_GENERATION_ITEMS=20000 WINDROW_READERS=50` plays it at full size, and
//! `WINDROW_GENERATION_RATE=6000 WINDROW_NODE__CAPACITY_RATE=3000/s` beside them in less time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::business::Act;
use crate::cluster::Cluster;
use crate::support::{Client, Node, PATIENCE};

pub(crate) const NAMES: [&str; 3] = ["n1", "n2", "n3"];
/// A reduce that adds up, and one that fails; both tell which round they saw.
pub(crate) const SETTINGS: &str = r#"
[cluster]
lease_ttl = "4s"
lease_renew = "1s"
[handler.command]
enabled = true
[handler.command.commands.sum]
cmd = ["python3", "-c", """
import json, sys
outputs = [json.loads(line)["output"] for line in sys.stdin]
rounds = sorted({output["round"] for output in outputs})
print(json.dumps({"rounds": rounds, "rows": len(outputs), "sum": sum(output["n"] for output in outputs)}))
"""]
[handler.command.commands.broken]
cmd = ["sh", "-c", "head -n 1 >/dev/null; exit 3"]
"#;

/// A number from the environment, else this one.
pub(crate) fn size(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// What all readers saw.
#[derive(Default)]
struct Seen {
    answers: AtomicU64,
    mixed: AtomicU64,
    generations: AtomicU64,
    over: AtomicBool,
}

/// The ways to the nodes that live now.
type Ways = watch::Receiver<Vec<Client>>;

/// An answer of whichever node gives one: its status and body.
async fn ask(ways: &Ways, nth: u64, path: &str) -> Option<(u16, Bytes)> {
    let clients = ways.borrow().clone();
    let client = clients.get(usize::try_from(nth).ok()? % clients.len().max(1))?;
    let request = Request::get(format!("{}{path}", client.url));
    let token = client.token.clone().unwrap_or_default();
    let request = request.header("authorization", format!("Bearer {token}"));
    let request = request.body(Full::new(Bytes::new())).expect("a request");
    let answer = tokio::time::timeout(Duration::from_secs(20), client.pool.request(request)).await;
    let (head, body) = answer.ok()?.ok()?.into_parts();
    // A node that dies meanwhile cuts it off.
    let body = body.collect().await.ok()?.to_bytes();
    Some((head.status.as_u16(), body))
}

async fn json_of(ways: &Ways, nth: u64, path: &str) -> Option<Value> {
    let (status, body) = ask(ways, nth, path).await?;
    (status == 200).then(|| serde_json::from_slice(&body).expect("JSON"))
}

/// Reads what is current, then all of its results under its number; says how many publications it saw.
async fn read(ways: Ways, id: u64, seen: Arc<Seen>) {
    let (mut nth, mut newest) = (id, (0, 0));
    while !seen.over.load(Ordering::Relaxed) {
        nth += 1;
        let path = format!("/v1/datasets/board/current?after={}&wait=2s", newest.0);
        let Some(current) = json_of(&ways, nth, &path).await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let number = |member: &str| current[member].as_u64().expect("a number");
        let now = (number("current_publication"), number("generation"));
        assert!(
            now >= newest && now.1 >= newest.1,
            "{now:?} after {newest:?}: the pointer went back"
        );
        newest = now;
        let path = format!("/v1/datasets/board/generations/{}/results", now.1);
        let Some((200, rows)) = ask(&ways, nth + 1, &path).await else {
            continue;
        };
        judge(&current, &rows, &seen);
        seen.generations.fetch_max(now.1, Ordering::Relaxed);
    }
}

/// Whether the rows are those of which the summary speaks.
fn judge(current: &Value, rows: &[u8], seen: &Seen) {
    let text = std::str::from_utf8(rows).expect("text");
    let (mut count, mut sum, mut rounds) = (0, 0, std::collections::BTreeSet::new());
    for row in text.lines() {
        let row: Value = serde_json::from_str(row).expect("a whole line");
        let output = &row["output"];
        count += 1;
        sum += output["n"].as_u64().expect("a number");
        rounds.insert(output["round"].as_str().expect("a round").to_owned());
    }
    let found = json!({"rounds": rounds, "rows": count, "sum": sum});
    let is_whole = found == current["summary"] && rounds.len() == 1 && current["results"] == json!(count);
    if !is_whole {
        eprintln!("mixed: {found} under {current}");
    }
    seen.answers.fetch_add(1, Ordering::Relaxed);
    seen.mixed.fetch_add(u64::from(!is_whole), Ordering::Relaxed);
}

/// The node that says what is to be done: the first that lives.
pub(crate) fn first(nodes: &[Option<Node>; 3]) -> &Node {
    nodes.iter().flatten().next().expect("one is never killed")
}

/// Makes one generation, or one whose reduce fails, whatever node is asked; a node dies on the way of some.
pub(crate) async fn generation(
    (cluster, settings): (&Cluster, &str),
    nodes: &mut [Option<Node>; 3],
    ways: &watch::Sender<Vec<Client>>,
    no: u64,
) {
    let fails = no % 4 == 3;
    let reduce = if fails { "command:broken" } else { "command:sum" };
    let items = size("WINDROW_GENERATION_ITEMS", 400);
    let rate = format!("{}/s", size("WINDROW_GENERATION_RATE", 2000));
    let body = json!({
        "start": true, "rate": rate, "shards": 4, "publish": "board", "reduce": reduce, "concurrency": 32,
    });
    let task = first(nodes).task("push", items, body).await;
    if no % 2 == 1 {
        // Never the first, which is asked.
        let at = 1 + usize::try_from(no / 2 % 2).expect("small");
        let killed = nodes[at].take().expect("it lives");
        ways.send_replace(clients(nodes));
        killed.signal(Signal::KILL);
        killed.ended().await;
        nodes[at] = Some(cluster.node(NAMES[at], settings).await);
        ways.send_replace(clients(nodes));
    }
    let ended = ["finished", "stopped"];
    let node = first(nodes);
    let view = node
        .until(&task, "over", |view| {
            ended.iter().any(|status| view["status"] == *status)
        })
        .await;
    if fails {
        assert_eq!(
            (&view["status"], &view["stop_reason"]),
            (&json!("stopped"), &json!("reduce_failed"))
        );
        node.admin
            .post(&format!("/v1/tasks/{task}/cancel"), json!({}))
            .await
            .expect(202);
        node.status(&task, "cancelled").await;
    } else {
        assert_eq!(view["status"], "finished", "{view:#}");
    }
    cluster.business.forget();
    let own = view["publish"]["generation"].as_u64().expect("a number");
    let current = node.admin.get("/v1/datasets/board").await.expect(200)["generation"].as_u64();
    let expected = if fails { own.checked_sub(1) } else { Some(own) };
    assert_eq!(
        current,
        expected.filter(|no| *no > 0),
        "a reduce that fails leaves the old one"
    );
}

pub(crate) fn clients(nodes: &[Option<Node>; 3]) -> Vec<Client> {
    nodes.iter().flatten().map(|node| node.admin.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reader_ever_sees_a_mix_while_nodes_die_and_reduces_fail() {
    let cluster = Cluster::new().await;
    cluster.business.becomes(|seen| match seen.items().as_slice() {
        [(index, _)] => Act::json(
            200,
            json!({"result": "ok", "output": {"n": index, "round": seen.task()}}),
        ),
        _ => Act::status(500),
    });
    let mut nodes: [Option<Node>; 3] = [None, None, None];
    for (name, node) in NAMES.iter().zip(&mut nodes) {
        *node = Some(cluster.node(name, SETTINGS).await);
    }
    first(&nodes)
        .business("push", &cluster.business.url(), json!({}))
        .await;
    let (ways, way) = watch::channel(clients(&nodes));
    let seen = Arc::<Seen>::default();
    let readers: Vec<_> = (0..size("WINDROW_READERS", 8))
        .map(|id| tokio::spawn(read(way.clone(), id, seen.clone())))
        .collect();
    let (begun, generations) = (Instant::now(), size("WINDROW_GENERATIONS", 8));
    for no in 0..generations {
        generation((&cluster, SETTINGS), &mut nodes, &ways, no).await;
        let (answers, mixed) = (&seen.answers, &seen.mixed);
        println!(
            "{no}: {answers:?} answers, {mixed:?} mixed after {:?}",
            begun.elapsed()
        );
    }
    // Each is read once more, as it is in the end.
    let published = generations - generations / 4;
    let waited = Instant::now();
    while seen.answers.load(Ordering::Relaxed) < published && waited.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    seen.over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.expect("no reader saw the pointer go back");
    }
    let (answers, mixed) = (
        seen.answers.load(Ordering::Relaxed),
        seen.mixed.load(Ordering::Relaxed),
    );
    println!(
        "{generations} generations in {:?}: {answers} answers, {mixed} mixed",
        begun.elapsed()
    );
    assert!(answers >= published, "{answers} answers");
    assert_eq!(mixed, 0);
}
