//! The database of a node goes away and comes back: that is told within seconds and by its name, and the node goes on.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::cluster::Cluster;
use crate::program::Person;
use crate::proxy::{Proxy, Way, Weather};
use crate::servers::Mariadb;
use crate::sse::Told;
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
            "no acknowledged data is lost",
            "work continues when the database is back",
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

#[tokio::test]
async fn a_node_that_ends_without_its_database_ends_with_its_lease_and_names_what_it_could_not_save() {
    let mut cluster = Cluster::new().await;
    let settings = "[cluster]\nlease_ttl = \"5s\"\nlease_renew = \"500ms\"\n";
    let (task, [(_, owner), _other]) = cluster.pair_with(settings, json!({})).await;
    cluster.postgres.kill();
    owner.signal(Signal::TERM);
    let begun = Instant::now();
    while !owner.said().contains("nothing saved is lost") {
        assert!(begun.elapsed() < Duration::from_secs(14), "{}", owner.said());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let said = owner.said();
    let told = said.lines().find(|line| line.contains("nothing saved is lost"));
    let told = told.expect("it is there");
    assert!(
        told.contains("WARN") && told.contains(&format!("{task}.0")),
        "{told}"
    );
    assert_eq!(owner.ended().await, Some(1), "not everything was given back");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// Moments of a start at which its way to the database is cut.
const CUTS: u64 = 6;

#[tokio::test]
async fn a_node_starts_whichever_of_its_questions_its_database_leaves_unanswered() {
    let cluster = Cluster::new().await;
    // The schema, so that each start asks the same.
    cluster.node("n1", "").await.stop().await;
    let proxy = Proxy::start(cluster.postgres.port()).await;
    let started = || cluster.node_at(proxy.port(), ("n1", ""), &[]);
    let node = started().await;
    let answered = proxy.carried(Way::Down);
    assert_eq!(node.stop().await, Some(0));
    for cut in 1..=CUTS {
        proxy.cut_after(Way::Down, u32::try_from(answered * cut / (CUTS + 1)).unwrap());
        let node = started().await;
        proxy.heal();
        node.admin.get("/readyz").await.expect(200);
        // Its row stays, and the next start asks who has its name until it knows.
        node.signal(Signal::KILL);
        node.ended().await;
    }
    let (before, mut node) = (proxy.carried(Way::Down), None);
    let restarting = async {
        // Past the first connection, so that it isn't that one which waits.
        while proxy.carried(Way::Down) < before + answered / 2 {
            tokio::task::yield_now().await;
        }
        proxy.set(Weather {
            refuses: true,
            ..Weather::default()
        });
        proxy.reset();
        tokio::time::sleep(Duration::from_secs(3)).await;
        proxy.heal();
    };
    let starting = async { node = Some(started().await) };
    tokio::join!(restarting, starting);
    assert_eq!(node.unwrap().stop().await, Some(0));
}

#[tokio::test]
async fn a_watch_marks_its_numbers_as_old_while_the_database_is_away() {
    let mut cluster = Cluster::new().await;
    let (task, [_owner, (_, other)]) = cluster.pair(json!({})).await;
    let mut events = other
        .admin
        .events(&format!("/v1/events?topics=task:{task}"), None)
        .await;
    let succeeded = |told: &Told| told.data["data"]["counts"]["succeeded"].as_u64();
    let is_live = |told: &Told| told.kind == "stats" && succeeded(told) > Some(100);
    events.until(is_live).await;
    let person = Person::admin(&other);
    let mut watch = person.start(&["task", "watch", &task, "--every", "1s"]);
    watch.says("/s of 50/s").await;
    // Its stream is open as well.
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.postgres.kill();

    let seen = events
        .until(|told| told.data["data"]["stale"] == "store_unavailable")
        .await;
    let counts: Vec<u64> = seen.iter().filter_map(succeeded).collect();
    assert!(counts.is_sorted(), "numbers never go back: {counts:?}");
    assert!(seen.last().unwrap().data["data"]["actual_rate"].is_null());
    watch
        .tells("the node can't reach its database; the numbers are stale")
        .await;
    watch.says("(stale: the node can't reach its database)").await;

    cluster.postgres.restart();
    watch.tells("the node can reach its database again").await;
    let is_back = |told: &Told| told.kind == "stats" && told.data["data"]["stale"].is_null();
    let seen = events.until(is_back).await;
    let rate = &seen.last().unwrap().data["data"]["actual_rate"];
    assert!(
        rate.as_f64().unwrap_or(0.0) < 120.0,
        "what was done meanwhile is no rate: {rate}"
    );
    watch.signal(rustix::process::Signal::INT);
    let done = watch.ended().await;
    let old = done.stdout.lines().filter(|line| line.contains("(stale: "));
    assert!(
        old.clone().count() > 0 && !old.clone().any(|line| line.contains("/s")),
        "{}",
        done.stdout
    );
    assert_eq!(
        done.stderr.matches("; the numbers are stale").count(),
        1,
        "{}",
        done.stderr
    );
}

#[tokio::test]
async fn a_database_that_was_never_made_is_told_apart_from_a_server_that_is_away() {
    let cluster = Cluster::new().await;
    let mariadb = Mariadb::start();
    for url in [cluster.postgres.url("nope"), mariadb.url("nope")] {
        is_told_that_it_was_never_made(&cluster, &url).await;
    }
}

async fn is_told_that_it_was_never_made(cluster: &Cluster, url: &str) {
    let config = format!(
        "[store]\nurl = \"{url}\"\npassword_file = \"{}\"\n[auth]\nkey_file = \"{}\"\n",
        cluster.path("password").display(),
        cluster.path("key").display()
    );
    let person = Person::new();
    let config = person.write("config.toml", &config);
    for verb in ["status", "migrate"] {
        let begun = Instant::now();
        let done = person.windrow(&format!("db {verb} --config {config}")).await;
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        let done = done.refused(
            1,
            &[
                "the server runs, but has no database nope",
                "CREATE DATABASE nope",
            ],
        );
        assert!(
            !done.stderr.contains("check that the server runs"),
            "{}",
            done.stderr
        );
    }
}
