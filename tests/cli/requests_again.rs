//! Jobs with `--request` that are resumed by their names: with the request that is kept, and with what is typed beside it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::requests::Api;
use super::support::Place;

/// An API that finds fault with every fourth item, and a job of 60 items that it ends with failures.
fn shipped(header: &str) -> (Place, Api) {
    let place = Place::new();
    place.write("t.txt", "geheim\n");
    let rows: String = (0..60).map(|row| format!("{row}\n")).collect();
    place.write("ids.csv", &format!("id\n{rows}"));
    let api = Api::start(|seen| {
        let id: u64 = seen.line.split(['/', ' ']).nth(3).unwrap().parse().unwrap();
        if id.is_multiple_of(4) {
            (409, "not in stock".to_owned())
        } else {
            (200, "{\"ok\":true}".to_owned())
        }
    });
    let request = format!("POST {}/o/{{id}}", api.origin);
    let mut words = vec!["run", "--csv", "ids.csv", "--name", "ship", "--request", &request];
    words.extend([
        "--rate",
        "100/s",
        "--error-budget",
        "none",
        "--results-out",
        "first.ndjson",
    ]);
    words.extend([
        "--header",
        header,
        "--header",
        "x-t: {secret.t}",
        "--secret",
        "t=@t.txt",
    ]);
    place.windrow(&words).expect(8);
    (place, api)
}

#[test]
fn failures_that_fail_again_are_all_called_once_and_stay_failures() {
    let (place, api) = shipped("authorization: Bearer {secret.t}");
    let before = api.seen().len();
    let again = ["run", "--resume", "ship", "--only-failed", "-o", "json"];
    let done = place.windrow(&again).expect(8).json();
    assert_eq!(done["counts"]["failed"], 15, "{done}");
    let mut calls = BTreeMap::<String, u32>::new();
    for seen in &api.seen()[before..] {
        *calls.entry(seen.line.clone()).or_default() += 1;
    }
    assert_eq!(calls.len(), 15, "{calls:?}");
    assert!(calls.values().all(|calls| *calls == 1), "{calls:?}");
    // As often as is liked.
    place.windrow(&again).expect(8);
}

#[test]
fn flags_of_a_request_change_the_one_that_is_kept() {
    let (place, api) = shipped("authorization: Bearer {secret.t}");
    let words = [
        "run",
        "--resume",
        "ship",
        "--only-failed",
        "--skip",
        "409",
        "-o",
        "json",
    ];
    let words = [&words[..], &["--header", "x-again: yes"]].concat();
    let done = place.windrow(&words).expect(0).json();
    assert_eq!(done["counts"]["skipped"], 15, "{done}");
    let last = api.seen().pop().unwrap();
    for header in ["authorization: Bearer geheim\r\n", "x-again: yes\r\n"] {
        assert!(last.head.contains(header), "{}", last.head);
    }
}

#[test]
fn flags_that_fit_no_request_are_refused_where_the_job_has_a_command() {
    let place = Place::new();
    let script = "while read -r l; do echo fail; done";
    let words = ["run", "--total", "3", "--name", "push", "--", "sh", "-c", script];
    place.windrow(&words).expect(8);
    let resume = ["run", "--resume", "push", "--only-failed"];
    for flags in [["--skip", "409"], ["--header", "x: y"]] {
        place
            .windrow(&[&resume[..], &flags].concat())
            .refused(2, &[flags[0]]);
    }
}

#[test]
fn a_job_that_goes_on_writes_its_failures_where_it_was_begun_to() {
    let place = Place::new();
    let script = "[ -e go ] || exit 1; while read -r l; do echo fail; done";
    let begun = [
        "run",
        "--total",
        "3",
        "--name",
        "push",
        "--failures-out",
        "f.ndjson",
    ];
    let handler = ["--first-contact", "1s", "--", "sh", "-c", script];
    place.windrow(&[&begun[..], &handler].concat()).expect(7);
    place.write("go", "");
    place.windrow(&["run", "--resume", "push"]).expect(8);
    let failures = place.read("f.ndjson");
    assert_eq!(failures.lines().count(), 3, "{failures}");
}

#[test]
fn results_are_written_again_without_the_handler_and_what_was_typed_is_advised() {
    let (place, api) = shipped("authorization: Bearer 5ecret");
    let calls = api.seen().len();
    let resume = ["run", "--resume", "ship"];
    place
        .windrow(&[&resume[..], &["--results-out", "all.ndjson"]].concat())
        .expect(8);
    let rows = place.read("all.ndjson");
    assert_eq!(rows.lines().count(), 45, "{rows}");
    assert!(rows.lines().all(|row| serde_json::from_str::<Value>(row).is_ok()));
    assert_eq!(api.seen().len(), calls, "nothing was called");
    let more = ["--only-failed", "--ok", "200", "-o", "json"];
    let again = [
        "windrow run --resume ship --only-failed -o json",
        "--header 'authorization: …'",
        "--ok 200",
        "--secret 't=@t.txt'",
    ];
    place.windrow(&[&resume[..], &more].concat()).refused(2, &again);
    let header = ["--only-failed", "--header", "authorization: Bearer 5ecret"];
    place.windrow(&[&resume[..], &header].concat()).expect(8);
}
