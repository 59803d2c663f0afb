//! Jobs that go well: each kind of source and handler, what is printed, what the same command does again.

use serde_json::{Value, json};

use super::support::{Business, Place, assert_adds_up, repository};

const OK: &str = "while read -r l; do echo ok; done";

#[test]
fn rows_of_a_csv_go_through_a_python_worker() {
    let place = Place::new();
    let (csv, handler) = (
        repository("examples/data/users.csv"),
        repository("examples/handlers/worker.py"),
    );
    let done = place
        .windrow(&[
            "run", "--csv", &csv, "--rate", "2000/s", "-o", "json", "--", "python3", &handler,
        ])
        .expect(0);
    let summary = done.json();
    assert_adds_up(&summary);
    assert_eq!(summary["counts"]["succeeded"], 200);
    assert_eq!(
        (&summary["total"], &summary["watermark"]),
        (&json!(200), &json!(200))
    );
    assert_eq!(
        (&summary["status"], &summary["result"]),
        (&json!("finished"), &json!("succeeded"))
    );
    assert_eq!(
        (&summary["rate"], &summary["business"]),
        (&json!("2000/s"), &json!("run"))
    );
    assert_eq!(
        (&summary["stop_reason"], &summary["failures"]),
        (&Value::Null, &json!([]))
    );
    assert!(summary["id"].as_str().unwrap().starts_with('t'), "{summary}");
    assert!(
        summary["duration_seconds"].as_f64().unwrap() > 0.0 && summary["actual_rate"].as_f64().unwrap() > 0.0
    );
    assert!(
        done.stderr.contains("finished  200/200 (100.0 %)"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_table_that_is_cut_at_the_wrong_place_is_refused_unless_that_is_meant() {
    let place = Place::new();
    let csv = place.write("semicolons.csv", "id;name\n1;a\n");
    let run = |more: &[&'static str]| {
        let words = [&["run", "--csv", &csv], more, &["--", "sh", "-c", OK]].concat();
        place.windrow(&words)
    };
    run(&[]).refused(7, &["found one column, \"id;name\"", "--delimiter ';'; or"]);
    assert_eq!(place.windrow(&["job", "list", "-o", "name"]).expect(0).stdout, "");
    let said = run(&["--delimiter", ","]).expect(0).stderr;
    let told = "columns: id;name\nitem 0: {\"id;name\":\"1;a\"}\nwarning: found one column";
    assert!(said.contains(told), "{said}");
    let said = run(&["--delimiter", ";", "--restart"]).expect(0).stderr;
    assert!(
        said.contains("columns: id, name\n") && !said.contains("warning"),
        "{said}"
    );
}

/// `-- cat --rate 10/s`: the run would be unpaced, and nobody would know.
#[test]
fn a_flag_of_a_run_behind_the_dashes_is_told_to_go_to_the_program() {
    let place = Place::new();
    let run = |more: &[&str]| {
        let words = [&["run", "--total", "1", "--restart", "--", "sh", "-c", OK], more].concat();
        place.windrow(&words).expect(0).stderr
    };
    let told = "warning: --rate comes after -- and is passed to sh; put windrow's flags before --\n";
    assert!(run(&["--rate", "10/s"]).starts_with(told));
    assert!(run(&["-x", "--rate=10/s"]).contains("warning: --rate=10/s comes after --"));
    for own in [&["--json", "--verbose"][..], &["rate"], &[]] {
        let said = run(own);
        assert!(!said.contains("warning"), "{said}");
    }
}

#[test]
fn a_whole_list_in_one_line_is_refused_before_anything_is_called() {
    let place = Place::new();
    let list = place.write("list.json", "[{\"id\":1},{\"id\":2}]\n");
    let run = |source: &str, stdin: &str| {
        place.windrow_with(&["run", "--ndjson", source, "--", "sh", "-c", OK], stdin, &[])
    };
    for (source, stdin) in [(list.as_str(), ""), ("-", "[{\"id\":1},{\"id\":2}]\n")] {
        run(source, stdin).refused(7, &["an array of objects", "jq -c '.[]'"]);
        assert_eq!(place.windrow(&["job", "list", "-o", "name"]).expect(0).stdout, "");
    }
    run("-", "[{\"id\":1}]\n[{\"id\":2}]\n").expect(0);
}

#[test]
fn a_byte_order_mark_is_left_out_and_told() {
    let place = Place::new();
    let csv = place.write("marked.csv", "\u{feff}id;name\n1;a\n");
    let said = place
        .windrow(&["run", "--csv", &csv, "--delimiter", ",", "--", "sh", "-c", OK])
        .expect(0)
        .stderr;
    let told = "columns: id;name\nitem 0: {\"id;name\":\"1;a\"}\nwarning: the file starts with a byte order \
            mark";
    assert!(
        said.contains(told) && said.contains("warning: found one column"),
        "{said}"
    );
    let lines = "\u{feff}{\"id\":1}\n";
    let ndjson = place.write("marked.ndjson", lines);
    for (source, stdin) in [(ndjson.as_str(), ""), ("-", lines)] {
        let words = ["run", "--ndjson", source, "--", "sh", "-c", OK];
        let said = place.windrow_with(&words, stdin, &[]).expect(0).stderr;
        assert!(
            said.contains("item 0: {\"id\":1}\nwarning: the file starts with a byte order mark"),
            "{said}"
        );
    }
    let joined = place.write("joined.csv", "\u{feff}id,n\n1,a\n\u{feff}id,n\n\u{feff}2,b\n");
    let told = "warning: item 1 starts with a byte order mark (EF BB BF)";
    for words in [["run", "--csv"], ["try", "--csv"]] {
        let words = [&words[..], &[&joined, "--", "sh", "-c", OK]].concat();
        let said = place.windrow(&words).expect(0).stderr;
        assert!(
            said.contains(told) && said.contains("it is part of \"id\""),
            "{said}"
        );
    }
    let plain = place.write("plain.ndjson", "{\"id\":1}\n");
    let said = place
        .windrow(&["run", "--ndjson", &plain, "--", "sh", "-c", OK])
        .expect(0)
        .stderr;
    assert!(said.contains("item 0: ") && !said.contains("warning"), "{said}");
}

#[test]
fn what_a_worker_prints_is_shown_before_what_actors_do() {
    let place = Place::new();
    let said = |verbose: &[&str]| {
        let worker =
            "while read -r l; do case $l in *'\"item\"'*) echo worker-words >&2; echo ok;; esac; done";
        let words = [
            &["run", "--total", "1", "--restart"],
            verbose,
            &["--", "sh", "-c", worker],
        ]
        .concat();
        let said = place.windrow(&words).expect(0).stderr;
        (
            said.contains("worker-words"),
            said.contains("actor started"),
            said,
        )
    };
    for (verbose, wanted) in [
        (&[][..], (false, false)),
        (&["-v"], (true, false)),
        (&["-vv"], (true, true)),
    ] {
        let (worker, actors, text) = said(verbose);
        assert_eq!((worker, actors), wanted, "{verbose:?}:\n{text}");
        assert!(
            !text.contains("Actor{") && !text.contains("Some("),
            "no words of Rust:\n{text}"
        );
    }
}

#[test]
fn a_worker_that_takes_long_to_end_is_named_while_it_is_waited_for() {
    let place = Place::new();
    let stubborn = "trap '' TERM; while read -r l; do echo ok; done; while :; do sleep 1; done";
    let words = ["run", "--total", "1", "--", "sh", "-c", stubborn];
    let grace = [("WINDROW_HANDLER__COMMAND__KILL_GRACE", "2500ms")];
    let said = place.windrow_with(&words, "", &grace).expect(0).stderr;
    let told = "worker still running after it was told to exit (handler.command.kill_grace) worker=1";
    assert!(said.contains(told) && said.contains("killed_in=500ms"), "{said}");
}

#[test]
fn a_summary_has_the_members_of_a_task() {
    let place = Place::new();
    let summary = place
        .windrow(&["run", "--total", "1", "-o", "json", "--", "sh", "-c", OK])
        .expect(0)
        .json();
    let mut members: Vec<&str> = summary.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(
        members,
        [
            "actual_rate",
            "business",
            "costs",
            "counts",
            "disk_was_full",
            "duration_seconds",
            "failures",
            "handler_changed",
            "id",
            "name",
            "net",
            "next",
            "ran",
            "rate",
            "result",
            "since",
            "status",
            "status_reason",
            "status_text",
            "stop_reason",
            "total",
            "unconfirmed",
            "watermark"
        ]
    );
    assert_eq!(summary["rate"], "unlimited");
}

#[test]
fn a_finished_job_says_so_and_runs_again_only_when_told() {
    let place = Place::new();
    let job = ["run", "--total", "30", "-o", "json", "--", "sh", "-c", OK];
    let first = place.windrow(&job).expect(0).json();
    let again = place.windrow(&job).expect(0);
    assert!(
        again.stderr.contains("already finished") && again.stderr.contains("--restart"),
        "{}",
        again.stderr
    );
    assert_eq!(again.json()["id"], first["id"]);
    let anew = place
        .windrow(&[
            "run",
            "--restart",
            "--total",
            "30",
            "-o",
            "json",
            "--",
            "sh",
            "-c",
            OK,
        ])
        .expect(0);
    assert_ne!(anew.json()["id"], first["id"]);
    assert_eq!(anew.json()["counts"]["succeeded"], 30);
}

#[test]
fn a_url_is_called_with_each_item() {
    let place = Place::new();
    let business = Business::answering("204 No Content", "");
    let csv = place.write("users.csv", "user,city\nu1,Oslo\nu2,\"Rio, Brazil\"\n");
    place
        .windrow(&[
            "run",
            "--csv",
            &csv,
            "--url",
            &business.url,
            "--header",
            "x-team: push",
        ])
        .expect(0);
    let mut rows: Vec<String> = business
        .calls()
        .iter()
        .map(|call| call["item"]["data"].to_string())
        .collect();
    rows.sort();
    assert_eq!(
        rows,
        [
            r#"{"user":"u1","city":"Oslo"}"#,
            r#"{"user":"u2","city":"Rio, Brazil"}"#
        ]
        .map(|row| { serde_json::from_str::<Value>(row).unwrap().to_string() })
    );
}

#[test]
fn the_autopilot_finds_the_rate_of_calls_for_which_nobody_gave_one() {
    let place = Place::new();
    let business = Business::answering("204 No Content", "");
    let request = format!("POST {}", business.url);
    let to_url = ["--url", business.url.as_str()];
    let line = "rate auto: found while it runs; --rate sets one";
    for (name, handler, rate, expected) in [
        ("a", to_url, None, "auto"),
        ("b", ["--request", &request], None, "auto"),
        ("c", to_url, Some("auto up to 900/s"), "auto up to 900/s"),
        ("d", to_url, Some("unlimited"), "unlimited"),
    ] {
        let mut words = vec!["run", "--total", "5", "--name", name, "-o", "json"];
        words.extend(handler);
        words.extend(rate.into_iter().flat_map(|rate| ["--rate", rate]));
        let done = place.windrow(&words).expect(0);
        assert_eq!(done.stderr.contains(line), expected == "auto", "{}", done.stderr);
        assert_eq!(done.json()["rate"], expected);
        let shown = place
            .windrow(&["job", "show", name, "-o", "json"])
            .expect(0)
            .json();
        assert_eq!(shown["settings"]["rate"], expected, "{shown:#}");
    }
}

#[test]
fn a_job_resumed_by_its_name_keeps_its_rate_and_auto_is_one() {
    let place = Place::new();
    let failing = Business::answering("410 Gone", "");
    place.windrow(&[
        "run",
        "--total",
        "5",
        "--name",
        "a",
        "--url",
        &failing.url,
        "--rate",
        "70/s",
        "-q",
    ]);
    let business = Business::answering("204 No Content", "");
    let words = ["run", "--resume", "a", "--url", &business.url, "-o", "json"];
    let done = place.windrow(&words).expect(0).json();
    assert_eq!(done["rate"], "70/s", "{done:#}");
    place.windrow(&["run", "--total", "6", "--name", "b", "--url", &failing.url, "-q"]);
    let words = ["run", "--resume", "b", "--url", &business.url, "-o", "json"];
    let done = place.windrow(&words).expect(0).json();
    assert_eq!(done["rate"], "auto", "{done:#}");
}

#[test]
fn a_batch_is_one_call() {
    let place = Place::new();
    let business = Business::answering("204 No Content", "");
    place
        .windrow(&["run", "--total", "64", "--url", &business.url, "--batch", "16"])
        .expect(0);
    let calls = business.calls();
    let items: usize = calls
        .iter()
        .map(|call| call["items"].as_array().unwrap().len())
        .sum();
    assert_eq!(items, 64);
    assert!(calls.len() < 64, "{} calls", calls.len());
}

#[test]
fn piped_lines_are_a_job_that_is_known_by_its_content() {
    let place = Place::new();
    let business = Business::answering("204 No Content", "");
    let job = ["run", "--ndjson", "-", "--url", &business.url, "-o", "json"];
    let lines = "{\"n\":1}\n\n[2]\n\"three\"\n";
    let first = place.windrow_with(&job, lines, &[]).expect(0).json();
    assert_eq!(first["total"], 3);
    assert_eq!(business.calls().len(), 3);
    let again = place.windrow_with(&job, lines, &[]).expect(0);
    assert!(again.stderr.contains("already finished"), "{}", again.stderr);
    assert_eq!(business.calls().len(), 3);
    let other = place.windrow_with(&job, "{\"n\":4}\n", &[]).expect(0).json();
    assert_ne!(other["id"], first["id"]);
}

#[test]
fn quiet_leaves_the_outcome_only() {
    let place = Place::new();
    let done = place
        .windrow(&["run", "-q", "--total", "3", "--", "sh", "-c", OK])
        .expect(0);
    assert_eq!(done.stderr, "");
    assert!(
        done.stdout.starts_with("t1  finished (succeeded)\n"),
        "{}",
        done.stdout
    );
}

#[test]
fn workers_run_side_by_side() {
    let place = Place::new();
    let script = "echo $$ >> pids; while read -r l; do echo ok; done";
    place
        .windrow(&["run", "--total", "50", "--workers", "3", "--", "sh", "-c", script])
        .expect(0);
    let mut pids: Vec<String> = place.read("pids").lines().map(str::to_owned).collect();
    pids.sort();
    pids.dedup();
    assert_eq!(pids.len(), 3);
}

#[test]
fn ordered_items_come_in_order() {
    let place = Place::new();
    let script =
        r#"while read -r l; do case $l in *'"type":"item"'*) echo "$l" >> seen; echo ok;; esac; done"#;
    place
        .windrow(&["run", "--total", "40", "--ordered", "--", "sh", "-c", script])
        .expect(0);
    let seen = place.read("seen");
    let indexes = seen.lines().map(|line| {
        serde_json::from_str::<Value>(line).unwrap()["index"]
            .as_u64()
            .unwrap()
    });
    assert!(indexes.eq(0..40), "{seen}");
}
