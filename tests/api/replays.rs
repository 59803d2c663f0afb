//! Replays of named items: sent again alone, with their data, and apart from the outcome of their task.

use serde_json::{Value, json};

use crate::business::{Act, Business, Seen};
use crate::support::{Node, merge};

/// Fails item 3, skips item 4, and says for the others which task did them.
fn script(seen: &Seen) -> Act {
    match seen.items().as_slice() {
        [(3, _)] => Act::json(200, json!({"result": "fail", "code": "BOOM"})),
        [(4, _)] => Act::json(200, json!({"result": "skip"})),
        _ => done(seen),
    }
}

fn done(seen: &Seen) -> Act {
    Act::json(200, json!({"result": "ok", "output": seen.task()}))
}

/// Creates and starts a task of ten items with data.
async fn started(node: &Node, more: Value) -> String {
    let items: Vec<Value> = (0..10).map(|n| json!({"user": n})).collect();
    let mut body = json!({
        "business": "push", "source": {"type": "inline", "items": items}, "start": true, "rate": "1000/s",
        "results": "keep", "error_budget": "none",
    });
    merge(&mut body, more);
    let made = node.admin.post("/v1/tasks", body).await.expect(201);
    made["id"].as_str().expect("an id").to_owned()
}

async fn ended(node: &Node) -> (Business, String) {
    let business = Business::start(script).await;
    node.business("push", &business.url(), json!({})).await;
    let task = started(node, json!({})).await;
    node.status(&task, "finished").await;
    (business, task)
}

/// Replays items to the end.
async fn replay(node: &Node, task: &str, more: Value) -> String {
    let mut body = json!({"start": true});
    merge(&mut body, more);
    let path = format!("/v1/tasks/{task}/replays");
    let made = node.admin.post(&path, body).await.expect(201);
    let id = made["id"].as_str().expect("an id").to_owned();
    node.status(&id, "finished").await;
    id
}

/// Calls for an item, as task, key and data.
fn calls(business: &Business, item: u64) -> Vec<(String, String, Value)> {
    let seen = business.seen().into_iter();
    let of_item = seen.filter(|seen| seen.items().iter().any(|(index, _)| *index == item));
    let call = |seen: Seen| {
        let key = seen.header("idempotency-key").to_owned();
        (seen.task().to_owned(), key, seen.body["item"]["data"].clone())
    };
    of_item.map(call).collect()
}

async fn get(node: &Node, path: &str) -> Value {
    node.admin.get(path).await.expect(200)
}

/// Rows of results, as index and output.
async fn outputs(node: &Node, path: &str) -> Vec<(u64, String)> {
    let answer = node.admin.get(path).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = String::from_utf8(answer.body.to_vec()).expect("text");
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a row");
        let output = row["output"].as_str().expect("a text").to_owned();
        (row["index"].as_u64().expect("an index"), output)
    };
    text.lines().map(row).collect()
}

#[tokio::test]
async fn an_item_that_succeeded_is_sent_again_alone_with_its_data_and_another_key() {
    let node = Node::start().await;
    let (business, task) = ended(&node).await;
    let before = business.seen().len();
    let new = replay(&node, &task, json!({"indexes": "7", "reason": "lost letter"})).await;
    assert_eq!(business.seen().len(), before + 1, "nothing else was called");
    let same = replay(&node, &task, json!({"indexes": "7", "same_keys": true})).await;
    let [first, second, third] = calls(&business, 7).try_into().expect("three calls");
    let data = json!({"user": 7});
    assert_eq!((&first.2, &second.2, &third.2), (&data, &data, &data));
    assert_eq!((&second.0, &third.0), (&new, &same));
    assert_ne!(second.1, first.1, "the vendor is to do it again");
    assert_eq!(third.1, first.1, "the vendor may know it");

    let path = format!("/v1/tasks/{task}/revisions");
    let audit = get(&node, &path).await;
    let entries = audit["items"].as_array().expect("entries");
    let replays: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["action"] == "task.replay")
        .collect();
    let [_, entry] = replays.try_into().expect("two replays");
    assert_eq!(entry["after"], json!({"indexes": "7", "by": new}));
    assert_eq!(entry["reason"], "lost letter");
}

#[tokio::test]
async fn the_task_keeps_its_result_and_only_its_failures_are_recovered_by_a_replay() {
    let node = Node::start().await;
    let (business, task) = ended(&node).await;
    business.becomes(done);
    let new = replay(&node, &task, json!({"indexes": "3-5,7"})).await;
    let shown = get(&node, &format!("/v1/tasks/{new}")).await;
    assert_eq!((&shown["total"], &shown["parent"]), (&json!(4), &json!(task)));
    let origin = get(&node, &format!("/v1/tasks/{task}")).await;
    let counts = &origin["counts"];
    assert_eq!(
        (&counts["succeeded"], &counts["skipped"], &counts["failed"]),
        (&json!(8), &json!(1), &json!(1)),
        "{origin:#}"
    );
    let redriven = json!({"recovered": 1, "still_failed": 0, "exact": true});
    assert_eq!(origin["redriven"], redriven, "only one of the four had failed");

    let results = format!("/v1/tasks/{task}/results");
    let own: Vec<u64> = [0, 1, 2, 5, 6, 7, 8, 9].into();
    let by_task: Vec<_> = own.iter().map(|index| (*index, task.clone())).collect();
    assert_eq!(outputs(&node, &results).await, by_task);
    let mut joined = by_task.clone();
    joined.insert(3, (3, new.clone()));
    let path = format!("{results}?with_redrives=true");
    assert_eq!(outputs(&node, &path).await, joined, "one row an item");
    let of_replay = outputs(&node, &format!("/v1/tasks/{new}/results")).await;
    let expected: Vec<_> = [3, 4, 5, 7].iter().map(|index| (*index, new.clone())).collect();
    assert_eq!(of_replay, expected);
}

#[tokio::test]
async fn an_item_that_fails_in_its_replay_is_a_failure_of_the_replay_alone() {
    let node = Node::start().await;
    let (business, task) = ended(&node).await;
    business.becomes(|_| Act::json(200, json!({"result": "fail", "code": "STILL"})));
    let new = replay(&node, &task, json!({"indexes": "3,7"})).await;
    let net = get(&node, &format!("/v1/tasks/{task}/report")).await["net"].clone();
    assert_eq!(net["still_failed"], 1, "{net:#}");
    business.becomes(done);
    let path = format!("/v1/tasks/{new}/redrives");
    let made = node.admin.post(&path, json!({"start": true})).await.expect(201);
    assert_eq!(made["total"], 2, "{made:#}");
    node.status(made["id"].as_str().expect("an id"), "finished").await;
    let net = get(&node, &format!("/v1/tasks/{task}/report")).await["net"].clone();
    assert_eq!((&net["recovered"], &net["still_failed"]), (&json!(1), &json!(0)));
    let keys: Vec<String> = calls(&business, 7).into_iter().map(|call| call.1).collect();
    assert_eq!(keys[1], keys[2], "a redrive of a replay keeps its keys: {keys:?}");
}

#[tokio::test]
async fn settled_items_of_a_running_task_are_replayed_and_others_are_refused_with_a_reason() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(9, _)] => Act::json(200, json!({"result": "retry", "retry_after": "1h"})),
        _ => done(seen),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = started(&node, json!({})).await;
    node.until(&task, "all but one settled", |view| {
        view["counts"]["succeeded"] == 9 && view["counts"]["parked"] == 1
    })
    .await;
    let path = format!("/v1/tasks/{task}/replays");
    let post = async |indexes: &str| node.admin.post(&path, json!({"indexes": indexes})).await;
    // A stop saves everything; then what is saved is what is counted.
    let steer = format!("/v1/tasks/{task}");
    node.admin
        .post(&format!("{steer}/stop"), json!({}))
        .await
        .expect(202);
    node.status(&task, "stopped").await;
    node.admin
        .post(&format!("{steer}/start"), json!({}))
        .await
        .expect(202);
    node.status(&task, "running").await;
    replay(&node, &task, json!({"indexes": "2"})).await;
    assert_eq!(calls(&business, 2).len(), 2);

    let open = post("2,9").await.problem(409, "conflict");
    let detail = open["detail"].as_str().unwrap_or_default();
    assert!(
        detail.contains(&format!("item 9 of {task} has no saved outcome yet")),
        "{open:#}"
    );
    for (indexes, status, why) in [
        ("10", 422, "has 10 items, counted from 0"),
        ("x", 400, "neither an index nor a range"),
        ("0-4000", 422, "no item 4000"),
    ] {
        let problem = post(indexes).await.problem(
            status,
            match status {
                400 => "invalid-request",
                _ => "validation-failed",
            },
        );
        let why_not = problem["errors"][0]["detail"].as_str().unwrap_or_default();
        assert!(why_not.contains(why), "{indexes}: {problem:#}");
    }
    node.admin
        .post(&format!("{steer}/cancel"), json!({}))
        .await
        .expect(202);
    node.status(&task, "cancelled").await;
    let never = post("9").await.problem(409, "conflict");
    let detail = never["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("was never settled"), "{never:#}");
    let tried = format!("{path}?dry_run=true");
    let tried = node
        .admin
        .post(&tried, json!({"indexes": "0-3"}))
        .await
        .expect(200);
    assert_eq!(tried["would"]["total"], 4);
    let children = get(&node, &format!("/v1/tasks?parent={task}")).await;
    assert_eq!(
        children["items"].as_array().map(Vec::len),
        Some(1),
        "a dry run makes none"
    );
}
