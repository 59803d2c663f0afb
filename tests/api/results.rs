//! What items came to, over the API: while a task runs and after, by index, in the roles that may see it.

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::{Answer, Node};

/// Answers with its item's own number; gives every tenth up, skips every seventh, says nothing more of every fifth.
async fn business() -> Business {
    Business::start(|seen| match seen.items().as_slice() {
        [(index, _)] if index % 10 == 3 => Act::json(200, json!({"result": "fail", "code": "BOOM"})),
        [(index, _)] if index % 7 == 6 => Act::json(200, json!({"result": "skip"})),
        [(index, _)] if index % 5 == 4 => Act::ok(),
        [(index, _)] => Act::json(200, json!({"result": "ok", "output": {"n": index, "of": "me"}})),
        _ => Act::status(500),
    })
    .await
}

/// The items that come to something.
fn expected(from: u64, to: u64) -> Vec<u64> {
    (from..to)
        .filter(|n| n % 10 != 3 && n % 7 != 6 && n % 5 != 4)
        .collect()
}

/// The body as it came.
fn body(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    String::from_utf8(answer.body.to_vec()).expect("text")
}

fn indexes(answer: &Answer) -> Vec<u64> {
    let text = body(answer);
    let index = |line: &str| serde_json::from_str::<Value>(line).ok()?["index"].as_u64();
    text.lines()
        .map(|line| index(line).unwrap_or_else(|| panic!("no index in {text}")))
        .collect()
}

#[tokio::test]
async fn results_are_listed_in_index_order_and_go_on_behind_an_index() {
    let (business, node) = (business().await, Node::start().await);
    node.business("push", &business.url(), json!({})).await;
    let settings = json!({"start": true, "rate": "2000/s", "results": "keep", "error_budget": "none"});
    let task = node.task("push", 300, settings).await;
    node.status(&task, "finished").await;
    let get = |query: &str| {
        let path = format!("/v1/tasks/{task}/results{query}");
        let client = node.admin.clone();
        async move { client.get(&path).await }
    };
    let all = get("").await;
    assert_eq!(all.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(indexes(&all), expected(0, 300));
    let first: Value = serde_json::from_str(body(&all).lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["output"], json!({"n": 0, "of": "me"}));
    assert!(
        first["key"]
            .as_str()
            .is_some_and(|key| key.ends_with(&format!("-{task}-0"))),
        "{first}"
    );
    assert_eq!(indexes(&get("?after=250").await), expected(251, 300));
    assert_eq!(indexes(&get("?limit=3&after=250").await), expected(251, 257));
    assert_eq!(indexes(&get("?limit=1000&after=298").await), expected(299, 300));
    let csv = get("?format=csv&columns=n,no&after=290").await;
    let csv = body(&csv);
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(
        (rows[0], rows.len()),
        ("index,key,n,no", 1 + expected(291, 300).len())
    );
    assert!(rows[1].starts_with("291,") && rows[1].ends_with(",291,"), "{csv}");
    get("?columns=n").await.problem(400, "invalid-request");
    let item = |index: u64| format!("/v1/tasks/{task}/items/{index}");
    let shown = node.admin.get(&item(2)).await.expect(200);
    assert_eq!(
        (&shown["state"], &shown["output"]["n"]),
        (&json!("succeeded"), &json!(2))
    );
    node.admin.get(&item(9)).await.problem(404, "item-not-recorded");
    assert_eq!(node.admin.get(&item(13)).await.expect(200)["state"], "failed");
}

#[tokio::test]
async fn while_a_task_runs_results_end_before_the_first_item_that_is_not_settled() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(40, _)] => Act::json(200, json!({"result": "retry", "retry_after": "1h"})),
        [(index, _)] => Act::json(200, json!({"result": "ok", "output": index})),
        _ => Act::status(500),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let settings = json!({"start": true, "rate": "2000/s", "results": "keep"});
    let task = node.task("push", 100, settings).await;
    node.until(&task, "the others to be settled", |view| {
        view["counts"]["succeeded"] == 99 && view["counts"]["parked"] == 1
    })
    .await;
    let path = format!("/v1/tasks/{task}/results");
    let mut found = Vec::new();
    // What is settled is saved within a checkpoint or two.
    while found.len() < 40 {
        found = indexes(&node.admin.get(&path).await);
    }
    assert_eq!(found, (0..40).collect::<Vec<_>>());
    node.admin
        .post(&format!("/v1/tasks/{task}/cancel"), json!({}))
        .await
        .expect(202);
    node.status(&task, "cancelled").await;
    let rest: Vec<u64> = (0..100).filter(|index| *index != 40).collect();
    assert_eq!(
        indexes(&node.admin.get(&path).await),
        rest,
        "nothing comes between them any more"
    );
}

#[tokio::test]
async fn a_task_that_keeps_none_says_so_and_whether_it_does_is_fixed_at_its_start() {
    let (business, node) = (business().await, Node::start().await);
    node.business("push", &business.url(), json!({})).await;
    let task = node.task("push", 5, json!({"start": true})).await;
    node.status(&task, "finished").await;
    node.admin
        .get(&format!("/v1/tasks/{task}/results"))
        .await
        .problem(409, "conflict");
    let other = node.task("push", 5, json!({"start": true, "rate": "1/m"})).await;
    let path = format!("/v1/tasks/{other}");
    let refused = node
        .admin
        .patch(&path, json!({"results": "keep"}))
        .await
        .problem(409, "conflict");
    assert_eq!(refused["errors"][0]["pointer"], "/results");
}

#[tokio::test]
async fn a_business_sees_the_results_of_its_own_tasks_only() {
    let (business, node) = (business().await, Node::start().await);
    node.business("push", &business.url(), json!({})).await;
    node.business("mail", &business.url(), json!({})).await;
    let task = node
        .task("push", 5, json!({"start": true, "results": "keep"}))
        .await;
    node.status(&task, "finished").await;
    let path = format!("/v1/tasks/{task}/results");
    let own = node.client("business", Some("push")).await;
    assert_eq!(indexes(&own.get(&path).await), expected(0, 5));
    let other = node.client("business", Some("mail")).await;
    other.get(&path).await.problem(404, "not-found");
}
