//! Executes commands of a page in a fresh directory, and compares what they print with what the page says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::page::Step;
use super::root;

/// The ports that the pages speak of; free ones are used in their place.
const PORTS_TOLD: [&str; 8] = ["9000", "7700", "9001", "9002", "9003", "9004", "9005", "9006"];
/// Of those, that of a handler which doesn't say another.
const HANDLER: usize = 0;
/// Of those, a node's.
const NODE: usize = 1;
/// What the pages use of the repository.
const FOLDERS: [&str; 4] = [
    "examples/data",
    "examples/handlers",
    "examples/leaderboard",
    "examples/recipes",
];
/// Before all others in the path: what stands in for programs that not every machine has.
const STAND_INS: &str = "tests/docs/stand_ins";
/// No command of the documentation takes longer.
const PATIENCE: Duration = Duration::from_secs(180);

/// A directory with the examples in it, a home, and the program in the path.
pub(crate) struct Shell {
    /// First, so that they are ended before their directory goes.
    servers: Vec<Running>,
    place: TempDir,
    ports: [u16; PORTS_TOLD.len()],
    /// Where clients look for a node, when it isn't where they look by themselves.
    server: Option<String>,
}

/// A program in a terminal of its own.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            end(&mut self.child);
        }
    }
}

impl Shell {
    /// A fresh home with nothing in it.
    pub(crate) fn empty() -> Shell {
        let place = tempfile::tempdir().unwrap();
        // Free when asked; nothing else here asks for those.
        let listeners = PORTS_TOLD.map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let ports = listeners.map(|listener| listener.local_addr().unwrap().port());
        Shell {
            place,
            ports,
            server: None,
            servers: Vec::new(),
        }
    }

    /// A home that is a clone of the repository, as far as the pages need it.
    pub(crate) fn new() -> Shell {
        let shell = Shell::empty();
        for folder in FOLDERS {
            shell.copy(folder);
        }
        std::fs::copy(root().join("config.toml"), shell.path("config.toml")).unwrap();
        shell
    }

    fn copy(&self, folder: &str) {
        std::fs::create_dir_all(self.path(folder)).unwrap();
        for entry in root().join(folder).read_dir().unwrap() {
            let from = entry.unwrap().path();
            let text = std::fs::read_to_string(&from).unwrap();
            let text = if folder.ends_with("data") {
                text
            } else {
                self.with_port(&text)
            };
            std::fs::write(self.path(folder).join(from.file_name().unwrap()), text).unwrap();
        }
    }

    fn path(&self, inner: &str) -> PathBuf {
        self.place.path().join(inner)
    }

    fn with_port(&self, text: &str) -> String {
        // In two steps: a port that was put in may hold the digits of the next one.
        let mark = |nth: usize| format!("\u{1}{nth}\u{1}");
        let mut text = text.to_owned();
        for (nth, told) in PORTS_TOLD.into_iter().enumerate() {
            text = text.replace(told, &mark(nth));
        }
        for (nth, port) in self.ports.into_iter().enumerate() {
            text = text.replace(&mark(nth), &port.to_string());
        }
        text
    }

    /// A text with the ports that the pages speak of in place of those that were used.
    fn as_told(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (told, port) in PORTS_TOLD.into_iter().zip(self.ports) {
            text = text.replace(&port.to_string(), told);
        }
        text
    }

    /// Where a program that keeps running will answer: a handler's port stands before it, or in its text.
    fn port_of(&self, command: &str) -> u16 {
        let told = self.with_port(command);
        let before = told.split(' ').find_map(|word| word.strip_prefix("PORT="));
        if let Some(port) = before.and_then(|port| port.parse().ok()) {
            return port;
        }
        if command.contains("windrow serve") {
            return self.ports[NODE];
        }
        let file = command
            .split(' ')
            .find(|word| word.ends_with(".py"))
            .map(|word| self.path(word));
        let text = file
            .map(|file| std::fs::read_to_string(file).unwrap())
            .unwrap_or_default();
        let stands_in_it = |port: &&u16| text.contains(&port.to_string());
        self.ports
            .iter()
            .find(stands_in_it)
            .copied()
            .unwrap_or(self.ports[HANDLER])
    }

    /// Runs one command and compares.
    pub(crate) fn run(&mut self, step: &Step, loose: bool) -> Result<(), String> {
        let mut child = self.start(&self.with_port(&step.command));
        if step.background {
            // Somebody has to read what it prints, or it stands still when the pipe is full.
            let lines = lines_of(&mut child);
            self.servers.push(Running { child, lines });
            return self.wait_for_answer(self.port_of(&step.command));
        }
        let lines = lines_of(&mut child);
        let mut seen = Vec::new();
        let mut expected = step.expected.as_slice();
        if let Some(at) = step.expected.iter().position(|line| line == "^C") {
            let above = |seen: &[String]| self.compare(&expected[..at], seen, loose).is_ok();
            if follow(&lines, &mut seen, above) != Followed::Enough {
                end(&mut child);
                return Err(complaint("the lines above ^C did not appear", &seen));
            }
            signal(&child, "INT");
            expected = &expected[at + 1..];
        }
        if follow(&lines, &mut seen, |_| false) != Followed::Ended {
            end(&mut child);
            return Err(complaint("it does not end", &seen));
        }
        let code = child.wait().unwrap().code();
        if code != Some(step.exit) {
            return Err(complaint(
                &format!("exit code {code:?}, the page says {}", step.exit),
                &seen,
            ));
        }
        self.judge(expected, &seen, loose)
    }

    /// Starts a program that keeps running, and waits until it has printed what stands below it.
    pub(crate) fn keep_running(&mut self, step: &Step) -> Result<Running, String> {
        let mut child = self.start(&self.with_port(&step.command));
        let lines = lines_of(&mut child);
        let running = Running { child, lines };
        let mut seen = Vec::new();
        if step.command.starts_with("windrow dev") {
            // It takes another port when the usual one is taken.
            let greeted = |seen: &[String]| seen.iter().any(|line| port_of_dev(line).is_some());
            follow(&running.lines, &mut seen, greeted);
            let port = seen.iter().find_map(|line| port_of_dev(line));
            self.ports[NODE] = port.ok_or_else(|| complaint("it doesn't say where its API is", &seen))?;
            self.server = Some(format!("http://127.0.0.1:{}", self.ports[NODE]));
        }
        let enough = |seen: &[String]| self.compare(&step.expected, seen, false).is_ok();
        match follow(&running.lines, &mut seen, enough) {
            Followed::Enough => {}
            _ => return Err(complaint("what stands below it did not appear", &seen)),
        }
        // One that prints nothing has to be waited for all the same.
        if step.command.starts_with("python3 ") {
            self.wait_for_answer(self.ports[HANDLER])?;
        }
        Ok(running)
    }

    /// Presses Ctrl-C and waits for the end.
    pub(crate) fn interrupt(&self, mut running: Running, expected: &[String]) -> Result<(), String> {
        signal(&running.child, "INT");
        let mut seen = Vec::new();
        if follow(&running.lines, &mut seen, |_| false) != Followed::Ended {
            return Err(complaint("it does not end", &seen));
        }
        running.child.wait().unwrap();
        self.judge(expected, &seen, false)
    }

    /// Runs one command on a terminal of its own, where keys are pressed (`tests/docs/keys.py`).
    pub(crate) fn press(&self, step: &Step, keys: &str) -> Result<(), String> {
        let presser = root().join("tests/docs/keys.py");
        let words = [presser.to_str().unwrap(), keys, &self.with_port(&step.command)]
            .map(quoted)
            .join(" ");
        let mut child = self.start(&format!("python3 {words}"));
        let lines = lines_of(&mut child);
        let mut raw = Vec::new();
        if follow(&lines, &mut raw, |_| false) != Followed::Ended {
            end(&mut child);
            return Err(complaint("it does not end", &raw));
        }
        let seen: Vec<String> = raw.iter().flat_map(|line| on_paper(line)).collect();
        match child.wait().unwrap().code() {
            Some(code) if code == step.exit => self.judge(&step.expected, &seen, false),
            code => Err(complaint(
                &format!("exit code {code:?}, the page says {}", step.exit),
                &seen,
            )),
        }
    }

    fn judge(&self, expected: &[String], seen: &[String], loose: bool) -> Result<(), String> {
        self.compare(expected, seen, loose)
            .map_err(|line| complaint(&format!("not printed: {line}"), seen))
    }

    /// Whether the expected lines were printed, in their order; else the first that wasn't.
    fn compare(&self, expected: &[String], seen: &[String], loose: bool) -> Result<(), String> {
        let told: Vec<String> = seen.iter().map(|line| self.as_told(line)).collect();
        compare(expected, &told, loose)
    }

    fn start(&self, command: &str) -> Child {
        let program = Path::new(env!("CARGO_BIN_EXE_windrow"));
        let command = command.replace("cargo run --release --", "windrow");
        let path = format!(
            "{}:{}:{}",
            root().join(STAND_INS).display(),
            program.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        // One stream, so that the order of the lines is that of the page. `exec`: a signal meets the program itself.
        let exec = if command.contains(['|', ';', '&']) && !command.contains('\'') {
            ""
        } else {
            // `env`, as variables may stand before the program.
            "exec env "
        };
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(format!("exec 2>&1\n{exec}{command}"));
        shell
            .current_dir(self.place.path())
            .env("PATH", path)
            .env("HOME", self.place.path());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("WINDROW_") || name.starts_with("XDG_") || name == "CI" {
                shell.env_remove(name);
            }
        }
        shell
            .env("PYTHONUNBUFFERED", "1")
            .env("PORT", self.ports[HANDLER].to_string());
        shell.envs(self.server.iter().map(|server| ("WINDROW_SERVER", server)));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        shell.spawn().unwrap()
    }

    /// Until somebody answers there: a node listens before it is ready.
    fn wait_for_answer(&self, port: u16) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while !answers(port) {
            if Instant::now() > until {
                return Err(format!("nobody answers on port {port}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// The port in the line of its greeting that says where the API is.
fn port_of_dev(line: &str) -> Option<u16> {
    let url = line.trim().strip_prefix("api ")?.trim();
    url.strip_prefix("http://127.0.0.1:")?
        .split('/')
        .next()?
        .parse()
        .ok()
}

/// A word that the shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What a terminal shows, as lines without its commands for colours and places.
fn on_paper(text: &str) -> Vec<String> {
    let (mut paper, mut chars) = (String::new(), text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.next_if_eq(&'[').is_some() => {
                // To the letter that ends it. A place is a new line.
                let end = chars.find(char::is_ascii_alphabetic);
                paper.push_str(if end == Some('m') { "" } else { "\n" });
            }
            '\u{1b}' => {}
            '\r' => paper.push('\n'),
            c => paper.push(c),
        }
    }
    paper
        .lines()
        .map(|line| line.trim_end().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
        return false;
    };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let asked = stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut begins = [0; b"HTTP/1.1 503".len()];
    // Such is the answer of a node that still starts.
    asked.is_ok() && stream.read(&mut begins).is_ok_and(|count| count > 0) && !begins.ends_with(b"503")
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let (sender, lines) = channel();
    let out = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Why no more lines were collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Followed {
    Enough,
    Ended,
    TooLong,
}

/// Collects lines until enough were seen, or there are no more.
fn follow(lines: &Receiver<String>, seen: &mut Vec<String>, enough: impl Fn(&[String]) -> bool) -> Followed {
    let until = Instant::now() + PATIENCE;
    while !enough(seen) {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => seen.push(line),
            Err(RecvTimeoutError::Timeout) => return Followed::TooLong,
            Err(RecvTimeoutError::Disconnected) => return Followed::Ended,
        }
    }
    Followed::Enough
}

fn signal(child: &Child, name: &str) {
    let id = format!("-{}", child.id());
    assert!(
        Command::new("kill")
            .args(["-s", name, "--", &id])
            .status()
            .unwrap()
            .success()
    );
}

fn end(child: &mut Child) {
    signal(child, "KILL");
    child.wait().unwrap();
}

fn complaint(what: &str, seen: &[String]) -> String {
    format!("{what}\nit printed:\n  {}", seen.join("\n  "))
}

/// Whether the expected lines were printed, in their order; else the first that wasn't.
fn compare(expected: &[String], seen: &[String], loose: bool) -> Result<(), String> {
    let mut left = seen.iter();
    for line in expected.iter().filter(|line| !line.trim().is_empty()) {
        if !left.any(|printed| fits(&plain(line, loose), &plain(printed, loose))) {
            return Err(line.clone());
        }
    }
    Ok(())
}

/// `…` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut open = false;
    for part in parts {
        open = true;
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || open && pattern.ends_with('…')
}

/// A line without what differs from run to run.
fn plain(line: &str, loose: bool) -> String {
    without_times(line)
        .split_whitespace()
        .map(|word| plain_word(word, loose))
        .collect::<Vec<_>>()
        .join(" ")
}

/// `2026-11-20T11:56:35.981Z` is some time.
fn without_times(line: &str) -> String {
    let (mut rest, mut text) = (line, String::new());
    while let Some(first) = rest.chars().next() {
        match rest.find('Z').filter(|_| begins_with_a_date(rest)) {
            Some(end) => {
                text.push_str("<time>");
                rest = &rest[end + 1..];
            }
            None => {
                text.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    text
}

fn begins_with_a_date(text: &str) -> bool {
    let shape = "dddd-dd-ddT";
    let fits = |(c, kind): (char, char)| {
        if kind == 'd' {
            c.is_ascii_digit()
        } else {
            c == kind
        }
    };
    text.len() >= shape.len() && text.chars().zip(shape.chars()).all(fits)
}

fn plain_word(word: &str, loose: bool) -> String {
    let pieces = word.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    pieces.map(|piece| plain_piece(piece, loose)).collect()
}

fn plain_piece(piece: &str, loose: bool) -> String {
    let body = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let end = &piece[body.len()..];
    let is_hash = body.len() >= 16 && body.chars().all(|c| c.is_ascii_hexdigit());
    let measured = body.contains('.') && body.starts_with(|c: char| c.is_ascii_digit());
    let span = body.starts_with(|c: char| c.is_ascii_digit()) && body.ends_with('s');
    let hash_named = body.rsplit_once('.').is_some_and(|(name, _)| name.len() == 16);
    match () {
        () if is_hash || hash_named => format!("<hash>{end}"),
        () if measured || span => format!("<n>{end}"),
        () if loose && body.chars().all(|c| c.is_ascii_digit()) && !body.is_empty() => format!("<n>{end}"),
        () => piece.to_owned(),
    }
}

#[test]
fn a_terminal_is_read_line_by_line() {
    assert_eq!(
        on_paper("\u{1b}[2K\u{1b}[32mrunning\u{1b}[0m\rrate 5\u{1b}[1Ax"),
        ["running", "rate 5", "x"]
    );
    assert_eq!(quoted("it's"), r"'it'\''s'");
    assert_eq!(port_of_dev("  api       http://127.0.0.1:7701/v1"), Some(7701));
}

#[test]
fn what_differs_from_run_to_run_is_not_compared() {
    for (page, run) in [
        (
            "#62 ↻ retry BUSY (after 200ms)  2.5ms",
            "#62 ↻ retry BUSY (after 201ms)  13ms",
        ),
        (
            "t1: 4 items (stdin-c961bad85e0ff6f3.ndjson)",
            "t1: 4 items (stdin-0061bad85e0ff6f3.ndjson)",
        ),
        (
            "BUSY 16  2026-11-20T11:56:36Z  #23",
            "BUSY      16  2026-11-20T23:01:02Z  #23",
        ),
        ("a … c", "a long b c"),
        ("\"rate\":495.531,…\"x\"…", "\"rate\":1.5,\"y\",\"x\",2"),
    ] {
        assert!(
            fits(&plain(page, false), &plain(run, false)),
            "{} / {}",
            plain(page, false),
            plain(run, false)
        );
    }
    for (page, run) in [
        ("#62 retry", "#63 retry"),
        ("succeeded 177", "succeeded 178"),
        ("a … c", "a b d"),
        ("a", "a b"),
    ] {
        assert!(!fits(&plain(page, false), &plain(run, false)), "{page}");
    }
    assert!(fits(
        &plain("at index 131 (nothing", true),
        &plain("at index 7 (nothing", true)
    ));
}
