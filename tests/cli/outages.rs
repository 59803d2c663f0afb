//! `windrow run` with a handler that isn't there, or that refuses everything: told at once, and nothing is lost.

#![allow(clippy::disallowed_methods, reason = "a test measures real time")]

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection};

use crate::support::{Business, Place};

fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}/", listener.local_addr().expect("an address"))
}

#[test]
fn nothing_that_listens_is_told_within_seconds_and_costs_no_item() {
    let place = Place::new();
    let begun = Instant::now();
    let url = nowhere();
    let words = [
        "run",
        "--total",
        "300",
        "--rate",
        "5/s",
        "--url",
        &url,
        "--first-contact",
        "8s",
        "-o",
        "json",
    ];
    let mut live = place.start(&words);
    let line = live.wait_for("handler down for ");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(
        line.contains("refused") && line.contains("next probe in"),
        "{line}"
    );
    let done = live.end();
    assert_eq!(
        (done.code, done.json()["counts"]["failed"].as_u64()),
        (Some(7), Some(0)),
        "{}",
        done.stderr
    );
    assert_eq!(
        done.json()["stop_reason"],
        "handler_unreachable",
        "{}",
        done.stdout
    );
}

#[test]
fn a_server_that_speaks_no_tls_costs_the_first_contact_and_no_more() {
    let place = Place::new();
    // It takes connections and says nothing: a handshake would wait for the call's ten seconds.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}/", silent.local_addr().expect("an address"));
    let begun = Instant::now();
    let done = place.windrow(&["run", "--total", "3", "--url", &url, "--first-contact", "2s"]);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let said = "no connection within 2s, so nothing was sent";
    assert!(
        done.code == Some(7) && done.stderr.contains(said),
        "{}",
        done.stderr
    );
}

#[test]
fn a_port_that_nobody_may_use_is_no_finished_job_and_the_corrected_command_goes_on() {
    let place = Place::new();
    let rows: String = (0..20).map(|n| format!("u{n}\n")).collect();
    let csv = place.write("u.csv", &format!("user\n{rows}"));
    let words = [
        "run",
        "--csv",
        &csv,
        "--url",
        "http://127.0.0.1:9",
        "--first-contact",
        "4s",
    ];
    place.windrow(&words).refused(7, &["refused"]);
    let business = Business::answering("204 No Content", "");
    place
        .windrow(&["run", "--csv", &csv, "--url", &business.url])
        .expect(0);
    assert_eq!(business.calls().len(), 20);
}

#[test]
fn an_api_that_answers_400_to_everything_is_told_and_ends_the_job() {
    let place = Place::new();
    let business = Business::answering("400 Bad Request", r#"{"error": "no such field"}"#);
    let begun = Instant::now();
    let words = [
        "run",
        "--total",
        "300",
        "--rate",
        "5/s",
        "--url",
        &business.url,
        "-o",
        "json",
    ];
    let done = place.windrow(&words);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(
        (done.code, done.json()["counts"]["failed"].as_u64()),
        (Some(7), Some(0)),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("400"), "{}", done.stderr);
}

#[test]
fn a_worker_that_prints_what_it_is_sent_is_told_at_once() {
    let place = Place::new();
    let done = place.windrow(&["run", "--total", "3", "--", "cat"]);
    assert!(!done.stderr.contains("startup_timeout"), "{}", done.stderr);
    done.refused(7, &["echoes its input"]);
}

#[test]
fn a_worker_that_never_reads_ends_the_job_within_the_first_contact() {
    let place = Place::new();
    let begun = Instant::now();
    let words = [
        "run",
        "--total",
        "3",
        "--first-contact",
        "2s",
        "--",
        "sleep",
        "1000",
    ];
    // Another one may have begun by the end, and is given that long to hear of it.
    let grace = [("WINDROW_HANDLER__COMMAND__KILL_GRACE", "500ms")];
    place.windrow_with(&words, "", &grace).refused(
        7,
        &[
            "did not read its input within 2s",
            "WINDROW_HANDLER__COMMAND__STARTUP_TIMEOUT",
        ],
    );
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
}

#[test]
fn an_interrupted_job_says_what_was_wrong_with_its_handler() {
    let place = Place::new();
    let url = nowhere();
    let mut live = place.start(&["run", "--total", "300", "--url", &url, "--wait"]);
    live.wait_for("handler down for ");
    live.signal(rustix::process::Signal::INT);
    let done = live.end().expect(9);
    for said in ["the last failed call: CONNECT at item", "failed ones are retried"] {
        assert!(done.stderr.contains(said), "{}", done.stderr);
    }
}

#[test]
fn a_run_whose_calls_fail_says_of_whom_they_were() {
    let place = Place::new();
    place.write("u.csv", "user\nann\n");
    let business = Business::answering("500 Internal Server Error", "");
    let words = [
        "run",
        "--csv",
        "u.csv",
        "--max-attempts",
        "9999",
        "--backoff",
        "500ms",
        "--url",
        &business.url,
    ];
    let mut live = place.start(&words);
    let line = live.wait_for("failed in ");
    assert!(line.contains("  {\"user\":\"ann\"}"), "{line}");
    live.signal(rustix::process::Signal::INT);
    let done = live.end().expect(9);
    let told = done
        .stderr
        .lines()
        .find(|line| line.contains("the last failed call: "))
        .expect("it is told");
    assert!(told.ends_with("  {\"user\":\"ann\"}"), "{}", done.stderr);
}

#[test]
fn a_mistyped_name_is_told_of_the_job_that_has_the_same_items() {
    let place = Place::new();
    let csv = place.write("u.csv", "user\na\nb\nc\n");
    let business = Business::answering("410 Gone", "");
    let failing = |name: &str| place.windrow(&["run", "--csv", &csv, "--name", name, "--url", &business.url]);
    let job = |name: &str| {
        let own = ["run", "--csv", &csv, "--name", name, "--each", "test {user} = a"];
        place.windrow(
            &[
                &own[..],
                &["--max-attempts", "1", "--on-exhausted", "stop"],
                &["--concurrency", "1"],
            ]
            .concat(),
        )
    };
    failing("first").expect(9);
    assert!(
        !failing("second").expect(9).stderr.contains("note: "),
        "nothing was done"
    );
    assert!(!job("nightly").expect(9).stderr.contains("note: "));
    let told = [
        "note: the unfinished job \"nightly\" (1 of 3 items) has the same items",
        "windrow run --resume nightly",
    ];
    let done = job("nigthly").refused(9, &told);
    assert!(!done.stderr.contains("so do "), "{}", done.stderr);
    place.write("u.csv", "user\na\nb\nd\n");
    assert!(!job("weekly").expect(9).stderr.contains("note: "), "other items");
}

#[test]
fn a_worker_that_answers_an_id_that_no_item_has_is_named_before_the_timeout_that_follows() {
    let place = Place::new();
    let script = r#"while read -r l; do case $l in *'"type":"item"'*) echo '{"type":"result","id":999999,"result":"ok"}';; esac; done"#;
    let words = [
        "run",
        "--total",
        "3",
        "--call-timeout",
        "500ms",
        "--",
        "sh",
        "-c",
        script,
    ];
    let mut live = place.start(&words);
    let line = live.wait_for("answered the unknown id 999999");
    assert!(line.contains("copy the item's id"), "{line}");
}

/// Holds the write lock of a database, as a disk does that hangs.
async fn hold(path: &Path) -> DatabaseConnection {
    let mut options = ConnectOptions::new(format!("sqlite://{}", path.display()));
    options.max_connections(1);
    let held = Database::connect(options).await.expect("a database");
    held.execute_unprepared("BEGIN IMMEDIATE")
        .await
        .expect("its lock");
    held
}

#[tokio::test]
async fn a_disk_that_hangs_is_told_once_and_in_words_of_people() {
    let place = Place::new();
    let words = [
        "run", "--total", "300", "--rate", "20/s", "--state", "s", "--each", "true",
    ];
    let mut live = place.start(&words);
    live.wait_for("running");
    let held = hold(&place.path("s/windrow.db")).await;
    live.wait_for("can't save progress right now");
    held.execute_unprepared("ROLLBACK").await.expect("it lets go");
    let done = live.end().expect(0);
    assert_eq!(
        done.stderr.matches("can't save progress").count(),
        1,
        "{}",
        done.stderr
    );
    for inner in [
        "WARN",
        "ERROR",
        "heartbeat not written",
        "lease not renewed",
        "not scanned",
    ] {
        assert!(!done.stderr.contains(inner), "{inner}: {}", done.stderr);
    }
}

#[test]
fn a_worker_that_no_longer_starts_costs_no_item_whatever_people_have_decided() {
    let place = Place::new();
    let worker = place.write(
        "worker.sh",
        r#"[ -e broken ] && { echo "config missing" >&2; exit 3; }
        n=0
        while read -r line; do case "$line" in *'"item"'*)
            n=$((n + 1))
            [ $n -gt 30 ] && [ ! -e was ] && { touch was broken; exit 3; }
            echo ok;;
        esac; done"#,
    );
    let words = |more: &[&'static str]| {
        let job = ["run", "--total", "200", "--state", "state", "-o", "json"];
        [&job[..], more, &["--", "sh", worker.as_str()]].concat()
    };
    let mut live = place.start(&words(&[]));
    live.wait_for("handler down");
    live.signal(Signal::INT);
    live.end().expect(9);
    for more in [&[][..], &["--judge-after", "0s"], &["--judge-after", "0s"]] {
        let done = place.windrow(&words(more)).expect(9);
        assert_eq!(done.json()["stop_reason"], "handler_rejected", "{}", done.stdout);
        assert_eq!(done.json()["counts"]["failed"], 0, "{}", done.stdout);
        assert!(done.stderr.contains("config missing"), "{}", done.stderr);
        assert!(
            !done.stderr.contains("--judge-after"),
            "these are no bad items: {}",
            done.stderr
        );
    }
    std::fs::remove_file(place.path("broken")).expect("mended");
    let done = place.windrow(&words(&[])).expect(0);
    assert_eq!(done.json()["counts"]["succeeded"], 200, "{}", done.stdout);
}
