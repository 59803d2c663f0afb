//! `windrow doctor`.

use serde_json::json;

use crate::business::{Act, Business};
use crate::program::Person;
use crate::support::Node;

#[tokio::test]
async fn all_is_well_from_here_to_the_handlers() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let done = person
        .windrow(&format!("doctor --data-dir {}", node.data().display()))
        .await;
    for check in [
        "contexts",
        "server",
        "version",
        "clock",
        "ready",
        "token",
        "store",
        "configuration",
        "schema",
    ] {
        assert!(
            done.stdout.contains(&format!(" ✓ {check} ")),
            "{check} is not in\n{}",
            done.stdout
        );
    }
    // The scripted business doesn't look at signatures, and says so; the disk is this machine's.
    assert!(
        done.stdout.contains(" ! handler push        signature: "),
        "{}",
        done.stdout
    );
    assert!(!business.of_kind("ping").is_empty(), "it was called");
    let report = person
        .windrow("doctor --no-handlers -o json")
        .await
        .expect(0)
        .json();
    assert_eq!(
        (&report["passed"], &report["checks"][1]["check"]),
        (&json!(true), &json!("server"))
    );
}

#[tokio::test]
async fn a_dead_handler_and_a_drained_node_are_found() {
    let business = Business::start(|_| Act::status(500)).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.business("gone", "http://127.0.0.1:9/", json!({})).await;
    let name = node.admin.get("/version").await.expect(200)["node"]
        .as_str()
        .unwrap()
        .to_owned();
    node.admin
        .post(&format!("/v1/nodes/{name}/drain"), json!({}))
        .await
        .expect(202);
    let probed = Person::admin(&node).windrow("doctor --ready").await.expect(1);
    assert!(probed.stdout.contains(" ✗ ready "), "{}", probed.stdout);
    let begun = std::time::Instant::now();
    let done = Person::admin(&node).windrow("doctor").await.expect(1);
    assert!(
        begun.elapsed().as_secs() < 25,
        "a node that isn't ready is told at once, not waited for"
    );
    for part in [
        " ✗ handler gone        reachable: ",
        " ✗ handler push        ping: ",
        " ✗ ready ",
    ] {
        assert!(done.stdout.contains(part), "{part:?} is not in\n{}", done.stdout);
    }
    assert!(done.stdout.contains("drained the node") && done.stdout.contains("  try  windrow node undrain"));
    assert_eq!(done.stderr, "3 checks failed\n");
}

#[tokio::test]
async fn nobody_there_is_exit_6_and_a_wrong_token_exit_1() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let done = Person::new()
        .windrow(&format!("doctor http://127.0.0.1:{port}"))
        .await
        .expect(6);
    assert!(
        done.stdout.contains(" ✗ server ") && done.stdout.contains("can't reach http"),
        "{}",
        done.stdout
    );
    let probe = format!("doctor --ready http://127.0.0.1:{port}");
    Person::new().windrow(&probe).await.expect(6);
    let node = Node::start().await;
    let probe = format!("doctor --ready {}", node.url);
    let done = Person::new().windrow(&probe).await.expect(0);
    assert_eq!(done.stdout.lines().count(), 1, "{}", done.stdout);
    let done = Person::new()
        .windrow(&format!("doctor {}", node.url))
        .await
        .expect(1);
    assert!(
        done.stdout.contains(" ✓ server ") && done.stdout.contains(" ✗ token "),
        "{}",
        done.stdout
    );
    let viewer = node.client("viewer", None).await;
    let viewer = Person::new().env("WINDROW_TOKEN", viewer.token.as_ref().unwrap());
    let done = viewer.windrow(&format!("doctor {}", node.url)).await.expect(0);
    assert!(done.stdout.contains(" ! handlers "), "{}", done.stdout);
    Person::new().windrow("doctor n1:7700").await.expect(1);
    let done = viewer
        .windrow(&format!("doctor {} --config none.toml", node.url))
        .await
        .expect(1);
    assert!(done.stdout.contains(" ✗ configuration "), "{}", done.stdout);
}
