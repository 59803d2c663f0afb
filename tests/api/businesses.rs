//! Businesses and tokens over the façade.

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Client, Node, PATIENCE, Recipe};

const PATH: &str = "/v1/businesses/push";

fn checks(report: &Value) -> Vec<(&str, &str)> {
    let lines = report
        .as_array()
        .unwrap_or_else(|| panic!("no report: {report:#}"));
    lines
        .iter()
        .map(|line| (line["check"].as_str().unwrap(), line["result"].as_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_business_is_registered_once_its_handler_keeps_to_the_contract() {
    let business = Business::start(|seen| match seen.body.get("x-probe") {
        Some(_) => Act::status(500),
        None => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    let body = json!({"name": "push", "url": business.url(), "display_name": "推送"});
    let problem = node
        .admin
        .post("/v1/businesses", body.clone())
        .await
        .problem(422, "check-failed");
    assert!(
        checks(&problem["check_report"]).contains(&("unknown_member", "fail")),
        "{problem:#}"
    );
    node.admin.get(PATH).await.problem(404, "not-found");
    business.becomes(|_| Act::ok());
    let answer = node.admin.post("/v1/businesses", body.clone()).await;
    assert_eq!(
        (answer.header("location"), answer.header("etag")),
        (Some(PATH), Some("\"1\""))
    );
    let made = answer.expect(201);
    assert!(
        made["secret"]
            .as_str()
            .is_some_and(|secret| secret.starts_with("whsec_")),
        "{made:#}"
    );
    let read = node.admin.get(PATH).await.expect(200);
    assert_eq!(
        (&read["display_name"], &read["revision"]),
        (&json!("推送"), &json!(1))
    );
    assert_eq!(read.get("secret"), None, "shown once: {read:#}");
    node.admin
        .post("/v1/businesses?check=skip", body)
        .await
        .problem(409, "name-taken");
    let report = node
        .admin
        .post(&format!("{PATH}/check"), json!({}))
        .await
        .expect(200);
    assert_eq!(report["passed"], true);
    assert!(
        checks(&report["checks"]).contains(&("signature", "warn")),
        "{report:#}"
    );
}

#[tokio::test]
async fn a_change_names_what_it_changes_and_is_refused_when_another_came_first() {
    let node = Node::start().await;
    let more = json!({"headers": {"x-team": "growth"}, "secret_headers": {"x-key": "k1"}, "pool": "default"});
    node.business("push", "http://127.0.0.1:9/", more).await;
    let edit = |tag: &'static str, body: Value| {
        let admin = node.admin.clone();
        async move { admin.json(Method::PATCH, PATH, &[("if-match", tag)], body).await }
    };
    let change =
        json!({"headers": {"x-team": null, "x-shift": "2"}, "limits": {"rate": "500/s"}, "reason": "moved"});
    let answer = edit("\"1\"", change.clone()).await;
    assert_eq!(answer.header("etag"), Some("\"2\""));
    let changed = answer.expect(200);
    assert_eq!(changed["headers"], json!({"x-shift": "2"}));
    assert_eq!(changed["limits"], json!({"rate": "500/s"}));
    assert_eq!(changed["secret_headers"], json!({"x-key": "***"}));
    edit("\"1\"", change).await.problem(412, "etag-mismatch");
    let same = node
        .admin
        .patch(PATH, json!({"secret_headers": {"x-key": "***"}}))
        .await
        .expect(200);
    assert_eq!(same["revision"], 2, "nothing changed, no revision");
    let problem = node
        .admin
        .patch(PATH, json!({"colour": "red"}))
        .await
        .problem(400, "invalid-request");
    assert_eq!(problem["errors"][0]["pointer"], "/colour");
    let wrong = json!({"name": "other", "url": "ftp://x"});
    let problem = node
        .admin
        .patch(PATH, wrong)
        .await
        .problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/name");
    let wrong = json!({"limits": {"rate": "1/s"}, "proxy": "ftp://p", "response_pointer": "x"});
    let problem = node
        .admin
        .patch(PATH, wrong)
        .await
        .problem(422, "validation-failed");
    assert_eq!(
        problem["errors"].as_array().map(Vec::len),
        Some(3),
        "all at once: {problem:#}"
    );
    let history = node.admin.get(&format!("{PATH}/revisions")).await.expect(200);
    let newest = &history["items"][0];
    assert_eq!(
        (&newest["action"], &newest["actor"]),
        (&json!("business.edit"), &json!("bootstrap"))
    );
    assert_eq!(
        (&newest["reason"], &newest["revision"]),
        (&json!("moved"), &json!(2))
    );
    let places: Vec<&str> = newest["diff"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(places, ["/headers/x-shift", "/headers/x-team", "/limits/rate"]);
    assert_eq!(history["items"].as_array().map(Vec::len), Some(2), "{history:#}");
}

#[tokio::test]
async fn an_archived_business_is_hidden_and_comes_back_and_lists_have_pages() {
    let node = Node::start().await;
    for name in ["c", "a", "b"] {
        node.business(name, "http://127.0.0.1:9/", json!({})).await;
    }
    node.admin
        .post("/v1/businesses/b/archive", json!({"reason": "done"}))
        .await
        .expect(200);
    node.admin
        .post("/v1/businesses/b/archive", json!({}))
        .await
        .expect(200);
    let names = |list: Value| {
        let items = list["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(node.admin.get("/v1/businesses").await.expect(200)),
        ["a", "c"]
    );
    assert_eq!(
        names(node.admin.get("/v1/businesses?archived=true").await.expect(200)),
        ["b"]
    );
    let page = node.admin.get("/v1/businesses?limit=1").await;
    assert!(
        page.header("link")
            .is_some_and(|link| link.contains("rel=\"next\"")),
        "{}",
        page.text()
    );
    let cursor = page.expect(200)["next_cursor"].as_str().unwrap().to_owned();
    let next = node
        .admin
        .get(&format!("/v1/businesses?limit=1&cursor={cursor}"))
        .await
        .expect(200);
    assert_eq!(
        (names(next.clone()), &next["next_cursor"]),
        (vec!["c".to_owned()], &Value::Null)
    );
    let again = node
        .admin
        .post("/v1/businesses/b/unarchive", json!({}))
        .await
        .expect(200);
    assert_eq!(
        (&again["archived_at"], &again["revision"]),
        (&Value::Null, &json!(3))
    );
    node.admin
        .get("/v1/businesses?limit=0")
        .await
        .problem(400, "invalid-request");
    node.admin
        .get("/v1/businesses?colour=red")
        .await
        .problem(400, "invalid-request");
}

#[tokio::test]
async fn only_administrators_change_businesses_and_a_business_sees_itself() {
    let node = Node::start().await;
    node.business("push", "http://127.0.0.1:9/", json!({})).await;
    node.business("mail", "http://127.0.0.1:9/", json!({})).await;
    let operator = node.client("operator", None).await;
    operator.get(PATH).await.expect(200);
    operator
        .patch(PATH, json!({"insecure_skip_verify": true}))
        .await
        .problem(403, "forbidden");
    operator
        .post(&format!("{PATH}/rotate-secret"), json!({}))
        .await
        .problem(403, "forbidden");
    let push = node.client("business", Some("push")).await;
    push.get(PATH).await.expect(200);
    push.get(&format!("{PATH}/revisions")).await.expect(200);
    push.get("/v1/businesses/mail").await.problem(404, "not-found");
    push.get("/v1/businesses").await.problem(403, "forbidden");
}

#[tokio::test]
async fn a_token_is_shown_once_and_holds_until_it_is_revoked_or_over() {
    let node = Node::start().await;
    for (body, pointer) in [
        (json!({"name": "x", "role": "business"}), "/business"),
        (
            json!({"name": "x", "role": "admin", "business": "push"}),
            "/business",
        ),
        (
            json!({"name": "x", "role": "business", "business": "nobody"}),
            "/business",
        ),
        (json!({"name": "", "role": "viewer"}), "/name"),
        (
            json!({"name": "x", "role": "viewer", "expires_at": "2001-01-01T00:00:00Z"}),
            "/expires_at",
        ),
    ] {
        let problem = node
            .admin
            .post("/v1/tokens", body)
            .await
            .problem(422, "validation-failed");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem:#}");
    }
    let problem = node
        .admin
        .post("/v1/tokens", json!({"name": "x", "role": "root"}))
        .await;
    assert_eq!(
        problem.problem(400, "invalid-request")["errors"][0]["pointer"],
        "/role"
    );
    let body = json!({"name": "ann", "role": "viewer", "expires_at": "2999-01-01T00:00:00Z"});
    let made = node.admin.post("/v1/tokens", body).await.expect(201);
    let ann = Client::new(&node.url, made["token"].as_str());
    assert_eq!(ann.get("/v1/whoami").await.expect(200)["name"], "ann");
    let listed = node.admin.get("/v1/tokens").await.expect(200);
    let shown = listed["items"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&shown["name"], &shown["created_by"]),
        (&json!("ann"), &json!("bootstrap"))
    );
    assert_eq!(shown.get("token"), None);
    assert!(
        made["token"]
            .as_str()
            .unwrap()
            .starts_with(shown["prefix"].as_str().unwrap())
    );
    let path = format!("/v1/tokens/{}", made["id"]);
    assert_eq!(node.admin.delete(&path).await.status, 204);
    ann.get("/v1/whoami").await.problem(401, "unauthenticated");
    assert_eq!(node.admin.delete(&path).await.status, 204, "again is no error");
    node.admin
        .delete("/v1/tokens/999")
        .await
        .problem(404, "not-found");
    node.admin
        .delete("/v1/tokens/x")
        .await
        .problem(400, "invalid-request");
}

#[tokio::test]
async fn a_trusted_proxy_says_who_it_is_and_tokens_still_count() {
    let node = Recipe::new()
        .config("[auth]\nmode = \"proxy\"\nproxy_trust = [\"127.0.0.1/32\"]")
        .start()
        .await;
    let nobody = Client::new(&node.url, None);
    nobody.get("/v1/whoami").await.problem(401, "unauthenticated");
    let ann = [("x-forwarded-user", "ann@example.org")];
    let who = nobody
        .send(Method::GET, "/v1/whoami", &ann, bytes::Bytes::new())
        .await
        .expect(200);
    assert_eq!(
        (&who["name"], &who["role"]),
        (&json!("ann@example.org"), &json!("operator"))
    );
    assert_eq!(node.admin.get("/v1/whoami").await.expect(200)["role"], "admin");
    let twice = [ann[0], ("x-forwarded-user", "root")];
    let answer = nobody
        .send(Method::GET, "/v1/whoami", &twice, bytes::Bytes::new())
        .await;
    answer.problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_command_of_the_configuration_does_the_work_of_a_business() {
    let worker = "echo \"$SECRET_OF_THE_NODE$GREETING\" >&2; while read -r line; do echo ok; done";
    let config = format!(
        "[handler.command]\nenabled = true\n[handler.command.commands.push]\ncmd = [\"sh\", \"-c\", {worker:?}]\n\
         workers = 2\nenv = {{ GREETING = \"hello\" }}"
    );
    let node = Recipe::new()
        .config(&config)
        .env("SECRET_OF_THE_NODE", "geheim")
        .start()
        .await;
    let body = json!({"name": "push", "command": "other"});
    let problem = node
        .admin
        .post("/v1/businesses", body)
        .await
        .problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/command");
    let body = json!({"name": "push", "command": "push", "limits": {"concurrency": 1}});
    let made = node.admin.post("/v1/businesses", body).await.expect(201);
    assert_eq!((&made["command"], &made["url"]), (&json!("push"), &Value::Null));
    let report = node
        .admin
        .post(&format!("{PATH}/check"), json!({}))
        .await
        .expect(200);
    assert_eq!(checks(&report["checks"]), [("command", "ok")]);
    let task = node
        .task("push", 20, json!({"start": true, "rate": "1000/s"}))
        .await;
    let done = node.status(&task, "finished").await;
    assert_eq!(done["counts"]["succeeded"], 20, "{done:#}");
    let said = node.admin.get(&format!("/v1/tasks/{task}/logs")).await.text();
    assert!(
        said.contains("hello") && !said.contains("geheim"),
        "the node's environment stays: {said}"
    );
}

#[tokio::test]
async fn a_business_says_how_many_of_its_workers_are_idle() {
    let recipe = Recipe::new();
    let opened = recipe.path("gate");
    let ready = r#"{"type":"ready","protocol":1,"concurrency":1}"#;
    let (gate, wait) = (opened.display(), "sleep 0.02");
    let worker = format!(
        "read -r hello; echo '{ready}'; while read -r line; do until [ -e {gate} ]; do {wait}; done; echo ok; done"
    );
    let config = format!(
        "[handler.command]\nenabled = true\n[handler.command.commands.push]\ncmd = [\"sh\", \"-c\", {worker:?}]\n\
         workers = 3"
    );
    let node = recipe.config(&config).start().await;
    let body = json!({"name": "push", "command": "push"});
    let made = node.admin.post("/v1/businesses", body).await.expect(201);
    assert_eq!(made.get("workers"), None, "{made:#}");
    let task = node.task("push", 1, json!({"start": true})).await;
    let expected = json!({"busy": 1, "idle": 2});
    let until = Instant::now() + PATIENCE;
    loop {
        let shown = node.admin.get(PATH).await.expect(200);
        if shown["workers"] == expected {
            break;
        }
        assert!(Instant::now() < until, "{shown:#}\n{}", node.said());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let page = node.admin.get("/metrics").await.text();
    for (state, count) in [("busy", 1), ("idle", 2)] {
        let line = format!("windrow_workers{{business=\"push\",state=\"{state}\"}} {count}\n");
        assert!(page.contains(&line), "{line}: {page}");
    }
    std::fs::write(&opened, "").expect("the gate opens");
    node.status(&task, "finished").await;
    let shown = node.admin.get(PATH).await.expect(200);
    assert_eq!(shown.get("workers"), None, "they ended with the task: {shown:#}");
}

#[tokio::test]
async fn a_business_is_called_once_without_a_task_and_nothing_counts_it() {
    let business =
        Business::start(|_| Act::json(200, json!({"result": "ok", "output": {"sent": 1.50}}))).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let (operator, viewer) = (
        node.client("operator", None).await,
        node.client("viewer", None).await,
    );
    let path = format!("{PATH}/tries");
    let body = json!({"index": 42, "data": {"user": "推送", "id": 9_007_199_254_740_993_u64}, "reason": "why it fails"});
    let tried = operator.post(&path, body.clone()).await.expect(200);
    assert_eq!(
        (&tried["result"], &tried["index"], &tried["output"]),
        (&json!("succeeded"), &json!(42), &json!({"sent": 1.5})),
        "{tried:#}"
    );
    assert!(tried["latency_seconds"].as_f64().is_some_and(|took| took > 0.0));
    let seen = business.of_kind("item.process");
    let [call] = &seen[..] else {
        panic!("one call: {seen:?}")
    };
    assert_eq!(call.body["item"]["data"], body["data"]);
    assert_eq!(call.body["item"]["key"], tried["item_key"]);
    assert_eq!(call.header("windrow-mode"), "preview");
    assert!(
        !call.header("webhook-signature").is_empty(),
        "it is signed as any call"
    );
    let tasks = node.admin.get("/v1/tasks").await.expect(200);
    assert_eq!(tasks["items"], json!([]), "it is in no task");
    let audit = node
        .admin
        .get("/v1/audit?business=push&action=handler.try")
        .await
        .expect(200);
    let entry = &audit["items"][0];
    assert_eq!(
        (&entry["actor"], &entry["reason"]),
        (&json!("operator"), &json!("why it fails")),
        "{audit:#}"
    );
    let history = node.admin.get(&format!("{PATH}/revisions")).await.expect(200);
    let actions: Vec<&Value> = history["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["action"])
        .collect();
    assert_eq!(actions, ["business.create"], "a call changed nothing of it");
    viewer.post(&path, json!({})).await.problem(403, "forbidden");
    node.client("business", Some("push"))
        .await
        .post(&path, json!({}))
        .await
        .problem(403, "forbidden");
    assert_eq!(
        business.of_kind("item.process").len(),
        1,
        "who may not was not helped"
    );
}

#[tokio::test]
async fn what_a_tried_call_comes_to_is_told_whatever_it_is() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.business("gone", "http://127.0.0.1:9/", json!({})).await;
    let path = format!("{PATH}/tries");
    let verdict = async |path: &str, body: Value| node.admin.post(path, body).await.expect(200);
    assert_eq!(verdict(&path, json!({})).await["result"], "succeeded");
    business.becomes(|_| {
        Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "nobody"}),
        )
    });
    let failed = verdict(&path, json!({"data": null})).await;
    assert_eq!(
        (&failed["result"], &failed["code"], &failed["message"]),
        (&json!("failed"), &json!("NO_USER"), &json!("nobody"))
    );
    business.becomes(|_| Act::json(200, json!(["no", "contract"])));
    assert_eq!(verdict(&path, json!({})).await["result"], "broken");
    business.becomes(|_| Act::ok().after(std::time::Duration::from_secs(30)));
    let late = verdict(&path, json!({"timeout": "200ms"})).await;
    assert_eq!(late["result"], "retry", "{late:#}");
    let away = verdict("/v1/businesses/gone/tries", json!({})).await;
    assert_eq!(away["result"], "retry", "{away:#}");
    for (body, status, slug) in [
        (json!({"timeout": "61s"}), 422, "validation-failed"),
        (json!({"timeout": "soon"}), 400, "invalid-request"),
        (json!({"data": "x".repeat(65 << 10)}), 422, "validation-failed"),
        (json!({"index": u64::MAX}), 422, "validation-failed"),
        (json!({"index": -1}), 400, "invalid-request"),
        (json!({"colour": "red"}), 400, "invalid-request"),
    ] {
        node.admin.post(&path, body).await.problem(status, slug);
    }
    node.admin
        .post("/v1/businesses/nobody/tries", json!({}))
        .await
        .problem(404, "not-found");
}

#[tokio::test]
async fn a_caller_tries_one_call_at_a_time() {
    let business = Business::start(|_| Act::ok().after(std::time::Duration::from_secs(5))).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let (first, second) = (
        node.client("operator", None).await,
        node.client("admin", None).await,
    );
    let path = format!("{PATH}/tries");
    let slow = tokio::spawn({
        let (first, path) = (first.clone(), path.clone());
        async move { first.post(&path, json!({"timeout": "30s"})).await }
    });
    while business.of_kind("item.process").is_empty() {
        tokio::task::yield_now().await;
    }
    first.post(&path, json!({})).await.problem(409, "conflict");
    business.becomes(|_| Act::ok());
    second.post(&path, json!({})).await.expect(200);
    slow.await.expect("it went on").expect(200);
    first.post(&path, json!({})).await.expect(200);
}
