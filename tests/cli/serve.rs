//! `windrow serve` as a process: what it refuses, what it answers, signals, and what the service manager hears.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

use rustix::process::Signal;
use serde_json::Value;

use super::support::{Live, PATIENCE, Place};

/// A node and where it is.
struct Node {
    live: Live,
    address: String,
    token: String,
}

/// Where a node says that it listens, in a line of its log.
fn address(live: &mut Live) -> String {
    let line: Value = serde_json::from_str(&live.wait_for("listens on http://")).unwrap();
    line["msg"]
        .as_str()
        .unwrap()
        .rsplit_once("http://")
        .unwrap()
        .1
        .to_owned()
}

impl Node {
    fn of(mut live: Live, place: &Place) -> Node {
        let address = address(&mut live);
        live.wait_for("token is in");
        Node {
            live,
            address,
            token: place.read("data/admin.token").trim().to_owned(),
        }
    }

    fn start(place: &Place) -> Node {
        Node::of(
            place.start(&["serve", "--data-dir", "data", "--listen", "127.0.0.1:0"]),
            place,
        )
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request and reads the whole answer: status, head, body.
    fn ask(&self, request: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut stream = self.connect();
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}",
            self.address
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_owned(), body.to_owned())
    }

    fn bearer(&self) -> String {
        format!("authorization: Bearer {}\r\n", self.token)
    }

    fn json(&self, request: &str, body: &str) -> (u16, Value) {
        let headers = format!("{}content-type: application/json\r\n", self.bearer());
        let (status, _, body) = self.ask(request, &headers, body);
        (status, serde_json::from_str(&body).unwrap())
    }
}

#[test]
fn a_node_answers_until_it_is_told_to_end_and_leaves_a_closed_database() {
    let place = Place::new();
    let node = Node::start(&place);
    assert_eq!(node.ask("GET /healthz", "", "").0, 200);
    assert_eq!(node.ask("GET /v1/whoami", "", "").0, 401);
    assert_eq!(
        node.ask("GET /v1/whoami", "authorization: Bearer wrk_nobody\r\n", "")
            .0,
        401
    );
    assert_eq!(node.json("GET /v1/whoami", "").1["role"], "admin");
    place
        .windrow(&["serve", "--data-dir", "data", "--listen", "127.0.0.1:0"])
        .refused(4, &["is working in"]);
    node.live.signal(Signal::TERM);
    node.live.end().expect(0);
    assert!(
        !place.path("data/windrow.db-wal").exists(),
        "the journal was folded in"
    );
    let again = Node::start(&place);
    again.live.signal(Signal::INT);
    again.live.end().expect(0);
}

#[test]
fn every_fault_of_a_configuration_is_told_before_anything_is_begun() {
    let place = Place::new();
    place.write(
        "config.toml",
        "[node]\ndata_dir = \"data\"\nunlimited_reserves = \"5000/s\"\n\
        [store]\nurl = \"postgres://db/windrow\"\n[http]\nlisten = \"0.0.0.0:7700\"\n[auth]\nmode = \"off\"\n",
    );
    let first = place
        .windrow(&["serve"])
        .refused(78, &["node.unlimited_reserves", "auth.mode", "auth.key_file"]);
    assert!(first.stderr.contains("(config.toml)"), "{}", first.stderr);
    place.write(
        "config.toml",
        "[auth]\nmode = \"off\"\n[log]\nfilter = \"a=b=c\"\n",
    );
    place
        .windrow(&["serve", "--listen", "0.0.0.0:7700"])
        .refused(78, &["auth.mode", "log.filter"]);
    assert!(!place.path("data").exists(), "nothing was begun");
}

#[test]
fn a_folder_of_results_that_can_not_be_used_is_told_as_one() {
    let place = Place::new();
    let folder = place.write("results", "a file");
    let config = format!("[results]\nlocation = {folder:?}\n[http]\nlisten = \"127.0.0.1:0\"\n");
    place.write("config.toml", &config);
    place
        .windrow(&["config", "check", "config.toml"])
        .refused(78, &["results.location", "is not a directory"]);
    let done = place.windrow(&["serve", "--config", "config.toml", "--data-dir", "data"]);
    let done = done.refused(
        78,
        &[
            "can't use a directory of the store",
            "results.location",
            "writable",
        ],
    );
    assert!(!done.stderr.contains("database"), "{}", done.stderr);
}

#[test]
fn a_port_that_is_taken_is_told_before_the_database_is_touched() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place
        .windrow(&["serve", "--data-dir", "data", "--listen", &address])
        .refused(4, &[&address, "--listen"]);
    assert!(!place.path("data").exists());
}

#[test]
fn what_is_outside_v1_is_open_or_for_this_machine() {
    let place = Place::new();
    let node = Node::start(&place);
    let ready = node.ask("GET /readyz", "", "");
    assert_eq!(ready.0, 200, "{}", ready.2);
    for path in [
        "/version",
        "/openapi.json",
        "/docs",
        "/problems",
        "/problems/draining",
        "/metrics",
        "/actors",
    ] {
        let (status, head, body) = node.ask(&format!("GET {path}"), "", "");
        assert_eq!(status, 200, "{path}");
        for header in [
            "x-content-type-options: nosniff",
            "content-security-policy: default-src 'none'",
            "request-id: ",
        ] {
            assert!(head.contains(header), "{path} lacks {header}: {head}");
        }
        assert!(
            !body.contains("href=\"http") && !body.contains("src="),
            "{path} loads something from elsewhere"
        );
    }
    for path in ["/metrics", "/actors", "/actors?format=json"] {
        let behind_a_proxy = node.ask(&format!("GET {path}"), "x-forwarded-for: 203.0.113.7\r\n", "");
        assert_eq!(behind_a_proxy.0, 401, "{path}");
    }
    assert_eq!(node.ask("GET /problems/no-such", "", "").0, 404);
    let markdown = node.ask("GET /problems/draining", "accept: text/markdown\r\n", "");
    assert!(
        markdown.2.starts_with("# Node is shutting down\n\n**What.** "),
        "{}",
        markdown.2
    );
    let (status, document) = node.json("GET /openapi.json", "");
    assert_eq!((status, document["openapi"].as_str()), (200, Some("3.1.0")));
}

#[test]
fn all_that_is_said_in_a_log_of_objects_is_one() {
    let place = Place::new();
    place.write("config.toml", "[log]\nformat = \"json\"\nfilter = \"error\"\n");
    let node = Node::start(&place);
    let beside = place
        .start(&["serve", "--data-dir", "data", "--listen", "127.0.0.1:0"])
        .end();
    node.live.signal(Signal::TERM);
    let done = node.live.end().expect(0);
    let mut said = String::new();
    for line in done.stderr.lines().chain(beside.expect(4).stderr.lines()) {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(object["ts"].is_string() && object["level"].is_string(), "{line}");
        said += &format!("{} {}\n", object["level"], object["msg"]);
    }
    for told in [
        "listens on http://",
        "token is in data/admin.token",
        "draining: ",
        "\"ERROR\" \"error: ",
    ] {
        assert!(said.contains(told), "{told:?} was not said:\n{said}");
    }
    assert!(
        !said.contains(&node.token),
        "the token itself is no line of a log"
    );
}

#[test]
fn a_node_that_can_not_start_ends_its_log_as_any_command_ends() {
    let place = Place::new();
    let node = Node::start(&place);
    let listen = &node.address;
    let done = place
        .start(&["serve", "--data-dir", "other", "--listen", listen])
        .end();
    let done = done.expect(4);
    let (objects, rest) = done
        .stderr
        .split_once("\nerror: can't start the node\n")
        .expect("a plain error");
    assert!(objects.lines().all(|line| line.starts_with('{')), "{objects}");
    let lines: Vec<&str> = rest.trim_end().lines().collect();
    assert!(
        matches!(lines.as_slice(), [because, hint] if because.starts_with("  because ") && hint.starts_with("  try  ")),
        "{rest}"
    );
}

#[test]
fn without_tokens_no_page_of_another_can_use_the_node() {
    let place = Place::new();
    place.write("config.toml", "[auth]\nmode = \"off\"\n");
    let mut live = place.start(&["serve", "--data-dir", "data", "--listen", "127.0.0.1:0"]);
    let address = address(&mut live);
    let node = Node {
        live,
        address,
        token: String::new(),
    };
    assert_eq!(node.ask("GET /v1/whoami", "", "").0, 200);
    let own = format!("origin: http://{}\r\n", node.address);
    assert_eq!(node.ask("GET /v1/whoami", &own, "").0, 200);
    assert_eq!(
        node.ask("GET /v1/whoami", "origin: http://example.org\r\n", "").0,
        403
    );
    let mut rebound = node.connect();
    rebound
        .write_all(b"GET /v1/whoami HTTP/1.1\r\nhost: example.org\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    rebound.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
}

#[test]
fn a_node_is_drained_and_changed_over_http() {
    let place = Place::new();
    let node = Node::start(&place);
    let name = node.json("GET /version", "").1["node"]
        .as_str()
        .unwrap()
        .to_owned();
    let drained = node.json(
        &format!("POST /v1/nodes/{name}/drain"),
        r#"{"reason":"maintenance"}"#,
    );
    assert_eq!((drained.0, drained.1["state"].as_str()), (202, Some("drained")));
    let (status, _, body) = node.ask("GET /readyz", "", "");
    assert!(status == 503 && body.contains("\"drained\""), "{status} {body}");
    assert_eq!(
        node.json(&format!("POST /v1/nodes/{name}/undrain"), "{}").1["state"],
        "serving"
    );
    let changed = node.json(
        &format!("PATCH /v1/nodes/{name}"),
        r#"{"capacity_rate":"3000/s","log_filter":"warn"}"#,
    );
    assert_eq!(
        (changed.0, &changed.1["capacity_rate"]),
        (200, &Value::from("3000/s"))
    );
    // A task without a rate counts as 1000/s: it could never run.
    assert_eq!(
        node.json(&format!("PATCH /v1/nodes/{name}"), r#"{"capacity_rate":"10/s"}"#)
            .0,
        422
    );
    assert_eq!(
        node.json(&format!("PATCH /v1/nodes/{name}"), r#"{"log_filter":"a=b=c"}"#)
            .0,
        422
    );
    assert_eq!(node.json("GET /v1/nodes/elsewhere", "").0, 404);
    let tree = node.json(&format!("GET /v1/nodes/{name}/actors?depth=0"), "").1;
    assert_eq!(
        (
            tree[0]["path"].as_str(),
            tree[0]["children"].as_array().map(Vec::len)
        ),
        (Some(name.as_str()), Some(0))
    );
}

#[test]
fn a_reload_takes_over_what_it_may_and_faults_change_nothing() {
    let place = Place::new();
    place.write("config.toml", "[node]\nid = \"n1\"\ncapacity_rate = \"2000/s\"\n");
    let mut node = Node::start(&place);
    place.write("config.toml", "[node]\nid = \"n2\"\ncapacity_rate = \"3000/s\"\n");
    node.live.signal(Signal::HUP);
    assert!(node.live.wait_for("a restart is needed").contains("node.id"));
    assert_eq!(node.json("GET /v1/nodes/n1", "").1["capacity_rate"], "3000/s");
    place.write(
        "config.toml",
        "[node]\ncapacity_rat = \"4000/s\"\nrun_tasks = 7\n",
    );
    node.live.signal(Signal::HUP);
    node.live.wait_for("stays in force");
    node.live.wait_for("stays in force");
    assert_eq!(node.json("GET /v1/nodes/n1", "").1["capacity_rate"], "3000/s");
    node.live.signal(Signal::USR1);
    node.live.wait_for("session");
}

#[test]
fn a_stream_says_goodbye_and_a_second_signal_ends_at_once() {
    let place = Place::new();
    let mut node = Node::start(&place);
    let mut stream = node.connect();
    write!(
        stream,
        "GET /v1/events?topics=cluster HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
        node.bearer()
    )
    .unwrap();
    let mut seen = String::new();
    let mut until = |text: &str| {
        let mut byte = [0];
        while !seen.contains(text) {
            assert_eq!(
                stream.read(&mut byte).unwrap(),
                1,
                "{text:?} was not said in {seen}"
            );
            seen.push(char::from(byte[0]));
        }
    };
    until("event: snapshot");
    // A request whose body never ends holds the end up.
    let mut held = node.connect();
    write!(
        held,
        "POST /v1/nodes/x/drain HTTP/1.1\r\nhost: localhost\r\n{}content-type: application/json\r\ncontent-length: 9\r\n\r\n{{",
        node.bearer()
    )
    .unwrap();
    held.flush().unwrap();
    node.ask("GET /healthz", "", "");
    node.live.signal(Signal::TERM);
    node.live.wait_for("draining");
    until("event: bye");
    node.live.signal(Signal::TERM);
    node.live.wait_for("aborted");
    node.live.end().expect(130);
}

#[test]
fn the_service_manager_hears_when_the_node_serves_and_when_it_ends() {
    let place = Place::new();
    let socket = UnixDatagram::bind(place.path("notify")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let program = env!("CARGO_BIN_EXE_windrow");
    let script = format!(
        "NOTIFY_SOCKET={} WATCHDOG_USEC=400000 exec {program} serve --data-dir data --listen 127.0.0.1:0",
        place.path("notify").display()
    );
    let node = Node::of(place.start_shell(&script), &place);
    let hears = |wanted: &str| {
        let mut bytes = [0; 4096];
        for _ in 0..20 {
            let count = socket.recv(&mut bytes).unwrap();
            let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
            if text.contains(wanted) {
                return text;
            }
        }
        panic!("{wanted} was not heard")
    };
    assert!(hears("READY=1").contains(&format!("STATUS=serves on http://{}", node.address)));
    hears("WATCHDOG=1");
    node.live.signal(Signal::HUP);
    assert!(hears("RELOADING=1").contains("MONOTONIC_USEC="));
    hears("READY=1");
    node.live.signal(Signal::TERM);
    hears("STOPPING=1");
    node.live.end().expect(0);
}

#[test]
fn a_node_that_waits_for_its_database_says_so_and_ends_when_it_is_told_to() {
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let key = place.write("key", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config =
        format!("[store]\nurl = \"postgres://windrow@{nowhere}/windrow\"\n[auth]\nkey_file = \"{key}\"\n");
    place.write("config.toml", &config);
    let address = free.to_string();
    let mut live = place.start(&[
        "serve",
        "--config",
        "config.toml",
        "--data-dir",
        "data",
        "--listen",
        &address,
    ]);
    live.wait_for("yet; trying for");
    let node = Node {
        live,
        address,
        token: String::new(),
    };
    assert_eq!(node.json("GET /healthz", "").0, 200, "it lives");
    let (status, ready) = node.json("GET /readyz", "");
    assert_eq!(
        (status, &ready["ready"], &ready["reasons"][0]["reason"]),
        (503, &false.into(), &"store".into())
    );
    let (status, told) = node.json("GET /v1/tasks", "");
    assert_eq!((status, &told["status"]), (503, &503.into()), "{told:#}");
    assert!(
        told["detail"]
            .as_str()
            .unwrap()
            .contains("waiting for its database"),
        "{told:#}"
    );
    node.live.signal(Signal::TERM);
    let done = node.live.end().expect(0);
    assert!(
        done.stderr.contains("stopped before the start"),
        "{}",
        done.stderr
    );
}
