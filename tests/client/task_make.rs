//! `windrow task create`, `clone`, `apply` and `preview`.

use serde_json::{Value, json};

use crate::business::{Act, Business, Seen};
use crate::program::Person;
use crate::support::Node;

/// A business that gives up item 1 of each task, and a node that knows it.
async fn node() -> (Business, Node) {
    let business = Business::start(refuse_one).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    (business, node)
}

fn refuse_one(seen: &Seen) -> Act {
    match seen.items()[..] {
        [(1, _)] => Act::json(
            200,
            json!({"result": "fail", "code": "NO_USER", "message": "gone"}),
        ),
        _ => Act::ok(),
    }
}

#[tokio::test]
async fn a_task_of_a_file_is_uploaded_made_and_run_to_its_end() {
    let (business, node) = node().await;
    let person = Person::admin(&node);
    let file = person.write("users.csv", "user_id;locale\nu_1;zh-CN\nu_2;de\nu_3;en\n");
    let words = [
        "task",
        "create",
        "push",
        "--name",
        "smoke",
        "--csv",
        &file,
        "--delimiter",
        ";",
        "--rate",
        "500/s",
    ];
    let more = [
        "--label",
        "team=growth",
        "--params",
        "{\"n\":12345678901234567890123}",
        "--send-params",
        "--wait",
    ];
    let done = person.run(&[&words[..], &more].concat(), "").await.expect(8);
    assert!(
        done.stderr.contains("rows 3   columns user_id,locale   first {"),
        "{}",
        done.stderr
    );
    assert!(
        done.stdout
            .starts_with("created  t1  push/smoke   3 items   ◌ queued\n"),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("t1  ✓ finished (with failures)  3 / 3 in "),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout
            .contains("succeeded 2  skipped 0  failed 1\n  failures: windrow task failures t1")
    );
    let task = node.admin.get("/v1/tasks/t1").await.expect(200);
    assert_eq!(
        (&task["rate"], &task["labels"]["team"]),
        (&json!("500/s"), &json!("growth"))
    );
    let calls = business.of_kind("item.process");
    let raw: Vec<_> = calls
        .iter()
        .map(|call| String::from_utf8_lossy(&call.raw).into_owned())
        .collect();
    assert_eq!(raw.len(), 3, "one a row");
    assert!(
        raw.iter().all(|call| call.contains("12345678901234567890123")),
        "as it was written: {raw:?}"
    );
    assert!(raw.iter().any(|call| call.contains("zh-CN")), "{raw:?}");
}

#[tokio::test]
async fn items_come_from_a_pipe_a_count_a_list_and_names_are_for_scripts() {
    let (_business, node) = node().await;
    let person = Person::admin(&node);
    let pipe = person
        .run(
            &["task", "create", "push", "--ndjson", "-", "-o", "name"],
            "{\"a\":1}\n{\"a\":2}\n",
        )
        .await;
    assert_eq!(pipe.expect(0).stdout, "t1\n");
    let count = person
        .windrow("task create push --total 7 -o json")
        .await
        .expect(0)
        .json();
    assert_eq!(
        (&count["id"], &count["total"], &count["status"]),
        (&json!("t2"), &json!(7), &json!("created"))
    );
    let list = person
        .run(
            &["task", "create", "push", "--items", "[1,\"b\"]", "-o", "csv"],
            "",
        )
        .await
        .expect(0);
    assert!(
        list.stdout
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("t3,push,,created,"),
        "{}",
        list.stdout
    );
    let plain = person.windrow("task create push --total 1").await.expect(0);
    assert!(
        plain.stderr.contains("hint: not started: windrow task start t4"),
        "{}",
        plain.stderr
    );
    let task = node.admin.get("/v1/tasks/t1").await.expect(200);
    assert_eq!(
        (&task["total"], &task["source"]["type"]),
        (&json!(2), &json!("ndjson"))
    );
}

#[tokio::test]
async fn what_cant_be_made_is_refused_with_its_reason_and_leaves_nothing() {
    let (_business, node) = node().await;
    let person = Person::admin(&node);
    let ragged = person.write("ragged.csv", "a,b\n1,2\n3\n");
    let wrong = person
        .run(&["task", "create", "push", "--csv", &ragged], "")
        .await;
    wrong.refused(7, &["3"]);
    let good = person.write("good.csv", "a\n1\n");
    person
        .run(&["task", "create", "none", "--csv", &good], "")
        .await
        .refused(3, &["none"]);
    assert_eq!(
        node.admin.get("/v1/uploads/u1").await.status,
        404,
        "no task took it"
    );
    person
        .run(&["task", "create", "push", "--csv", "/nowhere/at/all.csv"], "")
        .await
        .refused(7, &["/nowhere"]);
    let slip = person.path("god.csv").display().to_string();
    let told = person
        .run(&["task", "create", "push", "--csv", &slip], "")
        .await
        .refused(7, &["god.csv"]);
    assert!(
        told.stderr.contains(&format!("did you mean {good}?")),
        "{}",
        told.stderr
    );
    let told = person
        .windrow("task create push --total 1 --limit mail")
        .await
        .expect(3)
        .stderr;
    assert!(
        told.contains("because --limit: no limit mail") && !told.contains("/limits"),
        "{told}"
    );
    let body = person.write(
        "task.json",
        r#"{"business": "push", "name": "f", "source": {"type": "range", "total": 1},
        "limits": ["mail"]}"#,
    );
    person
        .run(&["task", "apply", "--file", &body], "")
        .await
        .refused(3, &["because /limits/0: no limit"]);
    person
        .run(&["task", "create", "push", "--total", "1", "--params", "{a}"], "")
        .await
        .refused(7, &["--params"]);
    person
        .windrow("task create push --total 1 --no-header")
        .await
        .refused(2, &["--no-header"]);
    node.task("push", 1, json!({"name": "taken"})).await;
    person
        .windrow("task create push --total 1 --name taken")
        .await
        .refused(4, &["taken"]);
    let url = "http://127.0.0.1:9/users.csv";
    person
        .windrow(&format!("task create push --csv {url}"))
        .await
        .refused(7, &["it is a URL, not a file", &format!("--url {url}")]);
    let marked = person.write("marked.csv", "\u{feff}a\n1\n");
    let told = person
        .run(
            &["task", "create", "push", "--csv", &marked, "--skip-first", "9"],
            "",
        )
        .await
        .expect(7);
    assert!(told.stderr.contains("rows 1   columns a   "), "{}", told.stderr);
    assert!(
        told.stderr
            .contains("warning: the file starts with a byte order mark"),
        "{}",
        told.stderr
    );
    let taken = ["task", "create", "push", "--name", "taken", "--csv", &good];
    let told = person
        .run(&taken, "")
        .await
        .refused(4, &["t1 already has the name push/taken"]);
    assert!(
        !told.stderr.contains("rows 1"),
        "nothing was uploaded: {}",
        told.stderr
    );
    let late = ["task", "create", "push", "--csv", &good, "--skip-first", "9"];
    let told = person
        .run(&late, "")
        .await
        .refused(7, &["because --skip-first: "]);
    assert!(
        !told.stderr.contains("is kept for a day"),
        "nobody asked: {}",
        told.stderr
    );
    for usage in [
        "--total 1 --rate fast",
        "",
        "--total 1 --csv x",
        "--total 1 --label x",
        "--total 1 --then ask",
    ] {
        person
            .windrow(&format!("task create push {usage}"))
            .await
            .expect(2);
    }
    let all = person.windrow("task -o name").await.expect(0);
    assert_eq!(all.stdout, "t1\n", "only the one of this test");
}

#[tokio::test]
async fn rows_that_are_likely_read_wrong_make_no_task_and_leave_no_upload() {
    let (_business, node) = node().await;
    let person = Person::admin(&node);
    let create = async |flag: &str, file: &str, more: &[&str]| {
        person
            .run(&[&["task", "create", "push", flag, file], more].concat(), "")
            .await
    };
    let semicolons = person.write("s.csv", "id;name\n1;a\n");
    let tabs = person.write("t.csv", "id\tname\n1\ta\n");
    let list = person.write("list.json", "[{\"id\":1},{\"id\":2}]");
    for (at, (flag, file, mends)) in [
        ("--csv", &semicolons, "--delimiter ';'; or"),
        ("--csv", &tabs, "--delimiter tab; or"),
        ("--ndjson", &list, "jq -c '.[]' FILE"),
    ]
    .into_iter()
    .enumerate()
    {
        create(flag, file, &[]).await.refused(7, &[file, mends]);
        let upload = format!("/v1/uploads/u{}", at + 1);
        assert_eq!(node.admin.get(&upload).await.status, 404, "{upload}");
    }
    let meant = create("--csv", &semicolons, &["--delimiter", ","])
        .await
        .expect(0);
    assert!(
        meant.stderr.contains("warning: found one column"),
        "{}",
        meant.stderr
    );
}

#[tokio::test]
async fn a_canary_is_told_and_nobody_is_asked_without_a_terminal() {
    let (business, node) = node().await;
    let person = Person::admin(&node);
    let words = [
        "task", "create", "push", "--total", "9", "--canary", "3", "--start",
    ];
    let done = person.run(&words, "y\n").await.expect(8);
    assert!(
        done.stdout
            .contains("canary   3 items   succeeded 2  skipped 0  failed 1"),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("  failed: NO_USER ×1   #1 gone"),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout
            .ends_with("t1  stopped after its canary   continue: windrow task start t1\n")
    );
    assert!(
        !done.stderr.contains("Continue"),
        "nobody is asked: {}",
        done.stderr
    );
    assert_eq!(business.items().len(), 3, "the answer in the pipe is none");
    person.windrow("task start t1 --wait").await.expect(8);
    business.becomes(|_| Act::ok());
    let done = person
        .windrow("task create push --total 9 --canary 3 --then continue --wait")
        .await
        .expect(0);
    assert!(
        done.stdout.contains("t2  ✓ finished  9 / 9 in"),
        "{}",
        done.stdout
    );
    let done = person
        .windrow("task create push --total 9 --canary 3 --then stop --wait -o json")
        .await
        .expect(9);
    assert_eq!(done.json()["stop_reason"], "canary_done");
    let told = "warning: the canary of 10 covers all 5 items, so no items are held back";
    for (canary, is_told) in [("10", true), ("5", true), ("4", false)] {
        let words = ["task", "create", "push", "--total", "5", "--canary", canary];
        let done = person.run(&words, "").await.expect(0);
        assert_eq!(
            done.stderr.contains(&told.replace("10", canary)),
            is_told,
            "{canary}: {}",
            done.stderr
        );
    }
}

#[tokio::test]
async fn a_person_at_a_terminal_looks_at_the_canarys_failures_and_goes_on() {
    let (business, node) = node().await;
    let person = Person::admin(&node);
    let words = [
        "task", "create", "push", "--total", "9", "--canary", "3", "--wait",
    ];
    let done = person.at_terminal(&words, "▸", "x\nf\ny\n").await.expect(8);
    assert!(
        done.stdout.contains("Continue with the remaining 6?"),
        "{}",
        done.stdout
    );
    assert!(done.stdout.contains("  #1  NO_USER  gone"), "{}", done.stdout);
    assert!(
        done.stdout.contains("t1  ✓ finished (with failures)  9 / 9 in "),
        "{}",
        done.stdout
    );
    assert_eq!(business.items().len(), 9);
    let gone = person.at_terminal(&words, "▸", "\u{3}").await.expect(130);
    assert!(gone.stdout.contains("nothing has changed"), "{}", gone.stdout);
    assert_eq!(
        node.admin.get("/v1/tasks/t2").await.expect(200)["stop_reason"],
        "canary_done"
    );
    let no = person.at_terminal(&words, "▸", "n\n").await.expect(9);
    assert!(
        no.stdout.contains("t3  stopped after its canary"),
        "{}",
        no.stdout
    );
}

#[tokio::test]
async fn a_clone_has_its_origins_items_and_its_own_settings() {
    let (_business, node) = node().await;
    let person = Person::admin(&node);
    node.task("push", 5, json!({"name": "first", "rate": "10/s"}))
        .await;
    let done = person
        .windrow("task clone push/first --name second --rate 900/s --start --wait")
        .await
        .expect(8);
    assert!(
        done.stdout
            .starts_with("created  t2  push/second   a clone of t1, 5 items with new keys"),
        "{}",
        done.stdout
    );
    let task = node.admin.get("/v1/tasks/t2").await.expect(200);
    assert_eq!(
        (&task["rate"], &task["counts"]["succeeded"]),
        (&json!("900/s"), &json!(4))
    );
    person.windrow("task clone t9").await.refused(3, &["t9"]);
}

#[tokio::test]
async fn a_file_is_applied_once_and_then_only_what_differs() {
    let (_business, node) = node().await;
    let person = Person::admin(&node);
    let toml = |rate: &str| {
        format!(
            "business = \"push\"\nname = \"nightly\"\nrate = \"{rate}\"\nlabels = {{ team = \"growth\" }}\n\
                 [source]\ntype = \"range\"\ntotal = 10\n"
        )
    };
    let file = person.write("nightly.toml", &toml("500/s"));
    let made = person
        .run(&["task", "apply", "-f", &file, "--reason", "as agreed"], "")
        .await
        .expect(0);
    assert!(
        made.stdout.starts_with("created  t1  push/nightly"),
        "{}",
        made.stdout
    );
    let version = node.admin.get("/v1/tasks/t1").await.expect(200)["version"].clone();
    let same = person.run(&["task", "apply", "-f", &file], "").await.expect(0);
    assert_eq!(same.stdout, "t1  push/nightly  unchanged\n");
    assert_eq!(
        node.admin.get("/v1/tasks/t1").await.expect(200)["version"],
        version,
        "nothing was sent"
    );
    person.write("nightly.toml", &toml("600/s"));
    let changed = person.run(&["task", "apply", "-f", &file], "").await.expect(0);
    assert_eq!(changed.stdout, "t1  push/nightly  rate 500/s → 600/s\n");
    let text = json!({"business": "push", "name": "nightly", "rate": "700/s"}).to_string();
    let piped = person
        .run(&["task", "apply", "-f", "-", "-o", "json"], &text)
        .await
        .expect(0)
        .json();
    assert_eq!(piped["rate"], "700/s");
    let nameless = person.write("nameless.json", "{\"business\":\"push\"}");
    person
        .run(&["task", "apply", "-f", &nameless], "")
        .await
        .refused(7, &["name is missing"]);
    let fixed = person.write(
        "fixed.json",
        "{\"business\":\"push\",\"name\":\"nightly\",\"send_params\":false}",
    );
    person
        .run(&["task", "apply", "-f", &fixed], "")
        .await
        .refused(4, &["send_params"]);
    let typo = person.write(
        "typo.json",
        "{\"business\":\"push\",\"name\":\"nightly\",\"rat\":\"1/s\"}",
    );
    person
        .run(&["task", "apply", "-f", &typo], "")
        .await
        .refused(7, &["rat"]);
}

#[tokio::test]
async fn a_preview_shows_what_the_handler_says_and_records_nothing() {
    let (business, node) = node().await;
    let person = Person::admin(&node);
    node.task("push", 9, json!({})).await;
    let table = person
        .windrow("task preview t1 --items 0,1,8")
        .await
        .expect(0)
        .stdout;
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].starts_with(" INDEX  RESULT") || lines[0].starts_with("INDEX  RESULT"),
        "{table}"
    );
    assert!(
        lines[2].contains("#1") && lines[2].contains("failed") && lines[2].contains("NO_USER"),
        "{table}"
    );
    assert_eq!(business.items().len(), 3);
    let body = person.windrow("task preview t1 -o json").await.expect(0).json();
    assert_eq!(body["items"].as_array().unwrap().len(), 3);
    assert_eq!(
        node.admin.get("/v1/tasks/t1").await.expect(200)["counts"]["pending"],
        9
    );
    business.becomes(|_| Act::json(200, json!({"result": "perhaps"})));
    let broken = person
        .windrow("task preview t1 --items 0 -o ndjson")
        .await
        .expect(11);
    let item: Value = serde_json::from_str(broken.stdout.trim()).unwrap();
    assert_eq!(item["result"], "broken");
    person
        .windrow("task preview t1 --items x")
        .await
        .refused(7, &["--items", "5..9"]);
}

#[tokio::test]
async fn a_task_of_no_rows_ends_well_at_once_unless_that_is_an_error() {
    let (business, node) = node().await;
    let person = Person::admin(&node);
    let file = person.write("users.csv", "user_id\n");
    let words = ["task", "create", "push", "--csv", &file, "--wait"];
    let done = person.run(&words, "").await.expect(0);
    assert!(
        done.stdout.contains("0 items") && done.stdout.contains("finished"),
        "{done:?}"
    );
    person
        .windrow("task create push --total 0 --wait")
        .await
        .expect(0);
    let wary = [&words[..], &["--if-empty", "error"]].concat();
    person.run(&wary, "").await.refused(7, &["0 items"]);
    assert!(business.items().is_empty());
}
