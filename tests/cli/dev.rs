//! `windrow dev`: it begins anywhere within seconds, writes nothing outside its folder, can be reached from this machine
//! only, goes on where it was, and leaves nothing behind.

#![allow(clippy::disallowed_methods, reason = "a test measures real time")]

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::support::{Live, PATIENCE, Place, assert_adds_up, repository};

/// From the command to the first settled item. (P1 of the promises.)
const FIRST_ITEM_MAX: Duration = Duration::from_secs(10);

/// A running `windrow dev`.
struct Dev {
    live: Live,
    address: String,
    /// Its line about the task.
    task: String,
    /// Where it keeps everything.
    data: PathBuf,
}

impl Dev {
    /// Starts it with a home and a folder for temporary files in the place, and variables in front of the command.
    fn spawn(place: &Place, variables: &str, words: &str) -> Live {
        std::fs::create_dir_all(place.path("tmp")).unwrap();
        let program = env!("CARGO_BIN_EXE_windrow");
        place.start_shell(&format!(
            "export TMPDIR=$PWD/tmp; {variables} exec {program} dev {words}"
        ))
    }

    fn start(place: &Place, words: &str) -> Dev {
        Dev::of(Dev::spawn(place, "", words))
    }

    /// Reads where it is from what it says.
    fn of(mut live: Live) -> Dev {
        let row = |live: &mut Live, name: &str| {
            let line = live.wait_for(&format!("  {name:<9} "));
            line.trim_start().split_once(' ').unwrap().1.trim().to_owned()
        };
        let data = PathBuf::from(row(&mut live, "data").split(" (").next().unwrap());
        let api = row(&mut live, "api");
        let address = api
            .strip_prefix("http://")
            .and_then(|api| api.strip_suffix("/v1"))
            .unwrap()
            .to_owned();
        let task = row(&mut live, "task");
        live.wait_for("windrow init python");
        Dev {
            live,
            address,
            task,
            data,
        }
    }

    fn ask(&self, request: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (address, length) = (&self.address, body.len());
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (
            head.split(' ').nth(1).unwrap().parse().unwrap(),
            serde_json::from_str(body).unwrap(),
        )
    }

    /// Looks at a task until it is as wanted.
    fn until(&self, task: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let (status, view) = self.ask(&format!("GET /v1/tasks/{task}"), "");
            assert_eq!(status, 200, "{view}");
            if wanted(&view) {
                return view;
            }
            assert!(Instant::now() < until, "it never was so: {view}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ctrl-C; the summary, and everything that was said since the start.
    fn stop(self) -> (String, String) {
        self.live.signal(Signal::INT);
        let said = self.live.end().expect(0).stderr;
        let summary = said.lines().last().unwrap().to_owned();
        assert!(
            summary.starts_with("stopped: ") && summary.ends_with(". bye."),
            "{said}"
        );
        (summary, said)
    }
}

fn settled(view: &Value) -> u64 {
    ["succeeded", "skipped", "failed"]
        .iter()
        .map(|term| view["counts"][term].as_u64().unwrap())
        .sum()
}

/// Every file below a folder, as paths from it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let inner = if path.is_dir() {
            files(&path)
        } else {
            BTreeSet::from([path])
        };
        found.extend(inner);
    }
    found
}

/// What the descriptors of a process lead to.
fn descriptors(pid: i32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    targets.map(|target| target.display().to_string()).collect()
}

/// The local addresses of a process's sockets, as the kernel writes them, and whether each listens.
fn sockets(pid: i32) -> Vec<(String, bool)> {
    let own: BTreeSet<String> = descriptors(pid)
        .into_iter()
        .filter(|target| target.starts_with("socket:"))
        .collect();
    let mut found = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if own.contains(&format!("socket:[{}]", words[9])) {
                found.push((words[1].to_owned(), words[3] == "0A"));
            }
        }
    }
    found
}

#[test]
fn open_has_the_browser_show_the_dashboard_and_a_machine_without_one_is_told_where_it_is() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("bin")).unwrap();
    let opener = place.path("bin/xdg-open");
    std::fs::write(
        &opener,
        "#!/bin/sh\necho \"$@\" > opened.part && mv opened.part opened\n",
    )
    .unwrap();
    std::fs::set_permissions(&opener, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let words = "--port 0 --no-task --open";
    let dev = Dev::of(Dev::spawn(&place, "PATH=$PWD/bin:$PATH", words));
    let until = Instant::now() + PATIENCE;
    while !place.path("opened").exists() {
        assert!(Instant::now() < until, "the browser was never asked");
        std::thread::sleep(Duration::from_millis(20));
    }
    let opened = std::fs::read_to_string(place.path("opened")).unwrap();
    assert_eq!(opened.trim(), format!("http://{}", dev.address));
    let (_, said) = dev.stop();
    assert!(said.contains("\n  dashboard http://127.0.0.1:"), "{said}");
    std::fs::remove_file(opener).unwrap();
    let without = Dev::of(Dev::spawn(&place, "PATH=$PWD/bin", words));
    let address = format!("the address is http://{}", without.address);
    let (_, said) = without.stop();
    assert!(
        said.contains("can't open a browser (xdg-open: ") && said.contains(&address),
        "{said}"
    );
}

#[test]
fn the_first_item_is_settled_within_seconds_and_nothing_leaves_its_folder_or_this_machine() {
    let place = Place::new();
    // Neither a file nor a variable keeps it from beginning.
    place.write("config.toml", "[http]\nlisten = \"0.0.0.0:1\"\nno_such_key = 1\n");
    let before = files(&place.path(""));
    let variables = "WINDROW_HTTP__LISTEN=0.0.0.0:1 WINDROW_NODE__DATA_DIR=$PWD/elsewhere WINDROW_NODE__IDD=x \
                     WINDROW_LOG=a=b=c";
    let begun = Instant::now();
    let mut live = Dev::spawn(&place, variables, "--port 0");
    live.wait_for("development mode, not for production");
    let dev = Dev::of(live);
    let view = dev.until("t1", |view| settled(view) > 0);
    let took = begun.elapsed();
    assert!(took <= FIRST_ITEM_MAX, "the first item took {took:?}");
    assert_eq!(
        (view["business"].as_str(), view["total"].as_u64()),
        (Some("hello"), Some(12_000))
    );
    assert_eq!(dev.task, "t1: 12,000 items at 10/s is running");
    assert_adds_up(&dev.until("t1", |view| settled(view) > 20));

    let temporary = place.path("tmp").canonicalize().unwrap();
    let data = dev.data.canonicalize().unwrap();
    assert_eq!(data.parent(), Some(&*temporary));
    let outside: Vec<PathBuf> = files(&place.path(""))
        .difference(&before)
        .filter(|file| !file.canonicalize().unwrap().starts_with(&data))
        .cloned()
        .collect();
    assert!(outside.is_empty(), "written outside its folder: {outside:?}");
    let pid = dev.live.pid();
    let open: Vec<String> = descriptors(pid)
        .into_iter()
        .filter(|target| target.starts_with('/'))
        .collect();
    assert!(
        open.iter().any(|target| target.ends_with("/windrow.db")),
        "files are found: {open:?}"
    );
    for target in open {
        let is_own = Path::new(&target).starts_with(&data) || target.starts_with("/dev/");
        assert!(is_own, "{target} is open");
    }
    let sockets = sockets(pid);
    assert_eq!(
        sockets.iter().filter(|(_, listens)| *listens).count(),
        2,
        "façade and business: {sockets:?}"
    );
    for (address, _) in &sockets {
        assert!(
            address.starts_with("0100007F:"),
            "{address} is no socket of the loopback: {sockets:?}"
        );
    }

    let (summary, said) = dev.stop();
    assert!(summary.starts_with("stopped: t1 at "), "{summary}");
    assert!(
        summary.contains("/12,000, t2 ") && summary.contains(" in flight in "),
        "{summary}"
    );
    // A greeting and a summary: elsewhere than on a terminal no progress is shown.
    // The log has the end of the second task's canary.
    let mut lines = said.lines().filter(|line| !line.contains("canary_done"));
    assert!(!lines.any(|line| line.contains("succeeded")), "{said}");
    assert_eq!(files(&place.path("")), before, "nothing is left");
    assert_eq!(temporary.read_dir().unwrap().count(), 0, "the folder is gone");
}

#[test]
fn a_kept_directory_goes_on_where_it_was_and_its_numbers_can_be_explained() {
    let place = Place::new();
    let dev = Dev::start(&place, "--port 0 --data kept --items 2000 --rate 100/s");
    dev.until("t1", |view| settled(view) >= 50);
    let (summary, _) = dev.stop();
    let at = summary
        .strip_prefix("stopped: t1 at ")
        .and_then(|rest| rest.split_once("/2,000, t2 "));
    let at = at.unwrap_or_else(|| panic!("{summary}")).0;
    assert!(place.path("kept/windrow.db").exists());

    // Flags of new tasks change nothing about one that goes on.
    let mut dev = Dev::start(&place, "--port 0 --data kept --items 7");
    assert_eq!(dev.task, format!("t1: 2,000 items at 100/s continues at {at}"));
    assert_eq!(dev.ask("PATCH /v1/tasks/t1", r#"{"rate":"2000/s"}"#).0, 200);
    let line = dev.live.wait_for("t1 finished");
    assert_eq!(
        line,
        "t1 finished: 2,000 items, 1,940 succeeded, 40 skipped, 20 failed; the node keeps running, Ctrl-C stops it"
    );
    // No call went to the address of before.
    let (_, groups) = dev.ask("GET /v1/tasks/t1/failures/groups", "");
    let codes: Vec<&str> = groups["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["NO_USER"], "{groups}");
    let item = dev.ask("GET /v1/tasks/t1/items/99", "").1;
    assert!(item.to_string().contains("no user 99"), "{item}");
    reviewable(&dev);
    assert_eq!(dev.stop().0, "stopped: t1 finished, t2 stopped at 20/200. bye.");

    let dev = Dev::start(&place, "--port 0 --data kept --items 7");
    assert_eq!(dev.task, "t3: 7 items at 10/s is running", "one review is enough");
    dev.until("t3", |view| view["status"] == "finished");
    dev.stop();
}

/// Waits until the canary of the second sample task is done, and it waits for its review.
fn reviewable(dev: &Dev) {
    let view = dev.until("t2", |view| view["status"] == "stopped");
    assert_eq!(view["stop_reason"], "canary_done", "{view}");
    let counts = ["succeeded", "skipped", "failed"].map(|term| view["counts"][term].as_u64().unwrap());
    assert_eq!(
        (counts.iter().sum::<u64>(), view["name"].as_str()),
        (20, Some("winter-sale"))
    );
}

#[test]
fn what_people_have_changed_is_told_and_stays_as_they_left_it() {
    let place = Place::new();
    let mut dev = Dev::start(&place, "--port 0 --data kept --rate 50/s");
    dev.until("t1", |view| settled(view) > 0);
    assert_eq!(dev.ask("POST /v1/tasks/t1/stop", "{}").0, 202);
    let line = dev.live.wait_for("t1 stopped: 12,000 items, ");
    assert!(line.contains(" pending; the node keeps running"), "{line}");
    let own = r#"{"url":"http://127.0.0.1:9/own"}"#;
    assert_eq!(dev.ask("PATCH /v1/businesses/hello", own).0, 200);
    reviewable(&dev);
    let (summary, _) = dev.stop();
    assert!(
        summary.starts_with("stopped: t1 stopped at ")
            && summary.ends_with("/12,000, t2 stopped at 20/200. bye."),
        "{summary}"
    );

    let dev = Dev::start(&place, "--port 0 --data kept");
    assert_eq!(dev.task, "t1: 12,000 items at 50/s is stopped, unchanged");
    assert_eq!(
        dev.ask("GET /v1/businesses/hello", "").1["url"],
        "http://127.0.0.1:9/own"
    );
    dev.stop();
}

#[test]
fn a_directory_that_is_not_its_own_is_refused_and_so_is_one_in_use() {
    let place = Place::new();
    std::fs::create_dir(place.path("mine")).unwrap();
    place.write("mine/windrow.db", "of a real node");
    let refused = place.windrow(&["dev", "--port", "0", "--data", "mine"]);
    refused.refused(4, &["can't use mine", "windrow dev didn't create", "--data DIR"]);
    assert_eq!(files(&place.path("mine")).len(), 1);
    let dev = Dev::start(&place, "--port 0 --data kept --no-task");
    place
        .windrow(&["dev", "--port", "0", "--data", "kept"])
        .refused(4, &["is working in kept", "--data directory"]);
    assert_eq!(dev.task, "none");
    assert_eq!(dev.stop().0, "stopped: nothing was running. bye.");
}

#[test]
fn a_port_that_is_taken_is_told_and_another_one_serves_unless_it_was_asked_for() {
    let place = Place::new();
    // Whoever has it: it is taken.
    let _usual = TcpListener::bind("127.0.0.1:7700");
    let mut live = Dev::spawn(&place, "", "--no-task");
    live.wait_for("port 7700 is in use, so another one was chosen");
    let dev = Dev::of(live);
    assert!(!dev.address.ends_with(":7700"), "{}", dev.address);
    assert_eq!(dev.ask("GET /v1/whoami", "").0, 200, "nobody has to sign in");
    dev.stop();

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let temporary = place.path("tmp").display().to_string();
    let refused = place.windrow_with(&["dev", "--port", &port], "", &[("TMPDIR", &temporary)]);
    refused.refused(4, &["can't listen on", "--port 0"]);
    assert_eq!(
        place.path("tmp").read_dir().unwrap().count(),
        0,
        "nothing is left of what did not begin"
    );
}

#[test]
fn a_second_ctrl_c_does_not_wait_and_the_folder_goes_all_the_same() {
    let place = Place::new();
    let mut dev = Dev::start(&place, "--port 0 --no-task");
    // It takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let made = dev.ask(
        "POST /v1/businesses?check=skip",
        &format!(r#"{{"name":"slow","url":"{url}"}}"#),
    );
    assert_eq!(made.0, 201, "{}", made.1);
    let task = r#"{"business":"slow","source":{"type":"range","total":3},"start":true}"#;
    assert_eq!(dev.ask("POST /v1/tasks", task).0, 201);
    dev.until("t1", |view| view["counts"]["in_flight"] == 3);
    dev.live.signal(Signal::INT);
    dev.live.wait_for("draining: ");
    dev.live.signal(Signal::INT);
    dev.live.wait_for("aborted");
    dev.live.end().expect(130);
    assert_eq!(
        place.path("tmp").read_dir().unwrap().count(),
        0,
        "the folder is gone"
    );
}

#[test]
fn the_end_of_its_terminal_is_its_end() {
    let place = Place::new();
    let dev = Dev::start(&place, "--port 0");
    dev.until("t1", |view| settled(view) > 0);
    dev.live.signal(Signal::HUP);
    let said = dev.live.end().expect(0).stderr;
    assert!(said.contains("stopped: t1 at "), "{said}");
    assert_eq!(place.path("tmp").read_dir().unwrap().count(), 0);
}

#[test]
fn the_tree_of_actors_is_an_event_of_the_log_whenever_it_changes() {
    let place = Place::new();
    let mut dev = Dev::start(&place, "--port 0 --items 20 --rate 200/s");
    dev.live.wait_for("t1 finished: ");
    let (_, said) = dev.stop();
    let events: Vec<Value> = said
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let event = |message: &str| {
        // Two tasks begin, in any order.
        let is_of_second = |event: &Value| event["actor"] == "dev/t2.0";
        let is_it = |event: &&Value| event["msg"].as_str().is_some_and(|msg| msg.starts_with(message));
        let found = events.iter().find(|event| is_it(event) && !is_of_second(event));
        found.unwrap_or_else(|| panic!("{message:?} was not said:\n{said}"))
    };
    for message in ["node up", "run began", "node draining", "node down"] {
        assert!(event(message)["ts"].as_str().unwrap().ends_with('Z'), "{said}");
    }
    for (message, path, kind) in [
        ("node up", "dev", "supervisor"),
        ("node up", "dev/session", "session"),
        ("run began", "dev/t1.0", "launcher"),
        ("run began", "dev/t1.0/executor", "executor"),
    ] {
        let tree = event(message)["tree"].as_array().unwrap();
        let is_shown = |actor: &Value| actor["path"] == path && actor["kind"] == kind;
        assert!(tree.iter().any(is_shown), "{path} is not in {tree:?}");
    }
}

/// A terminal is made by python3, which the tests need anyway.
#[test]
fn on_a_terminal_the_progress_is_shown_while_it_runs() {
    let place = Place::new();
    let mut command = assert_cmd::Command::new("python3");
    command.args([
        &repository("tests/fixtures/terminal.py"),
        "t1 finished: ",
        env!("CARGO_BIN_EXE_windrow"),
    ]);
    command.args(["dev", "--port", "0", "--items", "300", "--rate", "200/s"]);
    command
        .env("HOME", place.path(""))
        .env("TMPDIR", place.path(""))
        .env("TERM", "xterm");
    let output = command.timeout(PATIENCE).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{shown}");
    for text in [
        "/s of 200/s",
        "in flight ",
        "t1 finished: 300 items, 291 succeeded, 6 skipped, 3 failed",
        "stopped: t1 finished, t2 ",
        "  dev (supervisor) ",
    ] {
        assert!(shown.contains(text), "{text:?} was not shown:\n{shown}");
    }
    let up = shown.lines().find(|line| line.contains("node up")).unwrap();
    assert!(up.contains("INFO") && up.contains('Z'), "it has a time: {up}");
}
