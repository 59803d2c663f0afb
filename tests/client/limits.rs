//! `windrow limit`, and where limits are named.

use serde_json::json;

use crate::program::Person;
use crate::support::Node;

#[tokio::test]
async fn a_limit_is_made_named_shown_set_and_deleted() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    person.windrow("limit create vendor-x").await.expect(2);
    let words = "limit create vendor-x --rate 300/s --concurrency 50 --reason contract";
    assert_eq!(person.windrow(words).await.expect(0).stdout, "created vendor-x\n");
    person.windrow(words).await.refused(4, &["vendor-x"]);
    let table = person.windrow("limit").await.expect(0).stdout;
    assert!(table.starts_with("NAME") && table.contains("300/s"), "{table}");
    let words = "biz register push --url http://127.0.0.1:9/ --force --limit vendor-z";
    person
        .windrow(words)
        .await
        .refused(3, &["did you mean vendor-x?"]);
    person
        .windrow("limit create vendor-x --rate 5/s")
        .await
        .refused(4, &["`windrow limit set NAME` changes it", "another name"]);
    let words = "biz register push --url http://127.0.0.1:9/ --force --limit vendor-x";
    person.windrow(words).await.expect(0);
    let made = node.admin.get("/v1/businesses/push").await.expect(200);
    assert_eq!(made["limits"], json!({"named": ["vendor-x"]}));
    person
        .windrow("task create push --total 9 --limit vendor-x")
        .await
        .expect(0);
    let shown = person.windrow("limit show vendor-x").await.expect(0).stdout;
    for part in ["300/s", "50", "push", "t1 (created)"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(
        person
            .windrow("task show t1")
            .await
            .expect(0)
            .stdout
            .contains("vendor-x")
    );
    let set = person
        .windrow("limit set vendor-x --rate 100/s --concurrency none")
        .await
        .expect(0)
        .stdout;
    assert!(
        set.starts_with("vendor-x  ") && set.contains("300/s → 100/s"),
        "{set}"
    );
    assert_eq!(
        person.windrow("limit list -o name").await.expect(0).stdout,
        "vendor-x\n"
    );
    let limit = node.admin.get("/v1/limits/vendor-x").await.expect(200);
    assert_eq!(
        (&limit["rate"], &limit["concurrency"]),
        (&json!("100/s"), &json!(null))
    );
    let refused = person.windrow("limit delete vendor-x --yes").await;
    refused.refused(4, &["the limit vendor-x is in use by business push, t1"]);
    person
        .windrow("biz edit push --unset limits.named")
        .await
        .expect(0);
    person.windrow("task cancel t1 --yes").await.expect(0);
    let gone = person
        .windrow("limit delete vendor-x --yes")
        .await
        .expect(0)
        .stdout;
    assert_eq!(gone, "deleted the limit vendor-x\n");
    person
        .windrow("limit show vendor-x")
        .await
        .refused(3, &["vendor-x"]);
}

#[tokio::test]
async fn a_limit_in_units_is_made_shown_and_raised_and_the_rest_stays() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    let words = [
        "limit",
        "create",
        "openai",
        "--limit",
        "300/min",
        "--limit",
        "90k tokens/min",
        "--limit",
        "500 eur",
        "--price",
        "eur = 0.6*{tokens}/1M",
    ];
    let made = person.run(&words, "").await.expect(0).stdout;
    assert_eq!(made, "created openai\n");
    let shown = person.windrow("limit show openai").await.expect(0).stdout;
    for part in [
        "90k tokens/min evenly",
        "500 eur in all",
        "0 of 500 eur",
        "eur = 0.6*{tokens}/1M",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let raise = ["limit", "set", "openai", "--limit", "600 eur"];
    person.run(&raise, "").await.expect(0);
    let limit = node.admin.get("/v1/limits/openai").await.expect(200);
    let left = json!({"limits": ["600 eur"], "price": ["eur = 0.6*{tokens}/1M"]});
    assert_eq!(limit["metering"], left);
    let at_once = ["limit", "create", "x", "--limit", "20 at once"];
    person.run(&at_once, "").await.refused(7, &["concurrency"]);
}
