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
        made.starts_with("created  s1  push/board   first fire in "),
        "{made}"
    );
    person.windrow(words).await.refused(
        4,
        &["board", "already exists", "`windrow schedule set BUSINESS/NAME`"],
    );
    person
        .windrow("schedule create nightly push --every 1h --total 3")
        .await
        .refused(
            3,
            &["put the business first: windrow schedule create push nightly"],
        );
    let neither = person
        .windrow("schedule create nightly daily --every 1h --total 3")
        .await;
    let neither = neither.refused(3, &["nightly"]);
    assert!(!neither.stderr.contains("business first"), "{}", neither.stderr);
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
    let next = person.windrow("schedule next s1").await.expect(0);
    assert!(next.stderr.contains("paused: none of these"), "{}", next.stderr);
    let shown = person.windrow("schedule show s1").await.expect(0).stdout;
    assert!(shown.contains("if resumed"), "{shown}");
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
    assert!(resumed.starts_with("push/board  next fire in "), "{resumed}");
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
        .refused(2, &["is neither an id such as s7 nor business/name"]);
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
    let minute = r#"the minute can't be "61"; it is 0-59"#;
    person.run(&words, "").await.refused(7, &["--cron", minute]);
    person
        .windrow("schedule create push board --every 5 --total 3")
        .await
        .refused(2, &["invalid --every", "try  --every 30m"]);
    person
        .windrow("schedule create push board --every 1h --total 3")
        .await
        .expect(0);
    for (address, exit, meant) in [
        ("board", 2, "did you mean push/board?"),
        ("bord", 2, "did you mean push/board?"),
        ("push/bord", 3, "did you mean board?"),
    ] {
        person
            .windrow(&format!("schedule pause {address}"))
            .await
            .refused(exit, &[meant, "windrow schedule list"]);
    }
}

#[tokio::test]
async fn times_are_shown_and_read_by_the_clocks_of_the_schedule_s_zone() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let create = |more: &'static [&'static str]| {
        let words = [
            "schedule",
            "create",
            "push",
            "board",
            "--cron",
            "0 3 * * *",
            "--zone",
            "Europe/Berlin",
            "--total",
            "3",
        ];
        [&words, more].concat()
    };
    let dry = person
        .run(&create(&["--start", "2098-01-05 00:00", "--dry-run"]), "")
        .await
        .expect(0);
    assert!(
        dry.stderr
            .contains("--start 2098-01-05 00:00 → 2098-01-05T00:00:00+01:00 (Europe/Berlin)"),
        "{}",
        dry.stderr
    );
    for part in [
        "2098-01-05T02:00:00Z  Sun 2098-01-05 03:00:00 CET",
        "2098-01-04T23:00:00Z  Sun 2098-01-05 00:00:00 CET",
    ] {
        assert!(dry.stdout.contains(part), "{part:?} is not in\n{}", dry.stdout);
    }
    person.run(&create(&[]), "").await.expect(0);
    let words = [
        "schedule",
        "backfill",
        "push/board",
        "--from",
        "2026-01-05 00:00",
        "--to",
        "2026-01-07 00:00 America/New_York",
        "--dry-run",
    ];
    let dry = person.run(&words, "").await.expect(0);
    for part in [
        "2026-01-05T02:00:00Z (Mon 03:00 CET)",
        "2026-01-07T02:00:00Z (Wed 03:00 CET)",
    ] {
        assert!(dry.stdout.contains(part), "{part:?} is not in\n{}", dry.stdout);
    }
    assert!(
        dry.stderr.contains("(Europe/Berlin)")
            && dry.stderr.contains("(America/New_York)")
            && dry.stderr.contains("3 fires would be ordered"),
        "{}",
        dry.stderr
    );
    let json = person
        .run(&[&words[..], &["-o", "json"]].concat(), "")
        .await
        .expect(0);
    let plan: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(plan["would"]["items"].as_array().unwrap().len(), 3, "{plan:#}");
    let unknown = [
        "schedule",
        "backfill",
        "push/board",
        "--from",
        "2026-01-05 00:00 Europe/Atlantis",
    ];
    person
        .run(&unknown, "")
        .await
        .refused(2, &["no time zone \"Europe/Atlantis\""]);
}

#[tokio::test]
async fn a_schedule_whose_fires_fail_is_marked_in_the_list_with_the_reason() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    // Nobody listens there.
    let words = [
        "schedule",
        "create",
        "push",
        "board",
        "--every",
        "366d",
        "--url",
        "http://127.0.0.1:9/users.csv",
    ];
    person.run(&words, "").await.expect(0);
    person.windrow("schedule trigger push/board").await.expect(0);
    let listed = person.windrow("schedule list").await.expect(0);
    assert!(listed.stdout.contains("retrying ("), "{}", listed.stdout);
    assert!(
        listed
            .stderr
            .contains("push/board: its last fire is being retried: ")
            && listed.stderr.contains("windrow schedule fires push/board"),
        "{}",
        listed.stderr
    );
    let csv = person.windrow("schedule list -o csv").await.expect(0).stdout;
    assert!(csv.contains(",last,") && csv.contains(",retrying,"), "{csv}");
}

#[tokio::test]
async fn a_name_that_fires_share_is_warned_of_where_the_schedule_is_made() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let words = "schedule create push board --every 1h --total 3 --name board-{fire_time:date}";
    let made = person.windrow(words).await.expect(0);
    assert!(
        made.stderr.contains("warning: task/name: the fires of ")
            && made.stderr.contains("try board-{fire_time:time}"),
        "{}",
        made.stderr
    );
    let set = "schedule set push/board --name board-{fire_time:time}";
    let set = person.windrow(set).await.expect(0);
    assert!(
        set.stdout
            .contains("task.name  board-{fire_time:date} → board-{fire_time:time}"),
        "{}",
        set.stdout
    );
    assert!(!set.stderr.contains("warning"), "{}", set.stderr);
    let gone = person
        .windrow("schedule set push/board --no-name")
        .await
        .expect(0);
    assert!(
        gone.stdout.contains("task.name  board-{fire_time:time} → –"),
        "{}",
        gone.stdout
    );
}

#[tokio::test]
async fn a_name_that_can_t_be_used_is_named_as_it_was_given() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let wrong = person
        .windrow("schedule create push push/board --every 1h --total 3")
        .await
        .refused(
            7,
            &["invalid SCHEDULE (its name within the business)", "try board"],
        );
    assert!(!wrong.stderr.contains("--name"), "{wrong:?}");
    person
        .windrow("schedule create push board --every 1h --total 3 --name b-{fire_tme:date}")
        .await
        .refused(7, &["--name", "did you mean {fire_time:date}?"]);
}

#[tokio::test]
async fn a_fire_that_waits_is_given_up() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let words = "schedule create push board --every 366d --url http://127.0.0.1:9/users.csv";
    person.windrow(words).await.expect(0);
    person.windrow("schedule trigger push/board").await.expect(0);
    let shown = person.windrow("schedule show push/board").await.expect(0);
    assert!(
        shown
            .stdout
            .contains("1 pending (creating the task, or retrying)")
            && shown.stderr.contains("windrow schedule skip push/board drops"),
        "{shown:?}"
    );
    let skipped = person.windrow("schedule skip push/board").await.expect(0);
    assert_eq!(skipped.stdout, "push/board  1 fire dropped\n");
    let again = person.windrow("schedule skip push/board").await.expect(0);
    assert_eq!(again.stdout, "push/board  no pending or queued fires\n");
    person
        .windrow("schedule skip push/board --fire 2026-01-01T00:00:00Z")
        .await
        .refused(4, &["windrow schedule fires"]);
}

#[tokio::test]
async fn who_fires_a_schedule_that_has_a_fire_waiting_is_told_of_it_by_its_name() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let words = "schedule create push board --every 366d --total 1000 --rate 1/s --overlap queue";
    person.windrow(words).await.expect(0);
    for _ in 0..2 {
        person.windrow("schedule trigger push/board").await.expect(0);
    }
    let way = [
        "t1 of push/board has not ended, 1 fire waits already",
        "windrow schedule skip push/board",
    ];
    person
        .windrow("schedule trigger push/board")
        .await
        .refused(4, &way);
    let tried = person
        .windrow("schedule skip push/board --dry-run")
        .await
        .expect(0);
    assert!(
        !tried.stdout.contains('{') && tried.stderr.contains("1 fire would be dropped"),
        "{tried:?}"
    );
}

#[tokio::test]
async fn a_backfill_of_no_time_says_whether_it_is_the_wrong_way_round_or_not_over() {
    let (node, business) = (Node::start().await, Business::willing().await);
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    person
        .windrow("schedule create push board --every 1h --total 3")
        .await
        .expect(0);
    let back = "schedule backfill push/board --from 2020-01-03T00:00:00Z --to 2020-01-02T00:00:00Z";
    person
        .windrow(back)
        .await
        .refused(7, &["is not after 2020-01-03"]);
    let ahead = "schedule backfill push/board --from 2099-01-01T00:00:00Z";
    person.windrow(ahead).await.refused(7, &["is in the future"]);
}
