//! `windrow db restore` and `restored`: what a business hears after a database went back to an earlier state.

use std::collections::BTreeSet;

use serde_json::json;

use crate::business::Business;
use crate::program::Person;
use crate::support::Recipe;

/// The keys of the items of a task that the business was called for.
fn keys(business: &Business, task: &str) -> BTreeSet<String> {
    let seen = business.seen();
    let calls = seen
        .iter()
        .filter(|call| call.task() == task && !call.items().is_empty());
    calls
        .map(|call| call.header("idempotency-key").to_owned())
        .collect()
}

#[tokio::test]
async fn after_a_restore_no_new_item_has_a_key_that_was_given_before() {
    let business = Business::willing().await;
    let recipe = Recipe::new();
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 3, json!({"start": true})).await;
    node.status("t1", "finished").await;
    let kept = node.task("push", 4, json!({})).await;
    let person = Person::new();
    let place = format!("--data-dir {}", node.data().display());
    person
        .windrow(&format!("db backup copy.db {place}"))
        .await
        .expect(0);
    let lost = node.task("push", 5, json!({"start": true})).await;
    node.status(&lost, "finished").await;
    person
        .windrow(&format!("db restore copy.db --replace {place}"))
        .await
        .refused(4, &["stop the node first"]);
    assert_eq!(node.stop().await, Some(0));
    let known = keys(&business, &lost);
    assert_eq!(known.len(), 5);
    person
        .windrow(&format!("db restore copy.db {place}"))
        .await
        .refused(4, &["already exists", "--replace"]);
    let done = person
        .windrow(&format!("db restore copy.db --replace {place}"))
        .await
        .expect(0);
    for part in ["windrow.db.before-", "new tasks begin at t1000003", "/key"] {
        assert!(done.stderr.contains(part), "{part:?} is not in\n{}", done.stderr);
    }
    let node = recipe.start().await;
    let new = node.task("push", 5, json!({"start": true})).await;
    assert_eq!(new, "t1000003");
    node.status(&new, "finished").await;
    let fresh = keys(&business, &new);
    assert_eq!((fresh.len(), fresh.intersection(&known).count()), (5, 0));
    // What the backup had keeps its number, and its keys.
    node.admin
        .post(&format!("/v1/tasks/{kept}/start"), json!({}))
        .await
        .expect(202);
    node.status(&kept, "finished").await;
    let infix = format!("-{kept}-");
    assert!(keys(&business, &kept).iter().all(|key| key.contains(&infix)));
    assert_eq!(keys(&business, &kept).len(), 4);
    assert_eq!(node.admin.get(&format!("/v1/tasks/{lost}")).await.status, 404);
    person.windrow(&format!("db check {place}")).await.expect(0);
}

#[tokio::test]
async fn what_can_not_be_restored_is_refused_and_nothing_is_changed() {
    let node = Recipe::new().start().await;
    let person = Person::new();
    let place = format!("--data-dir {}", node.data().display());
    person
        .windrow(&format!("db backup copy.db {place}"))
        .await
        .expect(0);
    person
        .windrow("db restore none.db --data-dir new")
        .await
        .refused(3, &["none.db"]);
    person.write("text.db", &"no database ".repeat(1000));
    person
        .windrow("db restore text.db --data-dir new")
        .await
        .refused(7, &["text.db", "not a database"]);
    person
        .windrow("db restore copy.db --key text.db --data-dir new")
        .await
        .refused(7, &["key"]);
    assert!(!person.path("new").exists(), "nothing is made");
    let key = node.data().join("key").display().to_string();
    let done = person
        .windrow(&format!("db restore copy.db --key {key} --data-dir new"))
        .await
        .expect(0);
    assert!(done.stdout.ends_with("new/windrow.db\n"), "{done:?}");
    assert_eq!(
        std::fs::read(person.path("new/key")).unwrap(),
        std::fs::read(&key).unwrap()
    );
    person
        .windrow("db restore new/windrow.db --data-dir new")
        .await
        .refused(2, &["windrow db restored"]);
    let again = person.windrow("db restored --data-dir new").await.expect(0);
    assert!(
        again.stderr.contains("new tasks begin at t2000001"),
        "{}",
        again.stderr
    );
    // The key was forgotten: the same restore again, with it, is no other database.
    person
        .windrow("db restore copy.db --data-dir later")
        .await
        .expect(0);
    let done = person
        .windrow(&format!("db restore copy.db --key {key} --data-dir later"))
        .await
        .expect(0);
    assert!(
        person.path("later/key").exists() && done.stderr.contains(".before-"),
        "{}",
        done.stderr
    );
    person
        .windrow(&format!("db restore copy.db --key {key} --data-dir later"))
        .await
        .refused(4, &["already exists"]);
    for (kind, made) in [
        (
            "trigger",
            "CREATE TRIGGER mine AFTER INSERT ON task BEGIN DELETE FROM task; END",
        ),
        ("view", "CREATE VIEW mine AS SELECT 1"),
    ] {
        let name = format!("{kind}.db");
        std::fs::copy(person.path("copy.db"), person.path(&name)).unwrap();
        crate::db::sql(&person.path(&name), made);
        person
            .windrow(&format!("db restore {name} --data-dir none"))
            .await
            .refused(7, &[kind, "mine"]);
    }
    assert!(!person.path("none").exists());
    let files = std::fs::read_dir(person.path("new")).unwrap().count();
    assert_eq!(files, 3, "the database, the key and the lock");
    // The process ended between its last two writes.
    person.write("new/windrow.db.restoring", "half");
    person
        .windrow("db restored --data-dir new")
        .await
        .refused(4, &["a restore was cut off", "windrow.db.restoring"]);
    person
        .windrow("db restore copy.db --data-dir new --replace")
        .await
        .expect(0);
    assert!(!person.path("new/windrow.db.restoring").exists());
}
