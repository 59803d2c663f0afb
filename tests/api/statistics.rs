//! What was done in each day, as the façade says it.

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Node, Recipe};

/// The sums of a member of all rows: a test may run over midnight.
fn sum(page: &Value, pointer: &str) -> u64 {
    let rows = page["items"].as_array().expect("a list");
    rows.iter().filter_map(|row| row.pointer(pointer)?.as_u64()).sum()
}

fn names<'a>(page: &'a Value, member: &str) -> Vec<&'a str> {
    let rows = page["items"].as_array().expect("a list");
    rows.iter().filter_map(|row| row[member].as_str()).collect()
}

async fn asked(node: &Node, query: &str) -> Value {
    node.admin
        .get(&format!("/v1/statistics{query}"))
        .await
        .expect(200)
}

#[tokio::test]
async fn what_was_done_is_told_by_day_business_and_task_and_outlives_its_task() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(3, _)] => Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "gone"}),
        ),
        [(7, _)] => Act::json(200, json!({"result": "skip"})),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    assert_eq!(asked(&node, "").await["items"], json!([]), "nothing was done");
    for name in ["mail", "push"] {
        node.business(name, &business.url(), json!({})).await;
    }
    let first = node
        .task("push", 20, json!({"start": true, "name": "first"}))
        .await;
    let second = node.task("mail", 10, json!({"start": true})).await;
    for task in [&first, &second] {
        node.status(task, "finished").await;
    }

    let days = asked(&node, "").await;
    let terms = |page: &Value| {
        [
            "/items/succeeded",
            "/items/skipped",
            "/items/failed",
            "/tasks/created",
            "/tasks/finished",
        ]
        .map(|pointer| sum(page, pointer))
    };
    assert_eq!(terms(&days), [26, 2, 2, 2, 2], "{days:#}");
    assert_eq!(names(&days, "day")[0].len(), "2026-11-25".len());
    let businesses = asked(&node, "?by=business").await;
    assert_eq!(names(&businesses, "business"), ["mail", "push"]);
    let page = asked(&node, "?by=business&limit=1").await;
    let cursor = page["next_cursor"].as_str().expect("another page");
    let rest = asked(&node, &format!("?by=business&limit=1&cursor={cursor}")).await;
    assert_eq!(
        (names(&page, "business"), names(&rest, "business")),
        (vec!["mail"], vec!["push"])
    );
    assert_eq!(rest["next_cursor"], Value::Null);
    let tasks = asked(&node, "?by=task&business=push").await;
    assert_eq!(
        (names(&tasks, "task"), names(&tasks, "name")),
        (vec![first.as_str()], vec!["first"])
    );
    assert_eq!(
        tasks["items"][0]["items"],
        json!({"succeeded": 18, "skipped": 1, "failed": 1})
    );
    assert_eq!(tasks["items"][0]["tasks"], Value::Null);

    let own = node.client("business", Some("mail")).await;
    let seen = own.get("/v1/statistics?by=business").await.expect(200);
    assert_eq!(names(&seen, "business"), ["mail"]);
    let others = own.get("/v1/statistics?business=push").await.expect(200);
    assert_eq!(others["items"], json!([]));

    assert_eq!(node.admin.delete(&format!("/v1/tasks/{first}")).await.status, 204);
    assert_eq!(asked(&node, "").await, days, "its days stay");
    assert_eq!(names(&asked(&node, "?by=task").await, "task"), [second.as_str()]);
}

#[tokio::test]
async fn a_period_that_is_none_and_a_strange_cursor_are_refused() {
    let node = Node::start().await;
    let old = asked(&node, "?since=2001-01-01T00:00:00Z&until=2001-01-02T00:00:00Z").await;
    assert_eq!(old["items"], json!([]));
    for (query, pointer) in [
        ("?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "until"),
        ("?since=yesterday", "since"),
        ("?by=week", "by"),
        ("?by=business&cursor=MTI", "cursor"),
    ] {
        let problem = node
            .admin
            .get(&format!("/v1/statistics{query}"))
            .await
            .problem(400, "invalid-request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{query}: {problem:#}");
    }
}

#[tokio::test]
async fn a_task_is_archived_before_it_is_deleted_and_kept_while_it_can_not_be() {
    let business = Business::start(|_| Act::ok()).await;
    let recipe = Recipe::new();
    let (folder, away) = (recipe.path("archive"), recipe.path("away"));
    let config = format!("[archive]\nlocation = {:?}", folder.display().to_string());
    let node = recipe.config(&config).start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node.task("push", 5, json!({"start": true})).await;
    node.status(&task, "finished").await;
    let path = format!("/v1/tasks/{task}");

    std::fs::rename(&folder, &away).unwrap();
    let problem = node.admin.delete(&path).await.problem(503, "archive-fails");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("archive.location"), "{problem:#}");
    node.status(&task, "finished").await;
    let metrics = node.admin.get("/metrics").await.text();
    let failed = r#"windrow_archived_tasks_total{outcome="failed"} 1"#;
    assert!(metrics.contains(failed), "{metrics}");

    std::fs::rename(&away, &folder).unwrap();
    assert_eq!(node.admin.delete(&path).await.status, 204);
    node.admin.get(&path).await.problem(404, "not-found");
    let packed = std::fs::read(folder.join("push").join(format!("{task}.ndjson.zst"))).unwrap();
    let text = String::from_utf8(zstd::stream::decode_all(&packed[..]).unwrap()).unwrap();
    let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&head["kind"], &head["id"]), (&json!("task"), &json!(task)));
    assert_eq!(head["counts"]["succeeded"], 5);
    assert_eq!(head["settings"]["max_attempts"], json!(5), "{head:#}");
}

/// Upkeep sweeps once a minute.
const SWEPT_WITHIN: Duration = Duration::from_secs(100);

#[tokio::test]
async fn what_is_not_kept_longer_is_archived_and_forgotten_by_itself() {
    let business = Business::start(|_| Act::ok()).await;
    let recipe = Recipe::new();
    let folder = recipe.path("archive");
    let config = format!(
        "[archive]\nlocation = {:?}\n[retention]\ntasks = \"5s\"\nappended = \"1s\"\n",
        folder.display().to_string()
    );
    let node = recipe.config(&config).start().await;
    node.business("push", &business.url(), json!({})).await;
    let ended = node.task("push", 5, json!({"start": true})).await;
    node.status(&ended, "finished").await;
    let body = json!({"business": "push", "open": true, "start": true});
    let open = node.admin.post("/v1/tasks", body).await.expect(201)["id"].clone();
    let open = format!("/v1/tasks/{}", open.as_str().unwrap());
    let append = async || {
        let items = json!({"items": [{"to": "ann"}, {"to": "bob"}]});
        let (path, key) = (format!("{open}/items"), [("idempotency-key", "monday")]);
        node.admin.json(Method::POST, &path, &key, items).await.status
    };
    assert_eq!(append().await, 201);
    let id = open.rsplit('/').next().unwrap();
    node.until(id, "settled", |task| task["counts"]["succeeded"] == 2)
        .await;
    let preview = async || {
        node.admin
            .post(&format!("{open}/preview"), json!({"indexes": "0"}))
            .await
            .text()
    };
    assert!(preview().await.contains("succeeded"), "{}", preview().await);
    let begun = Instant::now();
    loop {
        let is_gone = node.admin.get(&format!("/v1/tasks/{ended}")).await.status == 404;
        if is_gone && !preview().await.contains("succeeded") {
            break;
        }
        assert!(begun.elapsed() < SWEPT_WITHIN, "{is_gone} {}", preview().await);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let replay = node
        .admin
        .post(&format!("{open}/replays"), json!({"indexes": "1"}))
        .await;
    let refused = replay.problem(422, "validation-failed");
    let why = refused["errors"][0]["detail"].as_str().unwrap_or_default();
    assert!(why.contains("the data of item 1 can't be read"), "{refused:#}");
    assert_eq!(append().await, 200, "its key is known for a week");
    assert!(folder.join("push").join(format!("{ended}.ndjson.zst")).exists());
    let metrics = node.admin.get("/metrics").await.text();
    for line in [
        r#"windrow_archived_tasks_total{outcome="written"} 1"#,
        r#"windrow_appends_total{outcome="appended"} 1"#,
        r#"windrow_appends_total{outcome="repeated"} 1"#,
        "windrow_appended_items_total 2",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let backlog = format!("windrow_task_backlog_items{{task=\"{id}\"}} 0");
    assert!(metrics.contains(&backlog), "{metrics}");
}
