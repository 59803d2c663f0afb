//! `windrow dataset`, and what a task is told to publish.

use serde_json::{Value, json};

use crate::program::Person;
use crate::support::{Node, Recipe};

/// A worker of the shell that answers each item with its own number, and one that counts lines.
const COMMANDS: &str = r#"
[handler.command]
enabled = true
[handler.command.commands.count]
cmd = ["sh", "-c", "printf '{\"rows\":%d}' $(wc -l)"]
[handler.command.commands.number]
each = ["printf", '{{"n":%d,"parity":"even"}}', "{index}"]
"#;

async fn node() -> (Node, Person) {
    let node = Recipe::new().config(COMMANDS).start().await;
    let person = Person::admin(&node);
    let words = "biz register push --command number";
    person.windrow(words).await.expect(0);
    (node, person)
}

/// Makes a task that publishes, and waits for its end.
async fn publish(person: &Person, more: &str) {
    let words = format!("task create push --total 5 --publish board --start {more}");
    person.windrow(&words).await.expect(0);
}

#[tokio::test]
async fn a_dataset_is_published_read_pinned_rolled_back_and_deleted() {
    let (node, person) = node().await;
    assert_eq!(
        person.windrow("dataset").await.expect(0).stderr.trim(),
        "no datasets"
    );
    publish(&person, "--reduce command:count --publish-key n").await;
    node.status("t1", "finished").await;
    let got = person.windrow("dataset get board").await.expect(0).stdout;
    assert_eq!(
        serde_json::from_str::<Value>(&got).expect("JSON"),
        json!({"rows": 5})
    );
    let rows = person
        .windrow("dataset get board 1 --results")
        .await
        .expect(0)
        .stdout;
    assert_eq!(rows.lines().count(), 5, "{rows}");
    let item = person
        .windrow("dataset get board --item 3")
        .await
        .expect(0)
        .stdout;
    assert_eq!(serde_json::from_str::<Value>(&item).expect("JSON")["n"], 3);
    let found = person.windrow("dataset get board --key 4").await.expect(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&found).expect("JSON")["n"], 4);
    person.windrow("dataset get board --key 9").await.expect(3);
    publish(&person, "").await;
    node.status("t2", "finished").await;
    let table = person.windrow("dataset generations board").await.expect(0).stdout;
    assert!(table.contains("current") && table.contains("t1"), "{table}");
    assert_eq!(
        person.windrow("dataset list -o name").await.expect(0).stdout,
        "board\n"
    );
    let shown = person.windrow("dataset show board").await.expect(0).stdout;
    assert!(
        shown.contains("generation 2") && shown.contains("the newest 5"),
        "{shown}"
    );
    let pinned = person.windrow("dataset pin board 1").await.expect(0).stdout;
    assert_eq!(pinned, "pinned generation 1 of board\n");
    person.windrow("dataset rollback board 1 --yes").await.expect(0);
    let board = node.admin.get("/v1/datasets/board").await.expect(200);
    assert_eq!(
        (&board["generation"], &board["publication"]),
        (&json!(1), &json!(3))
    );
    let set = person
        .windrow("dataset set board --keep 1")
        .await
        .expect(0)
        .stdout;
    assert!(set.contains("5 → 1"), "{set}");
    let nothing = person.windrow("dataset set board").await.expect(2);
    assert!(nothing.stderr.contains("--sink"), "{}", nothing.stderr);
    person
        .windrow("dataset set board --sink redis")
        .await
        .refused(7, &["datasets.redis_url"]);
    person.windrow("dataset unpin board 1").await.expect(0);
    person
        .windrow("dataset rollback board 7 --yes")
        .await
        .refused(3, &["windrow dataset"]);
    person.windrow("dataset delete board --yes").await.expect(0);
    person
        .windrow("dataset show board")
        .await
        .refused(3, &["windrow dataset list"]);
}

#[tokio::test]
async fn what_a_task_publishes_is_said_in_flags_and_shown() {
    let (node, person) = node().await;
    person
        .windrow("task create push --total 5 --reduce hook")
        .await
        .expect(2);
    let words = "task create push --total 5 --publish board --publish-if most";
    person.windrow(words).await.refused(7, &["--publish-if"]);
    let words = "task create push --total 5 --publish board --reduce command:nobody";
    person.windrow(words).await.refused(7, &["--reduce"]);
    publish(&person, "--publish-if 99.5% --publish-key n").await;
    let task = node.admin.get("/v1/tasks/t1").await.expect(200);
    let publish = json!({"dataset": "board", "generation": 1, "if": "99.5%", "reduce": "none", "key": "n", "withheld": false});
    assert_eq!(task["publish"], publish);
}
