//! `?dry_run=true`: what is tried is refused as it would be, is what then comes, and changes nothing.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Answer, Client, Node, Recipe};

/// One request.
struct Try {
    method: Method,
    path: String,
    body: Value,
}

fn post(path: impl Into<String>, body: Value) -> Try {
    Try {
        method: Method::POST,
        path: path.into(),
        body,
    }
}

fn patch(path: impl Into<String>, body: Value) -> Try {
    Try {
        method: Method::PATCH,
        path: path.into(),
        body,
    }
}

fn delete(path: impl Into<String>) -> Try {
    Try {
        method: Method::DELETE,
        path: path.into(),
        body: json!({}),
    }
}

impl Try {
    async fn really(&self, client: &Client) -> Answer {
        client
            .json(self.method.clone(), &self.path, &[], self.body.clone())
            .await
    }

    async fn dry(&self, client: &Client) -> Answer {
        let mark = if self.path.contains('?') { '&' } else { '?' };
        let path = format!("{}{mark}dry_run=true", self.path);
        client
            .json(self.method.clone(), &path, &[], self.body.clone())
            .await
    }

    fn said(&self) -> String {
        format!("{} {} {}", self.method, self.path, self.body)
    }
}

/// Everything that a write may leave behind.
async fn traces(node: &Node) -> Value {
    let mut all = json!({});
    for path in [
        "tasks?limit=500",
        "businesses",
        "businesses?archived=true",
        "tokens",
        "audit?limit=500",
        "nodes",
    ] {
        let mut page = node.admin.get(&format!("/v1/{path}")).await.expect(200);
        if path == "nodes" {
            let node = &page["items"][0];
            page = json!([
                node["reserved_rate"],
                node["capacity_rate"],
                node["state"],
                node["log_filter"]
            ]);
        }
        all[path] = page;
    }
    // What moves by itself.
    for task in all["tasks?limit=500"]["items"].as_array_mut().expect("a list") {
        let moving = [
            "actual_rate",
            "eta_seconds",
            "progress",
            "live",
            "counts",
            "watermark",
            "shard_list",
        ];
        for moving in moving {
            task.as_object_mut().expect("a task").remove(moving);
        }
    }
    all
}

/// Tries it, makes sure that nothing came of it, does it, and says what would have been and what is.
async fn tried_and_done(node: &Node, request: &Try) -> (Value, Value) {
    let before = traces(node).await;
    let answer = request.dry(&node.admin).await;
    assert_eq!(answer.status, 200, "{}: {}", request.said(), answer.text());
    assert_eq!(
        (answer.header("location"), answer.header("etag")),
        (None, None),
        "{}",
        request.said()
    );
    let tried = answer.json();
    assert_eq!(tried["dry_run"], true, "{tried:#}");
    assert_eq!(traces(node).await, before, "{} left something", request.said());
    let done = request.really(&node.admin).await;
    assert!(
        (200..300).contains(&done.status),
        "{}: {}",
        request.said(),
        done.text()
    );
    (tried["would"].clone(), done.json())
}

/// That the members are the same, but for what time and chance make.
fn assert_alike(would: &Value, is: &Value, members: &[&str]) {
    for member in members {
        assert_eq!(would[member], is[member], "{member}: {would:#} and {is:#}");
    }
}

const OF_TASK: [&str; 12] = [
    "business",
    "name",
    "status",
    "result",
    "stop_reason",
    "total",
    "rate",
    "labels",
    "source",
    "start",
    "finish_at",
    "parent",
];

#[tokio::test]
async fn a_task_that_is_tried_is_what_then_comes_and_until_then_nothing() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(2, _)] => Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "gone"}),
        ),
        [(index, _)] if *index > 4 => Act::ok().after(Duration::from_secs(60)),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let body = json!({"business": "push", "name": "a", "source": {"type": "range", "total": 5},
        "rate": "50/s", "labels": {"team": "x"}, "start": true});
    let (would, is) = tried_and_done(&node, &post("/v1/tasks", body)).await;
    assert_alike(&would, &is, &OF_TASK);
    assert_eq!((&would["id"], &would["status"]), (&json!(null), &json!("queued")));
    let done = is["id"].as_str().expect("an id").to_owned();
    node.status(&done, "finished").await;
    let path = format!("/v1/tasks/{done}");
    let (would, is) = tried_and_done(&node, &post(format!("{path}/clone"), json!({"name": "b"}))).await;
    assert_alike(&would, &is, &OF_TASK);
    let id = is["id"].as_str().expect("an id").to_owned();
    let (would, is) = tried_and_done(&node, &post(format!("{path}/redrives"), json!({"rate": "3/s"}))).await;
    assert_alike(&would, &is, &OF_TASK);
    assert_eq!((&would["total"], &would["parent"]), (&json!(1), &json!(done)));
    let child = is["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/tasks/{id}");
    let change = json!({"total": 1000, "name": "c", "rate": "7/s", "concurrency": 3, "labels": {}});
    let (would, is) = tried_and_done(&node, &patch(&path, change)).await;
    assert_alike(&would, &is, &OF_TASK);
    assert_eq!(
        (&would["id"], &would["version"]),
        (&is["id"], &is["version"]),
        "the tag that it would have"
    );
    for (verb, body) in [
        ("start", json!({"reason": "now"})),
        ("stop", json!({"now": true})),
    ] {
        let (would, is) = tried_and_done(&node, &post(format!("{path}/{verb}"), body)).await;
        assert_alike(&would, &is, &OF_TASK);
        let reached = if verb == "start" { "running" } else { "stopped" };
        node.status(&id, reached).await;
    }
    let (would, is) = tried_and_done(&node, &post(format!("{path}/finish"), json!({"total": 900}))).await;
    assert_alike(&would, &is, &OF_TASK);
    assert_eq!(would["finish_at"], 900);
    for task in [&id, &child] {
        let (would, is) = tried_and_done(&node, &post(format!("/v1/tasks/{task}/cancel"), json!({}))).await;
        assert_alike(&would, &is, &OF_TASK);
        node.status(task, "cancelled").await;
    }
    let again = post(format!("{path}/cancel"), json!({}));
    let (would, is) = tried_and_done(&node, &again).await;
    assert_eq!(
        (&would["status"], &is["status"]),
        (&json!("cancelled"), &json!("cancelled")),
        "it is already"
    );
    let (would, _) = tried_and_done(&node, &delete(&path)).await;
    assert_eq!(would, Value::Null, "it would be gone");
    node.admin.get(&path).await.problem(404, "not-found");
}

#[tokio::test]
async fn a_business_or_token_that_is_tried_is_what_then_comes_and_until_then_nothing() {
    let business = Business::willing().await;
    let node = Node::start().await;
    let body = json!({"name": "push", "url": business.url(), "defaults": {"rate": "5/s"}});
    let register = post("/v1/businesses?check=skip", body.clone());
    let (would, is) = tried_and_done(&node, &register).await;
    let of_business = ["name", "url", "defaults", "revision", "archived_at", "hooks"];
    assert_alike(&would, &is, &of_business);
    assert_eq!(would["secret"], Value::Null, "no secret was made");
    let other = post("/v1/businesses", json!({"name": "other", "url": business.url()}));
    assert_eq!(other.dry(&node.admin).await.status, 200);
    assert_eq!(
        business.seen().len(),
        0,
        "the contract is checked when it is meant"
    );
    let path = "/v1/businesses/push";
    let task = node.task("push", 5, json!({})).await;
    let change = json!({"defaults": {"rate": "9/s"}, "limits": {"rate": "90/s"}});
    let (would, is) = tried_and_done(&node, &patch(path, change)).await;
    assert_alike(&would, &is, &of_business);
    assert_eq!(
        node.admin.get(&format!("/v1/tasks/{task}")).await.expect(200)["rate"],
        "5/s"
    );
    for verb in ["archive", "unarchive"] {
        let (would, is) = tried_and_done(&node, &post(format!("{path}/{verb}"), json!({}))).await;
        assert_alike(&would, &is, &["name", "revision"]);
        assert_eq!(would["archived_at"].is_null(), verb == "unarchive", "{would:#}");
    }
    let wish = json!({"name": "ann", "role": "business", "business": "push"});
    let (would, is) = tried_and_done(&node, &post("/v1/tokens", wish)).await;
    assert_alike(&would, &is, &["name", "role", "business", "expires_at"]);
    assert_eq!(
        (&would["id"], &would["token"], &would["prefix"]),
        (&json!(null), &json!(null), &json!("wrk_"))
    );
    let ann = Client::new(&node.url, is["token"].as_str());
    let revoke = delete(format!("/v1/tokens/{}", is["id"]));
    assert!(revoke.dry(&node.admin).await.expect(200)["would"]["revoked_at"].is_string());
    assert_eq!(ann.get("/v1/whoami").await.status, 200, "it is believed still");
    tried_and_done(&node, &revoke).await;
    assert_eq!(ann.get("/v1/whoami").await.status, 401);
}

#[tokio::test]
async fn what_is_refused_is_refused_in_the_same_words_when_it_is_only_tried() {
    let business = Business::start(|seen| match seen.kind() {
        "task.validate" if seen.body["task"]["name"] == "unwanted" => {
            Act::json(422, json!({"message": "no"}))
        }
        "task.validate" => Act::ok(),
        _ => Act::ok().after(Duration::from_secs(60)),
    })
    .await;
    let node = Recipe::new()
        .config("[node]\ncapacity_rate = \"100/s\"\nunlimited_reserves = \"10/s\"")
        .start()
        .await;
    node.business("push", &business.url(), json!({"hooks": {"validate": {}}}))
        .await;
    node.business("old", &business.url(), json!({})).await;
    node.admin
        .post("/v1/businesses/old/archive", json!({}))
        .await
        .expect(200);
    let rests = node.task("push", 10, json!({"name": "rests"})).await;
    let runs = node
        .task(
            "push",
            1_000,
            json!({"name": "runs", "rate": "60/s", "start": true}),
        )
        .await;
    node.status(&runs, "running").await;
    let over = node.task("push", 10, json!({})).await;
    node.admin
        .post(&format!("/v1/tasks/{over}/cancel"), json!({}))
        .await
        .expect(202);
    node.status(&over, "cancelled").await;
    let of = |task: &str, verb: &str| format!("/v1/tasks/{task}{verb}");
    let range = json!({"type": "range", "total": 5});
    let create = |more: Value| {
        let mut body = json!({"business": "push", "source": range});
        crate::support::merge(&mut body, more);
        post("/v1/tasks", body)
    };
    let refused = [
        create(json!({"name": "runs"})),
        create(json!({"name": "unwanted"})),
        create(json!({"business": "old"})),
        create(json!({"business": "nobody"})),
        create(json!({"window": 10, "concurrency": 20})),
        create(json!({"skip_first": 6})),
        create(json!({"deadline": "2001-01-01T00:00:00Z"})),
        create(json!({"source": {"type": "upload", "upload": "u_1"}})),
        create(json!({"what": 1})),
        post(of(&rests, "/clone"), json!({"name": "runs"})),
        post(of(&rests, "/stop"), json!({})),
        post(of(&rests, "/finish"), json!({"total": 10})),
        post(of(&rests, "/recover"), json!({})),
        post(of(&rests, "/ready"), json!({"start": 7})),
        post(of(&over, "/start"), json!({})),
        post(of(&over, "/finish"), json!({})),
        post("/v1/tasks/t999/start", json!({})),
        patch(of(&rests, ""), json!({"name": "runs"})),
        patch(of(&rests, ""), json!({"name": "unwanted"})),
        patch(of(&over, ""), json!({"rate": "1/s"})),
        patch(of(&runs, ""), json!({"params": {}, "total": 7})),
        patch(of(&runs, ""), json!({"rate": "101/s"})),
        patch(of(&rests, ""), json!({"rate": "0/s"})),
        delete(of(&runs, "")),
        delete("/v1/tasks/t999"),
        post("/v1/businesses", json!({"name": "push", "url": business.url()})),
        post("/v1/businesses", json!({"name": "Bad Name", "url": "ftp://x"})),
        patch("/v1/businesses/push", json!({"name": "pull"})),
        patch("/v1/businesses/nobody", json!({})),
        post("/v1/businesses/nobody/archive", json!({})),
        post("/v1/tokens", json!({"name": "x", "role": "business"})),
        post(
            "/v1/tokens",
            json!({"name": "x", "role": "viewer", "expires_at": "2001-01-01T00:00:00Z"}),
        ),
        delete("/v1/tokens/999"),
    ];
    let before = traces(&node).await;
    for request in &refused {
        let (tried, done) = (request.dry(&node.admin).await, request.really(&node.admin).await);
        assert!(tried.status >= 400, "{}: {}", request.said(), tried.text());
        let of = |answer: Answer| {
            let problem = answer.json();
            (
                answer.status,
                problem["type"].clone(),
                problem["detail"].clone(),
                problem["errors"].clone(),
            )
        };
        assert_eq!(of(tried), of(done), "{}", request.said());
    }
    assert_eq!(traces(&node).await, before);
    let tagged = [("if-match", "\"999\"")];
    let late = format!("{}?dry_run=true", of(&rests, ""));
    let answer = node
        .admin
        .json(Method::PATCH, &late, &tagged, json!({"name": "z"}))
        .await;
    answer.problem(412, "etag-mismatch");
    let viewer = node.client("viewer", None).await;
    post(of(&rests, "/start"), json!({}))
        .dry(&viewer)
        .await
        .problem(403, "forbidden");
    // The raise that fits was tried and not booked: the whole of it is still there for another.
    let fits = patch(of(&runs, ""), json!({"rate": "100/s"}));
    assert_eq!(fits.dry(&node.admin).await.expect(200)["would"]["rate"], "100/s");
    let other = node
        .task("push", 10, json!({"rate": "40/s", "start": true}))
        .await;
    node.status(&other, "running").await;
    fits.dry(&node.admin).await.problem(409, "no-capacity");
}

#[tokio::test]
async fn what_can_not_be_tried_is_not_done_either() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node.task("push", 10, json!({})).await;
    let before = traces(&node).await;
    let url = json!({"type": "url", "url": business.url(), "format": "ndjson"});
    for request in [
        post("/v1/businesses/push/rotate-secret", json!({})),
        post("/v1/businesses/push/check", json!({})),
        post("/v1/businesses/push/tries", json!({})),
        post(format!("/v1/tasks/{task}/preview"), json!({})),
        post("/v1/tasks", json!({"business": "push", "source": url})),
    ] {
        let answer = request.dry(&node.admin).await;
        answer.problem(400, "invalid-request");
    }
    for wrong in [
        "dry_run=perhaps",
        "dry_run=",
        "dry_run=true&dry_run=false",
        "dryrun=true",
    ] {
        let path = format!("/v1/tasks/{task}/start?{wrong}");
        node.admin
            .post(&path, json!({}))
            .await
            .problem(400, "invalid-request");
    }
    assert_eq!(traces(&node).await, before);
    assert_eq!(business.seen().len(), 0, "nobody was called");
    let start = format!("/v1/tasks/{task}/start?dry_run=false");
    node.admin.post(&start, json!({})).await.expect(202);
}

#[tokio::test]
async fn a_key_of_what_was_tried_is_free_for_who_means_it() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let body = json!({"business": "push", "source": {"type": "range", "total": 5}});
    let key = [("idempotency-key", "k-1")];
    let dry = "/v1/tasks?dry_run=true";
    for _ in 0..2 {
        let tried = node.admin.json(Method::POST, dry, &key, body.clone()).await;
        assert_eq!(
            (tried.status, tried.header("idempotency-replayed")),
            (200, None),
            "{}",
            tried.text()
        );
    }
    let made = node
        .admin
        .json(Method::POST, "/v1/tasks", &key, body.clone())
        .await
        .expect(201);
    let again = node.admin.json(Method::POST, dry, &key, body).await;
    assert_eq!(
        (again.status, again.json()["dry_run"].clone()),
        (200, json!(true)),
        "{}",
        again.text()
    );
    let tasks = node.admin.get("/v1/tasks").await.expect(200);
    assert_eq!(tasks["items"].as_array().map(Vec::len), Some(1), "{made:#}");
}

#[tokio::test]
async fn a_node_that_is_tried_is_what_then_comes_and_until_then_as_it_was() {
    let node = Node::start().await;
    let name = node.admin.get("/v1/nodes").await.expect(200)["items"][0]["id"].clone();
    let path = format!("/v1/nodes/{}", name.as_str().expect("a name"));
    let of_node = ["id", "state", "capacity_rate", "log_filter", "run_tasks", "pools"];
    let change = json!({"capacity_rate": "3210/s", "log_filter": "warn,windrow=info"});
    let (would, is) = tried_and_done(&node, &patch(&path, change)).await;
    assert_alike(&would, &is, &of_node);
    assert_eq!(
        (&would["capacity_rate"], &would["log_filter"]),
        (&json!("3210/s"), &json!("warn,windrow=info"))
    );
    for (verb, state) in [("drain", "drained"), ("drain", "drained"), ("undrain", "serving")] {
        let (would, is) = tried_and_done(&node, &post(format!("{path}/{verb}"), json!({}))).await;
        assert_alike(&would, &is, &of_node);
        assert_eq!(would["state"], state, "{would:#}");
    }
    for wrong in [
        json!({"capacity_rate": "1/s"}),
        json!({"log_filter": "=,="}),
        json!({"pools": []}),
    ] {
        let request = patch(&path, wrong);
        let (tried, done) = (request.dry(&node.admin).await, request.really(&node.admin).await);
        assert_eq!(
            (tried.status, &tried.json()["errors"]),
            (done.status, &done.json()["errors"])
        );
        assert!(tried.status >= 400, "{}", request.said());
    }
    // One member that is wrong leaves the other as it was.
    let half = json!({"log_filter": "error", "capacity_rate": "1/s"});
    node.admin
        .patch(&path, half)
        .await
        .problem(422, "validation-failed");
    assert_eq!(
        node.admin.get(&path).await.expect(200)["log_filter"],
        "warn,windrow=info"
    );
    post("/v1/nodes/nobody/drain", json!({}))
        .dry(&node.admin)
        .await
        .problem(404, "not-found");
}
