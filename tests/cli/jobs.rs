//! `windrow job`: jobs that run, that were stopped or cut off, and that ended; the page of one.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::json;

use super::interrupt::hold_at;
use super::support::{Business, Gate, Place};

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
        .refused(4, &["can't delete cut", "windrow job stop cut"]);
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
    is("bad", "finished", json!("windrow run --resume bad --only-failed"));
    is("cut", "cut_off", json!("windrow run --resume cut"));
    let may_repeat = of("cut")["may_repeat"].as_u64().unwrap();
    assert!((5..=7).contains(&may_repeat), "{may_repeat}");
    let why = of("cut")["why"].as_str().unwrap();
    assert!(
        why.contains(&format!(
            "up to {may_repeat} items may be called a second time on resume"
        )),
        "{why}"
    );
    assert_eq!(
        (&of("good")["percent"], &of("bad")["still_failed"]),
        (&json!(100.0), &json!(2))
    );
    assert_eq!(
        listed["items"][0]["name"], "cut",
        "the one that ran last is first"
    );
    let told = place.windrow(&["job", "list"]).expect(0).stdout;
    assert!(told.contains(" started "), "its end isn't known: {told}");
    let csv = place.windrow(&["job", "list", "-o", "csv"]).expect(0).stdout;
    assert!(
        csv.starts_with("name,status,done,items,rate,left,failed,ran_at,go_on"),
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
    refused.refused(2, &["good has done 3 of 3 items", "will be lost", "--yes"]);
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

#[test]
fn failures_that_were_recovered_are_told_beside_those_that_there_were() {
    let place = Place::new();
    let job = |more: &[&str]| {
        let own = [
            "run",
            "--total",
            "3",
            "--name",
            "links",
            "--shell",
            "--each",
            "test -e \"good-$WINDROW_INDEX\" || exit 65",
        ];
        place.windrow(&[&own[..], more].concat())
    };
    place.write("good-0", "");
    job(&[]).expect(8);
    place.write("good-1", "");
    job(&["--only-failed"]).expect(8);
    let shown = || {
        place
            .windrow(&["job", "show", "links", "-o", "json"])
            .expect(0)
            .json()
    };
    let half = shown();
    assert_eq!(
        (
            &half["counts"]["failed"],
            &half["recovered"],
            &half["still_failed"]
        ),
        (&json!(2), &json!(1), &json!(1)),
        "{half:#}"
    );
    let table = place.windrow(&["job", "list"]).expect(0).stdout;
    assert!(
        table.contains("finished (with failures)") && table.contains("2 (1 recovered)"),
        "{table}"
    );
    place.write("good-2", "");
    job(&["--only-failed"]).expect(0);
    let whole = shown();
    assert_eq!(
        (&whole["still_failed"], &whole["go_on"]),
        (&json!(0), &json!(null)),
        "{whole:#}"
    );
    for words in [&["job", "list"][..], &["job", "show", "links"]] {
        let told = place.windrow(words).expect(0).stdout;
        assert!(told.contains("finished (all recovered)"), "{words:?}: {told}");
    }
    let card = place.windrow(&["job", "show", "links"]).expect(0).stdout;
    assert!(
        card.contains("2 recovered by --only-failed, 0 still failed"),
        "{card}"
    );
}

#[test]
fn a_run_over_failures_is_named_and_steered_by_the_name_of_its_job() {
    let place = Place::new();
    let own = [
        "run",
        "--total",
        "3",
        "--name",
        "j3",
        "--max-attempts",
        "1",
        "--shell",
    ];
    let each = [
        "--each",
        "test -e hold && while [ -e hold ]; do sleep 0.1; done; exit 65",
    ];
    place.windrow(&[&own[..], &each].concat()).expect(8);
    place.write("hold", "");
    let flags = ["--only-failed", "--concurrency", "1"];
    let mut redo = place.start(&[&own[..], &flags, &each].concat());
    redo.wait_for("t2: retrying the 3 items that failed in \"j3\", as job \"j3 (failed, 1)\"");
    redo.wait_for("running");
    for name in ["j3", "j3 (failed, 1)"] {
        let shown = place
            .windrow(&["job", "show", name, "-o", "json"])
            .expect(0)
            .json();
        assert_eq!(
            (&shown["name"], &shown["status"]),
            (&json!("j3 (failed, 1)"), &json!("running")),
            "{shown:#}"
        );
    }
    place.windrow(&["job", "set", "j3", "--rate", "50/s"]).expect(0);
    let mut stop = place.start(&["job", "stop", "j3"]);
    stop.wait_for("j3 (failed, 1)  stopping: no new calls");
    std::fs::remove_file(place.path("hold")).unwrap();
    let stopped = stop.end().expect(0).stdout;
    let told = "j3 (failed, 1)  stopped; windrow run --resume j3 --only-failed resumes it\n";
    assert_eq!(stopped, told);
    redo.end().expect(9);
    let shown = place
        .windrow(&["job", "show", "j3", "-o", "json"])
        .expect(0)
        .json();
    assert_eq!(
        (&shown["name"], &shown["status"]),
        (&json!("j3"), &json!("finished"))
    );
}

#[test]
fn a_job_goes_on_by_its_name_alone_with_the_handler_that_it_had() {
    let (place, gate) = (Place::new(), Gate::open());
    let job = gate.begin_seven(&place, "push", &[]);
    let mut first = gate.accept();
    hold_at(&mut first, 2);
    job.signal(Signal::KILL);
    job.end();

    let job = place.start(&["run", "--resume", "push", "-o", "json"]);
    let rest = gate.accept().serve();
    let resumed = job.end().expect(0);
    assert!(!resumed.stderr.contains("another handler"), "{}", resumed.stderr);
    assert_eq!(resumed.json()["counts"]["succeeded"], 7);
    assert!((2..7).all(|index| rest.contains(&index)), "{rest:?}");

    // Elsewhere its paths would be others.
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    let program = env!("CARGO_BIN_EXE_windrow");
    let there = format!("cd elsewhere && exec {program} run --resume push --if-finished restart");
    let here = place.path("").canonicalize().unwrap();
    let here = here.display().to_string();
    let refused = place.start_shell(&there).end();
    refused.refused(
        2,
        &[
            "in another directory",
            &format!("cd {here}"),
            "&& windrow run --resume push --if-finished restart",
        ],
    );
}

#[test]
fn a_secret_of_a_handler_is_not_kept_and_the_command_to_type_is_told() {
    let place = Place::new();
    let business = Business::answering("410 Gone", "");
    let words = [
        "run",
        "--total",
        "3",
        "--name",
        "push",
        "--url",
        &business.url,
        "--header",
        "authorization: Bearer 5ecret",
        "--header",
        "x-team: growth",
    ];
    place.windrow(&words).expect(9);
    let told = place.windrow(&["run", "--resume", "push"]);
    let again = format!(
        "windrow run --resume push --url {} --header 'authorization: …' --header 'x-team: growth'",
        business.url
    );
    told.refused(
        2,
        &[
            "the header authorization may be secret, so it was not stored",
            &again,
        ],
    );
    let kept = std::process::Command::new("grep")
        .args(["-r", "5ecret", "."])
        .current_dir(place.path(""))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&kept.stdout), "", "it is in no file");
}

#[test]
fn a_run_that_was_refused_leaves_no_job() {
    let place = Place::new();
    place.write("users.csv", "user\na\nb\n");
    let refused = [
        &[
            "run",
            "--csv",
            "users.csv",
            "--name",
            "a",
            "--key-column",
            "usr",
            "--",
            "true",
        ][..],
        &["run", "--csv", "users.csv", "--name", "b", "--each", "echo {usr}"],
        &[
            "run",
            "--csv",
            "-",
            "--name",
            "c",
            "--results-data",
            "usr",
            "--results-out",
            "r.csv",
            "--",
            "true",
        ],
    ];
    for words in refused {
        place.windrow_with(words, "user\na\n", &[]).refused(2, &["user"]);
    }
    let left = std::fs::read_dir(place.path(".local/state/windrow")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
    let unknown = place.windrow(&["run", "--resume", "b", "--", "true"]).expect(3);
    assert!(!unknown.stderr.contains("past jobs"), "{}", unknown.stderr);
}

#[test]
fn one_who_connects_and_says_nothing_keeps_nobody_from_an_answer() {
    use std::io::ErrorKind;
    let (place, gate) = (Place::new(), Gate::open());
    let job = gate.begin_seven(&place, "quiet", &["--state", "state"]);
    let mut worker = gate.accept();
    hold_at(&mut worker, 1);
    let mut silent = std::os::unix::net::UnixStream::connect(place.path("state/control.sock")).unwrap();
    let shown = place
        .windrow(&["job", "show", "quiet", "--state", "state", "-o", "json"])
        .expect(0)
        .json();
    assert_eq!(shown["status"], "running", "{shown:#}");
    // It has been waited for no longer than the answer took.
    silent.set_nonblocking(true).unwrap();
    let heard = silent.read(&mut [0; 8]).map_err(|error| error.kind());
    assert_eq!(heard, Err(ErrorKind::WouldBlock));
    job.signal(Signal::KILL);
    job.end();
}

#[test]
fn verbs_of_tasks_work_on_a_job_that_runs() {
    let (place, gate) = (Place::new(), Gate::open());
    let job = gate.begin_seven(&place, "mine", &[]);
    let mut worker = gate.accept();
    hold_at(&mut worker, 3);
    let told = |words: &[&str]| place.windrow(&[&["job"], words].concat()).expect(0).stdout;
    let why = told(&["explain", "mine"]);
    assert!(why.contains("why:"), "{why}");
    let listed = told(&["runs", "mine", "-o", "json"]);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&listed).unwrap()["items"][0]["run"],
        1
    );
    let skipped = told(&["skip", "mine", "--indexes", "6", "--reason", "withdrawn"]);
    assert!(skipped.contains("1 item skipped"), "{skipped}");
    let revisions = told(&["revisions", "mine", "-o", "json"]);
    assert!(revisions.contains("withdrawn"), "{revisions}");
    place
        .windrow(&["job", "explain", "mine", "--server", "http://127.0.0.1:1"])
        .refused(2, &["jobs have no server"]);
    place
        .windrow(&["job", "explain", "mien"])
        .refused(3, &["did you mean mine?"]);
    // The wait goes on through the end of the process.
    let wait = place.start(&["job", "wait", "mine"]);
    worker.answer(r#"{"result":"ok"}"#);
    assert_eq!(worker.serve(), [4, 5]);
    let waited = wait.end().expect(0).stdout;
    assert!(waited.contains("finished"), "{waited}");
    job.end().expect(0);
}

#[test]
fn verbs_of_tasks_work_on_a_job_that_rests() {
    let place = Place::new();
    let words = [
        "run",
        "--total",
        "3",
        "--name",
        "rests",
        "--shell",
        "--max-attempts",
        "1",
    ];
    let each = [
        "--each",
        "{ test $WINDROW_INDEX != 1 || test -e good; } && echo out",
    ];
    let out = ["--results-out", "out.ndjson"];
    place.windrow(&[&words[..], &each, &out].concat()).expect(8);
    let told = |words: &[&str]| place.windrow(&[&["job"], words].concat()).expect(0);
    let failures = told(&["failures", "rests"]);
    assert!(failures.stdout.contains("EXIT_1"), "{failures:?}");
    let hint = "windrow run --resume rests --only-failed";
    assert!(failures.stderr.contains(hint), "{failures:?}");
    let report = told(&["report", "rests"]).stdout;
    assert!(report.contains("every item is accounted for"), "{report}");
    let results = told(&["results", "rests"]).stdout;
    assert_eq!(results.lines().count(), 2, "{results}");
    let item = told(&["item", "rests", "1", "-o", "json"]).stdout;
    assert!(item.contains("failed"), "{item}");
    place.windrow(&["job", "wait", "rests"]).expect(8);
    place.write("good", "");
    place
        .windrow(&[&words[..], &each, &["--only-failed"]].concat())
        .expect(0);
    let report = told(&["report", "rests"]).stdout;
    assert!(report.contains("recovered 1  still failed 0"), "{report}");
    let results = told(&["results", "rests", "--with-redrives"]).stdout;
    assert_eq!(results.lines().count(), 3, "{results}");
    place.windrow(&["job", "wait", "rests"]).expect(0);
    let state = place.path(".local/state/windrow");
    let mut held = std::fs::read_dir(state)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    assert!(held.all(|place| !windrow_node::StateDir::is_held(&place)));
}

#[test]
fn a_wait_for_a_job_that_was_cut_off_does_not_begin() {
    let (place, gate) = (Place::new(), Gate::open());
    let job = gate.begin_seven(&place, "cut", &[]);
    let mut worker = gate.accept();
    hold_at(&mut worker, 2);
    job.signal(Signal::KILL);
    job.end();
    place
        .windrow(&["job", "wait", "cut"])
        .refused(4, &["isn't running", "windrow run --resume cut"]);
    let report = place.windrow(&["job", "report", "cut"]).expect(0);
    assert!(report.stdout.contains("running"), "{report:?}");
    let job = place.start(&["run", "--resume", "cut"]);
    gate.accept().serve();
    job.end().expect(0);
}

/// The answer to a GET, whole.
fn get(address: &str, path: &str, cookie: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncookie: {cookie}\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_page_of_a_job_lets_one_browser_in_until_the_job_ends() {
    let (place, gate) = (Place::new(), Gate::open());
    let mut job = gate.begin_seven(&place, "paged", &["--page"]);
    let told = job.wait_for("page: http://");
    let url = told.split("page: http://").nth(1).unwrap().trim();
    let (address, rest) = url.split_once('/').unwrap();
    let (path, query) = rest.split_once('?').unwrap();
    assert_eq!(path, "tasks/t1");
    let mut worker = gate.accept();
    hold_at(&mut worker, 2);
    let stranger = get(address, "/v1/tasks/t1", "");
    assert!(stranger.starts_with("HTTP/1.1 401"), "{stranger}");
    let brought = get(address, &format!("/tasks/t1?{query}"), "");
    assert!(
        brought.starts_with("HTTP/1.1 303") && brought.contains("location: /tasks/t1\r\n"),
        "{brought}"
    );
    let cookie = brought
        .split("set-cookie: ")
        .nth(1)
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    let task = get(address, "/v1/tasks/t1", cookie);
    assert!(
        task.starts_with("HTTP/1.1 200") && task.contains("\"name\":\"paged\""),
        "{task}"
    );
    assert!(get(address, "/ui/app/main.js", cookie).starts_with("HTTP/1.1 200"));
    assert!(get(address, "/v1/tasks/t1", &format!("{cookie}0")).starts_with("HTTP/1.1 401"));
    worker.answer(r#"{"result":"ok"}"#);
    worker.serve();
    job.end().expect(0);
    assert!(TcpStream::connect(address).is_err(), "the page ends with its job");
}
