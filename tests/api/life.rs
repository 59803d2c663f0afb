//! A task's life through the façade: what it shows at each step, and each command in each status.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use windrow_core::task::lifecycle::{Desired, Standing, Status, Verb, decide};

use crate::business::{Act, Business};
use crate::support::{Answer, Client, Node, Recipe, sum};

#[tokio::test]
async fn a_task_goes_from_create_to_its_proof() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(13, _)] => Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "gone"}),
        ),
        [(7, _)] => Act::json(200, json!({"result": "skip"})),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let body = json!({"business": "push", "name": "black-friday", "labels": {"team": "growth"},
        "source": {"type": "inline", "items": (0..50).map(|i| json!({"user": i})).collect::<Vec<_>>()},
        "rate": "500/s", "params": {"template": "bf26"}});
    let answer = node.admin.post("/v1/tasks", body).await;
    let location = answer.header("location").expect("a location").to_owned();
    let made = answer.expect(201);
    assert_eq!(made["status"], "created");
    assert_eq!(made["rate"], "500/s", "as it was written: {made:#}");
    assert_eq!(sum(&made), 50);
    let id = made["id"].as_str().unwrap();
    assert!(location.ends_with(&format!("/v1/tasks/{id}")), "{location}");

    let started = node
        .admin
        .post(&format!("/v1/tasks/{id}/start"), json!({"reason": "go"}))
        .await;
    assert_eq!(started.status, 202, "{}", started.text());
    let done = node.status(id, "finished").await;
    assert_eq!(done["result"], "with_failures", "{done:#}");
    assert_eq!(sum(&done), 50);
    let counts = &done["counts"];
    assert_eq!(
        (&counts["succeeded"], &counts["skipped"], &counts["failed"]),
        (&json!(48), &json!(1), &json!(1))
    );
    let call = business
        .seen()
        .into_iter()
        .find(|seen| seen.items() == [(3, 1)])
        .expect("item 3 was sent");
    assert_eq!(call.body["item"]["data"], json!({"user": 3}));
    assert_eq!(call.body["task"]["params"], json!({"template": "bf26"}));

    let groups = node
        .admin
        .get(&format!("/v1/tasks/{id}/failures/groups"))
        .await
        .expect(200);
    assert_eq!(groups["items"][0]["code"], "NO_USER", "{groups:#}");
    failures_say_who(&node, id).await;
    let report = node
        .admin
        .get(&format!("/v1/tasks/{id}/report"))
        .await
        .expect(200);
    let failure = &report["failures"][0];
    assert_eq!(
        (&failure["code"], &failure["example_data"]["user"]),
        (&json!("NO_USER"), &failure["example_index"])
    );
    let audit = node
        .admin
        .get(&format!("/v1/tasks/{id}/revisions"))
        .await
        .expect(200);
    let actions: Vec<&str> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["action"].as_str().unwrap())
        .collect();
    for action in ["task.create", "task.start", "task.finished"] {
        assert!(actions.contains(&action), "{actions:?}");
    }
    assert_eq!(node.stop().await, Some(0));
}

/// Item 13 failed: each place that names it shows what it carries, where that is wanted.
async fn failures_say_who(node: &Node, id: &str) {
    let path = format!("/v1/tasks/{id}");
    let listed = async |query: &str| {
        let page = node
            .admin
            .get(&format!("{path}/failures{query}"))
            .await
            .expect(200);
        page["items"][0]["data"].clone()
    };
    assert_eq!(listed("").await, Value::Null, "nobody asked");
    assert_eq!(listed("?data=*").await, json!({"user": 13}));
    assert_eq!(listed("?data=name,user").await, json!({"name": null, "user": 13}));
    let item = node.admin.get(&format!("{path}/items/13")).await.expect(200);
    assert_eq!(
        (&item["data"], &item["failure"]["data"]),
        (&json!({"user": 13}), &Value::Null)
    );
    let exported = node
        .admin
        .get(&format!("{path}/export/failures?format=csv&data=user"))
        .await;
    assert!(
        exported.text().contains(r#","{""user"":13}","#),
        "{}",
        exported.text()
    );
    node.admin
        .get(&format!("{path}/export/log?data=*"))
        .await
        .problem(400, "invalid-request");
}

/// The commands that people give, as requests.
const COMMANDS: [(Verb, &str); 7] = [
    (Verb::Start, "start"),
    (Verb::Stop, "stop"),
    (Verb::StopNow, "stop"),
    (Verb::Cancel, "cancel"),
    (Verb::Recover, "recover"),
    (Verb::Finish, "finish"),
    (Verb::Tune, ""),
];

async fn command(client: &Client, task: &str, verb: Verb, word: &str) -> Answer {
    let path = format!("/v1/tasks/{task}/{word}");
    match verb {
        Verb::Tune => {
            client
                .json(
                    Method::PATCH,
                    &format!("/v1/tasks/{task}"),
                    &[],
                    json!({"rate": "7/s"}),
                )
                .await
        }
        Verb::StopNow => client.post(&path, json!({"now": true})).await,
        Verb::Finish => client.post(&path, json!({"total": 90})).await,
        _ => client.post(&path, json!({})).await,
    }
}

/// A status in which a repeat of the command finds its work done.
fn is_done_by(verb: Verb, status: Status) -> bool {
    use Status as S;
    match verb {
        Verb::Start => matches!(
            status,
            S::Queued | S::AwaitingBusiness | S::Running | S::Recovering
        ),
        Verb::Stop | Verb::StopNow => matches!(status, S::Stopping | S::Stopped),
        Verb::Cancel => status == S::Cancelled,
        Verb::Recover => matches!(status, S::Queued | S::Running),
        _ => false,
    }
}

/// Brings a new task into a status in which it stays.
async fn in_status(node: &Node, business: &Business, status: Status, nth: usize) -> String {
    let slug = |kind: &str| format!("{kind}-{nth}");
    let (name, total) = (slug(status.as_str()).replace('_', "-"), 100);
    let hooks = match status {
        Status::AwaitingBusiness => json!({"hooks": {"prepare": {}}}),
        _ => json!({}),
    };
    node.business(&name, &business.url(), hooks).await;
    let settings = match status {
        // Bigger than the node: it waits in line for good.
        Status::Queued => json!({"rate": "900000/s", "start": true}),
        Status::Recovering => {
            json!({"rate": "100/s", "error_budget": "1/s", "error_window": "1s", "start": true,
            "params": {"act": "fail"}})
        }
        Status::Running | Status::Stopping | Status::Stopped | Status::Cancelled => {
            json!({"rate": "100/s", "concurrency": 2, "start": true, "params": {"act": "slow"}})
        }
        Status::Created => json!({}),
        _ => json!({"start": true}),
    };
    let task = node.task(&name, total, settings).await;
    match status {
        Status::Stopping | Status::Stopped | Status::Cancelled => {
            node.until(&task, "in flight", |view| {
                view["counts"]["in_flight"].as_u64() > Some(0)
            })
            .await;
            let (word, body) = match status {
                Status::Stopped => ("stop", json!({"now": true})),
                Status::Cancelled => ("cancel", json!({})),
                _ => ("stop", json!({})),
            };
            node.admin
                .post(&format!("/v1/tasks/{task}/{word}"), body)
                .await
                .expect(202);
            if status == Status::Cancelled {
                node.admin
                    .post(&format!("/v1/tasks/{task}/stop"), json!({"now": true}))
                    .await;
            }
        }
        _ => {}
    }
    node.status(&task, status.as_str()).await;
    task
}

fn standing(status: Status) -> Standing {
    let (desired, owned) = match status {
        Status::Created => (Desired::Rest, false),
        Status::Running => (Desired::Run, true),
        Status::Stopping => (Desired::Stop, true),
        Status::Stopped => (Desired::Stop, false),
        Status::Cancelled => (Desired::Cancel, false),
        _ => (Desired::Run, false),
    };
    Standing {
        desired,
        status,
        owned,
    }
}

#[tokio::test]
async fn each_command_in_each_status_does_what_the_table_says_or_names_what_is_allowed() {
    let business = Business::start(
        |seen| match (seen.kind(), seen.body["task"]["params"]["act"].as_str()) {
            ("task.prepare", _) => Act::status(202),
            (_, Some("fail")) => Act::json(200, json!({"result": "retry"})),
            // Longer than the test looks; a stop waits for it.
            (_, Some("slow")) => Act::ok().after(Duration::from_secs(9)),
            _ => Act::ok(),
        },
    )
    .await;
    let node = Recipe::new().start().await;
    let statuses = [
        Status::Created,
        Status::Queued,
        Status::AwaitingBusiness,
        Status::Running,
        Status::Recovering,
        Status::Stopping,
        Status::Stopped,
        Status::Finished,
        Status::Cancelled,
    ];
    for status in statuses {
        let mut tasks = Vec::new();
        for nth in 0..COMMANDS.len() {
            tasks.push(in_status(&node, &business, status, nth).await);
        }
        for ((verb, word), task) in COMMANDS.into_iter().zip(tasks) {
            let before = node.admin.get(&format!("/v1/tasks/{task}")).await.expect(200);
            if before["status"] != status.as_str() {
                continue; // It went on by itself meanwhile: a machine under load.
            }
            let answer = command(&node.admin, &task, verb, word).await;
            judge(status, verb, &answer, &before);
        }
    }
}

#[track_caller]
fn judge(status: Status, verb: Verb, answer: &Answer, before: &Value) {
    let said = format!("{verb} in {status}: {}\nbefore: {before:#}", answer.text());
    match decide(verb, standing(status)) {
        Ok(_) => assert!(matches!(answer.status, 200 | 202), "{said}"),
        Err(_) if is_done_by(verb, status) => assert_eq!(answer.status, 200, "{said}"),
        Err(refusal) => {
            let problem = answer.clone().problem(409, "wrong-state");
            let allowed: Vec<&str> = problem["allowed"]
                .as_array()
                .unwrap()
                .iter()
                .map(|word| word.as_str().unwrap())
                .collect();
            assert_eq!(allowed, refusal.allowed, "{said}");
        }
    }
}

#[tokio::test]
async fn a_canary_runs_its_items_holds_and_goes_on_when_told() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task(
            "push",
            1000,
            json!({"start": true, "rate": "1000/s", "canary": {"items": 20}}),
        )
        .await;
    let held = node.status(&task, "stopped").await;
    assert_eq!(held["stop_reason"], "canary_done", "{held:#}");
    assert_eq!(held["counts"]["succeeded"], 20, "{held:#}");
    let mut items = business.items();
    items.sort_unstable();
    assert_eq!(items, (0..20).map(|index| (index, 1)).collect::<Vec<_>>());
    assert!(
        business
            .seen()
            .iter()
            .all(|seen| seen.header("windrow-mode") == "canary")
    );
    node.admin
        .post(&format!("/v1/tasks/{task}/start"), json!({}))
        .await
        .expect(202);
    let done = node.status(&task, "finished").await;
    assert_eq!(done["counts"]["succeeded"], 1000, "{done:#}");
    assert_eq!(business.items().len(), 1000, "each item was sent once");
}

#[tokio::test]
async fn a_task_finished_early_excludes_the_rest_and_adds_up() {
    let business = Business::start(|_| Act::ok().after(Duration::from_millis(5))).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node
        .task("push", 1_000_000, json!({"start": true, "rate": "500/s"}))
        .await;
    node.until(&task, "under way", |view| {
        view["counts"]["succeeded"].as_u64() > Some(50)
    })
    .await;
    node.admin
        .post(&format!("/v1/tasks/{task}/finish"), json!({"reason": "enough"}))
        .await
        .expect(202);
    let done = node.status(&task, "finished").await;
    assert_eq!(done["result"], "early", "{done:#}");
    assert_eq!(sum(&done), 1_000_000);
    assert_eq!(
        done["counts"]["succeeded"].as_u64(),
        Some(business.items().len() as u64),
        "{done:#}"
    );
}

#[tokio::test]
async fn a_preview_calls_the_handler_and_records_nothing() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(2, _)] => Act::json(200, json!({"result": "fail", "code": "NO_USER"})),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = node.task("push", 10, json!({})).await;
    let before = node.admin.get(&format!("/v1/tasks/{task}")).await.expect(200);
    let shown = node
        .admin
        .post(&format!("/v1/tasks/{task}/preview"), json!({"indexes": "0..4"}))
        .await
        .expect(200);
    assert_eq!(shown["items"].as_array().map(Vec::len), Some(4), "{shown:#}");
    assert_eq!(shown["items"][2]["code"], "NO_USER", "{shown:#}");
    assert!(
        business
            .seen()
            .iter()
            .all(|seen| seen.header("windrow-mode") == "preview")
    );
    assert_eq!(
        node.admin.get(&format!("/v1/tasks/{task}")).await.expect(200),
        before
    );
}

#[tokio::test]
async fn a_failed_part_is_redriven_with_its_own_indexes_and_keys() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(index, _)] if index % 10 == 3 => Act::json(200, json!({"result": "fail", "code": "BOOM"})),
        [(index, _)] if index % 10 == 5 => Act::json(200, json!({"result": "fail", "code": "OTHER_CODE"})),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let settings = json!({"start": true, "rate": "1000/s", "error_budget": "none"});
    let task = node.task("push", 100, settings).await;
    node.status(&task, "finished").await;
    let keys = |business: &Business, wanted: u64| -> Vec<String> {
        let calls = business
            .seen()
            .into_iter()
            .filter(|seen| seen.items() == [(wanted, 1)]);
        calls
            .map(|seen| seen.header("idempotency-key").to_owned())
            .collect()
    };
    business.becomes(|_| Act::ok());
    let body = json!({"filter": {"codes": ["BOOM"]}, "rate": "500/s", "start": true});
    let child = node
        .admin
        .post(&format!("/v1/tasks/{task}/redrives"), body)
        .await
        .expect(201);
    assert_eq!(
        (&child["total"], &child["parent"]),
        (&json!(10), &json!(task)),
        "{child:#}"
    );
    let done = node.status(child["id"].as_str().unwrap(), "finished").await;
    assert_eq!(done["result"], "succeeded", "{done:#}");
    for index in (3..100).step_by(10) {
        let keys = keys(&business, index);
        assert!(keys.len() == 2 && keys[0] == keys[1], "#{index}: {keys:?}");
    }
    let report = node
        .admin
        .get(&format!("/v1/tasks/{task}/report"))
        .await
        .expect(200);
    let net = &report["net"];
    assert_eq!(
        (&net["recovered"], &net["still_failed"]),
        (&json!(10), &json!(10)),
        "{report:#}"
    );
    assert_eq!(report["proof"]["holds"], true, "{report:#}");
}
