//! `windrow schedule`.

use serde_json::json;

use crate::business::Business;
use crate::program::Person;
use crate::support::Node;

#[tokio::test]
async fn a_schedule_is_made_shown_set_fired_and_deleted() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    person.windrow("schedule create push board").await.expect(2);
    let words =
        "schedule create push board --every 1h --total 3 --rate 100/s --overlap allow --label team=growth";
    let dry = person
        .windrow(&format!("{words} --dry-run"))
        .await
        .expect(0)
        .stdout;
    assert_eq!(dry.matches("  next ").count(), 5, "{dry}");
    assert_eq!(person.windrow("schedule -o name").await.expect(0).stdout, "");
    let made = person.windrow(words).await.expect(0).stdout;
    assert!(
        made.starts_with("created  s1  push/board   fires first in "),
        "{made}"
    );
    person
        .windrow(words)
        .await
        .refused(4, &["board", "already exists"]);
    person
        .windrow("schedule create push other --every 1h --total 3 --name same")
        .await
        .refused(7, &["same", "{fire_time:time}"]);
    let table = person.windrow("schedule").await.expect(0).stdout;
    assert!(
        table.contains("push/board") && table.contains("every 1h"),
        "{table}"
    );
    let shown = person.windrow("schedule show push/board").await.expect(0).stdout;
    for part in ["push/board  s1", "allow", "latest", r#""team":"growth""#] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let next = person
        .windrow("schedule next s1 --count 3 -o name")
        .await
        .expect(0)
        .stdout;
    assert_eq!(next.lines().count(), 3, "{next}");

    let set = person
        .windrow("schedule set s1 --every 2h --missed none")
        .await
        .expect(0)
        .stdout;
    assert!(set.contains("1h → 2h") && set.contains("latest → none"), "{set}");
    person.windrow("schedule set s1").await.expect(2);
    let paused = person
        .windrow("schedule pause s1 --reason holiday")
        .await
        .expect(0)
        .stdout;
    assert_eq!(paused, "push/board  paused\n");
    let fired = person
        .windrow("schedule trigger push/board")
        .await
        .expect(0)
        .stdout;
    assert_eq!(fired, "fired  t1\n", "a paused one, too");
    person.windrow("task wait t1").await.expect(0);
    let shown = person.windrow("task show t1").await.expect(0).stdout;
    assert!(shown.contains("s1") && shown.contains("schedule"), "{shown}");
    let words = "schedule backfill s1 --from 2026-01-01T00:00:00Z --to 2026-01-01T06:00:00Z";
    assert_eq!(
        person.windrow(words).await.expect(0).stdout,
        "s1  3 fires ordered\n"
    );
    let fires = person.windrow("schedule fires s1 -o csv").await.expect(0).stdout;
    assert_eq!(fires.lines().count(), 5, "{fires}");
    let made = person
        .windrow("schedule fires s1 --outcome missed")
        .await
        .expect(0);
    assert_eq!(made.stdout, "");
    let resumed = person.windrow("schedule resume s1").await.expect(0).stdout;
    assert!(resumed.starts_with("push/board  fires next in "), "{resumed}");
    let gone = person
        .windrow("schedule delete push/board --yes")
        .await
        .expect(0)
        .stdout;
    assert_eq!(gone, "deleted the schedule push/board\n");
}

#[tokio::test]
async fn a_schedule_that_isn_t_there_is_told_with_what_there_is() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    person
        .windrow("schedule show board")
        .await
        .refused(2, &["neither s7 nor business/name"]);
    person.windrow("schedule show s7").await.refused(3, &["s7"]);
    person
        .windrow("schedule show push/board")
        .await
        .refused(3, &["windrow schedule list --business push"]);
    person
        .windrow("schedule show pusch/board")
        .await
        .refused(3, &["did you mean push?"]);
    let words = [
        "schedule",
        "create",
        "push",
        "board",
        "--cron",
        "61 * * * *",
        "--total",
        "3",
    ];
    person.run(&words, "").await.refused(7, &["--cron"]);
}
