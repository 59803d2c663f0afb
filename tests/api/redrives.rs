//! Redrives beside and after others of the same task: nothing that was recovered is done again, and the net is a number.

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::Node;

const FAILED: [u64; 10] = [3, 13, 23, 33, 43, 53, 63, 73, 83, 93];

/// A finished task of a hundred items, of which every tenth failed.
async fn failed(node: &Node) -> (Business, String) {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(index, _)] if index % 10 == 3 => Act::json(200, json!({"result": "fail", "code": "BOOM"})),
        _ => Act::ok(),
    })
    .await;
    node.business("push", &business.url(), json!({})).await;
    let settings = json!({"start": true, "rate": "2000/s", "error_budget": "none"});
    let task = node.task("push", 100, settings).await;
    node.status(&task, "finished").await;
    (business, task)
}

/// From now on these fail, and all others succeed.
fn fails(business: &Business, failing: &'static [u64]) {
    business.becomes(|seen| match seen.items().as_slice() {
        [(index, _)] if failing.contains(index) => Act::json(200, json!({"result": "fail", "code": "STILL"})),
        _ => Act::ok(),
    });
}

fn deliveries(business: &Business, index: u64) -> usize {
    business
        .seen()
        .iter()
        .filter(|seen| seen.items().iter().any(|(item, _)| *item == index))
        .count()
}

async fn redrive(node: &Node, task: &str, body: Value) -> Value {
    node.admin
        .post(&format!("/v1/tasks/{task}/redrives"), body)
        .await
        .expect(201)
}

/// Redrives what is left to its end.
async fn done(node: &Node, task: &str) -> (String, Value) {
    let made = redrive(
        node,
        task,
        json!({"start": true, "rate": "2000/s", "error_budget": "none"}),
    )
    .await;
    let id = made["id"].as_str().expect("an id").to_owned();
    (id.clone(), node.status(&id, "finished").await)
}

async fn refused(node: &Node, task: &str) -> String {
    let answer = node
        .admin
        .post(
            &format!("/v1/tasks/{task}/redrives"),
            json!({"if_empty": "error"}),
        )
        .await
        .expect(422);
    let path = format!("/v1/tasks/{task}/redrives");
    let told = node.admin.post(&path, json!({})).await.expect(200);
    assert_eq!(
        (&told["detail"], &told["total"]),
        (&answer["errors"][0]["detail"], &json!(0)),
        "nothing to do is no failure"
    );
    answer["errors"][0]["detail"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer:#}"))
        .to_owned()
}

async fn net(node: &Node, task: &str) -> (u64, u64, bool) {
    let report = node
        .admin
        .get(&format!("/v1/tasks/{task}/report"))
        .await
        .expect(200);
    let number = |name: &str| report["net"][name].as_u64().expect("a number");
    (
        number("recovered"),
        number("still_failed"),
        report["net"]["exact"] == true,
    )
}

#[tokio::test]
async fn what_earlier_redrives_recovered_is_left_out_and_the_net_is_a_number() {
    let node = Node::start().await;
    let (business, task) = failed(&node).await;
    fails(&business, &[3, 13]);
    let (first, after) = done(&node, &task).await;
    assert_eq!(
        (&after["total"], &after["counts"]["failed"]),
        (&json!(10), &json!(2)),
        "{after:#}"
    );
    fails(&business, &[3]);
    let (second, after) = done(&node, &task).await;
    assert_eq!(
        (&after["total"], &after["counts"]["failed"]),
        (&json!(2), &json!(1)),
        "{after:#}"
    );
    assert_eq!(net(&node, &task).await, (9, 1, true));
    let shown = node.admin.get(&format!("/v1/tasks/{task}")).await.expect(200);
    let listed = node.admin.get("/v1/tasks?sort=id").await.expect(200);
    let redriven = json!({"recovered": 9, "still_failed": 1, "exact": true});
    assert_eq!(
        (&shown["redriven"], &listed["items"][0]["redriven"]),
        (&redriven, &redriven)
    );
    assert_eq!(
        after.get("redriven"),
        None,
        "nobody went over what it failed: {after:#}"
    );
    // A redrive of the first redrive: what its sibling recovered is recovered.
    fails(&business, &[]);
    let (third, after) = done(&node, &first).await;
    assert_eq!(
        (&after["total"], &after["counts"]["succeeded"]),
        (&json!(1), &json!(1)),
        "{after:#}"
    );
    assert_eq!(net(&node, &task).await, (10, 0, true));
    for task in [&task, &first, &second] {
        let why = refused(&node, task).await;
        assert!(
            why.contains("nothing left to redrive") && why.contains("recovered by"),
            "{why}"
        );
    }
    assert!(
        refused(&node, &second).await.contains(&third),
        "by the redrive of its sibling"
    );
    let expected = |index| {
        if index == 3 {
            4
        } else if index == 13 {
            3
        } else {
            2
        }
    };
    for index in FAILED {
        assert_eq!(deliveries(&business, index), expected(index), "#{index}");
    }
    let all = redrive(&node, &task, json!({"again": true})).await;
    assert_eq!(all["total"], 10, "{all:#}");
    let one = redrive(
        &node,
        &task,
        json!({"again": true, "filter": {"indexes": "13,23"}}),
    )
    .await;
    assert_eq!(one["total"], 2, "{one:#}");
}

#[tokio::test]
async fn a_redrive_whose_items_are_all_refused_again_calls_each_and_ends_with_failures() {
    let node = Node::start().await;
    let (business, task) = failed(&node).await;
    business.becomes(|_| Act::json(400, json!({"error": "not this one"})));
    let made = redrive(
        &node,
        &task,
        json!({"start": true, "rate": "2000/s", "error_budget": "none", "max_attempts": 1}),
    )
    .await;
    let view = node.status(made["id"].as_str().expect("an id"), "finished").await;
    assert_eq!(view["result"], "with_failures", "{view:#}");
    assert_eq!(net(&node, &task).await, (0, 10, true));
    assert!(FAILED.iter().all(|index| deliveries(&business, *index) == 2));
}

#[tokio::test]
async fn what_a_redrive_has_under_way_is_left_out_until_it_is_cancelled() {
    let node = Node::start().await;
    let (business, task) = failed(&node).await;
    // One is parked for long, one fails again, eight succeed.
    business.becomes(|seen| match seen.items().as_slice() {
        [(13, _)] => Act::json(
            200,
            json!({"result": "retry", "retry_after": "1h", "code": "LATER"}),
        ),
        [(23, _)] => Act::json(200, json!({"result": "fail", "code": "STILL"})),
        _ => Act::ok(),
    });
    let some = json!({"filter": {"indexes": "13,23,33"}, "start": true, "error_budget": "none"});
    let made = redrive(&node, &task, some).await;
    let first = made["id"].as_str().expect("an id");
    let fits = |task: &Value| {
        let counts = &task["counts"];
        ["succeeded", "parked", "failed"]
            .iter()
            .all(|term| counts[term] == 1)
    };
    node.until(first, "one of each", fits).await;
    // What is counted live may not be saved yet; a stop saves it, and what is parked stays under way.
    node.admin
        .post(&format!("/v1/tasks/{first}/stop"), json!({}))
        .await
        .expect(202);
    node.status(first, "stopped").await;
    let report = node
        .admin
        .get(&format!("/v1/tasks/{first}/report"))
        .await
        .expect(200);
    assert_eq!(report["proof"]["checks"][2]["evidence"], "1 parked", "{report:#}");
    let rest = redrive(&node, &task, json!({"filter": {"indexes": "3-33"}})).await;
    assert_eq!(
        rest["total"], 2,
        "3, which none has, and 23, which failed again: {rest:#}"
    );
    let second = rest["id"].as_str().expect("an id");
    let of = |indexes: &str| json!({"filter": {"indexes": indexes}, "if_empty": "error"});
    let path = format!("/v1/tasks/{task}/redrives");
    for (item, by, status) in [("13", first, "stopped"), ("3", second, "created")] {
        let why = node.admin.post(&path, of(item)).await.expect(422);
        let detail = why["errors"][0]["detail"].as_str().expect("said");
        let said = format!(": 1 assigned to {by}, which is {status}");
        assert!(detail.ends_with(&said), "nobody goes over it: {detail}");
    }
    let why = node.admin.post(&path, of("3,13,33")).await.expect(422);
    let advice = why["errors"][0]["try"].as_str().expect("advised").to_owned();
    assert!(
        advice.contains(&format!("windrow task start {second}")) && !advice.contains("again"),
        "{advice}"
    );
    let why = why["errors"][0]["detail"].as_str().expect("said").to_owned();
    assert!(why.contains(&format!("1 recovered by {first}")), "{why}");
    assert!(
        why.contains(&format!("2 in progress in {first}, {second}")),
        "{why}"
    );
    // What is cancelled does nothing more: its items are free, but for the one that it recovered.
    for id in [first, second] {
        node.admin
            .post(&format!("/v1/tasks/{id}/cancel"), json!({}))
            .await
            .expect(202);
        node.status(id, "cancelled").await;
    }
    let free = redrive(&node, &task, of("3,13,33")).await;
    assert_eq!(free["total"], 2, "{free:#}");
    assert_eq!(net(&node, &task).await, (1, 9, true));
}

#[tokio::test]
async fn a_failure_of_a_redrive_is_named_as_its_handler_knows_it() {
    let node = Node::start().await;
    let (business, task) = failed(&node).await;
    fails(&business, &[43]);
    let (second, _) = done(&node, &task).await;
    let groups = node
        .admin
        .get(&format!("/v1/tasks/{second}/failures/groups"))
        .await
        .expect(200);
    let group = &groups["items"][0];
    assert_eq!(
        (
            &group["example_index"],
            &group["example_origin_task"],
            &group["example_origin_index"]
        ),
        (&json!(4), &json!(task), &json!(43)),
        "{groups:#}"
    );
    for path in ["failures", "items/4"] {
        let told = node
            .admin
            .get(&format!("/v1/tasks/{second}/{path}"))
            .await
            .expect(200);
        let told = told["items"].get(0).unwrap_or(&told);
        let key = told["key"].as_str().unwrap_or_default();
        assert!(
            key.ends_with(&format!("-{task}-43")),
            "what its handler got: {told:#}"
        );
    }
    let lines = node
        .admin
        .get(&format!("/v1/tasks/{second}/logs"))
        .await
        .expect(200);
    let lines = lines["items"].as_array().unwrap();
    let about = lines.iter().filter(|line| line["index"].is_u64());
    for line in about {
        assert_eq!(
            (&line["origin_task"], &line["origin_index"]),
            (&json!(task), &json!(43)),
            "{line:#}"
        );
    }
}
