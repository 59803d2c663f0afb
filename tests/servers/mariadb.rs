//! A MariaDB server of one's own.

use std::process::Command;

use super::database::{Database, PASSWORD, USER};
use super::process::{Dir, Process, await_ready, free_port, is_done, program, run, said, words};
use super::server::{Server, is_a};
use super::template;

/// Options of a new data directory.
const INIT: &[&str] = &[
    "--no-defaults",
    "--user=root",
    "--auth-root-authentication-method=normal",
    "--skip-test-db",
];

/// A running server.
pub struct Mariadb {
    database: Database,
}

impl Mariadb {
    /// A new data directory with the user `windrow` (with a password and all rights) and the database `windrow`.
    pub fn start() -> Mariadb {
        Mariadb::start_in(Dir::new("mariadb"))
    }

    /// The same in this directory.
    pub fn start_in(dir: Dir) -> Mariadb {
        template::copy("mariadb", &server(), &words(INIT), &dir, made);
        Mariadb::over(dir)
    }

    /// Over the data that the directory has.
    fn over(dir: Dir) -> Mariadb {
        // Not the system's: whatever starts there removes the temporary tables of all others.
        let scratch = Dir::new("mariadb-scratch");
        let start = move |dir: &Dir, port| launch(dir, &scratch, port);
        let database = Database::new("mysql", Server::start(dir, free_port(), "TERM", start));
        Mariadb { database }
    }

    /// With the server's default collation, as an administrator who thinks of nothing makes it.
    pub fn create_database(&self, name: &str) {
        self.root(&format!("CREATE DATABASE {name}"));
    }

    /// Runs statements and returns what they print: rows a line, columns with tabs.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.client(&[&format!("--database={database}"), "-e", sql])
    }

    /// Ends a connection, unless it has ended by itself.
    pub fn kill_connection(&self, id: &str) {
        let killed = client(self.port())
            .args(["-e", &format!("KILL {id}")])
            .output()
            .expect("mariadb");
        let fault = String::from_utf8_lossy(&killed.stderr);
        assert!(
            killed.status.success() || fault.contains("1094"),
            "KILL {id}: {fault}"
        );
    }

    fn root(&self, sql: &str) -> String {
        self.client(&["-e", sql])
    }

    fn client(&self, arguments: &[&str]) -> String {
        said(client(self.port()).args(arguments))
    }
}

is_a!(Mariadb, database: Database);

/// The data of a new server, which has ended in order.
fn made() -> Dir {
    let (dir, scratch) = (Dir::new("mariadb-template"), Dir::new("mariadb-scratch"));
    let install = program(
        &["/usr/bin/mariadb-install-db", "/usr/bin/mysql_install_db"],
        "mariadb-server",
    );
    let data = format!("--datadir={}", dir.path().join("data").display());
    let mut command = words(&[&install]);
    command.extend(words(INIT));
    command.extend([data, format!("--tmpdir={}", scratch.path().display())]);
    run(None, &command);
    let server = Mariadb::over(dir);
    server.root(&format!("CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'"));
    server.root(&format!("GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION"));
    server.create_database(USER);
    server.database.ended()
}

fn server() -> String {
    program(&["/usr/sbin/mariadbd", "/usr/sbin/mysqld"], "mariadb-server")
}

fn client(port: u16) -> Command {
    let mut client = Command::new(program(&["/usr/bin/mariadb", "/usr/bin/mysql"], "mariadb-client"));
    client.args([
        "--no-defaults",
        "--batch",
        "--skip-column-names",
        "-h",
        "127.0.0.1",
        "-u",
        "root",
    ]);
    client.args(["--protocol=tcp", "-P", &port.to_string()]);
    client
}

fn launch(dir: &Dir, scratch: &Dir, port: u16) -> Process {
    let server = server();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let command = [
        &server,
        "--no-defaults",
        "--user=root",
        &format!("--datadir={}", path("data")),
        &format!("--tmpdir={}", scratch.path().display()),
        &format!("--port={port}"),
        &format!("--socket={}", path("socket")),
        &format!("--pid-file={}", path("pid")),
        "--bind-address=127.0.0.1",
        "--innodb-flush-log-at-trx-commit=1",
        "--innodb-buffer-pool-size=64M",
        "--max-connections=200",
        "--skip-log-bin",
    ];
    let log = dir.path().join("log");
    let process = Process::start(None, &words(&command), &log);
    await_ready(port, &log, || is_done(client(port).args(["-e", "SELECT 1"])));
    process
}
