//! Every verb of `windrow db` and the doctor on each database server.

use serde_json::json;

use crate::cluster::Cluster;
use crate::program::Person;
use crate::servers::Mariadb;
use crate::support::PATIENCE;

#[tokio::test]
async fn every_verb_is_answered_or_refused_for_its_reason_on_each_server() {
    let cluster = Cluster::new().await;
    let mariadb = Mariadb::start();
    for url in [cluster.postgres.url("windrow"), mariadb.url("windrow")] {
        let text = format!(
            "[store]\nurl = \"{url}\"\npassword_file = \"{}\"\n[auth]\nkey_file = \"{}\"\n",
            cluster.path("password").display(),
            cluster.path("key").display()
        );
        let person = Person::new();
        let config = person.write("config.toml", &text);
        let verb = async |verb: &str| person.windrow(&format!("db {verb} --config {config}")).await;
        verb("check").await.expect(0);
        verb("migrate").await.expect(0);
        let status = verb("status -o json").await.expect(0).json();
        assert_eq!(
            (&status["durable"], &status["sound"]),
            (&json!(true), &json!(true)),
            "{url}"
        );
        let report = verb("check").await.expect(0).stdout;
        assert!(
            report.contains("the shards of a task cover its items") && !report.contains('\u{2717}'),
            "{url}: {report}"
        );
        verb("restored").await.expect(0);
        verb("backup copy.db").await.refused(2, &["own backup tools"]);
        verb("restore config.toml")
            .await
            .refused(2, &["own restore tools"]);
    }
}

#[tokio::test]
async fn the_doctor_says_of_a_node_that_its_database_acknowledges_too_early() {
    let cluster = Cluster::new().await;
    let node = cluster.node("n1", "").await;
    let person = Person::admin(&node);
    let report = person.windrow("doctor").await.expect(0).stdout;
    assert!(report.contains("synchronous_commit on"), "{report}");
    cluster
        .postgres
        .sql("postgres", "ALTER ROLE windrow SET synchronous_commit = off");
    // Sessions that are there keep what they have; the doctor's own is new.
    let config = format!(
        "[store]\nurl = \"{}\"\npassword_file = \"{}\"\n[auth]\nkey_file = \"{}\"\n",
        cluster.postgres.url("windrow"),
        cluster.path("password").display(),
        cluster.path("key").display()
    );
    let config = person.write("config.toml", &config);
    let report = person.windrow(&format!("doctor --config {config}")).await.stdout;
    assert!(report.contains("synchronous_commit off"), "{report}");
    cluster
        .postgres
        .sql("postgres", "ALTER ROLE windrow RESET synchronous_commit");
    cluster
        .postgres
        .sql("postgres", "ALTER SYSTEM SET synchronous_commit = off");
    cluster.postgres.sql("postgres", "SELECT pg_reload_conf()");
    let begun = std::time::Instant::now();
    loop {
        let report = person.windrow("doctor").await.expect(0).stdout;
        if report.contains("synchronous_commit off") && report.contains("can lose commits") {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{report}");
    }
}
