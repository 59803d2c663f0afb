//! A Redis server of one's own, alone or as part of a Sentinel set or a cluster.

use std::process::Command;

use super::process::{Dir, Process, await_ready, free_port, program, words};

/// How a server is started beyond its port and directory.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    /// Further arguments, for instance `--requirepass x`.
    pub arguments: Vec<String>,
    /// Credentials and TLS options that redis-cli needs to reach it, for instance `-a x`.
    pub client: Vec<String>,
    /// Lines of a configuration file, which a Sentinel needs and rewrites.
    pub file: Option<String>,
    /// A port that was free a moment ago; none takes any.
    pub port: Option<u16>,
}

/// A running server. It keeps nothing on disk: a restart is a loss of all data, as with many of its kind.
pub struct Redis {
    process: Process,
    port: u16,
    dir: Dir,
    options: RedisOptions,
}

impl Redis {
    pub fn start() -> Redis {
        Redis::start_with(RedisOptions::default())
    }

    pub fn start_with(options: RedisOptions) -> Redis {
        let (dir, port) = (Dir::new("redis"), options.port.unwrap_or_else(free_port));
        if let Some(file) = &options.file {
            std::fs::write(dir.path().join("server.conf"), file).expect("a configuration file");
        }
        let process = launch(&dir, port, &options);
        Redis { process, port, dir, options }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The directory of its own, for certificates and the like.
    pub fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    /// Runs one command with redis-cli and returns what it prints.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let mut command = client(self.port, &self.options);
        let output = command.args(arguments).output().expect("redis-cli");
        let said = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        assert!(output.status.success(), "{arguments:?}: {said} {}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// Sends a signal (`STOP`, `CONT`) to it.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Kills it; what it held is lost.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on the same port, empty.
    pub fn restart(&mut self) {
        if self.process.is_alive() {
            self.process.kill();
        }
        self.process = launch(&self.dir, self.port, &self.options);
    }
}

fn client(port: u16, options: &RedisOptions) -> Command {
    let mut command =
        Command::new(program(&["/usr/bin/redis-cli", "/usr/local/bin/redis-cli"], "redis-tools"));
    command.args(["-h", "127.0.0.1", "-p", &port.to_string()]).args(&options.client);
    command
}

fn launch(dir: &Dir, port: u16, options: &RedisOptions) -> Process {
    let server = program(&["/usr/bin/redis-server", "/usr/local/bin/redis-server"], "redis-server");
    let (path, port_text) = (dir.path().display().to_string(), port.to_string());
    let mut command = words(&[&server]);
    if options.file.is_some() {
        command.push(dir.path().join("server.conf").display().to_string());
    }
    command.extend(words(&["--port", &port_text, "--bind", "127.0.0.1", "--dir", &path]));
    command.extend(words(&["--daemonize", "no"]));
    // A Sentinel has no data, and refuses options about it.
    if !options.arguments.iter().any(|argument| argument == "--sentinel") {
        command.extend(words(&["--save", "", "--appendonly", "no"]));
    }
    command.extend(options.arguments.iter().cloned());
    let log = dir.path().join("log");
    let process = Process::start(None, &command, &log);
    await_ready(port, &log, || {
        let output = client(port, options).arg("PING").output().expect("redis-cli");
        // A server that wants a password, or a Sentinel, answers too.
        !output.stdout.is_empty()
    });
    process
}
