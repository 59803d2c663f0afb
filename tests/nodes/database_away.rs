//! The database of a node goes away and comes back: that is told within seconds and by its name, and the node goes on.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::program::Person;
use crate::support::PATIENCE;

/// Each answer comes within five seconds; the rest is for a busy machine.
const SOON: Duration = Duration::from_secs(9);

#[tokio::test]
async fn a_node_without_its_database_says_so_soon_and_goes_on_by_itself() {
    let mut cluster = Cluster::new().await;
    let node = cluster.node("n1", "").await;
    let person = Person::admin(&node);
    cluster.postgres.kill();

    let begun = Instant::now();
    let told = node
        .admin
        .get("/v1/tasks")
        .await
        .problem(503, "store-unavailable");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(
        told["detail"]
            .as_str()
            .unwrap()
            .contains("can't reach its database"),
        "{told:#}"
    );

    let begun = Instant::now();
    let ready = node.admin.get("/readyz").await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(
        (ready.status, &ready.json()["reasons"][0]["reason"]),
        (503, &"store".into())
    );
    node.admin.get("/healthz").await.expect(200);

    let begun = Instant::now();
    let done = person.windrow("task list").await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    done.refused(
        6,
        &[
            "the node can't reach its database",
            "nothing that was acknowledged is lost",
            "goes on by itself",
        ],
    );

    cluster.postgres.restart();
    let begun = Instant::now();
    // (Each on a connection of its own: one that was idle for so long may be closed just as it is used again.)
    while person.windrow("task list").await.code != Some(0) {
        assert!(
            begun.elapsed() < PATIENCE,
            "it goes on by itself\n{}",
            node.said()
        );
    }
}
