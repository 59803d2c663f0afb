//! `--each`: a process for each item, by the program as its user calls it.

#![allow(clippy::disallowed_methods, reason = "a test measures real time")]

use std::time::Instant;

use rustix::process::Signal;

use super::interrupt::is_gone;
use super::support::{Done, PATIENCE, Place, assert_adds_up, repository};

const ROWS: &str = "in,out\na b,1\n-rf,2\n;ls,3\n";

#[test]
fn each_row_has_its_process_and_a_value_that_does_not_fit_costs_one_item() {
    let place = Place::new();
    place.write("rows.csv", ROWS);
    let job = [
        "run",
        "--csv",
        "rows.csv",
        "-o",
        "json",
        "--each",
        "sh -c 'printf %s \"$1\" > \"$2\"' sh {in} out-{out}",
    ];
    let done = place.windrow(&job).expect(8);
    let summary = done.json();
    assert_adds_up(&summary);
    assert_eq!(
        (&summary["counts"]["succeeded"], &summary["counts"]["failed"]),
        (&2.into(), &1.into())
    );
    assert_eq!(
        (place.read("out-1"), place.read("out-3")),
        ("a b".to_owned(), ";ls".to_owned())
    );
    assert!(done.stdout.contains("TEMPLATE_VALUE"), "{}", done.stdout);
    let words = [
        "run",
        "--csv",
        "rows.csv",
        "--name",
        "words",
        "--allow-dashes",
        "--each",
        "--",
        "true",
        "{in}",
    ];
    place.windrow(&words).expect(0);
    let shell = [
        "run",
        "--csv",
        "rows.csv",
        "--name",
        "shell",
        "--shell",
        "--each",
        "printf %s \"$ROW_in\" > shell-$ROW_out",
    ];
    place.windrow(&shell).expect(0);
    assert_eq!(
        (place.read("shell-2"), place.read("shell-3")),
        ("-rf".to_owned(), ";ls".to_owned())
    );
}

#[test]
fn what_can_not_work_is_refused_before_anything_starts() {
    let place = Place::new();
    place.write("rows.csv", ROWS);
    let refused = |args: &[&str], texts: &[&str]| {
        let words = [&["run", "--csv", "rows.csv"], args].concat();
        place.windrow(&words).refused(2, texts)
    };
    refused(
        &["--each", "touch started {oops}"],
        &["no column for {oops}", "{in} {out}"],
    );
    refused(&["--each", "touch started {}"], &["{} is the only value"]);
    refused(
        &["--each", "touch started $ROW_oops", "--shell"],
        &["no column for $ROW_oops", "\"$ROW_in\""],
    );
    refused(&["--each", "touch started {in}", "--shell"], &["\"$ROW_in\""]);
    refused(
        &["--each", "touch started", "--batch", "2"],
        &["one process for each item", "--concurrency"],
    );
    refused(&["--each", "touch {"], &["not part of a placeholder"]);
    refused(&["--each", "touch", "--header", "a: b"], &["no URL"]);
    refused(&["--each"], &["names no program"]);
    let none: Done = place.windrow(&["run", "--csv", "rows.csv", "--each", "no-such-program {in}"]);
    none.refused(7, &["command not found"]);
    place
        .windrow(&["try", "--csv", "rows.csv", "--each", "touch {oops}"])
        .refused(2, &["{in} {out}"]);
    assert!(
        !place.names().contains(&"started".to_owned()),
        "{:?}",
        place.names()
    );
}

#[test]
fn a_job_whose_programs_print_for_nobody_says_so_once_and_how_to_keep_it() {
    let place = Place::new();
    place.write("rows.csv", ROWS);
    let run = |more: &[&str]| {
        let job = ["run", "--csv", "rows.csv", "--each", "echo {out}"];
        place.windrow(&[&job[..], more].concat()).expect(0)
    };
    let told = |done: &Done| done.stderr.matches("--results-out FILE keeps").count();
    let plain = run(&["--name", "plain"]);
    assert_eq!(told(&plain), 1, "{}", plain.stderr);
    for more in [
        &["--name", "quiet", "-q"][..],
        &["--name", "file", "--results-out", "out.ndjson"],
    ] {
        let done = run(more);
        assert_eq!(told(&done), 0, "{more:?}: {}", done.stderr);
    }
    // As it says: what has run already is run again.
    run(&["--name", "plain", "--restart", "--results-out", "kept.ndjson"]);
    assert_eq!(place.read("kept.ndjson").lines().count(), 3);
}

#[test]
fn items_without_data_are_their_index() {
    let place = Place::new();
    place
        .windrow(&["run", "--total", "3", "--each", "touch {}-{index}"])
        .expect(0);
    for name in ["0-0", "1-1", "2-2"] {
        assert!(place.names().contains(&name.to_owned()), "{:?}", place.names());
    }
    place
        .windrow(&["run", "--total", "3", "--each", "touch {x}"])
        .refused(2, &["these items have no data"]);
}

#[test]
fn a_trial_shows_what_is_printed() {
    let place = Place::new();
    place.write("rows.csv", ROWS);
    let tried = place
        .windrow(&[
            "try",
            "--csv",
            "rows.csv",
            "--items",
            "0,2",
            "--each",
            "echo {in}",
        ])
        .expect(0);
    assert!(
        tried.stdout.contains("#0 ✓ succeeded \"a b\""),
        "{}",
        tried.stdout
    );
    assert!(
        tried.stdout.contains("#2 ✓ succeeded \";ls\""),
        "{}",
        tried.stdout
    );
}

/// A job of one item whose process says who it is, and stays.
const STAYS: [&str; 9] = [
    "run",
    "--total",
    "1",
    "--state",
    "state",
    "--call-timeout",
    "1h",
    "--each",
    "sh -c 'sleep 1000 & echo $$ > leader; echo $! > child; mv child started; wait'",
];

/// The leader of the process and what it started, once it has.
fn started(place: &Place) -> [i32; 2] {
    for _ in 0..6000 {
        if place.path("started").is_file() {
            return ["leader", "started"].map(|name| place.read(name).trim().parse().unwrap());
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the process was not started: {:?}", place.names())
}

#[test]
fn a_second_ctrl_c_ends_the_process_and_all_that_it_started() {
    let place = Place::new();
    let mut job = place.start(&STAYS);
    let processes = started(&place);
    job.signal(Signal::INT);
    job.wait_for("stopping: ");
    job.signal(Signal::INT);
    job.end();
    assert!(processes.into_iter().all(is_gone));
}

#[test]
fn what_a_kill_9_left_is_ended_by_the_next_start() {
    let place = Place::new();
    let job = place.start(&STAYS);
    let processes = started(&place);
    job.signal(Signal::KILL);
    drop(job);
    let is_alive = |pid: &i32| place.path(&format!("/proc/{pid}/stat")).is_file();
    assert!(processes.iter().all(is_alive), "nothing was left to be ended");
    place
        .windrow(&["run", "--total", "1", "--state", "state", "--each", "true"])
        .expect(0);
    assert!(processes.into_iter().all(is_gone));
}

#[test]
fn the_race_with_xargs_runs_with_results() {
    let place = Place::new();
    let mut race = assert_cmd::Command::new(repository("scripts/exec-race.sh"));
    race.args(["60", "2"])
        .env("SMOKE", "1")
        .env("WINDROW", env!("CARGO_BIN_EXE_windrow"))
        .env("HOME", place.path(""))
        .timeout(PATIENCE);
    let told = race.assert().success().get_output().stdout.clone();
    let told = String::from_utf8(told).unwrap();
    let is_compared = told.contains("windrow --each") && told.contains("x xargs");
    assert!(is_compared || told.starts_with("skipped: "), "{told}");
}

/// How long a run of three programs takes, and how long it says that it took: the best of three runs, since other tests may be
/// in the way of any. Unit: seconds.
fn best_of_three(control: &str) -> (f64, f64) {
    let runs = (0..3).map(|_| {
        let begun = Instant::now();
        let run = ["run", "--total", "3", "--each", "true", "-o", "json", control];
        let done = Place::new().windrow(&run).expect(0);
        let told = done.json()["duration_seconds"].as_f64().expect("a span");
        (begun.elapsed().as_secs_f64(), told)
    });
    runs.reduce(|(took, told), (also, said)| (took.min(also), told.min(said)))
        .expect("three runs")
}

#[test]
fn a_run_that_others_may_steer_ends_as_soon_as_one_that_they_may_not() {
    let (on, off) = (best_of_three("--control=on"), best_of_three("--control=off"));
    // Half a bound of the closing log: what was waited for and never came took all of it.
    assert!(on.0 < off.0 + 1.0, "{on:?} beside {off:?}");
    assert!(on.1 < off.1 + 1.0, "{on:?} beside {off:?}");
}

#[test]
fn programs_that_find_nobody_cost_no_item_an_attempt() {
    let place = Place::new();
    place.write("down", "");
    // The first ones succeed, then what the programs need is gone for a while.
    let script = r#"test "$WINDROW_INDEX" -lt 8 || ! test -e down || exit 7"#;
    let mut live = place.start(&[
        "run",
        "--total",
        "30",
        "--concurrency",
        "2",
        "--rate",
        "50/s",
        "--max-attempts",
        "2",
        "--backoff",
        "100ms",
        "--shell",
        "--each",
        script,
        "--name",
        "all",
    ]);
    live.wait_for("handler down");
    std::fs::remove_file(place.path("down")).unwrap();
    let done = live.end().expect(0);
    assert!(done.stderr.contains("30/30"), "{}", done.stderr);
}

#[test]
fn the_exit_codes_of_people_are_those_of_an_outage_from_the_first_item_on() {
    let place = Place::new();
    // Each program fails twice, of three attempts none of which counts.
    let script = r#"echo x >> "n$WINDROW_INDEX"; test "$(wc -l < "n$WINDROW_INDEX")" -gt 2 || exit $CODE"#;
    for (code, more) in [("75", &[][..]), ("28", &["--unavailable-exit", "6,7,28"])] {
        let script = script.replace("$CODE", code);
        let run = [
            "run",
            "--total",
            "2",
            "--max-attempts",
            "1",
            "--shell",
            "--each",
            &script,
            "--name",
            code,
        ];
        let done = place.windrow(&[&run[..], more].concat()).expect(0);
        assert!(done.stderr.contains("2/2"), "{}", done.stderr);
        std::fs::remove_file(place.path("n0")).unwrap();
        std::fs::remove_file(place.path("n1")).unwrap();
    }
    place
        .windrow(&["run", "--total", "2", "--each", "true", "--unavailable-exit", "0"])
        .expect(2);
}
