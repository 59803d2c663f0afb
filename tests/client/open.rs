//! `windrow task create --open`, `append` and `seal`.

use serde_json::json;

use crate::business::Business;
use crate::program::Person;
use crate::support::Node;

async fn place() -> (Business, Node, Person) {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let create = "task create push --open --name inbox --rate 500/s --start -o name";
    assert_eq!(person.windrow(create).await.expect(0).stdout, "t1\n");
    (business, node, person)
}

#[tokio::test]
async fn lines_of_a_file_are_appended_once_a_key() {
    let (business, _node, person) = place().await;
    let file = person.write("new.ndjson", "{\"to\":\"ann\"}\n\n{\"to\":\"bob\"}\n");
    let append = format!("task append push/inbox --ndjson {file} --key monday");
    let told = person.windrow(&append).await.expect(0).stdout;
    assert_eq!(told, "t1  2 items appended; total 2 items\n");
    let told = person.windrow(&append).await.expect(0).stdout;
    assert_eq!(
        told,
        "t1  nothing appended: 2 items already appended with this key; total 2 items\n"
    );
    let other = format!(
        "task append push/inbox --ndjson {} --key monday",
        person.write("other.ndjson", "3\n")
    );
    person.windrow(&other).await.refused(7, &["another --key"]);
    let told = person
        .run(&["task", "append", "t1", "--ndjson", "-", "-o", "json"], "3\n4\n")
        .await;
    assert_eq!(
        told.expect(0).json(),
        json!({"task": "t1", "items": 2, "repeated": 0, "first_index": 2, "total": 4})
    );
    let told = person
        .windrow("task seal push/inbox --yes --reason done")
        .await
        .expect(0)
        .stdout;
    assert!(
        told.contains("sealed; it finishes once its 4 items are settled"),
        "{told}"
    );
    let told = person.windrow("task wait push/inbox").await.expect(0).stdout;
    assert!(told.contains("succeeded 4"), "{told}");
    assert_eq!(business.items().len(), 4);
    let late = person
        .run(&["task", "append", "t1", "--ndjson", "-"], "5\n")
        .await;
    late.refused(4, &["takes no more items"]);
}

#[tokio::test]
async fn a_line_of_a_pipe_is_appended_while_the_pipe_is_open() {
    let (business, _node, person) = place().await;
    let mut pipe = person.start(&["task", "append", "t1", "--ndjson", "-"]);
    pipe.types("{\"no\":1}\n").await;
    let begun = std::time::Instant::now();
    while business.items().is_empty() {
        assert!(begun.elapsed() < crate::support::PATIENCE, "the line never came");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    pipe.types("{\"no\":2}\nnothing\n").await;
    let done = pipe.ended().await;
    let why = [
        "line 3 of standard input is not JSON",
        "appended to t1 before the error: 1 item",
    ];
    assert!(why.iter().all(|text| done.stderr.contains(text)), "{done:?}");
    assert_ne!(done.code, Some(0));
}

#[tokio::test]
async fn a_fixed_task_is_neither_appended_to_nor_sealed() {
    let (_business, node, person) = place().await;
    let fixed = node.task("push", 3, json!({})).await;
    let told = person
        .run(&["task", "append", &fixed, "--ndjson", "-"], "1\n")
        .await;
    told.refused(4, &["it was not created open"]);
    let told = person.windrow(&format!("task seal {fixed} --yes")).await;
    told.refused(4, &["it was not created open"]);
    let told = person.windrow("task create push --open --total 3").await;
    assert_eq!(told.code, Some(2), "{told:?}");
}
