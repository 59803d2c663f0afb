//! What goes wrong with a handler, as people see it who look at its task.

use std::time::Instant;

use serde_json::json;

use crate::business::Business;
use crate::program::Person;
use crate::support::{Node, PATIENCE};

/// A node with a task whose handler nobody answers for.
async fn node_without_a_handler() -> Node {
    let node = Node::start().await;
    // A business that has gone: its port is closed with it.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/windrow", gone.local_addr().expect("an address"));
    drop(gone);
    node.business("push", &url, json!({})).await;
    node.task("push", 50, json!({"rate": "20/s", "start": true}))
        .await;
    node.until("t1", "down", |view| view["handler_down"].is_object())
        .await;
    node
}

#[tokio::test]
async fn a_handler_that_is_down_is_named_wherever_people_look() {
    let node = node_without_a_handler().await;
    let person = Person::admin(&node);
    let list = person.windrow("task list -o wide").await.expect(0);
    assert!(list.stdout.contains("running (handler down)"), "{}", list.stdout);
    assert!(
        list.stderr.contains("hint: t1: handler down for "),
        "{}",
        list.stderr
    );
    for words in ["task show t1", "task explain t1"] {
        let shown = person.windrow(words).await.expect(0).stdout;
        assert!(
            shown.contains("handler down for ") && shown.contains("refused"),
            "{words}: {shown}"
        );
    }
    let late = person.windrow("task wait t1 --timeout 300ms").await.expect(10);
    assert!(
        late.stdout.contains("handler down for ") && late.stderr.contains("t1: handler down"),
        "{late:?}"
    );
    let mut watch = person.start(&["task", "watch", "t1", "--every", "1s"]);
    watch.says("handler down for ").await;
    watch.signal(rustix::process::Signal::INT);
    watch.ended().await;
    let begun = Instant::now();
    while !person
        .windrow("task log t1")
        .await
        .expect(0)
        .stdout
        .contains("HANDLER_DOWN")
    {
        assert!(begun.elapsed() < PATIENCE, "its line is written within seconds");
    }
}

#[tokio::test]
async fn a_task_that_goes_well_has_nothing_to_say_of_its_handler() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 100_000, json!({"rate": "20/s", "start": true}))
        .await;
    node.until("t1", "under way", |view| {
        view["counts"]["succeeded"].as_u64() > Some(5)
    })
    .await;
    let person = Person::admin(&node);
    let list = person.windrow("task list -o wide").await.expect(0);
    assert!(
        !list.stdout.contains("handler down") && !list.stderr.contains("hint"),
        "{list:?}"
    );
    assert!(
        !person
            .windrow("task show t1")
            .await
            .expect(0)
            .stdout
            .contains("because")
    );
}

#[tokio::test]
async fn a_database_file_that_is_deleted_under_its_node_stops_all_writes_and_no_empty_one_takes_its_place() {
    let node = Node::start().await;
    node.business("push", "http://127.0.0.1:9/windrow", json!({}))
        .await;
    let kept = node.data().join("kept");
    let database = node.data().join("windrow.db");
    std::fs::rename(&database, &kept).expect("taken away");
    // Nobody asks for anything: the heart notices.
    let begun = Instant::now();
    while !node.said().contains("deleted or replaced") {
        assert!(begun.elapsed() < PATIENCE, "{}", node.said());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let task = json!({"business": "push", "source": {"type": "range", "total": 5}});
    node.admin
        .post("/v1/tasks", task.clone())
        .await
        .problem(503, "store-unavailable");
    let ready = node.admin.get("/readyz").await;
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("deleted or replaced"), "{}", ready.text());
    // What was only moved is the same file when it is back.
    std::fs::rename(&kept, &database).expect("put back");
    node.admin.post("/v1/tasks", task.clone()).await.expect(201);
    std::fs::remove_file(&database).expect("deleted");
    node.admin
        .post("/v1/tasks", task)
        .await
        .problem(503, "store-unavailable");
    assert_eq!(
        node.admin.get("/v1/tasks").await.status,
        503,
        "nothing is shown that isn't kept"
    );
    let data = node.data().display().to_string();
    let _place = node.directory.clone();
    node.signal(rustix::process::Signal::KILL);
    node.ended().await;
    let person = Person::new();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &data];
    person
        .run(&serve, "")
        .await
        .refused(4, &["windrow.db is missing", "--new", "windrow db restore"]);
    assert!(!database.exists(), "nothing was made");
    let mut anew = person.start(&[&serve[..], &["--new"]].concat());
    anew.tells("listens on").await;
    anew.signal(rustix::process::Signal::TERM);
    anew.ended().await.expect(0);
}
