//! `windrow db`: on a state directory, with and without a node.

use std::process::Command;

use serde_json::json;

use crate::business::Business;
use crate::program::Person;
use crate::support::Node;

async fn worked() -> (Node, Person, String) {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 10, json!({"start": true})).await;
    node.status("t1", "finished").await;
    let place = format!("--data-dir {}", node.data().display());
    (node, Person::new(), place)
}

/// Changes a database from outside.
pub(crate) fn sql(database: &std::path::Path, sql: &str) {
    let script =
        format!("import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\ndb.execute(\"{sql}\")\ndb.commit()");
    let done = Command::new("python3")
        .args(["-c", &script])
        .arg(database)
        .status();
    assert!(done.unwrap().success(), "{sql}");
}

#[tokio::test]
async fn a_database_is_looked_at_checked_and_copied_while_its_node_runs() {
    let (node, person, place) = worked().await;
    let card = person
        .windrow(&format!("db status {place}"))
        .await
        .expect(0)
        .stdout;
    for part in ["windrow.db", "pending   ", "nothing", "sound     ", "yes"] {
        assert!(card.contains(part), "{part:?} is not in\n{card}");
    }
    let seen = person
        .windrow(&format!("db status {place} -o json"))
        .await
        .expect(0)
        .json();
    assert_eq!(
        (&seen["sound"], &seen["schema"]["pending"]),
        (&json!(true), &json!([]))
    );
    assert_eq!(seen["schema"]["program"], seen["schema"]["database"]);
    let report = person
        .windrow(&format!("db check {place}"))
        .await
        .expect(0)
        .stdout;
    assert!(
        report.contains(" ✓ a finished task has settled every item") && !report.contains('✗'),
        "{report}"
    );
    let done = person
        .windrow(&format!("db backup copy.db {place}"))
        .await
        .expect(0);
    assert_eq!(done.stdout, "copy.db\n");
    assert!(
        done.stderr.contains("verified") && done.stderr.contains("/key too"),
        "{}",
        done.stderr
    );
    person
        .windrow(&format!("db backup copy.db {place}"))
        .await
        .refused(4, &["copy.db", "already exists"]);
    person
        .windrow(&format!("db backup no/copy.db {place}"))
        .await
        .refused(1, &["no/copy.db"]);
    person.windrow(&format!("db migrate {place}")).await.expect(0);
    // The copy is a whole state directory's database.
    std::fs::create_dir(person.path("state")).unwrap();
    std::fs::rename(person.path("copy.db"), person.path("state/windrow.db")).unwrap();
    person.windrow("db check --data-dir state").await.expect(0);
    assert_eq!(
        node.admin.get("/v1/tasks/t1").await.expect(200)["status"],
        "finished"
    );
}

#[tokio::test]
async fn a_broken_row_a_missing_step_and_a_newer_schema_are_told() {
    let (node, person, place) = worked().await;
    person
        .windrow(&format!("db backup windrow.db {place}"))
        .await
        .expect(0);
    let file = person.path("windrow.db");
    sql(&file, "update shard set succeeded = 9");
    let done = person.windrow("db check --data-dir .").await.expect(1);
    assert!(
        done.stdout
            .contains(" ✗ a finished task has settled every item  not so for t1"),
        "{}",
        done.stdout
    );
    assert!(done.stderr.contains("\n  try  stop the node"), "{}", done.stderr);
    sql(&file, "insert into seaql_migrations values ('m9999_later', 0)");
    let done = person.windrow("db status --data-dir .").await.expect(78);
    assert!(
        done.stdout.contains("m9999_later") && done.stderr.contains("newer windrow"),
        "{done:?}"
    );
    person
        .windrow("db migrate --data-dir .")
        .await
        .refused(78, &["m9999_later"]);
    // While a node holds the directory nothing is changed in it.
    let live = node.data().join("windrow.db");
    sql(&live, "delete from seaql_migrations where version like 'm0001%'");
    let dry = person
        .windrow(&format!("db migrate --dry-run {place}"))
        .await
        .expect(0);
    assert!(
        dry.stdout.starts_with("m0001_") && dry.stderr.contains("nothing was changed"),
        "{dry:?}"
    );
    person
        .windrow(&format!("db migrate {place}"))
        .await
        .refused(4, &["stop the node first"]);
    let status = person.windrow(&format!("db status {place}")).await.expect(0);
    assert!(
        status.stderr.contains("hint: run windrow db migrate"),
        "{}",
        status.stderr
    );
}

#[tokio::test]
async fn a_schema_is_brought_up_to_date_and_then_there_is_nothing_to_do() {
    let person = Person::new();
    sql(&person.path("windrow.db"), "pragma user_version = 1");
    let card = person.windrow("db status --data-dir .").await.expect(0).stdout;
    assert!(
        card.contains("  m0001_schema") && card.contains("  none (this program: m"),
        "{card}"
    );
    let report = person.windrow("db check --data-dir .").await.expect(0).stdout;
    assert!(report.contains(" ! schema "), "{report}");
    let done = person.windrow("db migrate --data-dir .").await.expect(0);
    assert_eq!(done.stdout, "m0001_schema\n", "{done:?}");
    let again = person.windrow("db migrate --data-dir .").await.expect(0);
    assert_eq!(
        (again.stdout.as_str(), again.stderr.contains("nothing to do")),
        ("", true)
    );
    assert!(
        !person
            .windrow("db check --data-dir .")
            .await
            .expect(0)
            .stdout
            .contains('!')
    );
}

#[tokio::test]
async fn what_is_no_database_is_refused() {
    let person = Person::new();
    for verb in ["status", "check", "migrate", "backup x.db"] {
        person
            .windrow(&format!("db {verb} --data-dir none"))
            .await
            .refused(3, &["none/windrow.db"]);
    }
    assert!(!person.path("none").exists(), "nothing is made");
    person.write("windrow.db", &"no database ".repeat(1000));
    for verb in ["status", "check", "migrate", "backup x.db"] {
        person
            .windrow(&format!("db {verb} --data-dir ."))
            .await
            .refused(1, &["not a database"]);
    }
    assert!(!person.path("x.db").exists(), "no half copy is left");
}
