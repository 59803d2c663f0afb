//! `windrow init`: what it writes is short, keeps the contract as it is, and never takes the place of anything.

#![allow(clippy::disallowed_methods, reason = "a test measures real time")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::support::{PATIENCE, Place};

/// The most lines of a handler that `init` writes. (P8 of the promises.)
const LINES_MAX: usize = 15;

/// Whether a language is installed here; a test that can't run says so.
fn has(program: &str, argument: &str) -> bool {
    let asked = Command::new(program)
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let found = asked.is_ok_and(|status| status.success());
    if !found {
        eprintln!("SKIPPED: {program} is not installed, so its handler was not run");
    }
    found
}

/// A handler that listens; killed with the value, and so is what it started.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts what `init` said, in the place.
    fn start(place: &Place, program: &str, args: &[&str]) -> Server {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(place.path(""))
            .env("PORT", port.to_string())
            .process_group(0);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "{program} doesn't listen on PORT");
            assert_eq!(child.try_wait().unwrap(), None, "{program} {args:?} has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        Server { child, port }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        kill_process_group(Pid::from_child(&self.child), Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }
}

/// Has a handler written; checks its length and that the next commands are told.
fn written(language: &str, file: &str, next: &[&str]) -> Place {
    let place = Place::new();
    let said = place.windrow(&["init", language]).expect(0).stdout;
    assert_eq!(place.names(), [file], "nothing else is written");
    let lines = place.read(file).lines().count();
    assert!(lines <= LINES_MAX, "{file} has {lines} lines");
    assert!(said.starts_with(&format!("{file}: {lines} lines, ")), "{said}");
    for command in next {
        let is_told = |line: &str| {
            line.split(" # ")
                .next()
                .is_some_and(|told| told.trim() == *command)
        };
        assert!(said.lines().any(is_told), "{command:?} is not told:\n{said}");
    }
    place
}

const HTTP_NEXT: [&str; 3] = [
    "windrow try http://127.0.0.1:9000",
    "windrow biz register hello-push --url http://127.0.0.1:9000",
    "windrow run --total 100 --rate 20/s --url http://127.0.0.1:9000",
];

/// It passes `windrow try`, one item a call and several, and its data may be missing.
fn keeps_the_contract(place: &Place, server: &Server) {
    let data = r#"{"user_id":"u{index}"}"#;
    for more in [&["--data", data][..], &["--data", data, "--batch", "3"], &[]] {
        let url = server.url();
        let words: Vec<&str> = ["try", &url].iter().chain(more).copied().collect();
        let done = place.windrow(&words).expect(0);
        assert!(done.stdout.contains("contract: ok"), "{more:?}:\n{}", done.stdout);
        assert_eq!(done.stdout.matches("✓ succeeded").count(), 3, "{}", done.stdout);
    }
}

/// Two calls of types that no handler knows, on one connection.
fn answers_what_it_does_not_know_and_keeps_the_connection(server: &Server) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for body in [r#"{"type":"of.tomorrow","x":{"y":[1]}}"#, r#"{"type":"ping"}"#] {
        let length = body.len();
        write!(
            stream,
            "POST /any HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let (mut head, mut byte) = (String::new(), [0]);
        while !head.ends_with("\r\n\r\n") {
            assert_eq!(
                stream.read(&mut byte).unwrap(),
                1,
                "the connection is closed after {head:?}"
            );
            head.push(char::from(byte[0]));
        }
        assert!(head.starts_with("HTTP/1.1 204 "), "{head}");
        assert!(!head.to_lowercase().contains("connection: close"), "{head}");
    }
}

fn check_server(place: &Place, program: &str, args: &[&str]) {
    let server = Server::start(place, program, args);
    keeps_the_contract(place, &server);
    answers_what_it_does_not_know_and_keeps_the_connection(&server);
}

#[test]
fn the_python_handler_is_short_and_keeps_the_contract() {
    let place = written(
        "python",
        "handler.py",
        &[&["python3 handler.py"], &HTTP_NEXT[..]].concat(),
    );
    if has("python3", "--version") {
        check_server(&place, "python3", &["handler.py"]);
    }
}

#[test]
fn the_node_handler_is_short_and_keeps_the_contract() {
    let place = written(
        "node",
        "handler.mjs",
        &[&["node handler.mjs"], &HTTP_NEXT[..]].concat(),
    );
    if has("node", "--version") {
        check_server(&place, "node", &["handler.mjs"]);
    }
}

#[test]
fn the_go_handler_is_short_and_keeps_the_contract() {
    let place = written(
        "go",
        "handler.go",
        &[&["go run handler.go"], &HTTP_NEXT[..]].concat(),
    );
    if has("go", "version") {
        check_server(&place, "go", &["run", "handler.go"]);
    }
}

fn check_worker(place: &Place, command: &str) {
    for more in [&[][..], &["--data", r#"{"user_id":"u{index}"}"#]] {
        let words: Vec<&str> = ["try"]
            .iter()
            .chain(more)
            .chain(&["--", command])
            .copied()
            .collect();
        let done = place.windrow(&words).expect(0);
        assert!(done.stdout.contains("contract: ok"), "{}", done.stdout);
        assert_eq!(done.stdout.matches("✓ succeeded").count(), 3, "{}", done.stdout);
    }
    place
        .windrow(&["run", "--total", "40", "--name", "x", "--", command])
        .expect(0);
}

#[test]
fn the_bash_handler_is_short_and_keeps_the_contract() {
    let next = [
        "windrow try -- ./handler.sh",
        "windrow run --total 100 --rate 20/s -- ./handler.sh",
    ];
    let place = written("bash", "handler.sh", &next);
    if has("bash", "--version") {
        check_worker(&place, "./handler.sh");
    }
}

#[test]
fn the_rust_handler_is_short_and_keeps_the_contract() {
    let place = written(
        "rust",
        "handler.rs",
        &["rustc handler.rs", "windrow try -- ./handler"],
    );
    if has("rustc", "--version") {
        let built = Command::new("rustc")
            .arg("handler.rs")
            .current_dir(place.path(""))
            .status()
            .unwrap();
        assert!(
            built.success(),
            "it compiles with nothing but the standard library"
        );
        check_worker(&place, "./handler");
    }
}

#[test]
fn a_file_that_is_there_is_replaced_only_by_force() {
    let place = Place::new();
    place.write("handler.py", "mine");
    place
        .windrow(&["init", "python"])
        .refused(4, &["can't write handler.py", "the file exists", "--force"]);
    assert_eq!(place.read("handler.py"), "mine");
    place.windrow(&["init", "python", "--force"]).expect(0);
    assert!(place.read("handler.py").contains("do_POST"));
    assert_eq!(place.names(), ["handler.py"], "no draft is left");
    std::os::unix::fs::symlink("nowhere", place.path("handler.sh")).unwrap();
    place.windrow(&["init", "bash"]).refused(4, &["handler.sh"]);
}

#[test]
fn a_directory_is_made_and_told_so_that_it_can_be_pasted() {
    let place = Place::new();
    let said = place
        .windrow(&["init", "bash", "--dir", "my push/x"])
        .expect(0)
        .stdout;
    assert!(said.contains("\n  cd -- 'my push/x' "), "{said}");
    assert!(place.path("my push/x/handler.sh").exists());
    place.write("file", "");
    place
        .windrow(&["init", "bash", "--dir", "file"])
        .refused(1, &["can't write file/handler.sh"]);
}

#[test]
fn http_explains_and_writes_nothing() {
    let place = Place::new();
    let said = place.windrow(&["init", "http"]).expect(0).stdout;
    for text in [
        "no file was written",
        "item.process",
        "204",
        "windrow try http://127.0.0.1:9000",
    ] {
        assert!(said.contains(text), "{text:?} is not in\n{said}");
    }
    assert_eq!(place.names(), [""; 0]);
}
