//! `windrow job list` and `rm`: jobs that run, that were stopped or cut off, and that ended.

use rustix::process::Signal;
use serde_json::json;

use super::interrupt::hold_at;
use super::support::{Gate, Place};

const OK: &str = "while read -r l; do echo ok; done";

#[test]
fn jobs_that_have_run_are_listed_with_what_goes_on_with_them() {
    let (place, gate) = (Place::new(), Gate::open());
    place
        .windrow(&["run", "--total", "3", "--name", "good", "--", "sh", "-c", OK])
        .expect(0);
    place
        .windrow(&[
            "run",
            "--total",
            "2",
            "--name",
            "bad",
            "--each",
            "false",
            "--max-attempts",
            "1",
        ])
        .expect(8);
    let worker = gate.worker();
    let mut words = vec!["run", "--total", "7", "--name", "cut", "--concurrency", "1", "--"];
    words.extend(worker.iter().map(String::as_str));
    let job = place.start(&words);
    let mut worker = gate.accept();
    hold_at(&mut worker, 2);
    let running = place
        .windrow(&["job", "list", "--running", "-o", "name"])
        .expect(0);
    assert_eq!(running.stdout, "cut\n");
    place
        .windrow(&["job", "rm", "cut", "--yes"])
        .refused(4, &["cut can't be deleted", "windrow job stop cut"]);
    job.signal(Signal::KILL);
    job.end();
    let listed = place.windrow(&["job", "list", "-o", "json"]).expect(0).json();
    let of = |name: &str| {
        let jobs = listed["items"].as_array().unwrap();
        jobs.iter()
            .find(|job| job["name"] == name)
            .unwrap_or_else(|| panic!("{listed:#}"))
    };
    let is = |name: &str, status: &str, go_on: serde_json::Value| {
        let job = of(name);
        assert_eq!(
            (&job["status"], &job["go_on"]),
            (&json!(status), &go_on),
            "{job:#}"
        );
        assert!(job["ran_at"].is_string() && job["process"].is_null(), "{job:#}");
    };
    is("good", "finished", json!(null));
    is(
        "bad",
        "finished",
        json!("windrow run --resume bad --only-failed …"),
    );
    is("cut", "cut_off", json!("windrow run --resume cut …"));
    assert_eq!(
        (&of("good")["percent"], &of("bad")["still_failed"]),
        (&json!(100.0), &json!(2))
    );
    assert_eq!(
        listed["items"][0]["name"], "cut",
        "the one that ran last is first"
    );
    let csv = place.windrow(&["job", "list", "-o", "csv"]).expect(0).stdout;
    assert!(
        csv.starts_with("name,status,done,items,rate,left,abandoned,ran_at,go_on"),
        "{csv}"
    );
    let none = place.windrow(&["job", "list", "--running", "--quiet"]).expect(0);
    assert_eq!(none.stdout, "");
}

#[test]
fn a_job_that_does_not_run_is_deleted_with_what_it_keeps() {
    let place = Place::new();
    let run = ["run", "--total", "3", "--name", "good", "--", "sh", "-c", OK];
    place.windrow(&run).expect(0);
    let refused = place.windrow(&["job", "rm", "good"]);
    refused.refused(2, &["good has done 3 of 3 items", "are lost", "--yes"]);
    place
        .windrow(&["job", "rm", "gud", "--yes"])
        .refused(3, &["did you mean good?"]);
    let gone = place.windrow(&["job", "rm", "good", "--yes"]).expect(0);
    assert_eq!(gone.stdout, "good  deleted\n");
    assert_eq!(place.windrow(&["job", "list", "-o", "name"]).expect(0).stdout, "");
    let again = place.windrow(&run).expect(0);
    assert!(
        again.stderr.contains("3 items (good)"),
        "{again:?}: it begins anew"
    );
    // One of several jobs that pipes without a name began: the others stay.
    let piped = ["run", "--csv", "-", "--", "sh", "-c", OK];
    place.windrow_with(&piped, "user\na\n", &[]).expect(0);
    place.windrow_with(&piped, "user\nb\n", &[]).expect(0);
    let names = || {
        let listed = place.windrow(&["job", "list", "-o", "name"]).expect(0).stdout;
        let names = listed.lines().filter(|name| name.starts_with("stdin-"));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let before = names();
    assert_eq!(before.len(), 2, "{before:?}");
    place.windrow(&["job", "rm", &before[0], "--yes"]).expect(0);
    assert_eq!(names(), before[1..]);
}
