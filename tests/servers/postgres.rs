//! A PostgreSQL server of one's own.

use std::process::{Command, Stdio};

use super::process::{Dir, Process, await_ready, free_port, program, run, words};

const USER: &str = "windrow";
const PASSWORD: &str = "wind-row";

/// A running server; commits are durable, as in production.
pub struct Postgres {
    process: Process,
    port: u16,
    dir: Dir,
}

impl Postgres {
    /// A new cluster with the superuser `windrow` (with a password) and the database `windrow`.
    pub fn start() -> Postgres {
        Postgres::start_in(Dir::new("postgres"))
    }

    /// The same in this directory.
    pub fn start_in(dir: Dir) -> Postgres {
        run(None, &words(&["chown", "postgres", &dir.path().display().to_string()]));
        let secret = dir.path().join("secret");
        std::fs::write(&secret, PASSWORD).expect("a password file");
        let data = dir.path().join("data").display().to_string();
        let pwfile = format!("--pwfile={}", secret.display());
        let init = [
            &bin("initdb"),
            "-D",
            &data,
            "-U",
            USER,
            "-N",
            "-E",
            "UTF8",
            "--locale=C",
            "-A",
            "scram-sha-256",
            &pwfile,
        ];
        run(Some("postgres"), &words(&init));
        let port = free_port();
        let process = launch(&dir, port);
        let server = Postgres { process, port, dir };
        server.create_database(USER);
        server
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its data is.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// The URL of a database without the password, as a configuration has it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The URL of a database, with the password.
    pub fn url_with_password(&self, database: &str) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    pub fn create_database(&self, name: &str) {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
    }

    /// Runs statements with psql and returns what they print: rows a line, columns with tabs.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let output = self.psql(database).arg(sql).output().expect("psql");
        let fault = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {fault}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn psql(&self, database: &str) -> Command {
        let mut psql = Command::new(bin("psql"));
        psql.env("PGPASSWORD", PASSWORD).args(["-h", "127.0.0.1", "-U", USER, "-qAtX", "-F", "\t"]);
        psql.args(["-v", "ON_ERROR_STOP=1", "-p", &self.port.to_string(), "-d", database, "-c"]);
        psql
    }

    /// Sends a signal (`STOP`, `CONT`) to all its processes.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Kills it as a power cut would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on the same port with the same data.
    pub fn restart(&mut self) {
        if self.process.is_alive() {
            self.process.terminate();
        }
        self.process = launch(&self.dir, self.port);
    }
}

fn bin(name: &str) -> String {
    let versions: Vec<String> =
        (13..=19).rev().map(|version| format!("/usr/lib/postgresql/{version}/bin/{name}")).collect();
    let candidates: Vec<&str> = versions.iter().map(String::as_str).collect();
    program(&candidates, "postgresql")
}

fn launch(dir: &Dir, port: u16) -> Process {
    let data = dir.path().join("data");
    // A killed server leaves it; its children may have outlived it for a moment.
    if let Err(error) = std::fs::remove_file(data.join("postmaster.pid")) {
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
    }
    let (log, data) = (dir.path().join("log"), data.display().to_string());
    let (sockets, port_text) = (dir.path().display().to_string(), port.to_string());
    let command = [
        &bin("postgres"),
        "-D",
        &data,
        "-p",
        &port_text,
        "-k",
        &sockets,
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "max_connections=200",
        "-c",
        "shared_buffers=32MB",
        "-c",
        "max_wal_size=256MB",
    ];
    let process = Process::start(Some("postgres"), &words(&command), &log);
    await_ready(port, &log, || {
        let mut psql = Command::new(bin("psql"));
        psql.env("PGPASSWORD", PASSWORD).args([
            "-h",
            "127.0.0.1",
            "-U",
            USER,
            "-d",
            "postgres",
            "-p",
            &port_text,
        ]);
        psql.args(["-c", "SELECT 1"]).stdout(Stdio::null()).stderr(Stdio::null());
        psql.status().expect("psql").success()
    });
    process
}
