//! A Redis server of one's own, alone or as part of a Sentinel set or a cluster.

use std::process::Command;

use super::process::{Dir, Process, await_ready, free_port, is_said, program, said, words};
use super::server::{Server, is_a};

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
    server: Server,
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
        let again = options.clone();
        // It has nothing to put in order.
        let server = Server::start(dir, port, "KILL", move |dir, port| launch(dir, port, &again));
        Redis { server, options }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port())
    }

    /// Runs one command with redis-cli and returns what it prints.
    pub fn cli(&self, arguments: &[&str]) -> String {
        said(client(self.port(), &self.options).args(arguments))
    }

    /// Whether that prints this by now; not so where the server answers nobody, as in the middle of a change of its role.
    pub fn says(&self, arguments: &[&str], text: &str) -> bool {
        is_said(client(self.port(), &self.options).args(arguments), text)
    }
}

is_a!(Redis, server: Server);

fn client(port: u16, options: &RedisOptions) -> Command {
    let mut command = Command::new(program(
        &["/usr/bin/redis-cli", "/usr/local/bin/redis-cli"],
        "redis-tools",
    ));
    command
        .args(["-h", "127.0.0.1", "-p", &port.to_string()])
        .args(&options.client);
    command
}

fn launch(dir: &Dir, port: u16, options: &RedisOptions) -> Process {
    let server = program(
        &["/usr/bin/redis-server", "/usr/local/bin/redis-server"],
        "redis-server",
    );
    let (path, port_text) = (dir.path().display().to_string(), port.to_string());
    let mut command = words(&[&server]);
    if options.file.is_some() {
        command.push(dir.path().join("server.conf").display().to_string());
    }
    command.extend(words(&[
        "--port",
        &port_text,
        "--bind",
        "127.0.0.1",
        "--dir",
        &path,
    ]));
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
