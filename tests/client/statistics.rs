//! `windrow stats`, and why runs ended.

use serde_json::json;

use crate::program::Person;
use crate::support::Node;

#[tokio::test]
async fn what_was_done_is_a_table_for_people_and_rows_for_scripts() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    let nothing = person.windrow("stats").await.expect(0);
    assert!(nothing.stderr.contains("no work in these days"), "{nothing:?}");
    let words = "biz register push --url http://127.0.0.1:9/ --force";
    person.windrow(words).await.expect(0);
    person.windrow("task create push --total 9").await.expect(0);
    person.windrow("task cancel t1 --yes").await.expect(0);
    let table = person.windrow("stats -o wide").await.expect(0).stdout;
    assert!(table.starts_with("DAY") && table.contains("CANCELLED"), "{table}");
    let csv = person
        .windrow("stats --by business -o csv")
        .await
        .expect(0)
        .stdout;
    let head = "business,succeeded,skipped,failed,tasks_created,tasks_finished,tasks_cancelled";
    assert_eq!(csv, format!("{head}\npush,0,0,0,1,0,1\n"));
    let names = person
        .windrow("stats --by business --since 7d -o name")
        .await
        .expect(0);
    assert_eq!(names.stdout, "push\n");
    let row = person
        .windrow("stats --by business --business push -o ndjson")
        .await
        .expect(0)
        .json();
    assert_eq!(row["tasks"], json!({"created": 1, "finished": 0, "cancelled": 1}));
    let tasks = person.windrow("stats --by task").await.expect(0);
    assert!(
        tasks.stderr.contains("no work in these days"),
        "it settled nothing: {tasks:?}"
    );
    person
        .windrow("stats --since 2026-02-01 --until 2026-01-01")
        .await
        .refused(7, &["must not be before `since`"]);
    person
        .windrow("stats --since soon")
        .await
        .refused(2, &["--since"]);
}
