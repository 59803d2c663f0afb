//! One node: a real `windrow serve` with links of its own to database, Redis and business, each through a proxy.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::api;
use crate::evidence::{Fault, Harm, now, say};
use crate::proxy::Proxy;

/// Nothing takes as long, however loaded the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// See the module.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) database: Option<Proxy>,
    pub(crate) redis: Option<Proxy>,
    pub(crate) business: Proxy,
    pub(crate) place: PathBuf,
    child: Option<Child>,
    /// The present trouble of the process itself, as a place in the list of faults.
    pub(crate) trouble: Option<usize>,
}

impl Node {
    pub(crate) fn new(
        name: &str,
        place: PathBuf,
        port: u16,
        database: Option<Proxy>,
        redis: Option<Proxy>,
        business: Proxy,
    ) -> Node {
        let name = name.to_owned();
        Node {
            name,
            port,
            database,
            redis,
            business,
            place,
            child: None,
            trouble: None,
        }
    }

    /// Begins a life; the kernel ends it with the thread that began it.
    pub(crate) fn spawn(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.place.join("log"))
            .expect("a log");
        let mut command = Command::new("setpriv");
        // Another build may be asked for: an older one, or one with faults of its own.
        let program = crate::settings::text("WINDROW");
        let program = program.as_deref().unwrap_or(env!("CARGO_BIN_EXE_windrow"));
        command.args(["--pdeathsig", "KILL", "--", program, "serve", "--config"]);
        command
            .arg(self.place.join("config.toml"))
            .current_dir(&self.place);
        command
            .env("HOME", &self.place)
            .env_remove("WINDROW_LOG")
            .env_remove("NOTIFY_SOCKET");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().expect("setpriv of util-linux"));
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child
            .as_mut()
            .is_some_and(|child| child.try_wait().expect("a child").is_none())
    }

    /// Waits until it answers that it can work.
    pub(crate) async fn is_ready(&mut self) {
        let begun = Instant::now();
        loop {
            let answer = api::call(self.port, "GET", "/readyz", None, &Value::Null).await;
            if matches!(answer, Ok((200, _))) {
                say(&format!("{} is ready", self.name));
                return;
            }
            let is_alive = self.is_alive();
            assert!(
                is_alive && begun.elapsed() < PATIENCE,
                "{} isn't ready: {answer:?}\n{}",
                self.name,
                self.said()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self
            .child
            .as_ref()
            .and_then(|child| Pid::from_raw(child.id().cast_signed()));
        // One that ended is waited for below, so the number is nobody else's.
        if let Some(pid) = pid {
            kill_process(pid, signal).expect("our own child");
        }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        if self.is_alive() {
            self.signal(Signal::KILL);
        }
        if let Some(mut child) = self.child.take() {
            child.wait().expect("a child");
        }
    }

    /// SIGTERM, and its exit code once it has ended.
    pub(crate) async fn terminate(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        let begun = Instant::now();
        while self.is_alive() {
            assert!(
                begun.elapsed() < PATIENCE,
                "{} doesn't end:\n{}",
                self.name,
                self.said()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let status = self.child.take().map(|mut child| child.wait().expect("a child"));
        status.and_then(|status| status.code())
    }

    /// The end of what it wrote.
    pub(crate) fn said(&self) -> String {
        let text = std::fs::read_to_string(self.place.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A list of faults that are, or were, there.
#[derive(Default)]
pub(crate) struct Faults(pub(crate) Vec<Fault>);

impl Faults {
    /// Begins one.
    pub(crate) fn begin(&mut self, name: &str, harm: Harm) -> usize {
        say(name);
        self.0.push(Fault {
            name: name.to_owned(),
            harm,
            from: now(),
            until: i64::MAX,
        });
        self.0.len() - 1
    }

    /// Ends one.
    pub(crate) fn end(&mut self, at: usize) {
        self.0[at].until = now();
    }

    /// Ends what hasn't ended.
    pub(crate) fn end_all(&mut self) {
        for fault in self.0.iter_mut().filter(|fault| fault.until == i64::MAX) {
            fault.until = now();
        }
    }
}
