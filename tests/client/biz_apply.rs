//! `windrow biz apply`.

use serde_json::json;

use crate::business::Business;
use crate::program::Person;
use crate::support::Node;

#[tokio::test]
async fn a_file_is_applied_once_and_then_nothing_is_left_to_do() {
    let business = Business::willing().await;
    let node = Node::start().await;
    let person = Person::admin(&node);
    let url = business.url();
    let text = format!(
        "name = \"push\"\nurl = \"{url}\"\n[defaults]\nrate = \"500/s\"\nbatch = 4\n[secret_headers]\na = \"hush\"\n"
    );
    person.write("push.toml", &text);
    let first = person
        .windrow("biz apply -f push.toml --reason first")
        .await
        .expect(0)
        .stdout;
    assert!(
        first.starts_with("push  registered\n") && first.contains("whsec_"),
        "{first}"
    );
    assert_eq!(
        person.windrow("biz apply -f push.toml").await.expect(0).stdout,
        "push  unchanged\n"
    );
    person.write(
        "push.toml",
        &text.replace("batch = 4\n", "").replace("500/s", "900/s"),
    );
    let second = person.windrow("biz apply -f push.toml").await.expect(0).stdout;
    assert_eq!(
        second,
        "push  changed\n  defaults.batch  4 → –\n  defaults.rate  500/s → 900/s\n"
    );
    person.write(
        "push.toml",
        &text
            .replace("batch = 4\n", "")
            .replace("500/s", "900/s")
            .replace("hush", "quiet"),
    );
    let third = person.windrow("biz apply -f push.toml").await.expect(0).stdout;
    assert_eq!(third, "push  changed\n  value of a secret header\n");
    let made = node.admin.get("/v1/businesses/push").await.expect(200);
    assert_eq!(made["revision"], 3);
}

#[tokio::test]
async fn several_are_applied_in_order_and_what_isnt_named_stays() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business(
        "a",
        &business.url(),
        json!({"pool": "batch", "defaults": {"rate": "1/s"}}),
    )
    .await;
    let person = Person::admin(&node);
    let list = json!([
        {"name": "a", "display_name": "A"}, {"name": "b", "url": business.url()}, {"name": "a", "display_name": "A"},
    ]);
    let done = person
        .run(&["biz", "apply", "-f", "-", "-o", "json"], &list.to_string())
        .await
        .expect(0)
        .json();
    let outcomes: Vec<_> = done["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["outcome"])
        .collect();
    assert_eq!(outcomes, ["changed", "registered", "unchanged"]);
    assert_eq!(
        done["items"][0]["diff"],
        json!([{"member": "display_name", "from": null, "to": "A"}])
    );
    let a = node.admin.get("/v1/businesses/a").await.expect(200);
    assert_eq!(
        (&a["pool"], &a["defaults"]),
        (&json!("batch"), &json!({"rate": "1/s"}))
    );
    // What is shown can be given back.
    let shown = person.windrow("biz show a -o json").await.expect(0).stdout;
    assert_eq!(
        person
            .run(&["biz", "apply", "-f", "-"], &shown)
            .await
            .expect(0)
            .stdout,
        "a  unchanged\n"
    );
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_a_bad_handler_is_told() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    for (text, part) in [
        ("{", "EOF"),
        ("[{\"url\": \"http://h/\"}]", "no name"),
        ("7", "not a business or a list of businesses"),
        ("[1]", "is not a table"),
    ] {
        person.write("b.json", text);
        person.windrow("biz apply -f b.json").await.refused(7, &[part]);
    }
    person
        .windrow("biz apply -f none.toml")
        .await
        .refused(7, &["none.toml"]);
    let list = json!([{"name": "a", "url": "http://127.0.0.1:9/"}]);
    let done = person
        .run(&["biz", "apply", "-f", "-"], &list.to_string())
        .await
        .refused(11, &["--force"]);
    assert!(done.stderr.contains(" ✗ reachable "), "{}", done.stderr);
    person
        .run(&["biz", "apply", "--force", "-f", "-"], &list.to_string())
        .await
        .expect(0);
    let list = json!([{"name": "a", "speed": 9}]);
    person
        .run(&["biz", "apply", "-f", "-"], &list.to_string())
        .await
        .refused(7, &["speed"]);
}
