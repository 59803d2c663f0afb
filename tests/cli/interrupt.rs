//! Ctrl-C, SIGTERM and `kill -9`, and what the same command does afterwards.

use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::json;

use super::support::{Gate, Live, Place, Worker, assert_adds_up};

const OK: &str = r#"{"result":"ok"}"#;

/// A job of ten items whose worker asks the test; in one order, so that what was delivered is known exactly.
fn start(place: &Place, gate: &Gate) -> Live {
    let worker = gate.worker();
    let mut job = vec!["run", "--total", "10", "--state", "state", "-o", "json", "--"];
    job.extend(worker.iter().map(String::as_str));
    place.start(&job)
}

/// Lets the first items through; the next one stays in the worker's hands.
pub(crate) fn hold_at(worker: &mut Worker, index: u64) {
    for expected in 0..index {
        assert_eq!(worker.next(), Some(expected));
        worker.answer(OK);
    }
    assert_eq!(worker.next(), Some(index));
}

/// Waits until a process that was killed is gone: it may still be ending, or wait for its new parent to look at it.
pub(crate) fn is_gone(pid: i32) -> bool {
    let mut looks = 0_u32;
    while test_kill_process(Pid::from_raw(pid).unwrap()).is_ok() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
        {
            return true;
        }
        looks += 1;
        if looks > 10_000_000 {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn after_ctrl_c_the_same_command_goes_on_and_repeats_nothing() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (place, gate) = (Place::new(), Gate::open());
        let mut job = start(&place, &gate);
        let mut worker = gate.accept();
        hold_at(&mut worker, 4);
        job.signal(signal);
        job.wait_for("stopping: ");
        worker.answer(OK);
        let mut delivered = vec![0, 1, 2, 3, 4];
        delivered.extend(worker.serve());
        let stopped = job.end().expect(9);
        assert!(
            stopped.stderr.contains("no call is repeated"),
            "{}",
            stopped.stderr
        );
        let summary = stopped.json();
        assert_adds_up(&summary);
        assert_eq!(
            (&summary["status"], &summary["stop_reason"]),
            (&json!("stopped"), &json!("operator"))
        );
        assert_eq!(summary["counts"]["succeeded"], delivered.len());

        let job = start(&place, &gate);
        delivered.extend(gate.accept().serve());
        let resumed = job.end().expect(0);
        assert!(resumed.stderr.contains("resuming t1: "), "{}", resumed.stderr);
        assert!(!resumed.stderr.contains("a second time"), "{}", resumed.stderr);
        assert_eq!(resumed.json()["counts"]["succeeded"], 10);
        assert!(delivered.iter().copied().eq(0..10), "{delivered:?}");
    }
}

#[test]
fn a_signal_while_a_worker_does_not_end_costs_nothing_of_a_job_that_is_done() {
    let place = Place::new();
    let stubborn = "trap '' TERM; while read -r l; do echo ok; done; while :; do sleep 1; done";
    let mut words = vec!["run", "--total", "3", "--state", "state", "-o", "json"];
    words.extend([
        "--results-out",
        "out",
        "--failures-out",
        "bad",
        "--",
        "sh",
        "-c",
        stubborn,
    ]);
    let mut job = place.start(&words);
    job.wait_for("still running after it was told to exit");
    job.signal(Signal::INT);
    let done = job.end().expect(0);
    assert_eq!(done.json()["status"], "finished");
    assert!(!done.stderr.contains("aborted"), "{}", done.stderr);
    assert_eq!(
        (place.read("out"), place.read("bad")),
        (String::new(), String::new())
    );
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_leaves_no_worker() {
    let (place, gate) = (Place::new(), Gate::open());
    let mut job = start(&place, &gate);
    let mut worker = gate.accept();
    hold_at(&mut worker, 2);
    job.signal(Signal::INT);
    job.wait_for("stopping: ");
    job.signal(Signal::INT);
    let cut = job.end().expect(130);
    assert!(cut.stderr.contains("aborted"), "{}", cut.stderr);
    assert_eq!(cut.json()["error"]["exit_code"], 130);
    assert_eq!(worker.next(), None, "the worker is gone");
    assert!(is_gone(worker.pid));

    let job = start(&place, &gate);
    let rest = gate.accept().serve();
    assert_eq!(job.end().expect(0).json()["counts"]["succeeded"], 10);
    assert!((2..10).all(|index| rest.contains(&index)), "{rest:?}");
}

#[test]
fn after_kill_9_the_same_command_resumes_at_once() {
    let (place, gate) = (Place::new(), Gate::open());
    let job = start(&place, &gate);
    let mut worker = gate.accept();
    hold_at(&mut worker, 3);
    job.signal(Signal::KILL);
    assert_eq!(job.end().code, None);

    let mut job = start(&place, &gate);
    let told = job.wait_for("resuming t1: ");
    let items = told
        .split("; up to ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let items: u64 = items.expect("a bound").parse().expect("a number");
    assert!(
        (7..=10).contains(&items) && told.contains("items may be called a second time, with the same keys"),
        "never fewer than are: {told}"
    );
    let rest = gate.accept().serve();
    let resumed = job.end().expect(0);
    assert_eq!(resumed.json()["counts"]["succeeded"], 10);
    assert!((3..10).all(|index| rest.contains(&index)), "{rest:?}");
    assert_eq!(worker.next(), None, "the worker of the killed process is gone");
}

#[test]
fn a_job_that_was_killed_is_left_alone_by_other_jobs_in_its_directory() {
    let (place, gate) = (Place::new(), Gate::open());
    let job = start(&place, &gate);
    let mut worker = gate.accept();
    hold_at(&mut worker, 3);
    job.signal(Signal::KILL);
    job.end();

    let other = ["run", "--total", "7", "--state", "state", "-o", "json", "--"];
    let script =
        r#"while read -r l; do case $l in *'"type":"item"'*) echo "$l" >> seen; echo ok;; esac; done"#;
    let summary = place
        .windrow(&[&other[..], &["sh", "-c", script]].concat())
        .expect(0)
        .json();
    assert_eq!(
        (&summary["id"], &summary["counts"]["succeeded"]),
        (&json!("t2"), &json!(7))
    );
    assert_eq!(place.read("seen").lines().count(), 7);

    let job = start(&place, &gate);
    gate.accept().serve();
    assert_eq!(job.end().expect(0).json()["counts"]["succeeded"], 10);
}

#[test]
fn ctrl_c_before_anything_began_stores_nothing() {
    let place = Place::new();
    let fifo = place.path("pipe").display().to_string();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let program = env!("CARGO_BIN_EXE_windrow");
    let script = format!("exec {program} run --ndjson - -v --state state -- cat < {fifo}");
    let mut job = place.start_shell(&script);
    // Opened for writing and never written to: the pass waits for its first line.
    let held = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    job.wait_for("counting items");
    job.signal(Signal::INT);
    job.end().refused(130, &["nothing was stored"]);
    drop(held);
}

#[test]
fn under_nohup_a_closed_terminal_stops_nothing() {
    let (place, gate) = (Place::new(), Gate::open());
    let worker = gate.worker().join(" ");
    let program = env!("CARGO_BIN_EXE_windrow");
    let script = format!("trap '' HUP; exec {program} run --total 3 --state state -o json -- {worker}");
    let mut job = place.start_shell(&script);
    let mut worker = gate.accept();
    hold_at(&mut worker, 1);
    job.signal(Signal::HUP);
    // Handled in order: were the first one caught, the run would be stopping by now.
    job.signal(Signal::USR1);
    job.wait_for("run (supervisor)");
    worker.answer(OK);
    worker.serve();
    let done = job.end().expect(0);
    assert!(!done.stderr.contains("stopping"), "{}", done.stderr);
    assert_eq!(done.json()["counts"]["succeeded"], 3);
}

#[test]
fn sigusr1_prints_the_tree_of_actors() {
    let (place, gate) = (Place::new(), Gate::open());
    let mut job = start(&place, &gate);
    let mut worker = gate.accept();
    hold_at(&mut worker, 0);
    job.signal(Signal::USR1);
    job.wait_for("run (supervisor)");
    job.wait_for("executor  ");
    worker.answer(OK);
    worker.serve();
    job.end().expect(0);
}

#[test]
fn another_terminal_looks_at_a_run_changes_it_and_stops_it() {
    let (place, gate) = (Place::new(), Gate::open());
    let job = gate.begin_seven(&place, "mine", &[]);
    let mut worker = gate.accept();
    hold_at(&mut worker, 3);
    let listed = place.windrow(&["job", "-o", "json"]).expect(0).json();
    assert_eq!(
        (&listed["items"][0]["name"], &listed["items"][0]["total"]),
        (&json!("mine"), &json!(7))
    );
    // What it has done is told from its last draft.
    let looks = std::iter::repeat_with(|| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        place.windrow(&["job", "-o", "csv"]).expect(0).stdout
    });
    let csv = looks.take(200).find(|csv| csv.contains("42.9"));
    let csv = csv.expect("3 of 7 are done");
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = |field: &str| {
        let decimals = field.rsplit_once('.').map(|(_, decimals)| decimals);
        decimals.is_none_or(|decimals| decimals.len() <= 3 || !is_number(decimals))
    };
    assert!(csv.split(',').all(is_short), "{csv}");
    let set = place
        .windrow(&["job", "set", "mine", "--rate", "7/s", "--call-timeout", "1m"])
        .expect(0);
    assert!(
        set.stdout.contains("rate unlimited → 7/s") && set.stdout.contains("timeout 10s → 60s"),
        "{set:?}"
    );
    let shown = place
        .windrow(&["job", "show", "mine", "-o", "json"])
        .expect(0)
        .json();
    assert_eq!(shown["settings"]["rate"], "7/s");
    let auto = place.windrow(&["job", "set", "mine", "--rate", "auto"]).expect(0);
    assert!(auto.stdout.contains("rate 7/s → auto"), "{auto:?}");
    let shown = place.windrow(&["job", "show", "mine"]).expect(0).stdout;
    assert!(
        shown.contains("– (auto)") || shown.contains("/s (auto)"),
        "{shown}"
    );
    place
        .windrow(&["job", "set", "mine"])
        .refused(2, &["nothing to change"]);
    place
        .windrow(&["job", "set", "mine", "--window", "1", "--concurrency", "2"])
        .refused(7, &["window"]);
    place
        .windrow(&["job", "show", "yours"])
        .refused(3, &["running: mine"]);
    place
        .windrow(&["job", "show", "mien"])
        .refused(3, &["did you mean mine?", "running: mine"]);
    let mut stop = place.start(&["job", "stop", "mine"]);
    stop.wait_for("mine  stopping: no new calls; waiting for 1 item in flight");
    let stopping = place
        .windrow(&["job", "show", "mine", "-o", "json"])
        .expect(0)
        .json();
    assert!(
        stopping["status"] == "stopping" && stopping["eta_seconds"].is_null(),
        "{stopping:#}"
    );
    worker.answer(OK);
    let rest = worker.serve();
    assert!(rest.is_empty(), "{rest:?}");
    let stopped = stop.end().expect(0).stdout;
    assert_eq!(stopped, "mine  stopped; windrow run --resume mine resumes it\n");
    assert!(!windrow_node::StateDir::is_held(
        &place.path(".local/state/windrow/mine")
    ));
    job.end().expect(9);
    let none = place.windrow(&["job", "list", "--running"]).expect(0);
    assert!(none.stderr.contains("no job is running"), "{none:?}");
    place
        .windrow(&["job", "set", "mine", "--rate", "1/s"])
        .refused(4, &["windrow run --resume mine"]);
    let kept = place.windrow(&["job", "show", "mine"]).expect(0).stdout;
    for part in ["stopped", "4 succeeded", "windrow run --resume mine"] {
        assert!(kept.contains(part), "{part:?} is not in\n{kept}");
    }
    place
        .windrow(&["job", "stop", "mien"])
        .refused(3, &["no job named mien", "did you mean mine?"]);
    place
        .windrow(&["job", "show", "other"])
        .refused(3, &["no job named other", "past jobs: mine"]);
    let job = gate.begin_seven(&place, "mine", &["--control=off"]);
    let mut worker = gate.accept();
    assert_eq!(worker.next(), Some(4));
    place
        .windrow(&["job", "set", "mine", "--rate", "1/s"])
        .refused(4, &["isn't running"]);
    let unsteered = place
        .windrow(&["job", "list", "--running", "-o", "name"])
        .expect(0);
    assert_eq!(unsteered.stdout, "mine\n", "it runs all the same");
    drop(job);
}

#[test]
fn a_job_with_a_long_name_is_steered_like_any_other() {
    let (place, gate) = (Place::new(), Gate::open());
    let worker = gate.worker();
    // A socket's address has a hundred bytes at most.
    let name = "a-file-of-customers-".repeat(4);
    let mut words = vec!["run", "--total", "3", "--name", &name, "--concurrency", "1", "--"];
    words.extend(worker.iter().map(String::as_str));
    let job = place.start(&words);
    let mut worker = gate.accept();
    hold_at(&mut worker, 0);
    let listed = place.windrow(&["job", "-o", "json"]).expect(0).json();
    assert_eq!(listed["items"][0]["name"], name.as_str(), "{listed:#}");
    place.windrow(&["job", "set", &name, "--rate", "7/s"]).expect(0);
    let mut stop = place.start(&["job", "stop", &name, "-o", "json"]);
    stop.wait_for("stopping: ");
    worker.answer(OK);
    worker.serve();
    // The job can go on at once: its directory is free.
    let stopped = stop.end().expect(0).json();
    let kept = stopped["place"].as_str().expect("a directory");
    assert!(!windrow_node::StateDir::is_held(kept.as_ref()), "{stopped:#}");
    assert_eq!(stopped["status"], "stopped", "{stopped:#}");
    job.end().expect(9);
}

#[test]
fn tab_offers_the_job_of_the_directory_that_the_line_names() {
    let (place, gate) = (Place::new(), Gate::open());
    let worker = gate.worker();
    let mut words = vec!["run", "--total", "3", "--name", "mine", "--state", "kept", "--"];
    words.extend(worker.iter().map(String::as_str));
    let job = place.start(&words);
    let mut worker = gate.accept();
    hold_at(&mut worker, 1);
    let tab = |words: &[&str]| {
        let asked: Vec<&str> = ["--", "windrow", "job", "stop"]
            .iter()
            .chain(words)
            .copied()
            .collect();
        place
            .windrow_with(&asked, "", &[("WINDROW_COMPLETE", "fish")])
            .expect(0)
            .stdout
    };
    let offered = tab(&["--state", "kept", ""]);
    assert!(offered.lines().any(|line| line.starts_with("mine")), "{offered}");
    let others = tab(&[""]);
    assert!(!others.contains("mine"), "{others}");
    worker.answer(OK);
    assert_eq!(worker.serve(), [2]);
    job.end().expect(0);
}

#[test]
fn a_job_goes_on_at_the_first_item_that_waits_for_its_next_attempt() {
    let place = Place::new();
    let words = [
        "run",
        "--total",
        "2",
        "--backoff",
        "60s",
        "--first-contact",
        "60s",
        "--each",
        "false",
    ];
    let mut live = place.start(&words);
    live.wait_for("parked 2");
    live.signal(Signal::INT);
    let stopped = live.end().expect(9);
    assert!(
        stopped.stderr.contains("stopped at index 0 ("),
        "{}",
        stopped.stderr
    );
    let mut live = place.start(&words);
    live.wait_for("continues at index 0");
    live.signal(Signal::INT);
    live.end().expect(9);
}

#[test]
fn a_run_at_a_low_rate_says_when_its_first_item_leaves() {
    let place = Place::new();
    let run = |rate: &str| {
        place.start(&[
            "run", "--total", "3", "--name", "slow", "--rate", rate, "--each", "true",
        ])
    };
    let mut live = run("5/h");
    live.wait_for("at 5/h the first item starts in 12m, then one every 12m");
    live.wait_for("running");
    let card = place.windrow(&["job", "show", "slow"]).expect(0).stdout;
    assert!(card.contains("of 5/h, one item every 12m"), "{card}");
    live.signal(Signal::INT);
    live.end().expect(9);
    let mut live = run("6/h");
    live.wait_for("resuming t1");
    live.wait_for("at 6/h the first item starts in 10m");
    live.signal(Signal::INT);
    live.end().expect(9);
    let quick = run("1/s").end().expect(0);
    assert!(
        !quick.stderr.contains("the first item starts"),
        "{}",
        quick.stderr
    );
}

/// Starts a job on a terminal, closes that as soon as the bar has been drawn, and prints how the job ended.
const CLOSES_ITS_TERMINAL: &str = r#"
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
shown = b""
while b"succeeded" not in shown:
    shown += os.read(terminal, 65536)
os.close(terminal)
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        sys.exit(f"the job ended with {os.waitstatus_to_exitcode(status)}")
    time.sleep(0.05)
os.kill(pid, 9)
sys.exit("the job hangs")
"#;

#[test]
fn a_job_whose_terminal_is_closed_stops_and_can_be_resumed() {
    let place = Place::new();
    place.write("terminal.py", CLOSES_ITS_TERMINAL);
    let program = env!("CARGO_BIN_EXE_windrow");
    let worker = "while read -r l; do echo ok; done";
    let job = format!("{program} run --total 400 --rate 50/s --name there -- sh -c '{worker}'");
    let closed = place
        .start_shell(&format!("exec python3 terminal.py {job}"))
        .end();
    assert_eq!(closed.stderr, "the job ended with 9\n");

    let resumed = place.windrow(&["run", "--resume", "there", "--rate", "unlimited", "-o", "json"]);
    assert_eq!(resumed.expect(0).json()["counts"]["succeeded"], 400);
}
