//! The real program as a client of a real node.

use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::support::{Node, PATIENCE, Recipe};

/// Somebody's home, and where their commands go.
pub(crate) struct Person {
    home: tempfile::TempDir,
    env: Vec<(String, String)>,
}

/// What a finished program left.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A node that comes back under its address when it is started again.
pub(crate) fn settled() -> Recipe {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    Recipe::new().env("WINDROW_HTTP__LISTEN", &address.to_string())
}

impl Person {
    /// Somebody who knows no node.
    pub(crate) fn new() -> Person {
        Person {
            home: tempfile::tempdir().unwrap(),
            env: Vec::new(),
        }
    }

    /// The administrator of a node.
    pub(crate) fn admin(node: &Node) -> Person {
        Person::new()
            .env("WINDROW_SERVER", &node.url)
            .env("WINDROW_TOKEN", node.admin.token.as_ref().unwrap())
    }

    /// With this variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Person {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).display().to_string()
    }

    /// A program in the person's home, with their environment and all its streams piped.
    pub(crate) fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).current_dir(self.home.path()).env_clear();
        command
            .env("HOME", self.home.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Begins `windrow` with these words and goes on.
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        Running::of(self.command(env!("CARGO_BIN_EXE_windrow"), words))
    }

    /// Runs `windrow` with these words, split at blanks, to its end; nobody is at a terminal.
    pub(crate) async fn windrow(&self, words: &str) -> Done {
        let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
        self.run(&words, "").await
    }

    /// Begins `windrow` with these words; it is killed when it is dropped.
    pub(crate) fn begin(&self, words: &[&str]) -> Child {
        self.command(env!("CARGO_BIN_EXE_windrow"), words)
            .spawn()
            .unwrap()
    }

    /// The same with words that have blanks, and with standard input, to its end.
    pub(crate) async fn run(&self, words: &[&str], stdin: &str) -> Done {
        done(self.begin(words), words, stdin).await
    }

    /// The same at a terminal, where these keys are pressed once a text was shown. All that is shown is in `stdout`.
    pub(crate) async fn at_terminal(&self, words: &[&str], text: &str, keys: &str) -> Done {
        let terminal = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/terminal.py");
        let all = [&[terminal, text, env!("CARGO_BIN_EXE_windrow")], words].concat();
        let mut command = self.command("python3", &all);
        done(
            command.env("KEYS", keys).env("TERM", "xterm").spawn().unwrap(),
            words,
            "",
        )
        .await
    }
}

async fn done(mut child: Child, words: &[&str], stdin: &str) -> Done {
    let mut input = child.stdin.take().unwrap();
    // A program that reads nothing may have ended already.
    input.write_all(stdin.as_bytes()).await.ok();
    drop(input);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("{words:?} never ended"))
        .unwrap();
    Done {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A program that is under way.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: watch::Receiver<String>,
    stderr: watch::Receiver<String>,
}

impl Running {
    pub(crate) fn of(mut command: Command) -> Running {
        let mut child = command.spawn().unwrap();
        let stdout = gathered(child.stdout.take().unwrap());
        let stderr = gathered(child.stderr.take().unwrap());
        Running {
            child,
            stdout,
            stderr,
        }
    }

    /// Waits until standard output has this text.
    pub(crate) async fn says(&mut self, text: &str) {
        let said = self.stdout.wait_for(|said| said.contains(text));
        let said = tokio::time::timeout(PATIENCE, said)
            .await
            .map(|said| said.is_ok());
        assert_eq!(
            said,
            Ok(true),
            "{text:?} never came:\n{}\n{}",
            *self.stdout.borrow(),
            *self.stderr.borrow()
        );
    }

    /// Its first line, once that is whole.
    pub(crate) async fn line(&mut self) -> String {
        self.says("\n").await;
        let said = self.stdout.borrow();
        said.lines().next().unwrap_or_default().to_owned()
    }

    /// The same of standard error.
    pub(crate) async fn tells(&mut self, text: &str) {
        let said = self.stderr.wait_for(|said| said.contains(text));
        let said = tokio::time::timeout(PATIENCE, said)
            .await
            .map(|said| said.is_ok());
        assert_eq!(
            said,
            Ok(true),
            "{text:?} never came:\n{}\n{}",
            *self.stdout.borrow(),
            *self.stderr.borrow()
        );
    }

    /// Types something.
    pub(crate) async fn types(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(text.as_bytes()).await.unwrap();
        input.flush().await.unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
            .expect("it lives");
        kill_process(id, signal).expect("the signal is sent");
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self) -> Done {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = status
            .unwrap_or_else(|_| panic!("it never ended:\n{}", *self.stderr.borrow()))
            .unwrap();
        // The streams are read to their ends, so that nothing of them is missing.
        for stream in [&mut self.stdout, &mut self.stderr] {
            while stream.changed().await.is_ok() {}
        }
        let (stdout, stderr) = (self.stdout.borrow().clone(), self.stderr.borrow().clone());
        Done {
            code: status.code(),
            stdout,
            stderr,
        }
    }
}

fn gathered(mut stream: impl AsyncRead + Send + Unpin + 'static) -> watch::Receiver<String> {
    let (sender, receiver) = watch::channel(String::new());
    tokio::spawn(async move {
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = stream.read(&mut piece).await {
            bytes.extend_from_slice(&piece[..count]);
            sender.send_replace(String::from_utf8_lossy(&bytes).into_owned());
        }
    });
    receiver
}

impl Done {
    /// After a check of the exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Done {
        assert_eq!(
            self.code,
            Some(code),
            "stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// After a check that standard error has the three parts of an error and these texts, and standard output nothing.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, texts: &[&str]) -> Done {
        let done = self.expect(code);
        for part in ["error: ", "\n  because ", "\n  try  "].iter().chain(texts) {
            assert!(done.stderr.contains(part), "{part:?} is not in\n{}", done.stderr);
        }
        assert_eq!(done.stdout, "", "standard output is for outcomes");
        done
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
