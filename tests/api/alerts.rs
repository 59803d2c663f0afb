//! Alerts: events tell people, through URLs and commands, and what happens is listed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::business::{Act, Business, Seen};
use crate::support::{Node, PATIENCE, Recipe};

/// Waits for a notice of this type, and returns the first.
async fn notice(receiver: &Business, kind: &str) -> Seen {
    let begun = Instant::now();
    loop {
        if let Some(seen) = receiver.of_kind(kind).first() {
            return seen.clone();
        }
        assert!(begun.elapsed() < PATIENCE, "no notice of {kind}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn alert(node: &Node, body: Value) -> Value {
    node.admin.post("/v1/alerts", body).await.expect(201)
}

#[tokio::test]
async fn a_task_that_stops_and_one_that_finishes_tell_the_alerts_that_want_it() {
    let receiver = Business::start(|_| Act::ok()).await;
    let handler = Business::start(|seen| match seen.items().as_slice() {
        [(3, _)] => Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "gone"}),
        ),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &handler.url(), json!({})).await;
    node.business("mail", &handler.url(), json!({})).await;
    let on = json!(["stopped", "failed", "finished"]);
    let made = alert(
        &node,
        json!({"name": "ops", "url": receiver.url(), "on": on, "business": "push"}),
    )
    .await;
    let secret = made["secret"].as_str().expect("a signing secret");
    assert!(secret.starts_with("whsec_"), "{made:#}");
    assert!(
        made["url"].as_str().is_some_and(|url| url.ends_with("/…")),
        "the URL may be a credential: {made:#}"
    );
    let other = node.task("mail", 5, json!({"start": true})).await;
    node.status(&other, "finished").await;
    let task = node
        .task(
            "push",
            5,
            json!({"start": true, "name": "spring", "error_budget": "none"}),
        )
        .await;
    node.status(&task, "finished").await;
    let seen = notice(&receiver, "alert.failed").await;
    assert_eq!(seen.body["task"], json!(task), "{:#}", seen.body);
    assert_eq!(
        (&seen.body["failed"], &seen.body["business"]),
        (&json!(1), &json!("push"))
    );
    assert_eq!(
        seen.body["title"],
        format!("{task} spring finished with failed items: 1")
    );
    let link = seen.body["url"].as_str().expect("a link");
    assert_eq!(link, format!("{}/tasks/{task}", node.url));
    assert!(
        seen.header("webhook-signature").starts_with("v1,"),
        "calls are signed"
    );
    notice(&receiver, "alert.finished").await;
    let budget = json!({"start": true, "error_budget": "0"});
    let stopped = node.task("push", 1000, budget).await;
    node.status(&stopped, "stopped").await;
    let seen = notice(&receiver, "alert.stopped").await;
    assert_eq!(seen.body["task"], json!(stopped), "{:#}", seen.body);
    for seen in receiver.seen() {
        assert_ne!(seen.body["business"], "mail", "another business: {:#}", seen.body);
    }
    let history = node.admin.get("/v1/alerts/ops/deliveries").await.expect(200);
    assert_eq!(history["items"].as_array().map(Vec::len), Some(3), "{history:#}");
}

#[tokio::test]
async fn a_notice_is_repeated_under_one_id_until_it_is_taken() {
    let receiver = Business::start(|_| Act::status(503)).await;
    let node = Node::start().await;
    alert(
        &node,
        json!({"name": "ops", "url": receiver.url(), "on": ["stopped"]}),
    )
    .await;
    let sent = node
        .admin
        .post("/v1/alerts/ops/test", json!({}))
        .await
        .expect(202);
    assert_eq!(sent["state"], "pending", "{sent:#}");
    notice(&receiver, "alert.test").await;
    receiver.becomes(|_| Act::ok());
    let begun = Instant::now();
    let done = loop {
        let history = node.admin.get("/v1/alerts/ops/deliveries").await.expect(200);
        if history["items"][0]["state"] == "delivered" {
            break history["items"][0].clone();
        }
        assert!(begun.elapsed() < PATIENCE, "{history:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(
        done["attempts"].as_u64().is_some_and(|many| many >= 2),
        "{done:#}"
    );
    let ids: Vec<String> = receiver
        .seen()
        .iter()
        .map(|seen| seen.header("webhook-id").to_owned())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(json!(ids[0]), done["delivery_id"]);
}

#[tokio::test]
async fn slack_and_templates_get_their_forms_and_a_command_reads_its_input() {
    let recipe = Recipe::new();
    let (script, told) = (recipe.path("page.sh"), recipe.path("told"));
    std::fs::write(&script, format!("cat > {}\n", told.display())).unwrap();
    let config = format!(
        "[handler.command]\nenabled = true\n[handler.command.commands.page]\ncmd = [\"/bin/sh\", {:?}]",
        script.display().to_string()
    );
    let node = recipe.config(&config).start().await;
    let receiver = Business::start(|_| Act::ok()).await;
    let on = json!(["limit_80"]);
    let url = receiver.url();
    alert(
        &node,
        json!({"name": "slack", "url": url, "on": on, "form": "slack"}),
    )
    .await;
    alert(
        &node,
        json!({"name": "own", "url": url, "on": on, "template": "{\"msg\": {title}}"}),
    )
    .await;
    alert(
        &node,
        json!({"name": "pager", "command": "page", "on": on, "form": "text"}),
    )
    .await;
    for name in ["slack", "own", "pager"] {
        let path = format!("/v1/alerts/{name}/test");
        node.admin.post(&path, json!({})).await.expect(202);
    }
    let begun = Instant::now();
    loop {
        let bodies: Vec<Value> = receiver.seen().iter().map(|seen| seen.body.clone()).collect();
        let slack = bodies.iter().any(|body| {
            let text = body["text"].as_str().unwrap_or_default();
            text.starts_with("*Test of alert slack*\n") && text.ends_with("/alerts/slack|Open>")
        });
        let own = bodies.contains(&json!({"msg": "Test of alert own"}));
        let paged = std::fs::read_to_string(&told).unwrap_or_default();
        if slack && own && paged.starts_with("Test of alert pager\n") {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{bodies:#?} {paged}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn what_cannot_be_told_is_refused_with_its_place() {
    let node = Node::start().await;
    let fine = json!({"name": "ops", "url": "http://127.0.0.1:9/x", "on": ["stopped"]});
    for (member, value, place) in [
        ("name", json!("Ops"), "/name"),
        ("on", json!([]), "/on"),
        ("url", json!("ftp://x/"), "/url"),
        ("url", Value::Null, "/url"),
        ("command", json!("page"), "/command"),
        ("business", json!("none"), "/business"),
        ("template", json!("{title"), "/template"),
    ] {
        let mut body = fine.clone();
        body[member] = value;
        let answer = node.admin.post("/v1/alerts", body).await;
        assert!(matches!(answer.status, 400 | 422), "{member}: {}", answer.text());
        assert!(answer.text().contains(place), "{member}: {}", answer.text());
    }
    alert(&node, fine.clone()).await;
    node.admin
        .post("/v1/alerts", fine)
        .await
        .problem(409, "name-taken");
    let viewer = node.client("viewer", None).await;
    viewer.get("/v1/alerts/ops").await.expect(200);
    viewer
        .post("/v1/alerts/ops/test", json!({}))
        .await
        .problem(403, "forbidden");
    let edited = node
        .admin
        .patch("/v1/alerts/ops", json!({"on": ["finished"], "business": null}))
        .await
        .expect(200);
    assert_eq!(
        (&edited["on"], &edited["revision"]),
        (&json!(["finished"]), &json!(2))
    );
    assert_eq!(edited["secret"], Value::Null, "the key stays");
    node.admin.delete("/v1/alerts/ops").await.expect(204);
    node.admin.get("/v1/alerts/ops").await.problem(404, "not-found");
    let audit = node.admin.get("/v1/audit?object=alert:ops").await.expect(200);
    let actions: Vec<&str> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["action"].as_str())
        .collect();
    assert_eq!(actions, ["alert.delete", "alert.edit", "alert.create"]);
}
