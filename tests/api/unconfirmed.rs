//! Unconfirmed failures: counted apart, told with their grounds, done again alone.

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::support::Node;

/// A finished task of twenty items: #3 is refused, and the last two failed when nothing else was left.
async fn ended(node: &Node) -> (Business, String) {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(3, _)] => Act::json(200, json!({"result": "fail", "code": "BOOM"})),
        [(18 | 19, _)] => Act::status(503),
        _ => Act::ok(),
    })
    .await;
    node.business("push", &business.url(), json!({})).await;
    let retry = json!({"max_attempts": 2, "backoff": "50ms"});
    let settings = json!({"start": true, "rate": "50/s", "judge_after": "1s", "retry": retry});
    let task = node.task("push", 20, settings).await;
    let done = node.status(&task, "finished").await;
    assert_eq!(done["counts"]["failed"], 3, "{done:#}");
    (business, task)
}

async fn get(node: &Node, path: &str) -> Value {
    node.admin.get(path).await.expect(200)
}

#[tokio::test]
async fn unconfirmed_failures_are_counted_apart_and_say_what_was_answered_meanwhile() {
    let node = Node::start().await;
    let (_business, task) = ended(&node).await;
    let groups = get(&node, &format!("/v1/tasks/{task}/failures/groups")).await;
    let counts = |groups: &Value| {
        let counts = |group: &Value| json!([group["code"], group["count"], group["unconfirmed"]]);
        let groups = groups.as_array().expect("groups");
        groups.iter().map(counts).collect::<Vec<Value>>()
    };
    let expected = [json!(["HTTP_503", 2, 2]), json!(["BOOM", 1, 0])];
    assert_eq!(counts(&groups["items"]), expected);
    assert_eq!(groups["unconfirmed"], 2, "{groups:#}");
    let report = get(&node, &format!("/v1/tasks/{task}/report")).await;
    assert_eq!(counts(&report["failures"]), expected);
    let markdown = node
        .admin
        .get(&format!("/v1/tasks/{task}/report?format=markdown"))
        .await
        .text();
    assert!(
        markdown.contains("| HTTP\\_503 | 2 (2 unconfirmed) |"),
        "{markdown}"
    );
    let failures = get(&node, &format!("/v1/tasks/{task}/failures")).await;
    for failure in failures["items"].as_array().expect("failures") {
        let index = failure["index"].as_u64().expect("an index");
        assert_eq!(failure["unconfirmed"], json!(index != 3), "{failure:#}");
        assert!(failure["others_answered"].is_u64(), "{failure:#}");
        let item = get(&node, &format!("/v1/tasks/{task}/items/{index}")).await;
        assert_eq!(&item["failure"]["others_answered"], &failure["others_answered"]);
    }
    let csv = node
        .admin
        .get(&format!("/v1/tasks/{task}/export/failures?format=csv"))
        .await
        .text();
    let mut lines = csv.lines();
    let head = lines.next().expect("a head");
    assert!(head.ends_with(",charged,unconfirmed,others_answered"), "{csv}");
    let refused = lines.next().expect("#3");
    assert!(refused.contains(",1,false,"), "{csv}");
    assert!(lines.all(|line| line.contains(",true,")), "{csv}");
}

#[tokio::test]
async fn a_redrive_of_unconfirmed_failures_takes_those_and_holds_to_the_rules_of_any_other() {
    let node = Node::start().await;
    let (business, task) = ended(&node).await;
    let path = format!("/v1/tasks/{task}/redrives");
    let redrive = async |body: Value| node.admin.post(&path, body).await;
    let of = |filter: Value| json!({"filter": filter});
    // With other members both must hold.
    let told = redrive(of(json!({"unconfirmed": true, "codes": ["BOOM"]})))
        .await
        .expect(200);
    let why = format!("{task} has no unconfirmed failures with these codes to redrive");
    assert_eq!((&told["total"], &told["detail"]), (&json!(0), &json!(why)));
    let wrong = json!({"filter": {"unconfirmed": true, "codes": ["BOOM"]}, "if_empty": "error"});
    let refused = redrive(wrong).await.expect(422);
    assert_eq!(
        refused["errors"][0]["pointer"], "/filter/unconfirmed",
        "{refused:#}"
    );
    let unknown = of(json!({"unconfirmed": true, "codes": ["NONE"]}));
    let refused = redrive(unknown).await.expect(422);
    assert_eq!(refused["errors"][0]["pointer"], "/filter/codes/0", "{refused:#}");
    redrive(of(json!({"unconfirmed": true, "indexes": "3"})))
        .await
        .expect(422);
    let one = redrive(of(json!({"unconfirmed": true, "indexes": "3,18"})))
        .await
        .expect(201);
    assert_eq!(one["total"], 1, "{one:#}");
    node.admin
        .post(
            &format!("/v1/tasks/{}/cancel", one["id"].as_str().unwrap()),
            json!({}),
        )
        .await
        .expect(202);
    business.becomes(|_| Act::ok());
    business.forget();
    let both = json!({"filter": {"unconfirmed": true, "codes": ["HTTP_503"]}, "start": true});
    let both = redrive(both).await.expect(201);
    let done = node.status(both["id"].as_str().expect("an id"), "finished").await;
    assert_eq!(
        (&done["total"], &done["counts"]["succeeded"]),
        (&json!(2), &json!(2))
    );
    let mut called: Vec<u64> = business.items().iter().map(|(index, _)| *index).collect();
    called.sort_unstable();
    assert_eq!(called, [18, 19]);
    // What a redrive recovered is left out of this selection too.
    let told = redrive(of(json!({"unconfirmed": true}))).await.expect(200);
    let detail = told["detail"].as_str().expect("said");
    assert!(detail.contains("2 recovered by"), "{detail}");
    let again = json!({"filter": {"unconfirmed": true}, "again": true});
    let again = redrive(again).await.expect(201);
    assert_eq!(again["total"], 2, "{again:#}");
}
