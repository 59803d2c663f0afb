//! Named limits over the façade: made, changed, named by businesses and tasks, kept while they are in use.

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Client, Node, PATIENCE, Recipe};

const PATH: &str = "/v1/limits/vendor-x";

async fn make(node: &Node, name: &str, rate: &str) {
    node.admin
        .post("/v1/limits", json!({"name": name, "rate": rate}))
        .await
        .expect(201);
}

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect()
}

async fn delete(client: &Client, path: &str) -> crate::support::Answer {
    client.json(Method::DELETE, path, &[], json!({})).await
}

#[tokio::test]
async fn a_limit_is_made_changed_listed_and_deleted_and_each_change_is_in_the_audit() {
    let node = Node::start().await;
    let body = json!({"name": "vendor-x", "rate": "300/s", "concurrency": 50, "reason": "their contract"});
    let tried = node
        .admin
        .post("/v1/limits?dry_run=true", body.clone())
        .await
        .expect(200);
    assert_eq!(tried["would"]["name"], "vendor-x");
    node.admin.get(PATH).await.problem(404, "not-found");
    let answer = node.admin.post("/v1/limits", body.clone()).await;
    assert_eq!(
        (answer.header("location"), answer.header("etag")),
        (Some(PATH), Some("\"1\""))
    );
    let made = answer.expect(201);
    assert_eq!(
        (&made["rate"], &made["concurrency"]),
        (&json!("300/s"), &json!(50))
    );
    node.admin
        .post("/v1/limits", body)
        .await
        .problem(409, "name-taken");
    for (wrong, pointer) in [
        (json!({"name": "Vendor X", "rate": "1/s"}), "/name"),
        (json!({"name": "nothing"}), "/rate"),
    ] {
        let problem = node
            .admin
            .post("/v1/limits", wrong)
            .await
            .problem(422, "validation-failed");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem:#}");
    }
    node.admin
        .post("/v1/limits", json!({"name": "x", "speed": 1}))
        .await
        .problem(400, "invalid-request");
    let stale = [("if-match", "\"7\"")];
    let change = json!({"rate": "100/s", "concurrency": null});
    let answer = node.admin.json(Method::PATCH, PATH, &stale, change.clone()).await;
    answer.problem(412, "etag-mismatch");
    let answer = node
        .admin
        .json(Method::PATCH, PATH, &[("if-match", "\"1\"")], change.clone())
        .await;
    assert_eq!(answer.header("etag"), Some("\"2\""));
    let changed = answer.expect(200);
    assert_eq!(
        (&changed["rate"], &changed["concurrency"]),
        (&json!("100/s"), &Value::Null)
    );
    let same = node.admin.patch(PATH, change).await.expect(200);
    assert_eq!(same["revision"], 2, "nothing changed, no revision");
    node.admin
        .patch(PATH, json!({"rate": null}))
        .await
        .problem(422, "validation-failed");
    make(&node, "mail", "5/s").await;
    let page = node.admin.get("/v1/limits?limit=1").await.expect(200);
    assert_eq!(names(&page), ["mail"]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = node
        .admin
        .get(&format!("/v1/limits?limit=1&cursor={cursor}"))
        .await
        .expect(200);
    assert_eq!(
        (names(&next), &next["next_cursor"]),
        (vec!["vendor-x"], &Value::Null)
    );
    assert_eq!(
        delete(&node.admin, &format!("{PATH}?reason=over")).await.status,
        204
    );
    delete(&node.admin, PATH).await.problem(404, "not-found");
    let audit = node.admin.get("/v1/audit").await.expect(200);
    let actions: Vec<(&str, &Value)> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["action"].as_str().unwrap(), &one["reason"]))
        .filter(|(action, _)| action.starts_with("limit."))
        .collect();
    let (contract, over, none) = (json!("their contract"), json!("over"), Value::Null);
    let newest_first = [
        ("limit.delete", &over),
        ("limit.create", &none),
        ("limit.edit", &none),
        ("limit.create", &contract),
    ];
    assert_eq!(actions, newest_first);
}

#[tokio::test]
async fn the_audit_is_narrowed_to_an_object_and_a_time_and_pages_on() {
    let node = Node::start().await;
    make(&node, "mail", "5/s").await;
    make(&node, "sms", "5/s").await;
    node.admin
        .patch("/v1/limits/sms", json!({"rate": "6/s"}))
        .await
        .expect(200);
    let read = async |query: &str| node.admin.get(&format!("/v1/audit?{query}")).await.expect(200);
    let of_sms = read("object=limit:sms&limit=1").await;
    let entry = &of_sms["items"][0];
    assert_eq!(entry["object"], json!({"kind": "limit", "name": "sms"}));
    assert_eq!(entry["action"], "limit.edit");
    let cursor = of_sms["next_cursor"].as_str().unwrap();
    let older = read(&format!("object=limit:sms&limit=1&cursor={cursor}")).await;
    assert_eq!(
        (&older["items"][0]["action"], &older["next_cursor"]),
        (&json!("limit.create"), &Value::Null)
    );
    let at = entry["at"].as_str().unwrap();
    let from = read(&format!("object=limit:sms&since={at}")).await;
    assert_eq!(
        from["items"].as_array().unwrap().len(),
        1,
        "since is with its time: {from:#}"
    );
    let before = read(&format!("object=limit:sms&until={at}")).await;
    assert_eq!(
        before["items"][0]["action"], "limit.create",
        "until is without its time"
    );
    for wrong in [
        "object=sms",
        "object=limits:sms",
        "object=limit:",
        "since=soon",
        "cursor=NQ",
    ] {
        let path = format!("/v1/audit?{wrong}");
        node.admin.get(&path).await.problem(400, "invalid-request");
    }
    let business = crate::business::Business::willing().await;
    node.business("push", &business.url(), json!({})).await;
    let of_business = node.client("business", Some("push")).await;
    of_business
        .get("/v1/audit?object=business:push")
        .await
        .problem(403, "forbidden");
}

#[tokio::test]
async fn only_limits_that_exist_are_named_and_one_in_use_is_not_deleted() {
    let node = Node::start().await;
    let task = |limits: Value| json!({"business": "push", "source": {"type": "range", "total": 9}, "limits": limits});
    make(&node, "vendor-x", "300/s").await;
    let business = json!({"limits": {"named": ["vendor-z"]}});
    node.business("push", "http://127.0.0.1:9/", json!({})).await;
    let problem = node
        .admin
        .patch("/v1/businesses/push", business)
        .await
        .problem(422, "validation-failed");
    let fault = &problem["errors"][0];
    assert_eq!(
        (&fault["pointer"], &fault["try"]),
        (&json!("/limits/named/0"), &json!("did you mean vendor-x?"))
    );
    for (limits, pointer, text) in [
        (json!(["mail"]), "/limits/0", "no limit mail"),
        (
            json!(["vendor-x", "vendor-x"]),
            "/limits/1",
            "vendor-x is listed twice",
        ),
    ] {
        let problem = node
            .admin
            .post("/v1/tasks", task(limits))
            .await
            .problem(422, "validation-failed");
        let fault = &problem["errors"][0];
        assert_eq!(
            (&fault["pointer"], &fault["detail"]),
            (&json!(pointer), &json!(text))
        );
    }
    let five = node
        .admin
        .post("/v1/tasks", task(json!(["a", "b", "c", "d", "e"])))
        .await;
    assert!((400..500).contains(&five.status), "four at most: {}", five.text());
    let made = node
        .admin
        .post("/v1/tasks", task(json!(["vendor-x"])))
        .await
        .expect(201);
    assert_eq!(made["limits"], json!(["vendor-x"]));
    let id = made["id"].as_str().unwrap();
    // It is for its whole life: a change of it is refused, not taken and left.
    let changed = node
        .admin
        .patch(&format!("/v1/tasks/{id}"), json!({"limits": []}))
        .await;
    changed.problem(400, "invalid-request");
    let cloned = node
        .admin
        .post(&format!("/v1/tasks/{id}/clone"), json!({}))
        .await
        .expect(201);
    assert_eq!(cloned["limits"], json!(["vendor-x"]), "a clone has them too");
    let mail = json!({"limits": {"named": ["vendor-x"]}});
    node.business("mail", "http://127.0.0.1:9/", mail).await;
    let problem = delete(&node.admin, PATH).await.problem(409, "conflict");
    let detail = problem["detail"].as_str().unwrap();
    let clone = cloned["id"].as_str().unwrap();
    for user in ["business mail", id, clone] {
        assert!(detail.contains(user), "{user}: {detail}");
    }
    let shown = node.admin.get(PATH).await.expect(200);
    assert_eq!(
        (&shown["businesses"], &shown["tasks_total"]),
        (&json!(["mail"]), &json!(2))
    );
    assert_eq!(
        shown["tasks"][0],
        json!({"id": id, "business": "push", "status": "created"})
    );
    for task in [id, clone] {
        node.admin
            .post(&format!("/v1/tasks/{task}/cancel"), json!({}))
            .await;
        let is_over = |answer: &Value| answer["status"] == "cancelled";
        until(&node, &format!("/v1/tasks/{task}"), "cancelled", is_over).await;
    }
    delete(&node.admin, PATH).await.problem(409, "conflict");
    node.admin
        .patch("/v1/businesses/mail", json!({"limits": {"named": null}}))
        .await
        .expect(200);
    assert_eq!(delete(&node.admin, PATH).await.status, 204);
    // What has ended may have named it: it can't be done again under a limit that is gone.
    let again = node.admin.post(&format!("/v1/tasks/{id}/clone"), json!({})).await;
    again.problem(422, "validation-failed");
    node.admin
        .post(&format!("/v1/tasks/{id}/clone"), json!({"limits": []}))
        .await
        .expect(201);
}

#[tokio::test]
async fn administrators_change_limits_and_a_business_sees_those_that_it_uses() {
    let node = Node::start().await;
    for name in ["vendor-x", "vendor-y"] {
        make(&node, name, "300/s").await;
    }
    let named = json!({"limits": {"named": ["vendor-x"]}});
    node.business("push", "http://127.0.0.1:9/", named.clone()).await;
    node.business("mail", "http://127.0.0.1:9/", named).await;
    let operator = node.client("operator", None).await;
    operator.get(PATH).await.expect(200);
    operator
        .post("/v1/limits", json!({"name": "z", "rate": "1/s"}))
        .await
        .problem(403, "forbidden");
    operator
        .patch(PATH, json!({"rate": "1/s"}))
        .await
        .problem(403, "forbidden");
    delete(&operator, PATH).await.problem(403, "forbidden");
    let push = node.client("business", Some("push")).await;
    assert_eq!(names(&push.get("/v1/limits").await.expect(200)), ["vendor-x"]);
    let seen = push.get(PATH).await.expect(200);
    assert_eq!(seen["businesses"], json!(["push"]), "not who else uses it");
    push.get("/v1/limits/vendor-y").await.problem(404, "not-found");
    push.post("/v1/limits", json!({"name": "z", "rate": "1/s"}))
        .await
        .problem(403, "forbidden");
    let task =
        |limit: &str| json!({"business": "push", "source": {"type": "range", "total": 9}, "limits": [limit]});
    let problem = push
        .post("/v1/tasks", task("vendor-y"))
        .await
        .problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/limits/0", "{problem:#}");
    push.post("/v1/tasks", task("vendor-x")).await.expect(201);
}

/// Asks until the answer fulfils a condition.
async fn until(node: &Node, path: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let answer = node.admin.get(path).await.expect(200);
        if fits(&answer) {
            return answer;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "never {what}: {answer:#}\n{}",
            node.said()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn tasks_of_two_businesses_obey_a_limit_together_and_are_told_what_holds_them_back() {
    let business = Business::willing().await;
    let node = Recipe::new()
        .config("[node]\nallow_unlimited = true")
        .start()
        .await;
    make(&node, "vendor-x", "40/s").await;
    node.business(
        "push",
        &business.url(),
        json!({"limits": {"named": ["vendor-x"]}}),
    )
    .await;
    node.business("mail", &business.url(), json!({})).await;
    let rate = json!({"rate": "200/s", "start": true});
    let push = node.task("push", 1_000_000, rate.clone()).await;
    let mut under = rate;
    crate::support::merge(&mut under, json!({"limits": ["vendor-x"]}));
    let mail = node.task("mail", 1_000_000, under).await;
    // It is measured only after a while that the limit is what is missing.
    let is_held = |answer: &Value| {
        answer["limit"]["users"][0]["runs"] == 2
            && answer["causes"]
                .to_string()
                .contains("the limit vendor-x, used by push, is shared by")
            && answer["advice"]
                .to_string()
                .contains("raise the limit vendor-x, or stop another task that uses it")
    };
    for task in [&push, &mail] {
        let path = format!("/v1/tasks/{task}/explain?seconds=5");
        let told = until(&node, &path, "held back by the limit", is_held).await;
        let limit = &told["limit"];
        assert_eq!(
            (&limit["name"], &limit["kind"]),
            (&json!("vendor-x"), &json!("named"))
        );
        assert_eq!(limit["businesses"], json!(["push"]), "{told:#}");
        // People get the command with it.
        let plain = [("accept", "text/plain")];
        let people = node
            .admin
            .send(Method::GET, &path, &plain, bytes::Bytes::new())
            .await
            .text();
        assert!(people.contains("(`windrow limit set vendor-x`)"), "{people}");
    }
    let shown = node.admin.get(PATH).await.expect(200);
    assert_eq!(
        (&shown["parts"][0]["runs"], &shown["parts"][0]["rate"]),
        (&json!(2), &json!(40.0))
    );
    // A change is obeyed by what runs: both have more than before, and no more than it together.
    node.admin.patch(PATH, json!({"rate": "400/s"})).await.expect(200);
    for task in [&push, &mail] {
        let is_faster = |answer: &Value| answer["actual_rate"].as_f64().is_some_and(|rate| rate > 100.0);
        until(&node, &format!("/v1/tasks/{task}"), "faster", is_faster).await;
    }
}

const TOKENS: &str = "tokens = {answer./usage/total_tokens}";

#[tokio::test]
async fn a_limit_in_units_is_made_changed_shown_and_kept_in_the_audit() {
    let node = Node::start().await;
    let metering = json!({"limits": ["300/min", "90k tokens/min", "500 eur"], "cost_from": [TOKENS],
        "price": ["eur = 0.6*{tokens}/1M"]});
    let made = node
        .admin
        .post("/v1/limits", json!({"name": "openai", "metering": metering}))
        .await
        .expect(201);
    assert_eq!(made["metering"], metering);
    let shown = node.admin.get("/v1/limits/openai").await.expect(200);
    let unused =
        json!([{"limit": "500 eur", "spent": "0", "unsure": "0", "held": "0", "nearly_used": false}]);
    assert_eq!(shown["uses"], unused, "{shown:#}");
    for (wrong, pointer) in [
        (json!({"limits": ["20 at once"]}), "/metering/limits"),
        (json!({"cost": ["tokens = 1"]}), "/rate"),
        (json!({"limits": ["5 sheep"]}), "/metering"),
    ] {
        let body = json!({"name": "x", "metering": wrong});
        let problem = node
            .admin
            .post("/v1/limits", body)
            .await
            .problem(422, "validation-failed");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem:#}");
    }
    let unknown = json!({"name": "x", "metering": {"limits": ["5m sheep"]}});
    node.admin
        .post("/v1/limits", unknown)
        .await
        .problem(400, "invalid-request");
    let change = json!({"metering": {"limits": ["800 calls"]}, "rate": "5/s"});
    let changed = node.admin.patch("/v1/limits/openai", change).await.expect(200);
    assert_eq!(changed["metering"], json!({"limits": ["800 calls"]}));
    let none = json!({"metering": null});
    let changed = node.admin.patch("/v1/limits/openai", none).await.expect(200);
    assert_eq!(changed.get("metering"), None);
    let audit = node.admin.get("/v1/audit").await.expect(200);
    assert!(audit.to_string().contains("500 eur"), "{audit:#}");
}

#[tokio::test]
async fn tasks_wait_for_the_next_period_of_a_shared_allowance_and_go_on_with_a_higher_one() {
    let business = Business::willing().await;
    let node = Node::start().await;
    let limit = json!({"name": "vendor", "metering": {"limits": ["7 calls/month"]}});
    node.admin.post("/v1/limits", limit).await.expect(201);
    node.business("push", &business.url(), json!({})).await;
    let more = json!({"rate": "50/s", "limits": ["vendor"], "start": true});
    let task = node.task("push", 20, more).await;
    let is_used = |shown: &Value| shown["uses"][0]["spent"] == "7";
    let shown = until(&node, "/v1/limits/vendor", "used up", is_used).await;
    let used = &shown["uses"][0];
    assert_eq!(
        (&used["limit"], &used["nearly_used"]),
        (&json!("7/month"), &json!(true))
    );
    assert!(
        used["next"]
            .as_str()
            .is_some_and(|next| next.ends_with("T00:00:00.000Z")),
        "{used:#}"
    );
    let scraped = node.admin.get("/metrics").await.text();
    let share = r#"windrow_limit_used_share{limit="vendor",amount="7/month"} 1"#;
    assert!(scraped.contains(share), "{scraped}");
    let why = "the limit vendor is used (7 of 7/month); next period at ";
    // Nothing is advised to a run that has just started.
    let is_advised = |answer: &Value| {
        answer["advice"]
            .as_array()
            .is_some_and(|advice| !advice.is_empty())
    };
    let waits = |answer: &Value| answer.to_string().contains(why) && is_advised(answer);
    let explain = format!("/v1/tasks/{task}/explain?seconds=5");
    let explained = until(&node, &explain, "told why", waits).await;
    let advice = explained["advice"].to_string();
    assert!(
        advice.contains("raise the limit vendor, or wait for its next period")
            && !advice.contains("stop another"),
        "{explained:#}"
    );
    let view = node.admin.get(&format!("/v1/tasks/{task}")).await.expect(200);
    assert_eq!(
        (&view["status"], business.seen().len()),
        (&json!("running"), 7),
        "{view:#}"
    );
    let raised = json!({"metering": {"limits": ["20 calls/month"]}});
    node.admin.patch("/v1/limits/vendor", raised).await.expect(200);
    node.until(&task, "over", |view| view["status"] == "finished")
        .await;
    assert_eq!(business.seen().len(), 20);
}

#[tokio::test]
async fn a_program_cannot_name_a_limit_that_reads_costs_from_responses() {
    let node = Recipe::new()
        .config("[handler.command]\nenabled = true\n[handler.command.commands.echo]\ncmd = [\"/bin/cat\"]\n")
        .start()
        .await;
    let metering = |metering: Value| json!({"metering": metering});
    let reads = json!({"limits": ["9k tokens"], "cost_from": [TOKENS]});
    let counts = json!({"limits": ["9k tokens"], "cost": ["tokens = 3"]});
    for (name, metering) in [("reads", &reads), ("counts", &counts)] {
        let body = json!({"name": name, "metering": metering});
        node.admin.post("/v1/limits", body).await.expect(201);
    }
    let business = |named: &str| json!({"name": "each", "command": "echo", "limits": {"named": [named]}});
    let problem = node
        .admin
        .post("/v1/businesses?check=skip", business("reads"))
        .await
        .problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/limits/named/0", "{problem:#}");
    node.admin
        .post("/v1/businesses?check=skip", business("counts"))
        .await
        .expect(201);
    let task = json!({"business": "each", "source": {"type": "range", "total": 3}, "limits": ["reads"]});
    let problem = node
        .admin
        .post("/v1/tasks", task)
        .await
        .problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/limits/0", "{problem:#}");
    // Nor does a limit begin to read them while it is used.
    let problem = node
        .admin
        .patch("/v1/limits/counts", metering(reads))
        .await
        .problem(422, "validation-failed");
    assert_eq!(
        problem["errors"][0]["pointer"], "/metering/cost_from",
        "{problem:#}"
    );
}

#[tokio::test]
async fn answers_that_claim_absurd_costs_neither_empty_a_limit_nor_ride_it() {
    let claims = Business::start(|seen| {
        let claimed = match seen.items()[0].0 % 4 {
            0 => json!("1e30"),
            1 => json!(-5),
            2 => json!("\u{0}"),
            _ => json!(999_999_999_999_999_u64),
        };
        Act::json(
            200,
            json!({"result": "ok", "costs": {"tokens": claimed}, "used": claimed}),
        )
    })
    .await;
    let node = Node::start().await;
    let limit =
        json!({"limits": ["32k tokens"], "cost": ["tokens = 10"], "cost_from": ["tokens = {answer./used}"]});
    let fixed = json!({"limits": ["32k tokens"], "cost": ["tokens = 10"]});
    for (name, metering) in [("reads", limit), ("fixed", fixed)] {
        node.admin
            .post("/v1/limits", json!({"name": name, "metering": metering}))
            .await
            .expect(201);
    }
    node.business("push", &claims.url(), json!({})).await;
    let run = async |name: &str| {
        let more = json!({"rate": "50/s", "limits": [name], "start": true});
        let task = node.task("push", 7, more).await;
        node.until(&task, "over", |view| {
            view["status"] == "finished" || view["status"] == "stopped"
        })
        .await;
        // What a node holds goes back with its last report.
        let begun = Instant::now();
        loop {
            let shown = node.admin.get(&format!("/v1/limits/{name}")).await.expect(200);
            let amount = |member: &str| -> f64 {
                let text = shown["uses"][0][member].as_str().expect("a decimal");
                text.parse().expect("a number")
            };
            let used = amount("spent") + amount("unsure");
            if used > 0.0 && amount("held") == 0.0 {
                return used;
            }
            assert!(begun.elapsed() < PATIENCE, "{shown:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    // Of seven calls, one claims much. Of the others nothing readable is said, so they count with their estimates, which
    // it raises; each counts for at most 1/16.
    let reads = run("reads").await;
    assert!(
        (2_000.0 + 6.0 * 10.0..=7.0 * 2_000.0).contains(&reads),
        "1/16 and estimates: {reads}"
    );
    let fixed = run("fixed").await;
    assert_eq!(fixed, 70.0, "what operators declared is no handler's to say");
}

#[tokio::test]
async fn a_business_sees_and_names_only_limits_in_units_that_it_uses() {
    let business = Business::willing().await;
    let node = Node::start().await;
    for name in ["ours", "theirs"] {
        let body = json!({"name": name, "metering": {"limits": ["90 calls"]}});
        node.admin.post("/v1/limits", body).await.expect(201);
    }
    node.business("push", &business.url(), json!({"limits": {"named": ["ours"]}}))
        .await;
    let client = node.client("business", Some("push")).await;
    client.get("/v1/limits/theirs").await.problem(404, "not-found");
    assert_eq!(names(&client.get("/v1/limits").await.expect(200)), ["ours"]);
    let task = json!({"business": "push", "source": {"type": "range", "total": 3}, "limits": ["theirs"]});
    client
        .post("/v1/tasks", task)
        .await
        .problem(422, "validation-failed");
    let raise = json!({"metering": {"limits": ["900 calls"]}});
    client
        .patch("/v1/limits/ours", raise)
        .await
        .problem(403, "forbidden");
}
