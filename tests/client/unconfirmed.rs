//! Items that failed when nothing was left to compare them with, from the job that gives them up to the redrive.

use serde_json::json;

use crate::business::{Act, Business};
use crate::program::Person;
use crate::support::Node;

#[tokio::test]
async fn the_last_items_fail_unconfirmed_and_exactly_those_are_done_again() {
    let business = Business::start(|seen| match seen.items().as_slice() {
        [(3, _)] => Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "gone"}),
        ),
        [(18 | 19, _)] => Act::status(503),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let create =
        "task create push --total 20 --rate 50/s --judge-after 2s --max-attempts 2 --backoff 50ms --wait";
    person.windrow(create).await.expect(8);

    let groups = person.windrow("task failures t1").await.expect(0);
    assert!(groups.stdout.contains("2 (2 unconfirmed)"), "{}", groups.stdout);
    assert!(
        groups
            .stderr
            .contains(", --unconfirmed those of which the handler may be at fault, not the item"),
        "{}",
        groups.stderr
    );
    let csv = person.windrow("task failures t1 -o csv").await.expect(0).stdout;
    let mut rows = csv.lines();
    assert!(
        rows.next().is_some_and(|head| head.ends_with(",unconfirmed")),
        "{csv}"
    );
    assert!(
        rows.next()
            .is_some_and(|row| row.starts_with("HTTP_503,2,") && row.ends_with(",2")),
        "{csv}"
    );
    assert!(
        rows.next()
            .is_some_and(|row| row.starts_with("NO_USER,1,") && row.ends_with(",0")),
        "{csv}"
    );
    let shown = person.windrow("task show t1").await.expect(0).stdout;
    assert!(shown.contains("HTTP_503 ×2 (2 unconfirmed)   #1"), "{shown}");
    assert!(shown.contains("NO_USER ×1   #3 gone"), "{shown}");

    let last = person.windrow("task item t1 19").await.expect(0).stdout;
    assert!(last.contains("evidence   unconfirmed: "), "{last}");
    let refused = person.windrow("task item t1 3").await.expect(0).stdout;
    assert!(refused.contains("evidence   1 attempt, counted"), "{refused}");
    let wide = person
        .windrow("task failures t1 --items -o wide")
        .await
        .expect(0)
        .stdout;
    assert_eq!(wide.matches("unconfirmed: ").count(), 2, "{wide}");
    let items = person
        .windrow("task failures t1 --items -o csv")
        .await
        .expect(0)
        .stdout;
    let head = items.lines().next().unwrap_or_default();
    assert!(head.ends_with(",charged,unconfirmed,others_answered"), "{items}");

    let both = person.windrow("task redrive t1 --unconfirmed --all").await;
    both.expect(2);
    let none = "task redrive t1 --unconfirmed --code NO_USER --if-empty error";
    person
        .windrow(none)
        .await
        .refused(7, &["t1 has no unconfirmed failures with these codes"]);
    business.becomes(|_| Act::ok());
    business.forget();
    let done = person
        .windrow("task redrive t1 --unconfirmed --rate 500/s --wait")
        .await
        .expect(0)
        .stdout;
    assert!(
        done.starts_with("created  t2 (redrive of t1, 2 items, same idempotency keys)"),
        "{done}"
    );
    assert!(
        done.ends_with("net result of t1: succeeded 17  skipped 0  recovered 2  failed 1\n"),
        "{done}"
    );
    let mut called: Vec<u64> = business.items().iter().map(|(index, _)| *index).collect();
    called.sort_unstable();
    assert_eq!(called, [18, 19], "exactly those");
    let nothing = person.windrow("task redrive t1 --unconfirmed").await.expect(0);
    assert!(nothing.stderr.contains("2 recovered by t2"), "{nothing:?}");
}
