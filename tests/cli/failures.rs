//! Jobs that end with failures, or stop by themselves.

use serde_json::{Value, json};

use super::support::{Business, Place, assert_adds_up, repository};

fn every_tenth() -> String {
    repository("tests/fixtures/workers/every_tenth.py")
}

#[test]
fn failures_are_grouped_and_written_out() {
    let place = Place::new();
    let worker = every_tenth();
    let job = [
        "run",
        "--total",
        "100",
        "--failures-out",
        "failed.ndjson",
        "-o",
        "json",
        "--",
        "python3",
        &worker,
    ];
    let summary = place.windrow(&job).expect(8).json();
    assert_adds_up(&summary);
    assert_eq!(summary["result"], "with_failures");
    assert_eq!(summary["counts"]["failed"], 10);
    assert_eq!(summary["counts"]["skipped"], 10);
    let group = &summary["failures"][0];
    assert_eq!((&group["code"], &group["count"]), (&json!("NO_USER"), &json!(10)));
    assert!(
        group["example"].as_str().unwrap().ends_with("is unknown"),
        "{group}"
    );
    let lines: Vec<Value> = place
        .read("failed.ndjson")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let indexes: Vec<u64> = lines.iter().map(|line| line["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, (0..10).map(|ten| ten * 10 + 3).collect::<Vec<_>>());
    assert_eq!(
        (&lines[0]["code"], &lines[0]["attempts"]),
        (&json!("NO_USER"), &json!(1))
    );
    assert_eq!(
        (&lines[0]["message"], &lines[0]["output"]),
        (&json!("user 3 is unknown"), &json!({ "seen": 1 }))
    );
    assert!(
        !place.names().iter().any(|name| name.ends_with(".part")),
        "{:?}",
        place.names()
    );
}

/// Fails a user once.
const MOODY: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "item":
        continue
    seen = "seen-" + str(message["index"])
    calls = open("calls", "a")
    print(message["index"], message["key"], message["data"]["id"], file=calls, flush=True)
    bad = message["index"] % 3 == 1 and not os.path.exists(seen)
    open(seen, "w").close()
    answer = {"result": "fail", "code": "MOOD"} if bad else {"result": "ok"}
    print(json.dumps({"type": "result", "id": message["id"], **answer}), flush=True)
"#;

#[test]
fn what_was_failed_is_done_again_with_its_keys_and_says_who_it_is() {
    let place = Place::new();
    place.write("moody.py", MOODY);
    let rows: String = (0..6).map(|row| format!("u{row},name {row}\n")).collect();
    place.write("users.csv", &format!("id,name\n{rows}"));
    let job = |more: &[&str]| {
        let own = [
            "run",
            "--csv",
            "users.csv",
            "--state",
            "state",
            "--failures-out",
            "-",
            "--key-column",
            "id",
        ];
        let worker = ["--", "python3", "moody.py"];
        place.windrow(&[&own[..], more, &worker].concat())
    };
    job(&["--only-failed"]).refused(3, &["no job of this name has run"]);
    let mistyped = [
        "run",
        "--csv",
        "users.csv",
        "--failures-out",
        "f",
        "--key-column",
        "name,idd",
    ];
    let mistyped = [&mistyped[..], &["--", "python3", "moody.py"]].concat();
    place
        .windrow(&mistyped)
        .refused(2, &["no column \"idd\"", "id, name"]);
    place.write("users.ndjson", "{\"id\": 1, \"name\": \"a\"}\n{\"id\": 2}\n");
    for (items, told) in [
        (["--total", "3"], ["the items carry no data", "leave it out"]),
        (["--ndjson", "users.ndjson"], ["no column \"zz\"", "id, name"]),
    ] {
        let wrong = [&["run", "--key-column", "zz"], &items[..], &["--", "true"]].concat();
        place.windrow(&wrong).refused(2, &told);
    }
    let slip = ["run", "--csv", "user.csv", "--", "python3", "moody.py"];
    let slip = place
        .windrow(&slip)
        .refused(7, &["user.csv can't be read", "did you mean users.csv?"])
        .stderr;
    assert_eq!(slip.matches("\n  try  ").count(), 1, "{slip}");
    let first = job(&[]).expect(8);
    assert!(first.stderr.contains("  {\"id\":\"u1\"}\n"), "{}", first.stderr);
    assert!(
        job(&[])
            .expect(8)
            .stderr
            .contains("--only-failed retries its failures")
    );
    let who: Vec<Value> = first
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&who[0]["index"], &who[0]["data"]),
        (&json!(1), &json!({"id": "u1"}))
    );
    assert_eq!(
        (&who[1]["index"], &who[1]["data"]),
        (&json!(4), &json!({"id": "u4"}))
    );
    std::fs::remove_file(place.path("seen-4")).unwrap();
    let second = job(&["--only-failed"]).expect(8);
    assert!(
        second.stderr.contains("t2: retrying the 2 items that failed in"),
        "{}",
        second.stderr
    );
    let left: Value = serde_json::from_str(second.stdout.trim()).unwrap();
    assert_eq!(
        (&left["index"], &left["data"]),
        (&json!(4), &json!({"id": "u4"})),
        "as in the first job"
    );
    assert!(second.stderr.contains("  {\"id\":\"u4\"}\n"), "{}", second.stderr);
    let half = job(&[]).expect(8);
    assert_eq!(half.stdout, second.stdout, "what is failed still");
    for text in [
        "--only-failed retries the remaining failures",
        "recovered                1",
    ] {
        assert!(half.stderr.contains(text), "{}", half.stderr);
    }
    let third = job(&["--only-failed"]).expect(0);
    assert!(
        third.stderr.contains("t3: retrying the 1 item that failed in"),
        "{}",
        third.stderr
    );
    assert!(
        job(&["--only-failed"])
            .expect(0)
            .stderr
            .contains("has no failed items left")
    );
    let all_good = job(&[]).expect(0);
    assert_eq!(all_good.stdout, "", "no item is failed any more");
    for text in [
        "t1  finished (all recovered)\n",
        "--only-failed recovered its failures",
        "failed                   2",
        "recovered                2",
    ] {
        assert!(all_good.stderr.contains(text), "{}", all_good.stderr);
    }
    assert!(!all_good.stderr.contains("hint:"), "{}", all_good.stderr);
    let read = place.read("calls");
    let mut calls: Vec<&str> = read.lines().collect();
    assert_eq!(calls.len(), 6 + 2 + 1, "{read}");
    calls.sort_unstable();
    calls.dedup();
    assert_eq!(calls.len(), 6, "the same index, key and row each time: {read}");
}

#[test]
fn what_a_job_recovered_before_a_restart_is_not_taken_for_what_the_new_one_did() {
    let place = Place::new();
    let script = "while read -r l; do if [ -e good ]; then echo ok; else echo fail; fi; done";
    let job = |more: &[&str]| {
        let own = ["run", "--total", "3", "--state", "state", "-o", "json"];
        place.windrow(&[&own[..], more, &["--", "sh", "-c", script]].concat())
    };
    job(&[]).expect(8);
    place.write("good", "");
    assert_eq!(job(&["--only-failed"]).expect(0).json()["counts"]["succeeded"], 3);
    let net = job(&[]).expect(0).json()["net"].clone();
    assert_eq!(net, json!({"recovered": 3, "still_failed": 0}));
    std::fs::remove_file(place.path("good")).unwrap();
    let net = job(&["--restart"]).expect(8).json()["net"].clone();
    assert_eq!(net, json!({"recovered": 0, "still_failed": 3}));
    place.write("good", "");
    let again = job(&["--only-failed"]).expect(0);
    assert!(
        again.stderr.contains("t4: retrying the 3 items that failed in"),
        "{}",
        again.stderr
    );
}

#[test]
fn failures_of_a_file_that_has_changed_want_it_as_it_was_or_a_new_job() {
    let place = Place::new();
    place.write("chg.csv", "id\n1\n2\n");
    let begin = ["run", "--csv", "chg.csv", "--name", "chg", "--each"];
    let half = ["grep -qvx 1 {id}.txt", "--max-attempts", "1", "-q"];
    place.write("1.txt", "1\n");
    place.write("2.txt", "2\n");
    place.windrow(&[&begin[..], &half].concat()).expect(8);
    place.write("chg.csv", "id\n1\n2\n3\n");
    let again = ["--only-failed"];
    for words in [&["run", "--resume", "chg"][..], &[&begin[..], &half].concat()] {
        let told = place.windrow(&[words, &again].concat());
        let told = told.refused(
            4,
            &["belong to other items", "restore the old content", "--restart"],
        );
        assert!(
            !told.stderr.contains("--resume chg"),
            "it was typed: {}",
            told.stderr
        );
    }
    place.write("new.csv", "id\n2\n");
    let other = [
        "run",
        "--csv",
        "new.csv",
        "--name",
        "chg",
        "--only-failed",
        "--each",
        "true {id}",
    ];
    place
        .windrow(&other)
        .refused(4, &["windrow run --resume chg --only-failed"]);
    place.write("chg.csv", "id\n1\n2\n");
    place
        .windrow(&["run", "--resume", "chg", "--only-failed"])
        .expect(8);
}

#[test]
fn failures_are_never_written_over_what_the_run_needs() {
    let place = Place::new();
    let items = "{\"a\":1}\n{\"a\":2}\n";
    place.write("items.ndjson", items);
    place.write("own.toml", "");
    place.write("worker.py", "import sys\n");
    std::os::unix::fs::symlink("items.ndjson", place.path("link")).unwrap();
    let before = place.names();
    for out in [
        "items.ndjson",
        "./link",
        "own.toml",
        "worker.py",
        ".",
        "/dev/null",
        "/proc/f",
        "none/f",
    ] {
        let flags = [
            "run",
            "--ndjson",
            "items.ndjson",
            "--config",
            "own.toml",
            "--failures-out",
            out,
        ];
        let worker = ["--", "python3", "worker.py"];
        place
            .windrow(&[&flags[..], &worker].concat())
            .refused(2, &["can't write failures to"]);
    }
    assert_eq!(
        (place.names(), place.read("items.ndjson")),
        (before, items.to_owned())
    );
}

#[test]
fn a_link_to_the_list_of_failures_stays_a_link() {
    let place = Place::new();
    place.write("target.ndjson", "{\"index\":7}\n");
    std::os::unix::fs::symlink("target.ndjson", place.path("link")).unwrap();
    let worker = every_tenth();
    let job = [
        "run",
        "--total",
        "20",
        "--failures-out",
        "link",
        "--",
        "python3",
        &worker,
    ];
    place.windrow(&job).expect(8);
    assert!(place.path("link").is_symlink());
    assert_eq!(place.read("target.ndjson").lines().count(), 2);
}

#[test]
fn a_finished_job_with_failures_keeps_its_exit_code_and_its_list() {
    let place = Place::new();
    let worker = every_tenth();
    let table = place
        .windrow(&["run", "--total", "20", "--", "python3", &worker])
        .expect(8);
    for text in [
        "CODE",
        "NO_USER",
        "#3 user 3 is unknown",
        "hint: ",
        "finished (with failures)",
    ] {
        assert!(
            table.stdout.contains(text),
            "{text:?} is not in\n{}",
            table.stdout
        );
    }
    let again = place
        .windrow(&[
            "run",
            "--total",
            "20",
            "--failures-out",
            "-",
            "--",
            "python3",
            &worker,
        ])
        .expect(8);
    assert_eq!(again.stdout.lines().count(), 2, "{}", again.stdout);
    assert!(again.stderr.contains("already finished"), "{}", again.stderr);
}

#[test]
fn a_handler_that_is_gone_stops_the_job() {
    let place = Place::new();
    let business = Business::answering("410 Gone", "");
    let done = place.windrow(&["run", "--total", "5", "--url", &business.url, "-o", "json"]);
    let done = done.refused(9, &["handler_gone", "windrow try"]);
    let summary = done.json();
    assert_adds_up(&summary);
    assert_eq!(
        (&summary["status"], &summary["stop_reason"]),
        (&json!("stopped"), &json!("handler_gone"))
    );
    assert_eq!(summary["counts"]["pending"], 5);
}

#[test]
fn a_failed_item_is_promised_no_other_attempt() {
    let place = Place::new();
    let business = Business::answering("500 Internal Server Error", "");
    let done = place.windrow(&[
        "run",
        "--total",
        "3",
        "--max-attempts",
        "1",
        "--url",
        &business.url,
    ]);
    let done = done.expect(8);
    assert!(
        done.stdout.contains("HTTP_500")
            && !done.stdout.contains("another attempt")
            && !done.stdout.contains("is retried"),
        "{}",
        done.stdout
    );
    for status in ["500 Internal Server Error", "503 Service Unavailable"] {
        let business = Business::answering(status, "");
        let request = format!("POST {}", business.url);
        let job = [
            "run",
            "--total",
            "2",
            "--name",
            &status[..3],
            "--max-attempts",
            "1",
            "--request",
            &request,
        ];
        let more = [
            "--judge-after",
            "0s",
            "--outage-patience",
            "1s",
            "--first-contact",
            "1s",
        ];
        let done = place.windrow(&[&job[..], &more].concat());
        let said = done.stdout + &done.stderr;
        assert!(said.contains("HTTP_50") && !said.contains("is retried"), "{said}");
    }
}

#[test]
fn a_login_page_stops_the_job() {
    let place = Place::new();
    let business = Business::answering("200 OK", "<html>please sign in</html>");
    let done = place.windrow(&["run", "--total", "50", "--url", &business.url]);
    done.refused(7, &["the handler can't be used"]);
}

#[test]
fn a_worker_that_crashes_at_once_stops_the_job() {
    let place = Place::new();
    let done = place.windrow(&[
        "run",
        "--total",
        "5",
        "--",
        "sh",
        "-c",
        "echo no such module >&2; exit 3",
    ]);
    done.refused(7, &["the handler can't be used", "no such module"]);
}

#[test]
fn too_many_failed_items_stop_the_job() {
    let place = Place::new();
    let worker = every_tenth();
    let job = [
        "run",
        "--total",
        "1000",
        "--rate",
        "500/s",
        "--error-budget",
        "3",
        "--",
        "python3",
        &worker,
    ];
    let stopped = place.windrow(&job).refused(9, &["error_budget"]);
    let hint = "hint: once the job has finished, the same command with --only-failed retries them";
    assert!(stopped.stdout.contains(hint), "{}", stopped.stdout);
}

#[test]
fn who_goes_over_failures_already_is_told_to_do_the_same_again() {
    let place = Place::new();
    let job = |more: &[&str]| {
        let words = [&["run", "--total", "3"], more, &["--each", "sh -c 'exit 65'"]].concat();
        place.windrow(&words).expect(8).stdout
    };
    let first = job(&[]);
    assert!(
        first.contains("the same command with --only-failed retries them"),
        "{first}"
    );
    let again = job(&["--only-failed"]);
    assert!(again.contains("hint: the same command retries them"), "{again}");
}
