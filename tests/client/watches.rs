//! `windrow task watch`: on a terminal, and without one.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::business::{Act, Business};
use crate::program::{Person, Running, settled};
use crate::support::Node;

const TERMINAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/terminal.py");

/// A node with a task that goes on for longer than any test.
async fn long_task() -> (Business, Node) {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task(
        "push",
        1_000_000,
        json!({"name": "long", "rate": "100/s", "start": true}),
    )
    .await;
    node.status("t1", "running").await;
    (business, node)
}

/// `windrow` with these words in a terminal of 80 columns, and then the terminal's settings.
fn in_terminal(person: &Person, words: &str) -> Running {
    let script = format!("{} {words}; echo code=$?; stty -a", env!("CARGO_BIN_EXE_windrow"));
    let mut command = person.command("python3", &[TERMINAL, "24", "80", "sh", "-c", &script]);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    Running::of(command)
}

#[tokio::test]
async fn keys_steer_the_task_and_leave_the_terminal_as_it_was() {
    let (_business, node) = long_task().await;
    let person = Person::admin(&node);
    let mut watch = in_terminal(&person, "task watch push/long");
    watch.says("rate 100/s").await;
    watch.says("window ").await;
    watch.types("+").await;
    node.until("t1", "faster", |task| task["rate"] == "110/s").await;
    watch.says("rate 110/s").await;
    watch.types("-").await;
    node.until("t1", "slower", |task| task["rate"] == "99/s").await;
    let revisions = node.admin.get("/v1/tasks/t1/revisions").await.expect(200);
    assert_eq!(revisions["items"][0]["reason"], "watch", "{revisions:#}");
    watch.types("?").await;
    watch.says("stop the task (asks first)").await;
    watch.types("e").await;
    watch.says("why: ").await;
    watch.types("f").await;
    watch.says("no failures").await;
    watch.types("\u{0}24 40").await;
    // The keys need two lines now.
    watch.says("\r\nf failures").await;
    watch.types("q").await;
    let done = watch.ended().await.expect(0);
    assert!(
        done.stdout.contains("t1 continues at the new rate"),
        "{}",
        done.stdout
    );
    assert!(done.stdout.contains("code=0"), "{}", done.stdout);
    let (_, settings) = done.stdout.split_once("code=0").expect("the settings");
    assert!(
        settings.contains(" icanon") && settings.contains(" echo "),
        "{settings}"
    );
    assert_eq!(node.status("t1", "running").await["rate"], "99/s");
}

#[tokio::test]
async fn a_stop_needs_a_yes_and_the_watch_stays_to_start_it_again() {
    let (_business, node) = long_task().await;
    let person = Person::admin(&node);
    let mut watch = in_terminal(&person, "task watch t1");
    watch.says("rate 100/s").await;
    watch.types("s").await;
    watch.says("[y/N]").await;
    watch.types("n").await;
    watch.says("not stopped").await;
    watch.types("sy").await;
    watch.says("■ stopped").await;
    assert_eq!(node.status("t1", "stopped").await["stop_reason"], "operator");
    watch.types("g").await;
    node.status("t1", "running").await;
    watch.types("r50/s\r").await;
    node.until("t1", "slower", |task| task["rate"] == "50/s").await;
    watch.types("sy").await;
    node.status("t1", "stopped").await;
    watch.types("q").await;
    let done = watch.ended().await.expect(0);
    assert!(done.stdout.contains("code=0"), "{}", done.stdout);
    assert!(
        done.stdout.contains("windrow task start t1 resumes it"),
        "{}",
        done.stdout
    );
}

#[tokio::test]
async fn failures_in_the_watch_say_who_they_are_about() {
    let business = Business::start(
        |seen| match seen.items().iter().all(|(index, _)| index % 5 == 0) {
            true => Act::json(200, json!({"result": "fail", "code": "BAD", "message": "no"})),
            false => Act::ok(),
        },
    )
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    let person = Person::admin(&node);
    let rows: String = (0..40).map(|row| format!("u{row}\n")).collect();
    let file = person.write("users.csv", &format!("id\n{rows}"));
    let words = [
        "task",
        "create",
        "push",
        "--csv",
        &file,
        "--rate",
        "10/s",
        "--error-budget",
        "none",
    ];
    person.run(&words, "").await.expect(0);
    let mut watch = in_terminal(&person, "task watch t1");
    watch.says("○ created").await;
    watch.types("gf").await;
    watch.says("  BAD  #0 no  {\"id\":\"u0\"}").await;
    watch.says("error #5 BAD no  {\"id\":\"u5\"}").await;
    let done = watch.ended().await;
    let (_, last) = done.stdout.rsplit_once("✓ finished").expect("a last picture");
    assert!(!done.stdout.contains("fail "), "each is told once: {last}");
    assert!(last.contains("✕") && !last.contains("▁█"), "{last}");
    let shown = person.windrow("task show t1").await.expect(0).stdout;
    assert!(
        shown.contains("failure   BAD ×8   #") && shown.contains("  {\"id\":\"u"),
        "{shown}"
    );
}

#[tokio::test]
async fn errors_in_the_watch_say_who_they_are_about() {
    let (_business, node) = long_task().await;
    let person = Person::admin(&node);
    let file = person.write("users.csv", "id\nu0\nu1\n");
    person
        .run(&["task", "create", "push", "--csv", &file], "")
        .await
        .expect(0);
    let mut watch = in_terminal(&person, "task watch t2");
    watch.says("○ created").await;
    let entries = json!([{"level": "error", "message": "no such user", "index": 1}]);
    // Lines are told from when the watch listens on, and its first picture may come before that.
    let reported = async {
        loop {
            node.admin
                .post("/v1/tasks/t2/logs", json!({ "entries": entries }))
                .await
                .expect(202);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        () = watch.says("error #1 no such user  {\"id\":\"u1\"}") => {}
        () = reported => {}
    }
    watch.types("q").await;
    watch.ended().await.expect(0);
}

#[tokio::test]
async fn failures_that_lie_open_go_on_and_the_last_picture_is_of_the_end() {
    let business = Business::start(
        |seen| match seen.items().iter().all(|(index, _)| index % 5 == 0) {
            true => Act::json(200, json!({"result": "fail", "code": "BAD"})),
            false => Act::ok(),
        },
    )
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 40, json!({"rate": "10/s", "error_budget": "none"}))
        .await;
    let person = Person::admin(&node);
    let mut watch = in_terminal(&person, "task watch t1");
    watch.says("○ created").await;
    watch.types("s").await;
    watch.says("not started yet: g starts it").await;
    watch.types("q").await;
    let done = watch.ended().await.expect(0);
    assert!(
        done.stdout.contains("t1 isn't started; windrow task start t1"),
        "{}",
        done.stdout
    );
    let mut watch = in_terminal(&person, "task watch t1");
    watch.says("○ created").await;
    watch.types("gf").await;
    // How many are in a picture is up to the machine; the last one has all.
    watch.says("  BAD").await;
    let done = watch.ended().await;
    let (_, last) = done.stdout.rsplit_once("✓ finished").expect("a last picture");
    assert!(last.contains("   8  BAD") && !last.contains(" window "), "{last}");
}

#[tokio::test]
async fn what_goes_on_has_no_columns() {
    let (_business, node) = long_task().await;
    let refused = Person::admin(&node).windrow("task watch t1 -o csv").await;
    refused.refused(2, &["unsupported output format", "-o ndjson"]);
}

#[tokio::test]
async fn an_interrupt_leaves_the_task_alone_with_and_without_a_terminal() {
    let (_business, node) = long_task().await;
    let person = Person::admin(&node);
    let mut watch = in_terminal(&person, "task watch t1");
    watch.says("rate 100/s").await;
    watch.types("\u{3}").await;
    let done = watch.ended().await;
    assert!(done.stdout.contains("t1 continues unchanged"), "{}", done.stdout);
    let mut watch = person.start(&["task", "watch", "t1"]);
    watch.says("▶ running").await;
    watch.signal(Signal::INT);
    let done = watch.ended().await.expect(130);
    assert!(done.stderr.contains("t1 continues unchanged"), "{}", done.stderr);
    node.status("t1", "running").await;
}

#[tokio::test]
async fn a_change_that_is_refused_is_told_in_the_picture() {
    let (_business, node) = long_task().await;
    let viewer = node.client("viewer", None).await;
    let person = Person::new()
        .env("WINDROW_SERVER", &node.url)
        .env("WINDROW_TOKEN", viewer.token.as_ref().unwrap());
    let mut watch = in_terminal(&person, "task watch t1");
    watch.says("rate 100/s").await;
    watch.types("+").await;
    watch.says("failed: ").await;
    watch.types("q").await;
    watch.ended().await.expect(0);
    assert_eq!(node.status("t1", "running").await["rate"], "100/s");
}

#[tokio::test]
async fn without_a_terminal_there_are_lines_and_the_exit_code_of_the_end() {
    // An item fails once the watch hears of events, and the last one is answered once it has said all that it says under way.
    let (fail, failing) = tokio::sync::watch::channel(false);
    let (answer, answered) = tokio::sync::watch::channel(false);
    let business = Business::start(move |seen| match seen.items().as_slice() {
        [(3, 1)] => Act::json(200, json!({"result": "fail", "code": "BAD"})).once(&failing),
        [(29, _)] => Act::ok().once(&answered),
        _ => Act::ok(),
    })
    .await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 30, json!({"name": "bad", "rate": "10/s", "start": true}))
        .await;
    let person = Person::admin(&node);
    let mut watch = person.start(&["task", "watch", "push/bad", "--every", "500ms"]);
    watch.says("/s of 10/s").await;
    fail.send_replace(true);
    watch.says("error #3 BAD").await;
    answer.send_replace(true);
    let done = watch.ended().await.expect(8);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines.len() >= 3, "{}", done.stdout);
    assert!(
        lines.iter().all(|line| line.starts_with("push/bad  t1  ")),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("/s of 10/s"),
        "as it goes and as it was told to: {}",
        done.stdout
    );
    assert!(
        lines.iter().any(|line| line.contains("error #3 BAD")),
        "who failed: {}",
        done.stdout
    );
    let last = lines.last().unwrap();
    assert!(
        last.contains("✓ finished (with failures)") && last.contains("failed 1"),
        "{last}"
    );
    assert!(!done.stdout.contains('\u{1b}'), "{:?}", done.stdout);
    let again = person.windrow("task watch t1").await.expect(8);
    assert_eq!(again.stdout.lines().collect::<Vec<_>>(), [*last]);
    assert_eq!(
        person.windrow("task watch t1 -o json").await.expect(8).json()["status"],
        "finished"
    );
    let quiet = person.windrow("task watch t1 -o name --quiet").await.expect(8);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("t1\n", ""));
    person.windrow("task watch t9").await.refused(3, &["t9"]);
    person.windrow("task watch t1 --every 0s").await.expect(2);
}

#[tokio::test]
async fn scripts_get_the_events() {
    let business = Business::willing().await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 20, json!({"rate": "10/s", "start": true}))
        .await;
    let person = Person::admin(&node);
    let done = person.windrow("task watch t1 -o ndjson").await.expect(0);
    let events: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&events[0]["event"], &events[0]["topic"]),
        (&json!("snapshot"), &json!("task:t1"))
    );
    assert!(
        events.iter().any(|event| event["event"] == "stats"),
        "{}",
        done.stdout
    );
    assert!(
        events.iter().any(|event| event["data"]["status"] == "finished"),
        "{}",
        done.stdout
    );
    let over = person.windrow("task watch t1 -o ndjson").await.expect(0);
    assert_eq!(
        over.json()["data"]["status"],
        "finished",
        "one event: {}",
        over.stdout
    );
}

#[tokio::test]
async fn a_watch_survives_the_restart_of_its_node_and_says_that_it_is_stale() {
    let business = Business::willing().await;
    let recipe = settled();
    let node = recipe.start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 60, json!({"rate": "5/s", "start": true})).await;
    let person = Person::admin(&node);
    let mut plain = person.start(&["task", "watch", "t1", "--request-timeout", "90s"]);
    let mut live = in_terminal(&person, "task watch t1 --request-timeout 90s");
    plain.says("▶ running").await;
    live.says("rate 5/s").await;
    node.stop().await;
    plain.tells("the node is unreachable").await;
    live.says("stale for").await;
    let _node = recipe.start().await;
    plain.tells("the node is back").await;
    assert!(plain.ended().await.expect(0).stdout.contains("succeeded 60"));
    let done = live.ended().await.expect(0);
    assert!(
        done.stdout.contains("code=0") && done.stdout.contains("succeeded 60"),
        "{}",
        done.stdout
    );
}
