//! What items came to, written while a job runs.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::support::Place;

/// Answers each item with its row; skips every seventh, gives every ninth up, and takes a moment for some so that items
/// settle out of order.
const ANSWERS: &str = r#"
import json, sys
print(json.dumps({"type": "ready", "protocol": 1, "concurrency": 8}), flush=True)
waiting = []
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "item":
        continue
    n = message["index"]
    result = "skip" if n % 7 == 6 else "fail" if n % 9 == 8 else "ok"
    answer = {"type": "result", "id": message["id"], "result": result}
    if result == "ok":
        answer["output"] = {"user": message["data"]["id"], "n": n, "text": "a\n\"b\""}
    waiting.append(json.dumps(answer))
    if len(waiting) == 3 or n > 90:
        for one in reversed(waiting):
            print(one)
        sys.stdout.flush()
        waiting = []
"#;

fn place() -> Place {
    let place = Place::new();
    place.write("answers.py", ANSWERS);
    let rows: String = (0..100).map(|row| format!("u{row},name {row}\n")).collect();
    place.write("users.csv", &format!("id,name\n{rows}"));
    place
}

/// The indexes that have a result.
fn expected() -> Vec<u64> {
    (0..100).filter(|n| n % 7 != 6 && n % 9 != 8).collect()
}

fn job<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let own = ["run", "--csv", "users.csv", "--state", "state"];
    let worker = ["--", "python3", "answers.py"];
    [&own[..], more, &worker].concat()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn each_success_is_a_line_in_index_order_and_the_file_has_its_name_at_the_end() {
    let place = place();
    place
        .windrow(&job(&["--results-out", "answers.ndjson"]))
        .expect(8);
    let found = lines(&place.read("answers.ndjson"));
    let indexes: Vec<u64> = found.iter().map(|line| line["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, expected());
    for line in &found {
        let n = line["index"].as_u64().unwrap();
        assert!(
            line["key"].as_str().unwrap().ends_with(&format!("-t1-{n}")),
            "{line}"
        );
        let output = json!({"user": format!("u{n}"), "n": n, "text": "a\n\"b\""});
        assert_eq!(line["output"], output);
    }
    assert!(
        !place.names().contains(&"answers.ndjson.partial".to_owned()),
        "{:?}",
        place.names()
    );
    // The job has ended: its results can be written again, also otherwise.
    let with = [
        "--results-out",
        "some.csv",
        "--results-columns",
        "user,n",
        "--results-data",
        "name",
    ];
    place.windrow(&job(&with)).expect(8);
    let rows = place.read("some.csv");
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows.len(), 1 + expected().len());
    assert_eq!(rows[0], "index,key,user,n,name");
    assert!(rows[1].ends_with("-t1-0,u0,0,name 0"), "{}", rows[1]);
}

#[test]
fn an_output_that_is_too_long_to_be_kept_is_told_however_quiet_one_is() {
    let place = Place::new();
    let script = r#"[ "$WINDROW_INDEX" = 1 ] || head -c 70000 /dev/zero | tr '\0' x"#;
    let job = [
        "run",
        "--total",
        "3",
        "-q",
        "--results-out",
        "o.ndjson",
        "--each",
        "--",
    ];
    let ran = place
        .windrow(&[&job[..], &["sh", "-c", script]].concat())
        .expect(0);
    let told = "the output of 2 items exceeds 64 KiB and isn't kept";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn a_column_that_no_output_has_is_told_at_the_end() {
    let place = place();
    let told = |columns: &str| {
        let with = ["--results-out", "some.csv", "--results-columns", columns];
        place.windrow(&job(&with)).expect(8).stderr
    };
    let typo = told("usr,n");
    assert!(
        typo.contains("no output has a member usr: its column stays empty; did you mean user?"),
        "{typo}"
    );
    let other = told("user,zzz");
    assert!(
        other.contains("no output has a member zzz") && other.contains("members: n, text, user"),
        "{other}"
    );
    assert!(!told("user,n").contains("no output has"), "nothing to warn of");
}

#[test]
fn a_pipe_gets_lines_alone_and_can_begin_behind_an_index() {
    let place = place();
    let ran = place.windrow(&job(&["--results-out", "-"])).expect(8);
    let found = lines(&ran.stdout);
    assert_eq!(found.len(), expected().len());
    assert!(ran.stderr.contains("t1  finished"), "{}", ran.stderr);
    let again = place
        .windrow(&job(&["--results-out", "-", "--results-after", "95"]))
        .expect(8);
    let indexes: Vec<u64> = lines(&again.stdout)
        .iter()
        .map(|line| line["index"].as_u64().unwrap())
        .collect();
    assert_eq!(indexes, [96, 99]);
    for none in ["100", "4711"] {
        place
            .windrow(&job(&["--results-out", "-", "--results-after", none]))
            .refused(2, &[&format!("no item {none}"), "0 to 99"]);
    }
}

#[test]
fn a_reader_that_goes_away_stops_the_job_which_then_goes_on() {
    let place = place();
    let words = job(&["--rate", "50/s", "--results-out", "-"]).join(" ");
    let program = env!("CARGO_BIN_EXE_windrow");
    // The pipe's other end is closed long before anything is written.
    let piped = format!("{{ {program} {words}; echo $? > code; }} | true; exit $(cat code)");
    let done = place
        .start_shell(&piped)
        .end()
        .refused(1, &["can't write results to -", "run the same command again"]);
    assert!(!done.stderr.contains("bug"), "{}", done.stderr);
    let full = format!("{program} {words} > /dev/full");
    place.start_shell(&full).end().refused(
        1,
        &[
            "stopped: can't write results to - (No space left on device",
            "free disk space, then run the same",
        ],
    );
    place
        .windrow(&job(&["--results-out", "answers.ndjson"]))
        .expect(8);
    let found = lines(&place.read("answers.ndjson"));
    let indexes: Vec<u64> = found.iter().map(|line| line["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, expected());
}

#[test]
fn a_job_that_kept_no_results_says_so() {
    let place = place();
    place.windrow(&job(&[])).expect(8);
    place
        .windrow(&job(&["--results-out", "answers.ndjson"]))
        .refused(4, &["the job's results weren't kept", "--restart"]);
}

#[test]
fn results_that_cannot_be_written_are_refused_before_anything_begins() {
    let place = place();
    for (out, why) in [
        (".", "it is a directory"),
        ("no/such/file", "its directory does not exist"),
    ] {
        place
            .windrow(&job(&["--results-out", out]))
            .refused(2, &["can't write results", why]);
    }
    place
        .windrow(&job(&["--results-out", "-", "-o", "json"]))
        .refused(2, &["standard output has the JSON summary"]);
}

#[test]
fn no_file_is_lost_to_results() {
    let place = place();
    let rows = place.read("users.csv");
    let run = |more: &[&str]| place.windrow(&job(more));
    for input in ["users.csv", "./users.csv"] {
        run(&["--results-out", input]).refused(2, &["the run needs that file"]);
    }
    place.write("notes.ndjson", "my notes\n");
    place.write("half.ndjson.partial", "my half\n");
    run(&["--results-out", "notes.ndjson"]).refused(2, &["the file exists", "not a results file"]);
    run(&["--results-out", "half.ndjson"]).refused(2, &["the file exists", "not a results file"]);
    run(&["--failures-out", "notes.ndjson"]).refused(2, &["the file exists", "not a failures file"]);
    assert_eq!(
        (place.read("users.csv"), place.read("notes.ndjson")),
        (rows, "my notes\n".to_owned())
    );
    run(&["--results-out", "answers.ndjson"]).expect(8);
    run(&["--results-out", "answers.ndjson"]).expect(8);
    run(&["--only-failed", "--results-out", "answers.ndjson"]).refused(
        2,
        &[
            "the file exists",
            "only the results of the retried items",
            "omit --results-out, then run the original command again",
        ],
    );
    run(&["--results-out", "answers.csv"]).expect(8);
    run(&["--results-out", "answers.csv"]).expect(8);
}

#[test]
fn results_that_will_not_fit_are_said_once_while_the_job_runs() {
    let place = Place::new();
    let words = [
        "run",
        "--total",
        "1000000000000000",
        "--rate",
        "200/s",
        "--each",
        "printf %s {index}",
        "--results-out",
        "out.ndjson",
    ];
    let mut job = place.start(&words);
    let said = job.wait_for("results of the remaining items need about");
    assert!(
        said.starts_with("warning: ") && said.contains("nothing is lost"),
        "{said}"
    );
    job.signal(Signal::INT);
    let done = job.end();
    assert_eq!(
        done.stderr.matches("remaining items need about").count(),
        1,
        "{}",
        done.stderr
    );
}

/// Answers each item with its row; gives up every third one that no file is there for, and answers nothing for item 0.
const MOODY: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "item":
        continue
    n = message["index"]
    bad = n % 3 == 2 and not os.path.exists("good")
    answer = {"type": "result", "id": message["id"], "result": "fail" if bad else "ok"}
    if not bad and n > 0:
        answer["output"] = n
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn one_file_has_what_all_items_came_to_those_that_were_done_again_among_them() {
    let place = place();
    place.write("moody.py", MOODY);
    let run = |more: &[&str]| {
        let own = ["run", "--csv", "users.csv", "--state", "state"];
        place.windrow(&[&own[..], more, &["--", "python3", "moody.py"]].concat())
    };
    let first = run(&["--results-out", "all.ndjson"]).expect(8);
    assert!(
        first.stderr.contains(
            "66 results written to all.ndjson; 1 item succeeded without an output, so without a line"
        ),
        "{}",
        first.stderr
    );
    place.write("good", "");
    // What is done again is kept too, though nobody asked for a file of it.
    run(&["--only-failed"]).expect(0);
    let all = run(&["--results-out", "all.ndjson", "--results-data", "id"]).expect(0);
    assert!(
        all.stderr.contains("99 results written to all.ndjson; 1 item"),
        "{}",
        all.stderr
    );
    let found = lines(&place.read("all.ndjson"));
    let indexes: Vec<u64> = found.iter().map(|line| line["index"].as_u64().unwrap()).collect();
    assert_eq!(
        indexes,
        (1..100).collect::<Vec<_>>(),
        "one line an item, in index order"
    );
    for line in &found {
        let n = line["index"].as_u64().unwrap();
        assert!(
            line["key"].as_str().unwrap().ends_with(&format!("-t1-{n}")),
            "{line}"
        );
        assert_eq!(
            (&line["output"], &line["data"]),
            (&json!(n), &json!({"id": format!("u{n}")}))
        );
    }
}

#[test]
fn a_run_that_goes_on_says_how_many_results_it_wrote_and_how_many_there_are() {
    let place = place();
    place.write("moody.py", MOODY);
    let words = |more: &'static [&'static str]| {
        let own = [
            "run",
            "--csv",
            "users.csv",
            "--state",
            "state",
            "--results-out",
            "some.ndjson",
        ];
        [&own[..], more, &["--", "python3", "moody.py"]].concat()
    };
    let mut begun = place.start(&words(&["--rate", "40/s"]));
    let half = place.path("some.ndjson.partial");
    while std::fs::read_to_string(&half).unwrap_or_default().lines().count() < 10 {
        std::thread::yield_now();
    }
    begun.signal(Signal::INT);
    begun.wait_for("stopping: ");
    begun.end().expect(9);
    let before = place.read("some.ndjson.partial").lines().count();
    let done = place.windrow(&words(&[])).expect(8);
    assert!(!half.exists(), "it has its name");
    let told = format!(
        "{} results written to some.ndjson (66 with those of earlier runs); 1 item succeeded without an output",
        66 - before
    );
    assert!(done.stderr.contains(&told), "{told}: {}", done.stderr);
}

#[test]
fn a_job_that_is_resumed_by_its_name_goes_on_with_its_results() {
    let place = place();
    let words = [
        "run",
        "--csv",
        "users.csv",
        "--name",
        "push",
        "--rate",
        "40/s",
        "--results-out",
        "some.csv",
        "--results-columns",
        "n",
        "--",
        "python3",
        "answers.py",
    ];
    let begun = place.start(&words);
    let half = place.path("some.csv.partial");
    while std::fs::read_to_string(&half).unwrap_or_default().lines().count() < 10 {
        std::thread::yield_now();
    }
    begun.signal(Signal::KILL);
    begun.end();
    place
        .windrow(&["run", "--resume", "push", "--rate", "unlimited"])
        .expect(8);
    let found = place.read("some.csv");
    assert!(found.starts_with("index,key,n\r\n"), "{found:?}");
    let numbers: Vec<u64> = found
        .lines()
        .skip(1)
        .map(|row| row.rsplit(',').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers, expected());
    let told = place.windrow(&["run", "--resume", "push"]).expect(8);
    assert!(told.stderr.contains("results are kept"), "{}", told.stderr);
}

#[test]
fn a_column_that_is_not_there_is_refused_before_the_first_item_leaves() {
    let place = place();
    let wrong = ["--results-out", "answers.csv", "--results-data", "id,nmae"];
    place
        .windrow(&job(&wrong))
        .refused(2, &["can't use --results-data", "no column \"nmae\"", "name"]);
    assert!(
        !place.names().contains(&"answers.csv.partial".to_owned()),
        "{:?}",
        place.names()
    );
    place.windrow(&job(&["--results-out", "answers.csv"])).expect(8);
    place.windrow(&job(&wrong)).refused(2, &["no column \"nmae\""]);
}
