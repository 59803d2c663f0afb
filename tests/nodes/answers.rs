//! Reads: the same from a task's owner and from any other node; what can't be asked is named, and nothing fails.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cluster::{Cluster, until};
use crate::program::Person;
use crate::support::{Client, Node, sum};

/// What moves between two looks at a task.
const MOVING: [&str; 8] = [
    "counts",
    "progress",
    "watermark",
    "settled",
    "actual_rate",
    "eta_seconds",
    "live",
    "since",
];

fn at_rest(mut view: Value) -> Value {
    for name in MOVING {
        view.as_object_mut().unwrap().remove(name);
    }
    view
}

async fn both(path: &str, nodes: [&Node; 2]) -> [Value; 2] {
    let (one, other) = tokio::join!(nodes[0].admin.get(path), nodes[1].admin.get(path));
    assert_eq!(one.header("etag"), other.header("etag"), "{path}");
    [one.expect(200), other.expect(200)]
}

/// Both nodes answer the same. A checkpoint may come between the two answers: they are asked again then.
async fn is_same(path: &str, nodes: [&Node; 2]) {
    let mut seen = both(path, nodes).await;
    for _ in 0..5 {
        if seen[0] == seen[1] {
            return;
        }
        seen = both(path, nodes).await;
    }
    assert_eq!(seen[0], seen[1], "{path}");
}

#[tokio::test]
async fn every_read_is_the_same_whoever_is_asked() {
    let cluster = Cluster::new().await;
    let (task, [(owner, here), (other, there)]) = cluster.pair(json!({})).await;
    let nodes = [&here, &there];
    let path = format!("/v1/tasks/{task}");
    let known = |view: &Value| view["actual_rate"].as_f64().is_some_and(|rate| rate > 20.0);
    until(&there, &path, "moving", known).await;
    let counted = |seen: &Value| seen["sums"]["succeeded"].as_u64() > Some(20);
    for node in nodes {
        let seen = until(node, "/v1/cluster/stats", "counted everywhere", counted).await;
        assert_eq!(seen["unreachable"], json!([]), "{seen:#}");
    }
    let [mine, theirs] = both(&path, nodes).await;
    for view in [&mine, &theirs] {
        assert_eq!(
            (sum(view), &view["live"]["nodes"]),
            (1_000_000, &json!([owner])),
            "{view:#}"
        );
        assert_eq!(
            (&view["live"]["state"], &view["live"]["unreachable"]),
            (&json!("live"), &json!([]))
        );
        assert!(view["live"]["high_water"].as_u64() > Some(0), "{view:#}");
    }
    assert_eq!(at_rest(mine), at_rest(theirs));
    let listed = both("/v1/tasks", nodes)
        .await
        .map(|mut page| at_rest(page["items"][0].take()));
    assert_eq!(listed[0], listed[1]);
    for same in ["runs", "revisions", "failures", "failures/groups", "runs/0/1"] {
        is_same(&format!("{path}/{same}"), nodes).await;
    }
    let [mine, theirs] = both(&format!("{path}/window"), nodes).await;
    for view in [&mine, &theirs] {
        let shard = &view["shards"][0];
        assert_eq!(
            (&shard["node"], &view["reason"]),
            (&json!(owner), &json!(null)),
            "{view:#}"
        );
        assert_eq!(shard["capacity"], mine["shards"][0]["capacity"]);
        assert!(!shard["cells"].as_str().unwrap().is_empty());
    }
    the_past_is_the_same(&path, &owner, nodes).await;
    nodes_are_the_same(&owner, &other, nodes).await;
    // A stopped task is the same, too, and a tag of one node is one of the other.
    let tag = there.admin.get(&path).await.header("etag").unwrap().to_owned();
    let body = bytes::Bytes::from(json!({"priority": 3}).to_string());
    let headers = [("content-type", "application/json"), ("if-match", tag.as_str())];
    here.admin
        .send(hyper::Method::PATCH, &path, &headers, body.clone())
        .await
        .expect(200);
    there
        .admin
        .send(hyper::Method::PATCH, &path, &headers, body)
        .await
        .problem(412, "etag-mismatch");
    there
        .admin
        .post(&format!("{path}/stop"), json!({}))
        .await
        .expect(202);
    until(&here, &path, "stopped", |view| view["status"] == "stopped").await;
    let [mine, theirs] = both(&path, nodes).await;
    assert_eq!(mine, theirs);
}

async fn the_past_is_the_same(path: &str, owner: &str, nodes: [&Node; 2]) {
    let explained = |view: &Value| view["nodes"] == json!([{"node": owner, "runs": 1}]);
    let long = |view: &Value| explained(view) && view["span_seconds"].as_f64() >= Some(5.0);
    until(nodes[1], &format!("{path}/explain"), "explained", long).await;
    let [mine, theirs] = both(&format!("{path}/explain"), nodes).await;
    let rate = |view: &Value, name: &str| view[name].as_f64().unwrap();
    for name in ["target_rate", "actual_rate"] {
        assert!(
            (rate(&mine, name) - rate(&theirs, name)).abs() < 5.0,
            "{name}\n{mine:#}\n{theirs:#}"
        );
    }
    let causes: f64 = theirs["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| rate(one, "rate"))
        .sum();
    assert!(
        (causes - rate(&theirs, "missing_rate")).abs() < 1e-3,
        "{theirs:#}"
    );
    let [mine, theirs] = both(&format!("{path}/stats"), nodes).await;
    let settled = |view: &Value| view["sums"]["succeeded"].as_u64().unwrap();
    assert!(
        settled(&theirs) > 0 && settled(&theirs).abs_diff(settled(&mine)) <= 110,
        "{theirs:#}"
    );
    assert_eq!(theirs["unreachable"], json!([]));
    let rates: Vec<f64> = theirs["series"]["rate"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_f64().unwrap())
        .collect();
    // The last one is under way: two items in its first hundredth are a high rate.
    assert!(
        rates.len() >= 4 && rates[1..rates.len() - 1].iter().all(|rate| *rate < 80.0),
        "{rates:?}"
    );
}

async fn nodes_are_the_same(owner: &str, other: &str, nodes: [&Node; 2]) {
    let lists = both("/v1/nodes", nodes).await;
    for (list, first) in lists.iter().zip([owner, other]) {
        let of = |name: &str| {
            list["items"]
                .as_array()
                .unwrap()
                .iter()
                .find(|one| one["id"] == name)
                .unwrap()
        };
        assert_eq!(
            (&list["items"][0]["id"], &list["items"][0]["live"]["state"]),
            (&json!(first), &json!("here"))
        );
        for name in [owner, other] {
            assert_eq!(of(name)["state"], "serving");
            assert!(
                of(name)["reserved_rate"].is_string() && of(name)["address"].is_string(),
                "{list:#}"
            );
        }
        assert_eq!(of(owner)["runs"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&of(owner)["reserved_rate"], &of(other)["reserved_rate"]),
            (&json!("50/s"), &json!("0/s"))
        );
    }
    for name in [owner, other] {
        let paths = both(&format!("/v1/nodes/{name}/actors?depth=1"), nodes)
            .await
            .map(|tree| {
                let children = tree[0]["children"].as_array().unwrap();
                children
                    .iter()
                    .map(|child| child["path"].as_str().unwrap().to_owned())
                    .collect::<Vec<_>>()
            });
        assert!(paths[0] == paths[1] && paths[0][0].starts_with(name), "{paths:?}");
        let text = nodes[1]
            .admin
            .get(&format!("/v1/nodes/{name}/actors?format=text"))
            .await;
        assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
        assert!(text.text().contains("session"), "{}", text.text());
    }
    nodes[0].admin.get("/v1/nodes/n9").await.problem(404, "not-found");
    let [mine, theirs] = both("/v1/cluster", nodes).await;
    for view in [&mine, &theirs] {
        assert_eq!(
            (&view["status"], &view["database"], &view["shards"]["owned"]),
            (&json!("ok"), &json!("postgres"), &json!(1)),
            "{view:#}"
        );
        assert_eq!(view["versions"], json!({ env!("CARGO_PKG_VERSION"): 2 }));
    }
    assert_eq!(mine["store"], theirs["store"]);
    let person = Person::admin(nodes[1]);
    let told = person.windrow("cluster status").await.expect(0).stdout;
    assert!(
        told.contains("status    ok") && told.contains(owner) && told.contains(other),
        "{told}"
    );
    let told = person.windrow("node list").await.expect(0).stdout;
    assert!(
        told.contains("BEAT") && told.contains(owner) && told.contains(other),
        "{told}"
    );
    let told = person.windrow("doctor --no-handlers").await.expect(0).stdout;
    assert!(told.contains("2, all reachable"), "{told}");
}

#[tokio::test]
async fn a_node_that_hangs_makes_answers_poorer_and_none_fail() {
    let cluster = Cluster::new().await;
    let (task, [(owner, here), (_, there)]) = cluster.pair(json!({})).await;
    let path = format!("/v1/tasks/{task}");
    until(&there, &path, "moving", |view| {
        view["counts"]["succeeded"].as_u64() > Some(20)
    })
    .await;
    here.signal(Signal::STOP);
    let begun = Instant::now();
    let view = until(&there, &path, "unreachable", |view| {
        view["live"]["state"] == "unreachable"
    })
    .await;
    assert_eq!(
        (sum(&view), &view["live"]["unreachable"][0]["node"]),
        (1_000_000, &json!(owner)),
        "{view:#}"
    );
    assert_eq!(
        (&view["status"], &view["actual_rate"]),
        (&json!("running"), &json!(null))
    );
    assert!(
        view["live"]["unreachable"][0]["why"]
            .as_str()
            .unwrap()
            .contains("no answer"),
        "{view:#}"
    );
    for part in ["window", "stats", "explain"] {
        let view = there.admin.get(&format!("{path}/{part}")).await.expect(200);
        assert_eq!(view["unreachable"][0]["node"], json!(owner), "{part}: {view:#}");
    }
    assert_eq!(
        there.admin.get(&format!("{path}/window")).await.expect(200)["reason"],
        "unreachable"
    );
    let shown = Person::admin(&there)
        .windrow(&format!("task show {task}"))
        .await
        .expect(0)
        .stdout;
    assert!(shown.contains(&format!("{owner} is unreachable")), "{shown}");
    let node = there.admin.get(&format!("/v1/nodes/{owner}")).await.expect(200);
    assert_eq!(
        (&node["live"]["state"], &node["reserved_rate"]),
        (&json!("unreachable"), &json!(null)),
        "{node:#}"
    );
    assert_eq!(node["runs"][0]["task"], json!(task));
    let told = there
        .admin
        .get(&format!("/v1/nodes/{owner}/actors"))
        .await
        .problem(502, "node-silent");
    assert!(told["detail"].as_str().unwrap().contains(&owner), "{told:#}");
    let patch = json!({"capacity_rate": "5/s"});
    there
        .admin
        .patch(&format!("/v1/nodes/{owner}"), patch)
        .await
        .problem(502, "node-silent");
    let status = Person::admin(&there)
        .windrow("cluster status")
        .await
        .expect(1)
        .stdout;
    assert!(status.contains("degraded") && status.contains(&owner), "{status}");
    assert!(
        begun.elapsed() < Duration::from_secs(100),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn what_happens_at_one_node_is_seen_at_the_other() {
    let cluster = Cluster::new().await;
    let (task, [(owner, _here), (_, there)]) = cluster.pair(json!({})).await;
    let mut events = there
        .admin
        .events(&format!("/v1/events?topics=task:{task},node:{owner}&hz=4"), None)
        .await;
    let settled = |data: &Value| data["counts"]["succeeded"].as_u64().unwrap_or(0);
    // The first picture may show any number: a busy machine was slow to open the stream.
    let first = events.until(|told| told.kind == "stats").await;
    let begun = first.last().map_or(0, |told| settled(&told.data["data"]));
    let later = events
        .until(|told| told.kind == "stats" && settled(&told.data["data"]) > begun + 30)
        .await;
    let told = [first, later].concat();
    let numbers: Vec<u64> = told
        .iter()
        .filter(|told| told.kind == "stats")
        .map(|told| settled(&told.data["data"]))
        .collect();
    assert!(numbers.is_sorted() && numbers.len() > 1, "{numbers:?}");
    // What the other node says of itself is as old as its last heartbeat.
    let runs_it = |told: &crate::sse::Told| {
        told.data["topic"] == json!(format!("node:{owner}")) && told.data["data"]["runs"] == 1
    };
    if !told.iter().any(runs_it) {
        events.until(runs_it).await;
    }
    there
        .admin
        .post(&format!("/v1/tasks/{task}/stop"), json!({}))
        .await
        .expect(202);
    let is_stopped =
        |told: &crate::sse::Told| told.kind == "status" && told.data["data"]["status"] == "stopped";
    events.until(is_stopped).await;
}

#[tokio::test]
async fn who_signs_in_at_one_node_is_known_at_all_until_the_session_is_over() {
    let cluster = Cluster::new().await;
    let here = cluster.node("n1", "").await;
    let there = cluster.node("n2", "").await;
    let body = json!({"token": here.admin.token});
    let signed_in = here.admin.post("/v1/session", body).await;
    assert_eq!(signed_in.status, 204, "{}", signed_in.text());
    let cookie = signed_in
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let ask = async |node: &Node, method: Method, path: &str| {
        let headers = [("cookie", &*cookie), ("sec-fetch-site", "same-origin")];
        let nobody = Client::new(&node.url, None);
        nobody.send(method, path, &headers, Bytes::new()).await
    };
    for node in [&here, &there] {
        let me = ask(node, Method::GET, "/v1/whoami").await.expect(200);
        assert_eq!(me["role"], "admin", "{me:#}");
    }
    assert_eq!(ask(&there, Method::DELETE, "/v1/session").await.status, 204);
    for node in [&here, &there] {
        ask(node, Method::GET, "/v1/whoami")
            .await
            .problem(401, "unauthenticated");
    }
}
