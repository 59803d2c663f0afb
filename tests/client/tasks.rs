//! `windrow task`.

use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::program::Person;
use crate::support::Node;

async fn node_with_tasks() -> (Business, Node) {
    let business = Business::start(|_| Act::ok()).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 10, json!({"name": "black-friday", "start": true}))
        .await;
    node.task("push", 5, json!({"name": "黑五", "labels": {"team": "growth"}}))
        .await;
    node.task("push", 3, json!({})).await;
    node.status("t1", "finished").await;
    (business, node)
}

#[tokio::test]
async fn a_list_is_a_table_for_people_and_the_apis_body_for_scripts() {
    let (_business, node) = node_with_tasks().await;
    let person = Person::admin(&node);
    let table = person.windrow("task").await.expect(0).stdout;
    assert_eq!(table, person.windrow("task list").await.expect(0).stdout);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    assert!(lines[0].starts_with("ID  BUSINESS  NAME"), "{table}");
    assert!(
        lines[3].starts_with("t1  push      black-friday  ✓ finished   100%"),
        "{table}"
    );
    let body = person.windrow("task list -o json").await.expect(0).stdout;
    let sent = node.admin.get("/v1/tasks?limit=50").await;
    assert_eq!(body.trim_end().as_bytes(), &sent.body[..], "verbatim");
    assert_eq!(
        person.windrow("task list -o name").await.expect(0).stdout,
        "t3\nt2\nt1\n"
    );
    let rows = person.windrow("task list -o csv").await.expect(0).stdout;
    assert!(rows.starts_with("id,business,name,status,progress,"), "{rows}");
    let things = person.windrow("task list -o ndjson").await.expect(0).stdout;
    let ids: Vec<Value> = things
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, ["t3", "t2", "t1"]);
}

#[tokio::test]
async fn pages_are_joined_to_one_body() {
    let (_business, node) = node_with_tasks().await;
    let person = Person::admin(&node);
    let some = person.windrow("task list --limit 2").await.expect(0);
    assert_eq!(some.stdout.lines().count(), 3);
    assert!(some.stderr.contains("hint: more results"), "{}", some.stderr);
    for form in ["name", "csv", "ndjson"] {
        let some = person
            .windrow(&format!("task list --limit 2 -o {form}"))
            .await
            .expect(0);
        let hint = "hint: more results; use --limit N or --all\n";
        assert_eq!(some.stderr, hint, "-o {form} ends early and looks whole");
    }
    assert_eq!(
        person
            .windrow("task list --limit 2 --quiet")
            .await
            .expect(0)
            .stderr,
        ""
    );
    let all = person.windrow("task list --all -o json").await.expect(0).json();
    assert_eq!(
        (all["items"].as_array().unwrap().len(), &all["next_cursor"]),
        (3, &Value::Null)
    );
    assert_eq!(
        person
            .windrow("task list --limit 501 -o name")
            .await
            .expect(0)
            .stdout
            .lines()
            .count(),
        3
    );
}

#[tokio::test]
async fn a_list_can_be_narrowed_and_may_be_empty() {
    let (_business, node) = node_with_tasks().await;
    let person = Person::admin(&node);
    for (words, names) in [
        ("--status finished", "t1\n"),
        ("--label team:growth", "t2\n"),
        ("-l team=growth", "t2\n"),
        ("--search black", "t1\n"),
        ("--oldest --limit 1", "t1\n"),
        ("--business push --status stopped", ""),
    ] {
        assert_eq!(
            person
                .windrow(&format!("task list -o name {words}"))
                .await
                .expect(0)
                .stdout,
            names,
            "{words}"
        );
    }
    let none = person.windrow("task list --status stopped").await.expect(0);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", "no tasks\n"));
    person
        .windrow("task list --business other")
        .await
        .refused(3, &["other", "windrow biz list"]);
    person
        .windrow("task stop --business other --yes")
        .await
        .refused(3, &["other"]);
    person
        .windrow("task list --status fast")
        .await
        .refused(7, &["status"]);
}

#[tokio::test]
async fn a_task_is_shown_by_number_and_by_name() {
    let (_business, node) = node_with_tasks().await;
    let person = Person::admin(&node);
    // Its times stay the same from one look to the next.
    let card = person.windrow("task show t1 --time iso").await.expect(0).stdout;
    assert!(card.starts_with("push/black-friday  t1  ✓ finished\n"), "{card}");
    assert!(card.contains("succeeded 10"), "{card}");
    assert_eq!(
        person
            .windrow("task show push/black-friday --time iso")
            .await
            .expect(0)
            .stdout,
        card
    );
    let body = person
        .windrow("task show push/黑五 -o json")
        .await
        .expect(0)
        .stdout;
    assert_eq!(
        body.trim_end().as_bytes(),
        &node.admin.get("/v1/tasks/t2").await.body[..],
        "verbatim"
    );
    assert_eq!(
        person.windrow("task show t2 -o name").await.expect(0).stdout,
        "t2\n"
    );
    assert!(card.contains("Z\n"), "{card}");
}

#[tokio::test]
async fn what_isnt_there_is_not_found() {
    let (_business, node) = node_with_tasks().await;
    let person = Person::admin(&node);
    person.windrow("task show t99").await.refused(3, &["t99"]);
    person
        .windrow("task show push/none")
        .await
        .refused(3, &["none", "windrow task list --business push"]);
    person
        .windrow("task show black-friday")
        .await
        .refused(2, &["business/name"]);
}

#[tokio::test]
async fn a_running_task_tells_its_node_and_its_colour_only_where_wanted() {
    let business = Business::start(|_| Act::ok()).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 1_000_000, json!({"rate": "10/s", "start": true}))
        .await;
    node.status("t1", "running").await;
    let person = Person::admin(&node);
    let name = node.admin.get("/v1/nodes").await.expect(200)["items"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let table = person.windrow("task").await.expect(0).stdout;
    assert!(
        table.contains("▶ running") && table.trim_end().ends_with(&name),
        "{table}"
    );
    assert!(!table.contains('\u{1b}'), "{table:?}");
    let forced = Person::admin(&node).env("CLICOLOR_FORCE", "1");
    assert!(forced.windrow("task").await.expect(0).stdout.contains('\u{1b}'));
    assert!(
        !forced
            .windrow("task --no-color")
            .await
            .expect(0)
            .stdout
            .contains('\u{1b}')
    );
    let both = Person::admin(&node)
        .env("CLICOLOR_FORCE", "1")
        .env("NO_COLOR", "1");
    assert!(!both.windrow("task").await.expect(0).stdout.contains('\u{1b}'));
}

#[tokio::test]
async fn businesses_and_nodes_are_listed() {
    let (_business, node) = node_with_tasks().await;
    let person = Person::admin(&node);
    assert_eq!(person.windrow("biz -o name").await.expect(0).stdout, "push\n");
    assert!(
        person
            .windrow("biz list")
            .await
            .expect(0)
            .stdout
            .contains("http://")
    );
    let body = person.windrow("node -o json").await.expect(0).json();
    assert_eq!(body["items"].as_array().unwrap().len(), 1);
    let table = person.windrow("node list").await.expect(0).stdout;
    assert!(table.contains("serving"), "{table}");
}
