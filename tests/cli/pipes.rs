//! Jobs that a pipe began: the same pipe, one that brings something else, and none at all; and jobs that are finished.

use rustix::process::Signal;
use serde_json::json;

use super::support::{Gate, Live, Place, Worker, assert_adds_up};

const OK: &str = "while read -r l; do echo ok; done";
const WELL: &str = r#"{"result":"ok"}"#;

/// Begins `windrow run --csv - …` with this file on its standard input; its worker asks the test.
fn begin(place: &Place, gate: &Gate, file: &str, more: &str) -> Live {
    let program = env!("CARGO_BIN_EXE_windrow");
    let worker = gate.worker().join(" ");
    place.start_shell(&format!("exec {program} run --csv - {more} -- {worker} < {file}"))
}

/// Lets so many items through and kills the program with the next one in the worker's hands.
fn kill_at(live: Live, mut worker: Worker, index: u64) {
    for expected in 0..index {
        assert_eq!(worker.next(), Some(expected));
        worker.answer(WELL);
    }
    assert_eq!(worker.next(), Some(index));
    live.signal(Signal::KILL);
    assert_eq!(live.end().code, None);
}

fn resume<'a>(name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [
        &["run", "--resume", name, "-o", "json"],
        more,
        &["--", "sh", "-c", OK],
    ]
    .concat()
}

/// Where a named job keeps what was piped in.
fn spool_of(place: &Place, name: &str) -> std::path::PathBuf {
    let jobs = std::fs::read_dir(place.path(".local/state/windrow")).unwrap();
    let is_its = |path: &std::path::PathBuf| {
        path.file_name()
            .is_some_and(|file| file.to_string_lossy().starts_with(&format!("job-{name}-")))
    };
    let mut found = jobs.map(|entry| entry.unwrap().path()).filter(is_its);
    found.next().expect("the job has a directory").join("spool")
}

#[test]
fn a_killed_job_goes_on_with_what_was_piped_in_whatever_the_pipe_would_bring_now() {
    let (place, gate) = (Place::new(), Gate::open());
    place.write("old.csv", "user\na\nb\nc\nd\ne\n");
    place.write("new.csv", "user\nb\nc\nd\ne\nf\n");
    let job = begin(&place, &gate, "old.csv", "--name push --rate 50/s");
    kill_at(job, gate.accept(), 3);

    let new = place.read("new.csv");
    let other = ["run", "--csv", "-", "--name", "push", "--", "sh", "-c", OK];
    let refused = place.windrow_with(&other, &new, &[]);
    refused.refused(7, &["5 other items", "windrow run --resume push ", "--restart"]);

    let kept = || std::fs::read_dir(spool_of(&place, "push")).unwrap().count();
    assert_eq!(kept(), 1, "what was refused is kept nowhere");
    let done = place.windrow(&resume("push", &[])).expect(0);
    assert!(done.stderr.contains("resuming t1: "), "{}", done.stderr);
    assert!(
        !done.stderr.contains("rate changed from"),
        "it keeps it: {}",
        done.stderr
    );
    let summary = done.json();
    assert_adds_up(&summary);
    assert_eq!((&summary["id"], &summary["name"]), (&json!("t1"), &json!("push")));
    assert_eq!(summary["counts"]["succeeded"], 5);
}

#[test]
fn a_killed_job_begins_anew_over_what_was_piped_in_where_that_is_wanted() {
    let (place, gate) = (Place::new(), Gate::open());
    place.write("old.csv", "user\na\nb\nc\nd\ne\n");
    let job = begin(&place, &gate, "old.csv", "--name push --rate 50/s");
    kill_at(job, gate.accept(), 3);
    let anew = place.windrow(&resume("push", &["--restart"])).expect(0);
    assert!(!anew.stderr.contains("resuming"), "{}", anew.stderr);
    let summary = anew.json();
    assert_eq!((&summary["id"], &summary["name"]), (&json!("t2"), &json!("push")));
    assert_eq!(
        (&summary["counts"]["succeeded"], &summary["rate"]),
        (&json!(5), &json!("50/s")),
        "all of its items, as it was driven"
    );
}

#[test]
fn a_pipe_without_a_name_says_what_it_left_behind_and_how_that_goes_on() {
    let (place, gate) = (Place::new(), Gate::open());
    place.write("old.csv", "user\na\nb\nc\n");
    let mut job = begin(&place, &gate, "old.csv", "");
    let mut worker = gate.accept();
    assert_eq!(worker.next(), Some(0));
    job.signal(Signal::INT);
    job.wait_for("stopping: ");
    worker.answer(WELL);
    worker.serve();
    let stopped = job.end().expect(9);
    let hint = stopped
        .stderr
        .lines()
        .find(|line| line.contains("--resume"))
        .expect("it names the way on");
    let name = hint
        .split("--resume ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .expect("a name");
    assert!(
        name.starts_with("stdin-") && hint.contains("if the pipe brings the same items again"),
        "{hint}"
    );

    let other = ["run", "--csv", "-", "--", "sh", "-c", OK];
    let beside = place.windrow_with(&other, "user\nx\n", &[]).expect(0);
    assert!(
        beside.stderr.contains("from an earlier pipe is unfinished"),
        "{}",
        beside.stderr
    );
    assert!(
        beside.stderr.contains(&format!("windrow run --resume {name} ")),
        "{}",
        beside.stderr
    );

    let jobs = place.windrow(&["job"]).expect(0);
    assert!(jobs.stdout.contains(name), "{}", jobs.stdout);

    let done = place.windrow(&resume(name, &[])).expect(0);
    assert_eq!(done.json()["counts"]["succeeded"], 3);
}

#[test]
fn what_can_not_be_resumed_says_why_and_makes_nothing() {
    let place = Place::new();
    place.windrow(&resume("push", &[])).expect(3);
    assert_eq!(place.names(), [""; 0], "nothing was made");
    let nothing = ["run", "--resume", "push", "--", "sh", "-c", OK];
    place
        .windrow(&nothing)
        .refused(3, &["no job push to resume", "job-push-", "(NAME)"]);
    assert_eq!(place.names(), [""; 0], "nothing was made");

    let gate = Gate::open();
    place.write("old.csv", "user\na\nb\nc\n");
    let job = begin(&place, &gate, "old.csv", "--name push --state state");
    kill_at(job, gate.accept(), 1);
    let unknown = [
        "run", "--resume", "pull", "--state", "state", "--", "sh", "-c", OK,
    ];
    place
        .windrow(&unknown)
        .refused(3, &["no job pull to resume", "past jobs: push"]);

    let both = [
        "run", "--resume", "push", "--csv", "-", "--state", "state", "--", "sh", "-c", OK,
    ];
    let both = place.windrow(&both).expect(2);
    assert!(
        both.stderr.contains("--resume") && both.stderr.contains("--csv"),
        "{}",
        both.stderr
    );
    let options = [
        "run",
        "--resume",
        "push",
        "--no-header",
        "--state",
        "state",
        "--",
        "sh",
        "-c",
        OK,
    ];
    place.windrow(&options).refused(2, &["applies to CSV"]);

    std::fs::remove_dir_all(place.path("state/spool")).unwrap();
    let gone = [
        "run", "--resume", "push", "--state", "state", "--", "sh", "-c", OK,
    ];
    place
        .windrow(&gone)
        .refused(7, &["the stored items are missing", "stdin-", "--restart"]);
}

#[test]
fn kept_items_that_were_changed_are_not_taken_for_the_old_ones() {
    let (place, gate) = (Place::new(), Gate::open());
    place.write("old.csv", "user\na\nb\nc\n");
    let job = begin(&place, &gate, "old.csv", "--name push --state state");
    kill_at(job, gate.accept(), 1);
    let spool = std::fs::read_dir(place.path("state/spool"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::write(spool, "user\nx\ny\n").unwrap();
    let words = [
        "run", "--resume", "push", "--state", "state", "--", "sh", "-c", OK,
    ];
    place
        .windrow(&words)
        .refused(7, &["the job's items have changed", "--restart"]);
}

#[test]
fn a_finished_job_says_so_also_when_it_is_to_be_quiet_and_a_script_says_what_it_means() {
    let place = Place::new();
    let fails = r#"while read -r l; do echo '{"result":"fail","code":"NO","message":"no"}'; done"#;
    let job = |more: &[&'static str]| {
        let words = [
            &["run", "-q", "--total", "3", "-o", "json"],
            more,
            &["--", "sh", "-c", fails],
        ]
        .concat();
        place.windrow(&words)
    };
    assert_eq!(job(&[]).expect(8).stderr, "");
    for (more, code) in [
        (&[][..], 8),
        (&["--if-finished", "ok"], 0),
        (&["--if-finished", "error"], 4),
    ] {
        let done = job(more).expect(code);
        assert!(
            done.stderr.contains("t1 already finished ("),
            "{more:?}: {}",
            done.stderr
        );
        assert_eq!(
            done.json()["counts"]["failed"],
            3,
            "its outcome is printed all the same"
        );
    }
    let anew = job(&["--if-finished", "restart"]).expect(8);
    assert_eq!(
        (anew.json()["id"].as_str(), anew.stderr.as_str()),
        (Some("t2"), "")
    );

    let ended = place
        .windrow(&resume("total-3", &["--if-finished", "error"]))
        .expect(4);
    assert!(ended.stderr.contains("t2 already finished"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains(", --restart runs the job again"),
        "{}",
        ended.stderr
    );
    let anew = place
        .windrow(&resume("total-3", &["--if-finished", "restart"]))
        .expect(0);
    assert_eq!(
        (&anew.json()["id"], &anew.json()["counts"]["succeeded"]),
        (&json!("t3"), &json!(3))
    );
    let anew = place.windrow(&resume("total-3", &["--restart"])).expect(0);
    assert_eq!(
        (&anew.json()["id"], &anew.json()["counts"]["succeeded"]),
        (&json!("t4"), &json!(3))
    );
}

/// What a timer runs every night: a query under one name.
#[test]
fn a_finished_job_makes_way_for_what_the_pipe_brings_next_where_that_is_wanted() {
    let place = Place::new();
    let night = |rows: &str, more: &[&'static str]| {
        let words = [
            &["run", "-q", "--csv", "-", "--name", "nightly", "-o", "json"],
            more,
        ]
        .concat();
        place.windrow_with(&[&words[..], &["--", "sh", "-c", OK]].concat(), rows, &[])
    };
    assert_eq!(night("user\na\nb\n", &[]).expect(0).json()["id"], "t1");
    let error = night("user\nc\n", &["--if-finished", "ok"]).expect(7).json()["error"].to_string();
    for text in ["2 other items", "that finished job", "--if-finished restart"] {
        assert!(error.contains(text), "{error}");
    }
    let spool = spool_of(&place, "nightly");
    let kept = || std::fs::read_dir(&spool).unwrap().count();
    assert_eq!(kept(), 1, "what was refused is kept nowhere");
    let next = night("user\nc\n", &["--if-finished", "restart"]).expect(0).json();
    assert_eq!(
        (&next["id"], &next["counts"]["succeeded"]),
        (&json!("t2"), &json!(1))
    );
    assert_eq!(kept(), 2);
    night("user\na\nb\n", &[]).expect(7);
    assert_eq!(kept(), 2, "another job of before has worked on the same items");
}

#[test]
fn what_is_not_finished_is_resumed_whatever_finished_would_mean() {
    let (place, gate) = (Place::new(), Gate::open());
    place.write("old.csv", "user\na\nb\nc\n");
    let job = begin(&place, &gate, "old.csv", "--name push");
    kill_at(job, gate.accept(), 2);
    let words = [
        "run",
        "--csv",
        "-",
        "--name",
        "push",
        "--if-finished",
        "restart",
        "-o",
        "json",
    ];
    let words = [&words[..], &["--", "sh", "-c", OK]].concat();
    let done = place.windrow_with(&words, &place.read("old.csv"), &[]).expect(0);
    assert_eq!(
        (&done.json()["id"], &done.json()["counts"]["succeeded"]),
        (&json!("t1"), &json!(3))
    );
}

#[test]
fn a_log_that_nobody_reads_any_more_ends_no_job() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_windrow");
    for talk in ["-v", "-vv"] {
        let job =
            format!("{program} run --total 200 --rate 400/s --name job{talk} -o json {talk} -- sh -c '{OK}'");
        let script = format!("({job} 2>&1 1>out.json; echo $? >code) | head -n 1 >line");
        place.start_shell(&script).end().expect(0);
        assert_eq!(place.read("code").trim(), "0", "{talk}: {}", place.read("line"));
        let out: serde_json::Value = serde_json::from_str(&place.read("out.json")).expect("an outcome");
        assert_eq!(out["counts"]["succeeded"], 200, "{out}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_no_job_and_changes_no_exit_code() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_windrow");
    let fails = r#"while read -r l; do echo '{"result":"fail","code":"NO"}'; done"#;
    for (name, worker, flags, lines, code) in [
        ("both", OK, "-o table 2>&1", 1, "0"),
        ("outcome", OK, "-o table 2>err", 0, "0"),
        ("json", OK, "-o json 2>err", 0, "0"),
        ("failed", fails, "-o table 2>&1", 1, "8"),
    ] {
        place.write("worker", worker);
        let job = format!("{program} run --total 60 --rate 200/s --name {name} {flags}");
        let script = format!("({job} -- sh -c \"$(cat worker)\"; echo $? >code) | head -n {lines}");
        place.start_shell(&script).end().expect(0);
        assert_eq!(place.read("code").trim(), code, "{name}");
        let shown = place
            .windrow(&["job", "show", name, "-o", "json"])
            .expect(0)
            .json();
        assert_eq!(shown["status"], "finished", "{shown}");
    }
}

#[test]
fn names_of_files_that_nuls_end_are_items_to_the_character() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_windrow");
    let job = format!("{program} run --lines - -0 --name found --results-out - -q --each 'cat {{}}'");
    let script =
        format!("mkdir d; echo a >'d/b c'; echo b >'d/n\nl'; find d -type f -print0 | sort -z | {job}");
    let ran = place.start_shell(&script).end().expect(0);
    let lines: Vec<serde_json::Value> = (ran.stdout.lines())
        .map(|line| serde_json::from_str(line).expect("a result"))
        .collect();
    let texts: Vec<&str> = lines.iter().filter_map(|line| line["output"].as_str()).collect();
    assert_eq!(texts, ["a", "b"], "{}", ran.stdout);
}

#[test]
fn what_was_to_be_written_to_a_closed_pipe_is_missed() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_windrow");
    let answers = r#"while read -r l; do echo '{"result":"ok","output":1}'; done"#;
    place.write("worker", answers);
    let job = format!("{program} run --total 200 --rate 200/s --name results --results-out - -- sh -c");
    let script = format!("({job} \"$(cat worker)\" 2>err; echo $? >code) | head -n 1");
    place.start_shell(&script).end().expect(0);
    assert_eq!(place.read("code").trim(), "1", "{}", place.read("err"));
    let because = "because the program at the other end of the pipe has closed it";
    assert!(place.read("err").contains(because), "{}", place.read("err"));
    let full = format!("{program} run --total 3 --name full -o json -- sh -c '{OK}' >/dev/full");
    let full = place.start_shell(&full).end().expect(1);
    assert!(full.stderr.contains("can't print the result"), "{}", full.stderr);
}

#[test]
fn a_pipe_that_takes_its_time_is_told_to_be_read_to_its_end_first() {
    let (place, program) = (Place::new(), env!("CARGO_BIN_EXE_windrow"));
    let slow = "(printf 'user\\na\\n'; sleep 3; printf 'b\\n')";
    let done = place
        .start_shell(&format!("{slow} | {program} run --csv - -- sh -c '{OK}'"))
        .end()
        .expect(0);
    assert!(
        done.stderr.contains("reading standard input")
            && done.stderr.contains("processing starts at its end"),
        "{}",
        done.stderr
    );
}
