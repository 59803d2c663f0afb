//! The real program as a client of a real node.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::support::{Node, PATIENCE};

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

impl Person {
    /// Somebody who knows no node.
    pub(crate) fn new() -> Person {
        Person { home: tempfile::tempdir().unwrap(), env: Vec::new() }
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

    /// Runs `windrow` with these words, split at blanks, to its end; nobody is at a terminal.
    pub(crate) async fn windrow(&self, words: &str) -> Done {
        let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
        self.run(&words, "").await
    }

    /// The same with words that have blanks, and with standard input.
    pub(crate) async fn run(&self, words: &[&str], stdin: &str) -> Done {
        self.done(Person::command(words), words, stdin).await
    }

    /// Begins `windrow` with these words; it is killed when it is dropped.
    pub(crate) fn begin(&self, words: &[&str]) -> Child {
        self.spawn(Person::command(words))
    }

    fn command(words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
        command.args(words);
        command
    }

    /// The same at a terminal, where these keys are pressed once a text was shown. All that is shown is in `stdout`.
    pub(crate) async fn at_terminal(&self, words: &[&str], text: &str, keys: &str) -> Done {
        let mut command = Command::new("python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/terminal.py")).arg(text);
        command.arg(env!("CARGO_BIN_EXE_windrow")).args(words).env("KEYS", keys);
        self.done(command, words, "").await
    }

    fn spawn(&self, mut command: Command) -> Child {
        let keys = command.as_std().get_envs().find(|(name, _)| *name == "KEYS");
        let keys = keys.and_then(|(_, value)| value.map(ToOwned::to_owned));
        command.current_dir(self.home.path()).env_clear();
        command.env("HOME", self.home.path()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.envs(keys.into_iter().flat_map(|keys| [("KEYS", keys), ("TERM", "xterm".into())]));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().unwrap()
    }

    async fn done(&self, command: Command, words: &[&str], stdin: &str) -> Done {
        let mut child = self.spawn(command);
        let mut input = child.stdin.take().unwrap();
        // A program that reads nothing may have ended already.
        input.write_all(stdin.as_bytes()).await.ok();
        drop(input);
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        let output = output.unwrap_or_else(|_| panic!("{words:?} never ended")).unwrap();
        Done {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Done {
    /// After a check of the exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Done {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
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
