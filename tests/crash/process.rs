//! One life of a `windrow run`: started, listened to, and ended in one way or another.

use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// No life of these tests takes as long, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(240);

/// A command line to be run again and again.
#[derive(Clone)]
pub(crate) struct Job {
    args: Vec<OsString>,
    environment: Vec<(&'static str, String)>,
}

impl Job {
    /// `windrow run -o json` with these words.
    pub(crate) fn new(state: &Path, words: &str) -> Job {
        let mut args: Vec<OsString> = ["run", "-o", "json", "--state"].map(OsString::from).to_vec();
        args.push(state.into());
        args.extend(words.split_whitespace().map(OsString::from));
        Job {
            args,
            environment: Vec::new(),
        }
    }

    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Job {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: &str) -> Job {
        self.environment.push((name, value.to_owned()));
        self
    }

    pub(crate) fn start(&self) -> Life {
        self.spawn(Command::new(env!("CARGO_BIN_EXE_windrow")))
    }

    /// Starts it where no file may grow beyond so many blocks of 512 bytes.
    pub(crate) fn start_within(&self, blocks: u32) -> Life {
        let mut command = Command::new("sh");
        let script = format!("trap '' XFSZ; ulimit -S -f {blocks}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_windrow")]);
        self.spawn(command)
    }

    fn spawn(&self, mut command: Command) -> Life {
        command
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .kill_on_drop(true);
        let mut child = command.spawn().expect("windrow starts");
        let (stdout, outcome) = listen(child.stdout.take().expect("piped"));
        let (stderr, lines) = listen(child.stderr.take().expect("piped"));
        Life {
            child,
            stdout,
            stderr,
            outcome,
            lines,
        }
    }

    /// Runs it to its end.
    pub(crate) async fn finish(&self) -> End {
        self.start().end().await
    }
}

type Lines = watch::Receiver<Vec<String>>;

fn listen(stream: impl AsyncRead + Send + Unpin + 'static) -> (JoinHandle<()>, Lines) {
    let (sender, receiver) = watch::channel(Vec::new());
    let reading = tokio::spawn(async move {
        let mut lines = BufReader::new(stream).lines();
        while let Some(line) = lines.next_line().await.expect("text") {
            sender.send_modify(|all| all.push(line));
        }
    });
    (reading, receiver)
}

/// See the module.
pub(crate) struct Life {
    child: Child,
    stdout: JoinHandle<()>,
    stderr: JoinHandle<()>,
    outcome: Lines,
    lines: Lines,
}

/// How a life ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
}

impl Life {
    /// Its lines on standard error, as they come.
    pub(crate) fn lines(&self) -> watch::Receiver<Vec<String>> {
        self.lines.clone()
    }

    /// Lets files grow again.
    pub(crate) fn unlimit(&self) {
        let limit = Rlimit {
            current: None,
            maximum: None,
        };
        prlimit(self.pid(), Resource::Fsize, limit).expect("our own child");
    }

    fn pid(&self) -> Option<Pid> {
        self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()))
    }

    /// Waits for what should happen while it lives.
    pub(crate) async fn until<T>(&mut self, event: impl Future<Output = T>) -> T {
        let status = tokio::select! {
            biased;
            outcome = event => return outcome,
            status = self.child.wait() => status,
            () = tokio::time::sleep(PATIENCE) => panic!("nothing happened: {:?}", *self.lines.borrow()),
        };
        panic!(
            "ended too early with {status:?}: {:?} {:?}",
            *self.lines.borrow(),
            *self.outcome.borrow()
        );
    }

    /// `kill -9`.
    pub(crate) async fn kill(self) -> End {
        self.signal(Signal::KILL);
        self.end().await
    }

    /// Ctrl-C.
    pub(crate) async fn interrupt(self) -> End {
        self.signal(Signal::INT);
        self.end().await
    }

    fn signal(&self, signal: Signal) {
        // No id: it has ended already, which the caller sees in its status.
        if let Some(pid) = self.pid() {
            kill_process(pid, signal).expect("our own child");
        }
    }

    /// Waits for its end.
    pub(crate) async fn end(mut self) -> End {
        let Ok(status) = tokio::time::timeout(PATIENCE, self.child.wait()).await else {
            panic!("it does not end: {:?}", *self.lines.borrow());
        };
        self.stdout.await.expect("read");
        self.stderr.await.expect("read");
        let (stdout, stderr) = (self.outcome.borrow().clone(), self.lines.borrow().clone());
        End {
            status: status.expect("waited for"),
            stdout,
            stderr,
        }
    }
}

/// The terms of the sum.
const TERMS: [&str; 7] = [
    "succeeded",
    "skipped",
    "failed",
    "parked",
    "in_flight",
    "pending",
    "excluded",
];

impl End {
    /// Asserts the exit code and reads the summary, whose terms must add up.
    pub(crate) fn summary(&self, code: i32) -> Value {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        let [line] = &self.stdout[..] else {
            panic!("not one line: {self:?}")
        };
        let summary: Value = serde_json::from_str(line).expect("JSON");
        let sum: u64 = TERMS.iter().map(|term| count(&summary, term)).sum();
        assert_eq!(Some(sum), summary["total"].as_u64(), "{summary}");
        summary
    }

    /// Where this life went on; none where it began anew.
    pub(crate) fn resumed_at(&self) -> Option<u64> {
        let line = self.stderr.iter().find(|line| line.starts_with("resuming "))?;
        let (_, rest) = line.rsplit_once("continues at index ")?;
        // What may have changed since follows it.
        let index = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some(index.parse().expect("a number"))
    }
}

/// A term of a summary.
pub(crate) fn count(summary: &Value, term: &str) -> u64 {
    summary["counts"][term]
        .as_u64()
        .unwrap_or_else(|| panic!("no {term} in {summary}"))
}
