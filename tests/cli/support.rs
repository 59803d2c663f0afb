//! A place of its own for each test, the program in it, and servers that a test controls.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// No test waits longer for anything; a correct program never takes so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A path in the repository.
pub(crate) fn repository(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(path)
        .display()
        .to_string()
}

/// A directory that is home, state home and working directory of the program.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

/// What a finished program left.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// The one JSON object on standard output.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.trim_end().lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The same, after a check of the exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Done {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// After a check that an error has its three parts, and these texts.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, texts: &[&str]) -> Done {
        let mut done = self.expect(code);
        done.stderr = done.stderr.lines().map(told).collect::<Vec<_>>().join("\n");
        for part in ["error: ", "\n  because ", "\n  try  "].iter().chain(texts) {
            assert!(done.stderr.contains(part), "{part:?} is not in\n{}", done.stderr);
        }
        done
    }
}

/// A line of standard error as people read it: where a node logs objects, an error is one of them.
fn told(line: &str) -> String {
    let object: Option<Value> = serde_json::from_str(line).ok();
    let lines = object.as_ref().and_then(|object| object["lines"].as_array());
    let lines = lines.map(|lines| {
        lines
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join("\n")
    });
    lines.unwrap_or_else(|| line.to_owned())
}

impl Place {
    pub(crate) fn new() -> Place {
        Place {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Everything in the place, for tests that leave nothing behind.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
        command.args(args).current_dir(self.directory.path());
        command
            .env("HOME", self.directory.path())
            .env_remove("XDG_STATE_HOME")
            .env_remove("WINDROW_LOG");
        command
    }

    /// Runs the program to its end.
    pub(crate) fn windrow(&self, args: &[&str]) -> Done {
        self.windrow_with(args, "", &[])
    }

    /// The same with standard input and environment.
    pub(crate) fn windrow_with(&self, args: &[&str], stdin: &str, env: &[(&str, &str)]) -> Done {
        let mut command = assert_cmd::Command::from_std(self.command(args));
        let output = command
            .envs(env.iter().copied())
            .write_stdin(stdin)
            .timeout(PATIENCE)
            .output()
            .unwrap();
        Done {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts the program; it is killed with the value.
    pub(crate) fn start(&self, args: &[&str]) -> Live {
        self.spawn(self.command(args))
    }

    /// Starts it by a line of shell, which must `exec` it.
    pub(crate) fn start_shell(&self, script: &str) -> Live {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(self.directory.path());
        command
            .env("HOME", self.directory.path())
            .env_remove("XDG_STATE_HOME")
            .env_remove("WINDROW_LOG");
        self.spawn(command)
    }

    fn spawn(&self, mut command: Command) -> Live {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Live {
            child,
            lines,
            seen: String::new(),
        }
    }
}

/// A program under way.
pub(crate) struct Live {
    child: Child,
    lines: Receiver<String>,
    seen: String,
}

impl Live {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Waits for a line of standard error that has this text.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        // A program that hangs still says a line every five seconds: lines are counted, too.
        for _ in 0..60 {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.seen += &format!("{line}\n");
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(error) => panic!("{error}: {text:?} was not said in\n{}", self.seen),
            }
        }
        panic!("{text:?} was not said in\n{}", self.seen)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end: the end of standard error comes first.
    pub(crate) fn end(mut self) -> Done {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen += &format!("{line}\n"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it doesn't end:\n{}", self.seen),
            }
        }
        let mut stdout = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        let code = self.child.wait().unwrap().code();
        Done {
            code,
            stdout,
            stderr: std::mem::take(&mut self.seen),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// Where `gated.py` workers ask what to answer.
pub(crate) struct Gate {
    listener: TcpListener,
}

/// One such worker.
pub(crate) struct Worker {
    pub(crate) pid: i32,
    reader: BufReader<TcpStream>,
}

impl Gate {
    pub(crate) fn open() -> Gate {
        Gate {
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
        }
    }

    /// The command of its worker.
    pub(crate) fn worker(&self) -> [String; 4] {
        let port = self.listener.local_addr().unwrap().port().to_string();
        [
            "python3".to_owned(),
            "-u".to_owned(),
            repository("tests/fixtures/workers/gated.py"),
            port,
        ]
    }

    /// Begins a job of seven items, one at a time, with these flags more.
    pub(crate) fn begin_seven(&self, place: &Place, name: &str, flags: &[&str]) -> Live {
        let mut words = vec!["run", "--total", "7", "--name", name, "--concurrency", "1"];
        words.extend(flags);
        words.push("--");
        let worker = self.worker();
        words.extend(worker.iter().map(String::as_str));
        place.start(&words)
    }

    /// The next worker that begins.
    pub(crate) fn accept(&self) -> Worker {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let pid = line.trim().strip_prefix("pid ").unwrap().parse().unwrap();
        Worker { pid, reader }
    }
}

impl Worker {
    /// The index of the next item; none when the worker is gone.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim().parse().unwrap()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("the worker says nothing: {error}"),
        }
    }

    /// What the worker shall answer.
    pub(crate) fn answer(&mut self, answer: &str) {
        writeln!(self.reader.get_mut(), "{answer}").unwrap();
    }

    /// Answers everything well until the worker ends; the indexes that came.
    pub(crate) fn serve(mut self) -> Vec<u64> {
        let mut indexes = Vec::new();
        while let Some(index) = self.next() {
            indexes.push(index);
            self.answer(r#"{"result":"ok"}"#);
        }
        indexes
    }
}

/// A business behind a URL: answers every call with one reply and keeps the bodies.
pub(crate) struct Business {
    pub(crate) url: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Business {
    /// `status` is a status line such as `204 No Content`.
    pub(crate) fn answering(status: &'static str, body: &'static str) -> Business {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/windrow", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let seen = bodies.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let seen = seen.clone();
                std::thread::spawn(move || serve(stream, status, body, &seen));
            }
        });
        Business { url, bodies }
    }

    /// The calls' bodies so far.
    pub(crate) fn calls(&self) -> Vec<Value> {
        self.bodies
            .lock()
            .unwrap()
            .iter()
            .map(|body| serde_json::from_str(body).unwrap())
            .collect()
    }
}

fn serve(stream: TcpStream, status: &str, body: &str, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes).unwrap();
        seen.lock().unwrap().push(String::from_utf8(bytes).unwrap());
        let length = if status.starts_with("204") {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        let reply = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{length}\r\n{body}");
        if reader.get_mut().write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// The sum of design §4: every term of it in a summary adds up to the total.
#[track_caller]
pub(crate) fn assert_adds_up(summary: &Value) {
    let terms = [
        "succeeded",
        "skipped",
        "failed",
        "parked",
        "in_flight",
        "pending",
        "excluded",
    ];
    let sum: u64 = terms
        .iter()
        .map(|term| summary["counts"][term].as_u64().unwrap())
        .sum();
    assert_eq!(Some(sum), summary["total"].as_u64(), "{summary}");
}
