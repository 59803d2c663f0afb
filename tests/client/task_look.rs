//! `windrow task failures`, `item`, `redrive`, `log`, `runs`, `revisions`, `report` and `export`.

use serde_json::{Value, json};

use crate::business::{Act, Business, Seen};
use crate::program::Person;
use crate::support::{Node, PATIENCE};

fn refuse_some(seen: &Seen) -> Act {
    let line = |code: &str, message: &str| json!({"result": "fail", "code": code, "message": message});
    match seen.items()[..] {
        [(3 | 5, _)] => Act::json(200, line("NO_USER", "gone")),
        [(7, _)] => Act::json(200, line("BAD", "\u{1b}[31mred")),
        [(9, 1)] => Act::status(500),
        _ => Act::ok(),
    }
}

/// A task of 20 items of which three failed.
async fn node_with_failures() -> (Business, Node) {
    let business = Business::start(refuse_some).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task(
        "push",
        20,
        json!({"name": "a", "start": true, "retry": {"backoff": "10ms..20ms"}}),
    )
    .await;
    node.status("t1", "finished").await;
    (business, node)
}

#[tokio::test]
async fn web_prints_where_the_dashboard_shows_a_task_that_is_there() {
    let (_business, node) = node_with_failures().await;
    let person = Person::admin(&node);
    let shown = person.windrow("task show push/a --web").await.expect(0);
    assert_eq!(shown.stdout, format!("{}/tasks/t1\n", node.url));
    person.windrow("task show t7 --web").await.expect(3);
}

#[tokio::test]
async fn failures_are_shown_by_code_and_by_item() {
    let (_business, node) = node_with_failures().await;
    let person = Person::admin(&node);
    let groups = person.windrow("task failures push/a").await.expect(0);
    let lines: Vec<&str> = groups.stdout.lines().collect();
    assert!(
        lines[0].starts_with("CODE") && lines[0].contains("COUNT"),
        "{}",
        groups.stdout
    );
    assert!(
        lines[1].starts_with("NO_USER") && lines[1].contains("#3 gone"),
        "{}",
        groups.stdout
    );
    assert!(
        lines[2].starts_with("BAD") && !groups.stdout.contains('\u{1b}'),
        "{:?}",
        groups.stdout
    );
    assert!(
        groups.stderr.contains("windrow task redrive t1"),
        "{}",
        groups.stderr
    );
    assert_eq!(
        person.windrow("task failures t1 -o name").await.expect(0).stdout,
        "NO_USER\nBAD\n"
    );
    let items = person
        .windrow("task failures t1 --items -o csv")
        .await
        .expect(0)
        .stdout;
    assert!(
        items.starts_with("index,code,attempts,data,last,message,"),
        "{items}"
    );
    assert_eq!(items.lines().count(), 4);
    let of_code = person
        .windrow("task failures t1 --code NO_USER -o name")
        .await
        .expect(0)
        .stdout;
    let mut indexes: Vec<&str> = of_code.lines().collect();
    indexes.sort_unstable();
    assert_eq!(indexes, ["3", "5"]);
    let body = person.windrow("task failures t1 -o json").await.expect(0).stdout;
    let sent = node.admin.get("/v1/tasks/t1/failures/groups").await;
    assert_eq!(body.trim_end().as_bytes(), &sent.body[..], "verbatim");
    person.windrow("task failures t9").await.refused(3, &["t9"]);
    let slip = person
        .windrow("task failures t1 --code NO_USR")
        .await
        .expect(0)
        .stderr;
    let there_are = "t1 has the code NO_USR; did you mean NO_USER? existing codes: NO_USER, BAD";
    assert!(slip.contains(there_are), "{slip}");
    let slip = person
        .windrow("task redrive t1 --code NO_USR")
        .await
        .expect(7)
        .stderr;
    assert!(
        slip.contains("because --code: t1 has no failures with the code \"NO_USR\"")
            && !slip.contains("/filter"),
        "{slip}"
    );
    assert!(
        slip.contains("did you mean NO_USER? one of the existing ones: NO_USER, BAD"),
        "{slip}"
    );
    let counted = ["--key-column: the items carry no data", "leave it out"];
    person
        .windrow("task failures t1 --key-column user_id")
        .await
        .refused(7, &counted);
    let ended = person.windrow("task set t1 --rate 5/s").await.expect(4).stderr;
    assert!(
        ended.contains("the task has ended (finished) and can't be changed any more"),
        "{ended}"
    );
    assert!(!ended.contains("tune"), "{ended}");
    person
        .windrow("task list --status runing")
        .await
        .refused(7, &["--status: ", "did you mean running?"]);
}

#[tokio::test]
async fn failures_say_who_they_are_about_and_a_column_that_isnt_there_is_refused() {
    let business = Business::start(refuse_some).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let rows: String = (0..20).map(|row| format!("u_{row},user {row}\n")).collect();
    let file = person.write("users.csv", &format!("user_id,name\n{rows}"));
    person
        .run(&["task", "create", "push", "--csv", &file, "--wait"], "")
        .await
        .expect(8);
    let groups = person.windrow("task failures t1").await.expect(0).stdout;
    let line = groups
        .lines()
        .find(|line| line.starts_with("BAD"))
        .expect("a group");
    assert!(
        line.ends_with("  {\"user_id\":\"u_7\",\"name\":\"user 7\"}"),
        "{groups}"
    );
    let groups = node
        .admin
        .get("/v1/tasks/t1/failures/groups?data=user_id")
        .await
        .expect(200);
    let bad = groups["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|group| group["code"] == "BAD")
        .unwrap();
    assert_eq!(bad["example_data"], json!({"user_id": "u_7"}));
    let items = person
        .windrow("task failures t1 --key-column user_id -o json")
        .await
        .expect(0)
        .json();
    assert_eq!(items["items"][0]["data"], json!({"user_id": "u_3"}));
    let there_are = ["no column \"userid\"", "did you mean user_id?", "user_id, name"];
    person
        .windrow("task failures t1 --key-column name,userid")
        .await
        .refused(7, &there_are);
    person
        .windrow("task export t1 failures --key-column userid")
        .await
        .refused(7, &there_are);
}

#[tokio::test]
async fn a_task_with_a_key_column_says_everywhere_who_and_nothing_more() {
    let business = Business::start(refuse_some).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let rows: String = (0..20).map(|row| format!("u_{row},user {row}\n")).collect();
    let file = person.write("users.csv", &format!("user_id,name\n{rows}"));
    let create = ["task", "create", "push", "--csv", &file, "--wait", "--key-column"];
    let there_are = ["--key-column", "no column \"userid\"", "did you mean user_id?"];
    person
        .run(&[&create[..], &["userid"]].concat(), "")
        .await
        .refused(2, &there_are);
    person
        .run(&[&create[..], &["user_id"]].concat(), "")
        .await
        .expect(8);
    for look in [
        "task failures t1",
        "task failures t1 --items",
        "task report t1",
        "task log t1",
    ] {
        let told = person.windrow(look).await.expect(0).stdout;
        let is_told = told.contains("{\"user_id\":\"u_7\"}") && !told.contains("user 7");
        assert!(is_told, "{look}: {told}");
    }
    let rows = person.windrow("task export t1 failures").await.expect(0).stdout;
    assert!(rows.contains("user 7"), "an export has everything: {rows}");
    let item = person.windrow("task item t1 7").await.expect(0).stdout;
    assert!(item.contains("user 7"), "one item is told whole: {item}");
    let named = person.windrow("task failures t1 --key-column name").await;
    assert!(named.expect(0).stdout.contains("{\"name\":\"user 7\"}"));
    person
        .windrow("task watch t1 --key-column userid")
        .await
        .refused(7, &there_are);
}

#[tokio::test]
async fn an_item_is_told_attempt_by_attempt() {
    let (_business, node) = node_with_failures().await;
    let person = Person::admin(&node);
    let card = person.windrow("task item t1 3").await.expect(0).stdout;
    assert!(
        card.starts_with("#3  failed\n  attempt 1  ") && card.contains("NO_USER"),
        "{card}"
    );
    assert!(card.contains("message    gone"), "{card}");
    let item = person.windrow("task item t1 3 -o json").await.expect(0).json();
    assert_eq!(item["state"], "failed");
    let key = item["key"].as_str().expect("a key");
    assert!(
        key.ends_with("-t1-3") && item["failure"]["key"] == key,
        "{item:#}"
    );
    assert!(card.contains(key), "{card}");
    for look in ["task failures t1 --items -o json", "task export t1 failures"] {
        let told = person.windrow(look).await.expect(0).stdout;
        assert!(told.contains(&format!("\"key\":\"{key}\"")), "{look}: {told}");
    }
    person
        .windrow("task item t1 0")
        .await
        .refused(3, &["successful items have no record"]);
    person
        .windrow("task item t1 99")
        .await
        .refused(3, &["`windrow task show t1`"]);
}

#[tokio::test]
async fn a_redrive_that_leaves_out_what_another_rests_on_says_which() {
    let (_business, node) = node_with_failures().await;
    let person = Person::admin(&node);
    person.windrow("task redrive t1 --code NO_USER").await.expect(0);
    let rest = person.windrow("task redrive t1 --all").await.expect(0).stdout;
    let told = "1 item, same idempotency keys; excluding 2 recovered or in progress (t2 is created: \
        windrow task start t2)";
    assert!(rest.contains(told), "{rest}");
}

#[tokio::test]
async fn an_item_that_succeeded_is_sent_again_by_its_index() {
    let (business, node) = node_with_failures().await;
    let person = Person::admin(&node);
    let tried = person
        .windrow("task replay t1 --index 4 --dry-run")
        .await
        .expect(0);
    assert!(tried.stdout.contains("0 / 1"), "{tried:?}");
    let before = business.items().len();
    let done = person
        .windrow("task replay t1 --index 4 --reason lost --wait")
        .await
        .expect(0)
        .stdout;
    assert!(
        done.starts_with("created  t2 (replay of 1 item of t1, new idempotency keys)"),
        "{done}"
    );
    assert!(done.contains("t2  ✓ finished  1 / 1 in "), "{done}");
    assert_eq!(business.items()[before..], [(4, 1)], "alone");
    let same = person
        .windrow("task replay t1 --index 4 --same-key --wait")
        .await
        .expect(0);
    assert!(same.stdout.contains("same idempotency keys"), "{same:?}");
    let refused = person.windrow("task replay t1 --index 99").await;
    refused.refused(7, &["no item 99: t1 has 20 items"]);
    let audit = person.windrow("audit").await.expect(0).stdout;
    let row = audit.lines().find(|row| row.contains("task.replay")).unwrap();
    assert!(row.contains("t1"), "{audit}");
}

#[tokio::test]
async fn failures_are_done_again_and_the_exit_code_is_of_those_that_were() {
    let (business, node) = node_with_failures().await;
    let person = Person::admin(&node);
    let which = person.windrow("task redrive t1").await.expect(2).stderr;
    assert!(which.contains("--all"), "{which}");
    person
        .windrow("task redrive t1 --code NONE")
        .await
        .refused(7, &["NONE", "NO_USER, BAD"]);
    let help = person.windrow("task redrive --help").await.expect(0).stdout;
    assert!(
        help.contains("The exit code with --wait is that of the redrive"),
        "{help}"
    );
    business.becomes(|_| Act::ok());
    let done = person
        .windrow("task redrive t1 --code NO_USER --rate 500/s --wait")
        .await
        .expect(0)
        .stdout;
    assert!(
        done.starts_with("created  t2 (redrive of t1, 2 items, same idempotency keys)"),
        "{done}"
    );
    assert!(done.contains("t2  ✓ finished  2 / 2 in "), "{done}");
    assert!(
        done.ends_with("net result of t1: succeeded 17  skipped 0  recovered 2  failed 1\n"),
        "{done}"
    );
    let rest = person
        .windrow("task redrive t1 --indexes 7 --new-keys --wait")
        .await
        .expect(0)
        .stdout;
    assert!(
        rest.contains("new idempotency keys") && rest.ends_with("recovered 3  failed 0\n"),
        "{rest}"
    );
    for verb in ["wait", "watch", "report", "report --format markdown"] {
        let told = person.windrow(&format!("task {verb} t1")).await.expect(0);
        assert!(
            told.stdout.contains("finished (all recovered)"),
            "{verb}: {told:?}"
        );
    }
    for words in ["task show t1", "task failures t1"] {
        let shown = person.windrow(words).await.expect(0);
        let said = shown.stdout + &shown.stderr;
        assert!(
            said.contains("recovered 3  still failed 0   (t2, t3)"),
            "{words}: {said}"
        );
    }
    let listed = person.windrow("task list").await.expect(0).stdout;
    let row = listed.lines().find(|row| row.starts_with("t1 ")).unwrap();
    assert!(row.contains("finished (all recovered)"), "{listed}");
    let shown = person.windrow("task show t1 -o json").await.expect(0).json();
    assert_eq!(
        shown["redriven"],
        json!({"recovered": 3, "still_failed": 0, "exact": true})
    );
    person
        .windrow("task redrive t2 --all --if-empty error")
        .await
        .refused(7, &["t2 has no failures", "windrow task redrive t1 --all"]);
    let mut again: Vec<u64> = business
        .items()
        .iter()
        .skip(21)
        .map(|(index, _)| *index)
        .collect();
    again.sort_unstable();
    assert_eq!(again, [3, 5, 7], "exactly those, by their own indexes");
    person
        .windrow("task redrive t1 --all --if-empty error")
        .await
        .refused(7, &["nothing left to redrive", "3 recovered by t2, t3"]);
    let nothing = person.windrow("task redrive t1 --all --wait").await.expect(0);
    assert!(
        nothing.stderr.contains("nothing left to redrive of t1"),
        "{nothing:?}"
    );
    let told = person
        .windrow("task redrive t1 --all -o json")
        .await
        .expect(0)
        .json();
    assert_eq!(told["total"], 0, "{told}");
    let all = person
        .windrow("task redrive t1 --all --again -o name")
        .await
        .expect(0)
        .stdout;
    assert_eq!(all, "t4\n");
    let why = person
        .windrow("task redrive t1 --code NO_USER --if-empty error")
        .await
        .refused(7, &["recovered by t2"]);
    assert!(why.stderr.contains("--again"), "{}", why.stderr);
    business.becomes(|_| Act::json(200, json!({"result": "fail", "code": "STILL"})));
    person
        .windrow("task redrive t1 --code NO_USER --again --wait")
        .await
        .expect(8);
    let report = person.windrow("task report t1").await.expect(0).stdout;
    assert!(
        report.contains("t2  ✓ finished   ") && report.contains("t5  ✓ finished (with failures)"),
        "{report}"
    );
}

#[tokio::test]
async fn what_was_is_listed_and_reported() {
    let (_business, node) = node_with_failures().await;
    let person = Person::admin(&node);
    let runs = person.windrow("task runs t1").await.expect(0).stdout;
    let head = runs.lines().next().unwrap();
    assert!(
        head.contains("SHARD") && head.contains("RUN") && runs.contains("done"),
        "{runs}"
    );
    let changes = person.windrow("task revisions t1").await.expect(0).stdout;
    assert!(
        changes.starts_with("AT") && changes.contains("status created → queued"),
        "{changes}"
    );
    let names = person
        .windrow("task revisions t1 -o ndjson")
        .await
        .expect(0)
        .stdout;
    let found: Vec<Value> = names
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        found.iter().any(|entry| entry["action"] == "task.create"),
        "{names}"
    );
    // Lines are stored a little later than the items that they are about.
    let begun = std::time::Instant::now();
    while node.admin.get("/v1/tasks/t1/logs?index=3").await.expect(200)["items"] == json!([]) {
        assert!(begun.elapsed() < PATIENCE, "no line about item 3");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let log = person
        .windrow("task log t1 --level error --index 3")
        .await
        .expect(0)
        .stdout;
    assert!(log.contains(" error #3 NO_USER gone"), "{log}");
    let refused = person.windrow("task log t1 --level loud").await.expect(2).stderr;
    assert!(
        refused.contains("loud") && refused.contains("debug, info, warn, error"),
        "{refused}"
    );
    let text = person.windrow("task report t1").await.expect(0).stdout;
    assert!(
        text.contains("total 20  succeeded 17") && text.contains("✓ every item is accounted for"),
        "{text}"
    );
    assert!(
        text.contains("1 shard over [0, 20)") && text.contains("3 recorded = 3 failed"),
        "{text}"
    );
    let markdown = person
        .windrow("task report t1 --format markdown")
        .await
        .expect(0)
        .stdout;
    assert!(markdown.starts_with('#'), "{markdown}");
    let body = person.windrow("task report t1 -o json").await.expect(0).json();
    assert_eq!(body["net"]["still_failed"], 3);
}

#[tokio::test]
async fn an_export_is_whole_and_never_overwrites() {
    let (_business, node) = node_with_failures().await;
    let person = Person::admin(&node);
    let lines = person.windrow("task export t1 failures").await.expect(0).stdout;
    let indexes: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["index"].clone())
        .collect();
    assert_eq!(indexes, [3, 5, 7]);
    let done = person
        .windrow("task export t1 failures --format csv --out f.csv")
        .await
        .expect(0);
    assert!(
        done.stderr.starts_with("wrote ") && done.stdout.is_empty(),
        "{done:?}"
    );
    let text = std::fs::read_to_string(person.path("f.csv")).unwrap();
    assert!(
        text.starts_with("index,key,code,") && text.lines().count() == 4,
        "{text}"
    );
    std::fs::write(person.path("f.csv"), "mine").unwrap();
    person
        .windrow("task export t1 failures --format csv --out f.csv")
        .await
        .refused(4, &["--force"]);
    assert_eq!(std::fs::read_to_string(person.path("f.csv")).unwrap(), "mine");
    person
        .windrow("task export t1 failures --format csv --out f.csv --force --quiet")
        .await
        .expect(0);
    assert_eq!(std::fs::read_to_string(person.path("f.csv")).unwrap(), text);
    person
        .windrow("task export t1 log --format ndjson")
        .await
        .expect(0);
    person
        .windrow("task export t9 failures --out g.csv")
        .await
        .refused(3, &["t9"]);
    person
        .windrow("task export t1 failures --out none/g.csv")
        .await
        .refused(1, &["none/g.csv"]);
    let left: Vec<_> = std::fs::read_dir(person.path("")).unwrap().collect();
    assert_eq!(left.len(), 1, "no half files: {left:?}");
}
