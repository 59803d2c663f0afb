//! A PostgreSQL server of one's own.

use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use super::database::{Database, PASSWORD, USER};
use super::process::{Dir, Process, await_ready, free_port, is_done, program, run, said, words};
use super::server::{Server, is_a};
use super::template;

/// Starts of one server that are tried.
const STARTS_MAX: u32 = 200;

/// Options of a new cluster.
const INIT: &[&str] = &[
    "-U",
    USER,
    "-N",
    "-E",
    "UTF8",
    "--locale=C",
    "-A",
    "scram-sha-256",
];

/// A running server.
pub struct Postgres {
    database: Database,
}

impl Postgres {
    /// A new cluster with the superuser `windrow` (with a password) and the database `windrow`.
    pub fn start() -> Postgres {
        Postgres::start_in(Dir::new("postgres"))
    }

    /// The same in this directory.
    pub fn start_in(dir: Dir) -> Postgres {
        template::copy("postgres", &bin("postgres"), &words(INIT), &dir, made);
        // A socket and a log of it lie beside the data.
        own(&dir);
        Postgres::over(dir)
    }

    /// Over the data that the directory has.
    fn over(dir: Dir) -> Postgres {
        // Without waiting for those who are connected.
        let database = Database::new("postgres", Server::start(dir, free_port(), "INT", launch));
        Postgres { database }
    }

    pub fn create_database(&self, name: &str) {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
    }

    /// Runs statements with psql and returns what they print: rows a line, columns with tabs.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        said(psql(self.port(), database).arg(sql))
    }
}

is_a!(Postgres, database: Database);

/// The data of a new cluster, whose server has ended.
fn made() -> Dir {
    let dir = Dir::new("postgres-template");
    own(&dir);
    let secret = dir.path().join("secret");
    std::fs::write(&secret, PASSWORD).expect("a password file");
    let data = dir.path().join("data").display().to_string();
    let pwfile = format!("--pwfile={}", secret.display());
    let mut init = words(&[&bin("initdb"), "-D", &data, &pwfile]);
    init.extend(words(INIT));
    run(Some("postgres"), &init);
    let server = Postgres::over(dir);
    server.create_database(USER);
    server.database.ended()
}

/// Gives a directory to the user that the server runs as.
fn own(dir: &Dir) {
    let path = dir.path().display().to_string();
    run(None, &words(&["chown", "postgres", &path]));
}

fn psql(port: u16, database: &str) -> Command {
    let mut psql = Command::new(bin("psql"));
    psql.env("PGPASSWORD", PASSWORD)
        .args(["-h", "127.0.0.1", "-U", USER, "-qAtX", "-F", "\t"]);
    psql.args([
        "-v",
        "ON_ERROR_STOP=1",
        "-p",
        &port.to_string(),
        "-d",
        database,
        "-c",
    ]);
    psql
}

fn bin(name: &str) -> String {
    let versions: Vec<String> = (13..=19)
        .rev()
        .map(|version| format!("/usr/lib/postgresql/{version}/bin/{name}"))
        .collect();
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
        // With the data, and not in the system's, where a server that is killed leaves it.
        "-c",
        "dynamic_shared_memory_type=mmap",
    ];
    let begin = || Process::start(Some("postgres"), &words(&command), &log);
    let mut process = begin();
    // It ends by itself while a child of one that was killed still holds its shared memory.
    for _ in 0..STARTS_MAX {
        while process.is_alive() && TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        if process.is_alive() {
            break;
        }
        process = begin();
    }
    await_ready(port, &log, || is_done(psql(port, "postgres").arg("SELECT 1")));
    process
}
