//! `windrow node`.

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::business::Business;
use crate::program::Person;
use crate::support::{Node, PATIENCE};

async fn name(node: &Node) -> String {
    node.admin.get("/version").await.expect(200)["node"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_node_is_shown_with_what_runs_on_it() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 1_000_000, json!({"rate": "10/s", "start": true}))
        .await;
    node.status("t1", "running").await;
    let (person, name) = (Person::admin(&node), name(&node).await);
    let card = person.windrow("node show").await.expect(0).stdout;
    assert!(card.starts_with(&format!("{name}  serving\n")), "{card}");
    assert!(card.contains("10/s of ") && card.contains("t1 run 1"), "{card}");
    assert_eq!(
        person
            .windrow(&format!("node show {name} -o name"))
            .await
            .expect(0)
            .stdout,
        format!("{name}\n")
    );
    assert_eq!(
        person.windrow("node show -o json").await.expect(0).json()["id"],
        json!(name)
    );
    person.windrow("node show gone").await.refused(3, &["gone"]);
}

#[tokio::test]
async fn the_tree_of_actors_is_text_for_people_and_json_for_scripts() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let task = json!({"rate": "10/s", "start": true, "name": "slow"});
    node.task("push", 1_000_000, task).await;
    node.status("t1", "running").await;
    let person = Person::admin(&node);
    let all = person.windrow("node actors").await.expect(0).stdout;
    let one = person
        .windrow("node actors --task push/slow")
        .await
        .expect(0)
        .stdout;
    assert!(
        all.contains("t1.0") && one.contains("t1.0") && one.len() < all.len(),
        "{all}\n{one}"
    );
    let root = person
        .windrow("node actors --depth 0 -o json")
        .await
        .expect(0)
        .json();
    assert_eq!(
        (root.as_array().unwrap().len(), &root[0]["children"]),
        (1, &json!([]))
    );
    person
        .windrow("node actors -o csv")
        .await
        .refused(2, &["-o json"]);
    person.windrow("node actors --every 2s").await.expect(2);
    let mut watch = person.begin(&[
        "node", "actors", "--watch", "--every", "50ms", "--depth", "0", "-o", "ndjson",
    ]);
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let line = tokio::time::timeout(PATIENCE, lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert!(line.starts_with('['), "{line}");
    }
}

#[tokio::test]
async fn a_node_is_drained_and_takes_tasks_again() {
    let node = Node::start().await;
    let (person, name) = (Person::admin(&node), name(&node).await);
    let done = person
        .windrow(&format!("node drain {name} --reason upgrade"))
        .await
        .expect(0);
    assert_eq!(done.stdout, format!("{name}: drained; no runs\n"));
    assert!(
        done.stderr.contains(&format!("windrow node undrain {name}")),
        "{}",
        done.stderr
    );
    assert!(
        done.stderr.contains("warning: no other node accepts tasks"),
        "{}",
        done.stderr
    );
    let cluster = person.windrow("cluster").await.expect(1).stdout;
    let why = format!("no node accepts tasks: {name} is drained; run `windrow node undrain {name}`");
    assert!(
        cluster.contains("degraded") && cluster.contains(&why),
        "{cluster}"
    );
    let audit = node.admin.get("/v1/audit?action=node.drain").await.expect(200);
    assert_eq!(audit["items"][0]["reason"], "upgrade");
    let done = person
        .windrow(&format!("node undrain {name} -o json"))
        .await
        .expect(0)
        .json();
    assert_eq!(done["state"], "serving");
    person.windrow("node drain gone").await.refused(3, &["gone"]);
}

#[tokio::test]
async fn what_was_set_is_printed_before_and_after() {
    let node = Node::start().await;
    let (person, name) = (Person::admin(&node), name(&node).await);
    let before = node.admin.get("/v1/nodes").await.expect(200)["items"][0].clone();
    let text = |name: &str| before[name].as_str().unwrap().to_owned();
    let words = format!("node set {name} --capacity 4321/s --log-filter warn --reason more");
    let done = person.windrow(&words).await.expect(0).stdout;
    let expected = format!(
        "{name} until its next restart\n  capacity_rate  {} → 4321/s\n  log_filter  {} → warn\n",
        text("capacity_rate"),
        text("log_filter")
    );
    assert_eq!(done, expected);
    let audit = node.admin.get("/v1/audit?action=node.change").await.expect(200);
    assert_eq!(audit["items"][0]["reason"], "more");
    person.windrow(&format!("node set {name}")).await.expect(2);
    person
        .windrow(&format!("node set {name} --log-filter a=b=c"))
        .await
        .refused(7, &["--log-filter: "]);
    person
        .windrow("node set gone --capacity 1/s")
        .await
        .refused(3, &["gone"]);
}

#[tokio::test]
async fn what_is_only_tried_changes_nothing() {
    let node = Node::start().await;
    let (person, name) = (Person::admin(&node), name(&node).await);
    let read = async || {
        let mut seen = node.admin.get("/v1/nodes").await.expect(200)["items"][0].clone();
        (seen["last_seen"], seen["uptime_seconds"]) = (json!(null), json!(null));
        seen
    };
    let before = read().await;
    for words in [
        format!("drain {name}"),
        format!("set {name} --capacity 4321/s --log-filter warn"),
    ] {
        let plan = person
            .windrow(&format!("node {words} --dry-run -o json"))
            .await
            .expect(0)
            .json();
        assert_eq!(plan["dry_run"], true, "{words}");
    }
    assert_eq!(read().await, before);
}
