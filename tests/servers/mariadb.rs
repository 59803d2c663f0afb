//! A MariaDB server of one's own.

use std::process::{Command, Stdio};

use super::process::{Dir, Process, await_ready, free_port, program, run, words};

const USER: &str = "windrow";
const PASSWORD: &str = "wind-row";

/// A running server; commits are durable, as in production.
pub struct Mariadb {
    process: Process,
    port: u16,
    dir: Dir,
}

impl Mariadb {
    /// A new data directory with the user `windrow` (with a password and all rights) and the database `windrow`.
    pub fn start() -> Mariadb {
        Mariadb::start_in(Dir::new("mariadb"))
    }

    /// The same in this directory.
    pub fn start_in(dir: Dir) -> Mariadb {
        let data = format!("--datadir={}", dir.path().join("data").display());
        let install =
            program(&["/usr/bin/mariadb-install-db", "/usr/bin/mysql_install_db"], "mariadb-server");
        let options =
            ["--no-defaults", "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"];
        let mut command = words(&[&install]);
        command.extend(words(&options));
        command.push(data);
        run(None, &command);
        let port = free_port();
        let process = launch(&dir, port);
        let server = Mariadb { process, port, dir };
        server.root(&format!("CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'"));
        server.root(&format!("GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION"));
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
        format!("mysql://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The URL of a database, with the password.
    pub fn url_with_password(&self, database: &str) -> String {
        format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
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
        let killed = client(self.port).args(["-e", &format!("KILL {id}")]).output().expect("mariadb");
        let fault = String::from_utf8_lossy(&killed.stderr);
        assert!(killed.status.success() || fault.contains("1094"), "KILL {id}: {fault}");
    }

    fn root(&self, sql: &str) -> String {
        self.client(&["-e", sql])
    }

    fn client(&self, arguments: &[&str]) -> String {
        let output = client(self.port).args(arguments).output().expect("mariadb");
        let fault = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {fault}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Sends a signal (`STOP`, `CONT`) to it.
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
            self.process.signal("TERM");
            while self.process.is_alive() {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
        self.process = launch(&self.dir, self.port);
    }
}

fn client(port: u16) -> Command {
    let mut client = Command::new(program(&["/usr/bin/mariadb", "/usr/bin/mysql"], "mariadb-client"));
    client.args(["--no-defaults", "--batch", "--skip-column-names", "-h", "127.0.0.1", "-u", "root"]);
    client.args(["--protocol=tcp", "-P", &port.to_string()]);
    client
}

fn launch(dir: &Dir, port: u16) -> Process {
    let server = program(&["/usr/sbin/mariadbd", "/usr/sbin/mysqld"], "mariadb-server");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let command = [
        &server,
        "--no-defaults",
        "--user=root",
        &format!("--datadir={}", path("data")),
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
    await_ready(port, &log, || {
        let mut client = client(port);
        client.args(["-e", "SELECT 1"]).stdout(Stdio::null()).stderr(Stdio::null());
        client.status().expect("mariadb").success()
    });
    process
}
