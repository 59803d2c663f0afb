//! Datasets over the API: generations are published with the end of their tasks, read under one number, waited for, pinned,
//! rolled back, and read by those who may.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Answer, Client, Node, Recipe};

/// Answers with the item's team and its score; the team of item 13 is said in another way.
async fn scores() -> Business {
    Business::start(|seen| match (seen.kind(), seen.items().as_slice()) {
        ("task.reduce", _) => Act::json(200, json!({"best": "red", "of": seen.body["generation"]})),
        (_, [(index, _)]) => {
            let team = if index % 2 == 0 { json!("red") } else { json!(7) };
            let output = json!({"team": team, "score": index});
            Act::json(200, json!({"result": "ok", "output": output}))
        }
        _ => Act::status(500),
    })
    .await
}

/// A node that has commands, and a business on it.
async fn node(business: &Business) -> Node {
    let commands = r#"
[handler.command]
enabled = true
[handler.command.commands.count]
cmd = ["sh", "-c", "printf '{\"rows\": %d, \"generation\": %d}' $(wc -l) $WINDROW_GENERATION"]
[handler.command.commands.broken]
cmd = ["sh", "-c", "cat >/dev/null; [ -e mended ] && echo '{\"mended\":true}' || echo oops"]
"#;
    let node = Recipe::new().config(commands).start().await;
    node.business("push", &business.url(), json!({})).await;
    node
}

/// A task of so many items that publishes, started.
async fn published(node: &Node, total: u64, more: Value) -> String {
    let mut body = json!({"publish": "board", "start": true, "rate": "2000/s"});
    crate::support::merge(&mut body, more);
    let task = node.task("push", total, body).await;
    node.status(&task, "finished").await;
    task
}

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = String::from_utf8(answer.body.to_vec()).expect("text");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

async fn tagged(client: &Client, path: &str, tag: &str) -> Answer {
    client
        .send(Method::GET, path, &[("if-none-match", tag)], Bytes::new())
        .await
}

#[tokio::test]
async fn a_finished_task_is_the_current_generation_with_its_results_and_its_summary() {
    let business = scores().await;
    let node = node(&business).await;
    node.admin
        .get("/v1/datasets/board/current")
        .await
        .problem(404, "not-found");
    let task = published(
        &node,
        20,
        json!({"reduce": "command:count", "publish_key": "team", "shards": 4}),
    )
    .await;
    let view = node.admin.get(&format!("/v1/tasks/{task}")).await.expect(200);
    let publish = json!({
        "dataset": "board", "generation": 1, "if": "all", "reduce": "command:count", "key": "team",
        "withheld": false,
    });
    assert_eq!((&view["publish"], &view["results"]), (&publish, &json!("keep")));
    let current = node.admin.get("/v1/datasets/board/current").await;
    let tag = current.header("etag").expect("a tag").to_owned();
    let current = current.expect(200);
    assert_eq!(current["generation"], 1);
    assert_eq!(current["summary"], json!({"rows": 20, "generation": 1}));
    assert_eq!(
        (&current["task"], &current["results"], &current["current"]),
        (&json!(task), &json!(20), &json!(true))
    );
    assert_eq!(
        tagged(&node.admin, "/v1/datasets/board/current", &tag)
            .await
            .status,
        304
    );
    let of = |rest: &str| format!("/v1/datasets/board/generations/1{rest}");
    let rows = lines(&node.admin.get(&of("/results")).await);
    assert_eq!(rows.len(), 20);
    assert_eq!(
        (&rows[4]["index"], &rows[4]["output"]["score"]),
        (&json!(4), &json!(4))
    );
    let rest = lines(&node.admin.get(&of("/results?after=17")).await);
    assert_eq!(
        rest.iter().map(|row| row["index"].as_u64()).collect::<Vec<_>>(),
        [Some(18), Some(19)]
    );
    let csv = node
        .admin
        .get(&of("/results?format=csv&columns=team,score&after=18"))
        .await;
    assert!(csv.text().contains(",7,19"), "{}", csv.text());
    let item = node.admin.get(&of("/items/5")).await.expect(200);
    assert_eq!(
        item,
        json!({"generation": 1, "index": 5, "output": {"team": 7, "score": 5}})
    );
    node.admin.get(&of("/items/20")).await.problem(404, "not-found");
    let reds = node.admin.get(&of("/keys/red?limit=6")).await.expect(200);
    let indexes = |page: &Value| {
        let items = page["items"].as_array().expect("items").iter();
        items
            .map(|item| item["index"].as_u64().expect("a number"))
            .collect::<Vec<_>>()
    };
    assert_eq!(indexes(&reds), [0, 2, 4, 6, 8, 10]);
    let cursor = reds["next_cursor"].as_str().expect("more");
    let rest = node
        .admin
        .get(&of(&format!("/keys/red?limit=6&cursor={cursor}")))
        .await
        .expect(200);
    assert_eq!(
        (indexes(&rest), &rest["next_cursor"]),
        (vec![12, 14, 16, 18], &Value::Null)
    );
    assert_eq!(
        indexes(&node.admin.get(&of("/keys/7")).await.expect(200)).len(),
        10
    );
    assert_eq!(
        indexes(&node.admin.get(&of("/keys/blue")).await.expect(200)),
        Vec::<u64>::new()
    );
    // The task goes, its generation stays.
    node.admin.delete(&format!("/v1/tasks/{task}")).await.expect(204);
    assert_eq!(lines(&node.admin.get(&of("/results")).await).len(), 20);
    assert_eq!(
        node.admin.get(&of("/keys/7")).await.expect(200)["items"][0]["output"]["score"],
        1
    );
}

#[tokio::test]
async fn the_business_reduces_with_a_token_that_is_worth_nothing_afterwards() {
    let business = scores().await;
    let node = node(&business).await;
    let task = published(&node, 5, json!({"reduce": "hook"})).await;
    let current = node.admin.get("/v1/datasets/board/current").await.expect(200);
    assert_eq!(current["summary"], json!({"best": "red", "of": 1}));
    let calls = business.of_kind("task.reduce");
    let [call] = calls.as_slice() else {
        panic!("{calls:?}")
    };
    assert!(
        call.header("webhook-signature").starts_with("v1,"),
        "it is signed"
    );
    let body = &call.body;
    assert_eq!(
        (&body["dataset"], &body["task"]["id"]),
        (&json!("board"), &json!(task))
    );
    assert_eq!(
        body["results_url"],
        format!("{}/v1/tasks/{task}/results", node.url)
    );
    let token = body["token"].as_str().expect("a token");
    let holder = Client::new(&node.url, Some(token));
    let refused = holder.get(body["results_path"].as_str().expect("a path")).await;
    assert!(matches!(refused.status, 401 | 409), "{}", refused.text());
}

#[tokio::test]
async fn a_token_of_a_reduce_reads_the_results_of_its_task_while_it_lasts() {
    let business = scores().await;
    let node = node(&business).await;
    // It answers only after somebody has read.
    business.becomes(|seen| match seen.kind() {
        "task.reduce" => Act::json(200, json!({})).after(Duration::from_secs(3)),
        _ => Act::json(200, json!({"result": "ok", "output": 1})),
    });
    let body = json!({"publish": "board", "reduce": "hook", "start": true});
    let task = node.task("push", 5, body).await;
    let begun = Instant::now();
    let call = loop {
        if let Some(call) = business.of_kind("task.reduce").into_iter().next() {
            break call;
        }
        assert!(begun.elapsed() < crate::support::PATIENCE, "it was never asked");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let token = call.body["token"].as_str().expect("a token");
    let holder = Client::new(&node.url, Some(token));
    let read = holder
        .get(call.body["results_path"].as_str().expect("a path"))
        .await;
    assert_eq!(lines(&read).len(), 5);
    node.status(&task, "finished").await;
}

#[tokio::test]
async fn a_reduce_that_fails_stops_its_task_and_leaves_the_old_generation() {
    let business = scores().await;
    let node = node(&business).await;
    published(&node, 5, json!({"reduce": "command:count"})).await;
    let body = json!({"publish": "board", "reduce": "command:broken", "start": true});
    let task = node.task("push", 5, body).await;
    let stopped = node.status(&task, "stopped").await;
    assert_eq!(stopped["stop_reason"], "reduce_failed");
    let said = stopped["status_text"].as_str().expect("why");
    assert!(said.contains("is not JSON"), "{said}");
    let current = node.admin.get("/v1/datasets/board/current").await.expect(200);
    assert_eq!(current["generation"], 1);
    let pending = node
        .admin
        .get("/v1/datasets/board/generations/2")
        .await
        .expect(200);
    assert_eq!(pending["state"], "pending");
    node.admin
        .get("/v1/datasets/board/generations/2/results")
        .await
        .problem(404, "not-found");
    std::fs::write(node.path("mended"), "").expect("a file");
    node.admin
        .post(&format!("/v1/tasks/{task}/start"), json!({}))
        .await
        .expect(202);
    node.status(&task, "finished").await;
    let current = node.admin.get("/v1/datasets/board/current").await.expect(200);
    assert_eq!(
        (&current["generation"], &current["summary"]),
        (&json!(2), &json!({"mended": true}))
    );
    let calls = business.items();
    assert_eq!(calls.len(), 10, "no item was called again");
}

#[tokio::test]
async fn what_did_not_succeed_is_withheld_and_says_why() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(3, _)] => Act::json(200, json!({"result": "fail", "code": "BOOM"})),
        [(index, _)] => Act::json(200, json!({"result": "ok", "output": index})),
        _ => Act::status(500),
    })
    .await;
    let node = node(&business).await;
    let some = json!({"error_budget": "none"});
    published(&node, 100, some.clone()).await;
    let withheld = node
        .admin
        .get("/v1/datasets/board/generations/1")
        .await
        .expect(200);
    assert_eq!(withheld["state"], "withheld");
    assert_eq!(withheld["why"], "99 of 100 items succeeded; publish_if is all");
    let task = format!("/v1/tasks/{}", withheld["task"].as_str().expect("its task"));
    assert_eq!(
        node.admin.get(&task).await.expect(200)["publish"]["withheld"],
        true
    );
    node.admin
        .get("/v1/datasets/board/current")
        .await
        .problem(404, "not-found");
    let mut enough = some;
    enough["publish_if"] = json!("99%");
    published(&node, 100, enough).await;
    assert_eq!(
        node.admin.get("/v1/datasets/board/current").await.expect(200)["generation"],
        2
    );
}

#[tokio::test]
async fn who_waits_hears_of_the_next_publication_and_of_a_rollback() {
    let business = scores().await;
    let node = node(&business).await;
    published(&node, 3, json!({})).await;
    let begun = Instant::now();
    let nothing = node
        .admin
        .get("/v1/datasets/board/current?after=1&wait=200ms")
        .await;
    assert_eq!(nothing.status, 204, "{}", nothing.text());
    assert!(begun.elapsed() >= Duration::from_millis(200));
    let waiting = |after: u64| {
        let client = node.admin.clone();
        let path = format!("/v1/datasets/board/current?after={after}&wait=60s");
        tokio::spawn(async move { client.get(&path).await })
    };
    let waiters: Vec<_> = (0..20).map(|_| waiting(1)).collect();
    published(&node, 3, json!({})).await;
    for waiter in waiters {
        let heard = waiter.await.expect("it was answered").expect(200);
        assert_eq!(
            (&heard["generation"], &heard["current_publication"]),
            (&json!(2), &json!(2))
        );
    }
    let waiter = waiting(2);
    let moved = node.admin.post(
        "/v1/datasets/board/rollback",
        json!({"generation": 1, "reason": "a bad day"}),
    );
    assert_eq!(moved.await.expect(200)["publication"], 3);
    let heard = waiter.await.expect("it was answered").expect(200);
    assert_eq!(
        (&heard["generation"], &heard["current_publication"]),
        (&json!(1), &json!(3))
    );
    for wrong in ["wait=30s", "after=1&wait=61s", "after=1&wait=soon", "after=-1"] {
        let path = format!("/v1/datasets/board/current?{wrong}");
        node.admin.get(&path).await.problem(400, "invalid-request");
    }
}

#[tokio::test]
async fn generations_are_kept_pinned_and_let_go() {
    let business = scores().await;
    let node = node(&business).await;
    for _ in 0..2 {
        published(&node, 3, json!({})).await;
    }
    let set = node
        .admin
        .patch("/v1/datasets/board", json!({"keep": 1}))
        .await
        .expect(200);
    assert_eq!(set["keep"], 1);
    node.admin
        .get("/v1/datasets/board/generations/1")
        .await
        .problem(404, "not-found");
    node.admin
        .post("/v1/datasets/board/generations/2/pin", json!({}))
        .await
        .expect(200);
    published(&node, 3, json!({})).await;
    let page = node.admin.get("/v1/datasets/board/generations").await.expect(200);
    let all = page["items"].as_array().expect("items").iter();
    let all: Vec<_> = all
        .map(|one| (one["generation"].as_u64(), one["pinned"].as_bool()))
        .collect();
    assert_eq!(all, [(Some(3), Some(false)), (Some(2), Some(true))]);
    node.admin
        .post("/v1/datasets/board/rollback", json!({"generation": 1}))
        .await
        .problem(404, "not-found");
    node.admin
        .patch("/v1/datasets/board", json!({"keep": 0}))
        .await
        .problem(400, "invalid-request");
    node.admin
        .patch("/v1/datasets/board", json!({"keep": 1001}))
        .await
        .problem(422, "validation-failed");
    let unknown = json!({"sink": "redis"});
    let refused = node.admin.patch("/v1/datasets/board", unknown).await;
    let refused = refused.problem(422, "validation-failed");
    assert_eq!(
        refused["errors"][0]["pointer"], "/sink",
        "this node has none: {refused:#}"
    );
    node.admin
        .patch("/v1/datasets/board", json!({"sink": "kafka"}))
        .await
        .problem(400, "invalid-request");
    let same = node
        .admin
        .patch("/v1/datasets/board", json!({"sink": "none"}))
        .await
        .expect(200);
    assert_eq!(
        (&same["sink"], &same["sink_state"]),
        (&json!("none"), &Value::Null)
    );
    node.admin.delete("/v1/datasets/board").await.expect(204);
    node.admin
        .get("/v1/datasets/board")
        .await
        .problem(404, "not-found");
}

#[tokio::test]
async fn readers_read_datasets_and_nothing_else_each_those_of_its_business() {
    let business = scores().await;
    let node = node(&business).await;
    node.business("mail", &business.url(), json!({})).await;
    let task = published(&node, 3, json!({})).await;
    let current = "/v1/datasets/board/current";
    for (role, of) in [
        ("reader", None),
        ("reader", Some("push")),
        ("business", Some("push")),
        ("viewer", None),
    ] {
        let client = node.client(role, of).await;
        assert_eq!(
            client.get(current).await.expect(200)["generation"],
            1,
            "{role} {of:?}"
        );
        client
            .get("/v1/datasets/board/generations/1/results")
            .await
            .expect_rows(3);
    }
    for of in [("reader", Some("mail")), ("business", Some("mail"))] {
        let client = node.client(of.0, of.1).await;
        client.get(current).await.problem(404, "not-found");
        assert_eq!(client.get("/v1/datasets").await.expect(200)["items"], json!([]));
    }
    let reader = node.client("reader", None).await;
    assert_eq!(reader.get("/v1/whoami").await.expect(200)["role"], "reader");
    for path in [
        "/v1/tasks".to_owned(),
        format!("/v1/tasks/{task}/results"),
        "/v1/businesses".to_owned(),
    ] {
        reader.get(&path).await.problem(403, "forbidden");
    }
    let moved = reader
        .post("/v1/datasets/board/rollback", json!({"generation": 1}))
        .await;
    moved.problem(403, "forbidden");
    reader
        .delete("/v1/datasets/board")
        .await
        .problem(403, "forbidden");
}

#[tokio::test]
async fn what_can_not_be_published_is_refused_when_the_task_is_made() {
    let business = scores().await;
    let node = node(&business).await;
    node.business("mail", &business.url(), json!({})).await;
    published(&node, 1, json!({})).await;
    let make = |business: &str, more: Value| {
        let mut body = json!({"business": business, "source": {"type": "range", "total": 1}});
        crate::support::merge(&mut body, more);
        node.admin.post("/v1/tasks", body)
    };
    let pointer = |problem: &Value| problem["errors"][0]["pointer"].as_str().map(str::to_owned);
    for (more, wrong) in [
        (json!({"publish": "board", "results": "off"}), "/results"),
        (json!({"publish": "board", "reduce": "command:nobody"}), "/reduce"),
    ] {
        let problem = make("push", more).await.problem(422, "validation-failed");
        assert_eq!(pointer(&problem).as_deref(), Some(wrong), "{problem}");
    }
    let problem = make("mail", json!({"publish": "board"}))
        .await
        .problem(422, "validation-failed");
    assert_eq!(pointer(&problem).as_deref(), Some("/publish"));
    for (more, status, kind) in [
        (json!({"publish_if": "all"}), 400, "invalid-request"),
        (
            json!({"publish": "board", "publish_if": "most"}),
            400,
            "invalid-request",
        ),
        (
            json!({"publish": "board", "reduce": "sh -c rm"}),
            400,
            "invalid-request",
        ),
        (json!({"publish": "Board"}), 422, "validation-failed"),
    ] {
        make("push", more).await.problem(status, kind);
    }
    let clone = {
        let made = make("push", json!({"publish": "board"})).await.expect(201);
        let path = format!("/v1/tasks/{}/clone", made["id"].as_str().expect("an id"));
        node.admin.post(&path, json!({})).await.expect(201)
    };
    assert_eq!(
        clone["publish"]["generation"], 3,
        "a clone has a number of its own"
    );
}

#[tokio::test]
async fn a_token_of_a_business_publishes_to_its_own_names_and_is_not_told_which_others_are_taken() {
    let business = scores().await;
    let node = node(&business).await;
    node.business("mail", &business.url(), json!({})).await;
    node.task("mail", 1, json!({"publish": "mail.board"})).await;
    published(&node, 1, json!({"publish": "board"})).await;
    let push = node.client("business", Some("push")).await;
    let make = |client: &Client, source: &Value, name: &str| {
        let body = json!({"business": "push", "source": source, "publish": name});
        let client = client.clone();
        async move { client.post("/v1/tasks", body).await }
    };
    let range = json!({"type": "range", "total": 1});
    let mut told = Vec::new();
    // Another's, nobody's, its own that an operator made, and what only looks like its own.
    for name in [
        "mail.board",
        "mail",
        "nobody-has-it",
        "board",
        "push-eu",
        "push-eu.board",
    ] {
        let problem = make(&push, &range, name).await.problem(422, "validation-failed");
        told.push(problem["errors"].clone());
    }
    assert!(told.iter().all(|one| *one == told[0]), "{told:#?}");
    assert_eq!(told[0][0]["pointer"], "/publish");
    for name in ["push", "push.board", "push.a.b"] {
        make(&push, &range, name).await.expect(201);
    }
    let made = make(&node.admin, &range, "board").await.expect(201);
    let clone = format!("/v1/tasks/{}/clone", made["id"].as_str().expect("an id"));
    let problem = push
        .post(&clone, json!({}))
        .await
        .problem(422, "validation-failed");
    assert_eq!(problem["errors"], told[0]);
    push.post(&clone, json!({"publish": "push.board"}))
        .await
        .expect(201);
    for name in ["mail.board", "nobody-has-it"] {
        let answer = push.get(&format!("/v1/datasets/{name}")).await;
        answer.problem(404, "not-found");
    }
    // A schedule of a business has no more rights, also where its source is fetched later.
    for source in [range, json!({"type": "url", "url": "http://127.0.0.1:9/x.csv"})] {
        let schedule = |name: &str| {
            let task = json!({"source": source, "publish": name});
            let body = json!({"business": "push", "name": "nightly", "every": "1h", "task": task});
            push.post("/v1/schedules", body)
        };
        let problem = schedule("mail.board").await.problem(422, "validation-failed");
        assert_eq!(problem["errors"][0]["pointer"], "/task/publish", "{problem:#}");
    }
}

impl Answer {
    /// So many lines.
    #[track_caller]
    fn expect_rows(self, count: usize) {
        assert_eq!(lines(&self).len(), count, "{}", self.text());
    }
}
