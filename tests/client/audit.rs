//! `windrow audit`.

use serde_json::json;

use crate::program::Person;
use crate::support::Node;

#[tokio::test]
async fn changes_are_listed_with_their_objects_and_narrowed_by_object_and_time() {
    let node = Node::start().await;
    let person = Person::admin(&node);
    person
        .windrow("limit create vendor --rate 5/s --reason contract")
        .await
        .expect(0);
    person.windrow("limit set vendor --rate 7/s").await.expect(0);
    person
        .windrow("token create --role viewer --name wall")
        .await
        .expect(0);

    let table = person.windrow("audit").await.expect(0).stdout;
    assert!(table.starts_with("AT ") && table.contains("OBJECT"), "{table}");
    assert!(
        table.contains("limit:vendor") && table.contains("token:2"),
        "{table}"
    );
    let words = "audit --object limit:vendor --since 2h -o csv";
    let csv = person.windrow(words).await.expect(0).stdout;
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("at,actor,action,object,change,reason,source,role,request_id,id")
    );
    let found: Vec<&str> = lines.collect();
    assert!(found[0].contains("limit.edit,limit:vendor,"), "{csv}");
    assert!(
        found[1].contains("limit.create,limit:vendor,") && found[1].contains("contract"),
        "{csv}"
    );
    assert_eq!(found.len(), 2, "{csv}");
    let entry = person
        .windrow("audit --object token:2 --limit 1 -o ndjson")
        .await
        .expect(0)
        .json();
    assert_eq!(entry["object"], json!({"kind": "token", "name": "2"}));
    let none = person
        .windrow("audit --object limit:vendor --until 1h")
        .await
        .expect(0);
    assert!(
        none.stderr.contains("no matching changes"),
        "an hour ago there was none: {none:?}"
    );
    person
        .windrow("audit --since soon")
        .await
        .refused(2, &["--since"]);
    person
        .windrow("audit --object vendor")
        .await
        .refused(7, &["task:t12"]);
}
