//! Every way in which a job can't begin: the exit code, three parts of an error, and nothing half-written.

use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use super::support::{Gate, Place};

const OK: &str = "while read -r l; do echo ok; done";

/// A job over a CSV in the place.
fn csv_job<'a>(csv: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [
        &["run", "--csv", csv, "--state", "state"],
        more,
        &["--", "sh", "-c", OK],
    ]
    .concat()
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let place = Place::new();
    for wrong in [
        &["run"][..],
        &["run", "--total", "3"],
        &["run", "--", "true"],
        &["run", "--total", "3", "--csv", "x.csv", "--", "true"],
        &["run", "--total", "3", "--url", "http://x", "--", "true"],
        &["run", "--total", "3", "--rate", "500", "--", "true"],
        &["run", "--total", "3", "--delimiter", ";", "--", "true"],
        &["run", "--total", "3", "--url", "http://x", "--header", "no colon"],
        &["run", "--total", "3", "--header", "a: b", "--", "true"],
        &["run", "--total", "3", "--secret-file", "/dev/null", "--", "true"],
        &["try", "--header", "a: b", "--", "true"],
        &["run", "--total", "3", "--workers", "0", "--", "true"],
        &["run", "--total", "3", "--workers", "100000", "--", "true"],
        &[
            "run",
            "--total",
            "3",
            "--window",
            "4",
            "--concurrency",
            "64",
            "--",
            "true",
        ],
        &[
            "run",
            "--total",
            "3",
            "-o",
            "json",
            "--failures-out",
            "-",
            "--",
            "true",
        ],
        &[
            "run",
            "--total",
            "3",
            "--failures-out",
            "none/f.ndjson",
            "--",
            "true",
        ],
        &["task", "create", "push", "--total", "3", "--shards", "0"],
        &["task", "set", "t1", "--shards", "-1"],
        &["frobnicate"],
        &["help", "frobnicate"],
    ] {
        let done = place.windrow(wrong).expect(2);
        assert!(done.stderr.contains("error: "), "{wrong:?}: {}", done.stderr);
    }
    assert_eq!(place.names(), [""; 0], "nothing was made");
}

#[test]
fn what_would_be_read_otherwise_than_meant_is_told_what_to_write() {
    let place = Place::new();
    let refused = |more: &[&str], texts: &[&str]| {
        place
            .windrow(&[&["run", "--total", "3"], more].concat())
            .refused(2, texts)
    };
    refused(
        &["--url", "http://127.0.0.1:9/user/{id}"],
        &[
            "{id} in --url",
            "--request 'POST http://127.0.0.1:9/user/{id}'",
            "%7B",
        ],
    );
    let tried = place.windrow(&["try", "--url", "http://127.0.0.1:9/user/{id}"]);
    tried.refused(2, &["{id} in --url", "--request 'POST "]);
    refused(
        &["--failures-out", "bad.csv", "--", "true"],
        &["lines of JSON", "--failures-out bad.ndjson"],
    );
    let both = refused(
        &["--failures-out", "-", "--results-out", "-", "--", "true"],
        &["standard output has the failed items"],
    );
    assert!(!both.stderr.contains("or - for"), "{}", both.stderr);
    assert_eq!(place.names(), [""; 0], "nothing was made");
}

#[test]
fn a_script_finds_one_object_on_standard_output_when_a_job_can_not_begin() {
    let place = Place::new();
    let done = place
        .windrow(&["run", "--csv", "none.csv", "-o", "json", "--", "true"])
        .expect(7);
    let error = &done.json()["error"];
    assert_eq!(error["exit_code"], 7);
    assert!(
        error["because"][0].as_str().unwrap().contains("no such file"),
        "{error}"
    );
    assert!(error["try"].is_string(), "{error}");
    let usage = place.windrow(&[
        "run",
        "--total",
        "3",
        "--call-timeout",
        "0s",
        "-o",
        "json",
        "--",
        "true",
    ]);
    assert_eq!(usage.expect(2).json()["error"]["exit_code"], 2);
}

#[test]
fn each_verb_tells_a_script_of_its_failure_in_one_object() {
    let place = Place::new();
    let closed = "http://127.0.0.1:9";
    for (words, exit) in [
        (
            &[
                "task",
                "list",
                "--server",
                closed,
                "--request-timeout",
                "1s",
                "-o",
                "json",
            ][..],
            6,
        ),
        (
            &[
                "schedule",
                "show",
                "a/b",
                "--server",
                closed,
                "--request-timeout",
                "1s",
                "--output=json",
            ],
            6,
        ),
        (&["token", "list", "--server", "ftp://x", "-o", "json"], 2),
        (&["job", "show", "nobody", "-o", "json"], 3),
        (&["ctx", "show", "nobody", "-o", "json"], 3),
        (&["task", "list", "--nonsense", "-o", "json"], 2),
        (&["nonsense", "-o", "json"], 2),
    ] {
        let done = place.windrow(words);
        let error = &done.json()["error"];
        assert_eq!(error["exit_code"], exit, "{words:?}: {error}");
        assert!(error["because"][0].is_string(), "{words:?}: {error}");
        done.expect(exit);
    }
}

#[test]
fn help_that_can_not_be_written_is_a_failure() {
    let program = env!("CARGO_BIN_EXE_windrow");
    for words in ["--help", "run -h", "--version", "help exit-codes"] {
        let status = |out: &str| {
            let line = format!("{program} {words} >{out} 2>/dev/null");
            let done = std::process::Command::new("sh").args(["-c", &line]).status();
            done.expect("a shell").code()
        };
        assert_eq!(status("/dev/full"), Some(1), "{words}");
        assert_eq!(status("/dev/null"), Some(0), "{words}");
    }
}

#[test]
fn a_handler_that_can_not_be_started_is_refused_before_anything_is_made() {
    let place = Place::new();
    let missing = place.windrow(&["run", "--total", "3", "--", "windrow-no-such-command"]);
    missing.refused(7, &["command not found in PATH=", "windrow-no-such-command"]);
    let quoted = place.windrow(&["run", "--total", "3", "--", "python3 -u worker.py"]);
    quoted.refused(7, &["not quoted as one: -- python3 -u worker.py"]);
    let script = place.write("worker.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o644)).unwrap();
    place
        .windrow(&["run", "--total", "3", "--", &script])
        .refused(7, &["not executable", "chmod +x"]);
    let done = place
        .windrow(&["run", "--total", "3", "--url", "ftp://x"])
        .expect(2);
    assert!(done.stderr.contains("neither http nor https"), "{}", done.stderr);
    assert_eq!(place.names(), ["worker.sh"]);
}

#[test]
fn a_file_that_is_no_source_is_refused_by_name_and_line() {
    let place = Place::new();
    place
        .windrow(&csv_job("none.csv", &[]))
        .refused(7, &["none.csv", "no such file"]);
    assert_eq!(place.names(), [""; 0], "a mistyped path leaves nothing behind");
    place.write("empty.csv", "");
    place
        .windrow(&csv_job("empty.csv", &[]))
        .refused(7, &["empty.csv", "without even a header"]);
    place.write("header.csv", "a,b\n");
    place
        .windrow(&csv_job("header.csv", &["--if-empty", "error"]))
        .refused(7, &["--no-header"]);
    place.write("items.ndjson", "{\"id\":1}\n{\"id\":2}\n");
    place
        .windrow(&csv_job("items.ndjson", &[]))
        .refused(7, &["looks like NDJSON", "--ndjson FILE"]);
    place.write("ragged.csv", "a,b\n1,2\n1,2,3\n1,2\n4\n");
    place
        .windrow(&csv_job("ragged.csv", &[]))
        .refused(7, &["line 3: 3 fields, expected 2", "line 5: 1 field"]);
    place.write("semicolons.csv", "a;b\n1;2,5\n");
    place
        .windrow(&csv_job("semicolons.csv", &[]))
        .refused(7, &["--delimiter ';'"]);
    place
        .windrow(&csv_job(".", &[]))
        .refused(7, &["it is a directory", "pass a file in it"]);
    place
        .windrow(&csv_job("/dev/null", &[]))
        .refused(7, &["without even a header"]);
}

#[test]
fn a_directory_that_is_in_use_names_its_process() {
    let (place, gate) = (Place::new(), Gate::open());
    let worker = gate.worker();
    let mut words = vec!["run", "--total", "2", "--state", "state", "--"];
    words.extend(worker.iter().map(String::as_str));
    let job = place.start(&words);
    let worker = gate.accept();
    let refused = place.windrow(&["run", "--total", "5", "--state", "state", "--", "sh", "-c", OK]);
    refused.refused(4, &[&format!("process {} is working in state", job.pid())]);
    job.signal(Signal::INT);
    worker.serve();
    job.end();
}

#[test]
fn different_jobs_run_at_the_same_time_without_a_state_directory() {
    let (place, gate) = (Place::new(), Gate::open());
    let worker = gate.worker();
    let mut words = vec!["run", "--total", "2", "--"];
    words.extend(worker.iter().map(String::as_str));
    let job = place.start(&words);
    let worker = gate.accept();
    place
        .windrow(&["run", "--total", "5", "--", "sh", "-c", OK])
        .expect(0);
    place.windrow(&words).refused(4, &["is working in"]);
    worker.serve();
    job.end().expect(0);
}

#[test]
fn a_place_that_is_no_directory_is_refused() {
    let place = Place::new();
    place.write("state", "mine");
    place
        .windrow(&["run", "--total", "3", "--state", "state", "--", "sh", "-c", OK])
        .refused(1, &["not a directory"]);
    assert_eq!(place.read("state"), "mine");
}

#[test]
fn a_read_only_place_is_refused() {
    // The kernel's own file system refuses even the superuser, for whom permissions don't count.
    let place = Place::new();
    let done = place.windrow(&[
        "run",
        "--total",
        "3",
        "--state",
        "/proc/windrow",
        "--",
        "sh",
        "-c",
        OK,
    ]);
    done.refused(1, &["/proc/windrow", "--state"]);
}

#[test]
fn a_database_of_a_newer_windrow_is_left_alone() {
    let place = Place::new();
    let job = ["run", "--total", "3", "--state", "state", "--", "sh", "-c", OK];
    place.windrow(&job).expect(0);
    let script = "import sqlite3\n\
        db = sqlite3.connect('state/windrow.db')\n\
        db.execute(\"insert into seaql_migrations values ('m9999_from_the_future', 0)\")\n\
        db.commit()";
    let future = std::process::Command::new("python3")
        .args(["-c", script])
        .current_dir(place.path(""))
        .status();
    assert!(future.unwrap().success());
    place
        .windrow(&job)
        .refused(78, &["m9999_from_the_future", "newer"]);
}

#[test]
fn every_fault_of_a_configuration_is_listed() {
    let place = Place::new();
    place.write(
        "bad.toml",
        "[task_defaults]\nrate = \"fast\"\ntimeoutt = \"3s\"\n[cluster]\nlease_ttl = 5\n",
    );
    let texts = [
        "task_defaults.rate",
        "task_defaults.timeoutt",
        "cluster.lease_ttl",
        "WINDROW_NODE__IDD",
    ];
    let env = [("WINDROW_NODE__IDD", "x")];
    let run = [
        "run", "--total", "3", "--config", "bad.toml", "--", "sh", "-c", OK,
    ];
    place.windrow_with(&run, "", &env).refused(78, &texts);
    place
        .windrow_with(&["config", "check", "bad.toml"], "", &env)
        .refused(78, &texts);
    assert_eq!(place.names(), ["bad.toml"]);
}

#[test]
fn other_items_under_the_same_name_are_another_job() {
    let place = Place::new();
    place.write("users.csv", "id\n1\n2\n");
    place.windrow(&csv_job("users.csv", &[])).expect(0);
    place.write("users.csv", "id\n1\n2\n3\n");
    let refused = place.windrow(&csv_job("users.csv", &[]));
    refused.refused(7, &["t1 with 2 other items", "--restart", "--name"]);
    place
        .windrow(&csv_job("users.csv", &["--name", "second"]))
        .expect(0);
    let anew = place
        .windrow(&csv_job("users.csv", &["--restart", "-o", "json"]))
        .expect(0)
        .json();
    assert_eq!(
        (anew["id"].as_str(), anew["counts"]["succeeded"].as_u64()),
        (Some("t3"), Some(3))
    );
}

#[test]
fn where_no_file_can_be_made_nothing_begins_and_the_reason_is_the_systems() {
    let place = Place::new();
    for flag in ["--failures-out", "--results-out"] {
        let words = |path: &'static str| {
            [
                "run", "--total", "3", "--state", "state", flag, path, "--", "sh", "-c", OK,
            ]
        };
        let done = place
            .windrow(&words("/proc/out.ndjson"))
            .refused(2, &["can't create a file there: "]);
        assert!(!done.stderr.contains("does not exist"), "{}", done.stderr);
        place
            .windrow(&words("none/out.ndjson"))
            .refused(2, &["its directory does not exist"]);
        let done = place
            .windrow(&words("/etc/passwd/out"))
            .refused(2, &["/etc/passwd is not a directory"]);
        assert!(!done.stderr.contains("was left"), "{}", done.stderr);
    }
    assert_eq!(place.names(), [""; 0], "nothing was made");
}

#[test]
fn what_is_no_file_stays_what_it_is_and_one_file_takes_one_kind_of_rows() {
    let place = Place::new();
    let fifo = place.path("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    std::os::unix::fs::symlink("nowhere", place.path("link")).unwrap();
    let run = |more: &[&'static str]| {
        let words = [
            &["run", "--total", "3", "--state", "state"],
            more,
            &["--", "sh", "-c", OK],
        ];
        place.windrow(&words.concat())
    };
    for flag in ["--failures-out", "--results-out"] {
        for (path, why) in [
            ("pipe", "it is not a regular file"),
            ("link", "it is a link to a missing file"),
            (".", "it is a directory"),
        ] {
            run(&[flag, path]).refused(2, &["can't write", why]);
        }
    }
    for failures in ["same", "./same", "same.partial"] {
        run(&["--results-out", "same", "--failures-out", failures]).refused(
            2,
            &["can't write results to same", "the failed items go to that file"],
        );
    }
    assert_eq!(place.names(), ["link", "pipe"]);
}
