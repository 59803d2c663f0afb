//! Results as people follow them, whatever becomes of the node.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::program::{Person, settled};

async fn numbering() -> Business {
    Business::start(|seen| match seen.items().as_slice() {
        [(index, _)] => Act::json(200, json!({"result": "ok", "output": index})),
        _ => Act::status(500),
    })
    .await
}

fn indexes(ndjson: &str) -> Vec<u64> {
    let row =
        |line: &str| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("half a row: {line}"));
    ndjson
        .lines()
        .map(|line| row(line)["index"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn followed_rows_come_once_and_in_order_though_the_node_is_killed() {
    let (business, recipe) = (numbering().await, settled());
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    let settings = json!({"rate": "40/s", "start": true, "results": "keep"});
    node.task("push", 200, settings).await;
    let person = Person::admin(&node);
    let mut follower = person.start(&["task", "results", "t1", "--follow"]);
    let table = person.start(&["task", "results", "t1", "--follow", "--format", "csv"]);
    follower.says("{\"index\":20,").await;
    node.signal(Signal::KILL);
    node.ended().await;
    follower.tells("the node is unreachable").await;
    let _node = recipe.start().await;
    follower.tells("the node is back").await;
    let done = follower.ended().await.expect(0);
    assert_eq!(indexes(&done.stdout), (0..200).collect::<Vec<_>>());
    let table = table.ended().await.expect(0).stdout;
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!((rows.len(), rows[0]), (201, "index,key,output"), "one header");
    assert!(
        rows[1..]
            .iter()
            .enumerate()
            .all(|(at, row)| row.starts_with(&format!("{at},"))),
        "{table}"
    );
}

#[tokio::test]
async fn rows_are_written_as_the_output_or_the_name_of_the_file_says() {
    let business = numbering().await;
    let node = settled().start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 3, json!({"start": true, "results": "keep"}))
        .await;
    let person = Person::admin(&node);
    person.windrow("task wait t1").await.expect(0);
    let table = person.windrow("task results t1 -o csv").await.expect(0).stdout;
    assert!(table.starts_with("index,key,output"), "{table}");
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x.csv");
    let words = format!("task results t1 --out {}", path.display());
    person.windrow(&words).await.expect(0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), table);
    let lines = person.windrow("task results t1 --format ndjson -o csv").await;
    assert!(lines.expect(0).stdout.starts_with('{'));
}

#[tokio::test]
async fn a_follower_ends_with_a_cancelled_task_and_begins_behind_an_index() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(7, _)] => Act::json(200, json!({"result": "retry", "retry_after": "1h"})),
        [(index, _)] => Act::json(200, json!({"result": "ok", "output": index})),
        _ => Act::status(500),
    })
    .await;
    let node = settled().start().await;
    node.business("push", &business.url(), json!({})).await;
    let settings = json!({"rate": "1000/s", "start": true, "results": "keep"});
    node.task("push", 20, settings).await;
    let person = Person::admin(&node);
    let mut follower = person.start(&["task", "results", "t1", "--follow", "--after", "3"]);
    follower.says("{\"index\":6,").await;
    node.until("t1", "the others to be settled", |task| {
        task["counts"]["succeeded"] == 19
    })
    .await;
    node.admin
        .post("/v1/tasks/t1/cancel", json!({}))
        .await
        .expect(202);
    let done = follower.ended().await.expect(0);
    let expected: Vec<u64> = (4..20).filter(|index| *index != 7).collect();
    assert_eq!(indexes(&done.stdout), expected);
    let refused = person.windrow("task results t1 --follow --out x").await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

#[tokio::test]
async fn a_column_that_no_output_has_is_told_beside_the_rows() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(index, _)] => Act::json(200, json!({"result": "ok", "output": {"score": index}})),
        _ => Act::status(500),
    })
    .await;
    let node = settled().start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 3, json!({"start": true, "results": "keep"}))
        .await;
    let person = Person::admin(&node);
    person.windrow("task wait t1").await.expect(0);
    let asked = async |columns: &str| {
        let words = format!("task results t1 -o csv --columns {columns}");
        person.windrow(&words).await.expect(0).stderr
    };
    let told = asked("scoer").await;
    assert!(
        told.contains("a member scoer") && told.contains("did you mean score?"),
        "{told}"
    );
    assert!(!asked("score").await.contains("warning"), "nothing to warn of");
    let export = person.windrow("task export t1").await.expect(2).stderr;
    assert!(export.contains("<WHAT>"), "{export}");
}
