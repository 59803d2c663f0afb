//! `windrow token`.

use serde_json::json;

use crate::program::Person;
use crate::support::Node;

#[tokio::test]
async fn a_token_is_printed_once_and_works() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    let done = person
        .windrow("token create --role viewer --name wall --reason display")
        .await
        .expect(0);
    let token = done.stdout.trim_end();
    assert!(token.starts_with("wrk_") && !token.contains('\n'), "{token}");
    assert!(
        done.stderr.contains("for \"wall\", role viewer") && !done.stderr.contains(token),
        "{}",
        done.stderr
    );
    let viewer = Person::new()
        .env("WINDROW_SERVER", &node.url)
        .env("WINDROW_TOKEN", token);
    viewer.windrow("task list").await.expect(0);
    viewer.windrow("token list").await.refused(5, &["admin"]);
    let table = person.windrow("token").await.expect(0).stdout;
    assert!(table.starts_with("ID  NAME "), "{table}");
    assert!(table.contains("wall") && !table.contains(token), "{table}");
    let audit = node.admin.get("/v1/audit?action=token.create").await.expect(200);
    assert_eq!(audit["items"][0]["reason"], "display");
    let body = person.windrow("token list -o json").await.expect(0).stdout;
    let sent = node.admin.get("/v1/tokens?limit=50").await;
    assert_eq!(body.trim_end().as_bytes(), &sent.body[..], "verbatim");
}

#[tokio::test]
async fn a_token_of_a_business_ends_when_it_was_told_to() {
    let node = Node::start().await;
    node.business("push", "http://127.0.0.1:9/", json!({})).await;
    let person = Person::admin(&node).env("USER", "kim");
    let words = "token create --role business --business push --expires-in 90d -o json";
    let made = person.windrow(words).await.expect(0).json();
    assert_eq!(
        (&made["name"], &made["business"]),
        (&json!("kim"), &json!("push"))
    );
    assert!(made["token"].as_str().unwrap().starts_with("wrk_"), "{made}");
    let table = person.windrow("token list").await.expect(0).stdout;
    assert!(
        table.contains("valid, expires in 8") || table.contains("valid, expires in 90d"),
        "{table}"
    );
    person.windrow("token create --role business").await.expect(2);
    person.windrow("token create --role king").await.expect(2);
    person
        .windrow("token create --role viewer --business push")
        .await
        .refused(7, &["business"]);
    person
        .windrow("token create --role viewer --expires-at soon")
        .await
        .refused(2, &["--expires-at"]);
    let named = person
        .windrow("token create --role viewer -o name --quiet")
        .await
        .expect(0);
    assert!(
        named.stderr.contains("wrk_"),
        "a token is never lost: {}",
        named.stderr
    );
}

#[tokio::test]
async fn a_token_is_revoked_with_a_yes_only() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    let token = person
        .windrow("token create --role viewer --name wall")
        .await
        .expect(0)
        .stdout;
    let list = node.admin.get("/v1/tokens").await.expect(200);
    let id = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "wall")
        .unwrap()["id"]
        .clone();
    let viewer = Person::new()
        .env("WINDROW_SERVER", &node.url)
        .env("WINDROW_TOKEN", token.trim_end());
    person
        .windrow(&format!("token revoke {id}"))
        .await
        .refused(2, &["--yes"]);
    let ci = Person::admin(&node).env("CI", "1");
    ci.windrow(&format!("token revoke {id}"))
        .await
        .refused(2, &["--yes"]);
    viewer.windrow("task list").await.expect(0);
    let done = person
        .windrow(&format!("token revoke {id} --yes --reason lost"))
        .await
        .expect(0);
    assert_eq!(done.stdout, format!("revoked token {id}\n"));
    viewer.windrow("task list").await.refused(5, &["not signed in"]);
    assert!(
        person
            .windrow("token list")
            .await
            .expect(0)
            .stdout
            .contains("revoked")
    );
    let audit = node.admin.get("/v1/audit?action=token.revoke").await.expect(200);
    assert_eq!(audit["items"][0]["reason"], "lost");
    person
        .windrow("token revoke 999 --yes")
        .await
        .refused(3, &["999"]);
}

#[tokio::test]
async fn what_is_only_tried_changes_nothing() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    let before = node.admin.get("/v1/tokens").await.expect(200);
    let done = person
        .windrow("token create --role viewer --name wall --dry-run")
        .await
        .expect(0);
    assert_eq!(
        (&done.json()["name"], done.json().get("token")),
        (&json!("wall"), None),
        "{}",
        done.stdout
    );
    let id = &before["items"][0]["id"];
    person
        .windrow(&format!("token revoke {id} --dry-run"))
        .await
        .expect(0);
    assert_eq!(node.admin.get("/v1/tokens").await.expect(200), before);
}

#[tokio::test]
async fn a_token_that_nobody_named_has_the_name_of_its_role_where_the_user_has_none() {
    let node = Node::start().await;
    let person = Person::admin(&node).env("USER", "").env("LOGNAME", "");
    let made = person
        .windrow("token create --role operator -o json")
        .await
        .expect(0)
        .json();
    assert_eq!(made["name"], "operator token", "{made}");
    let other = Person::admin(&node).env("USER", "").env("LOGNAME", "kim");
    let made = other
        .windrow("token create --role viewer -o json")
        .await
        .expect(0)
        .json();
    assert_eq!(made["name"], "kim", "{made}");
}
