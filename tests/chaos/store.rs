//! The database of a cluster: a private server with a user for every node, or the embedded one of a lone node.

use crate::node::Node;
use crate::servers::{Dir, Mariadb, Postgres};
use crate::settings::{Settings, StoreKind};

/// See the module.
pub(crate) struct Database {
    server: Server,
    is_down: bool,
}

enum Server {
    Sqlite,
    Postgres(Postgres),
    Mariadb(Mariadb),
}

impl Database {
    pub(crate) fn start(settings: &Settings) -> Database {
        let server = match settings.store {
            StoreKind::Sqlite => Server::Sqlite,
            StoreKind::Postgres => Server::Postgres(Postgres::start_in(disk("postgres", 400))),
            StoreKind::Mariadb => Server::Mariadb(Mariadb::start_in(disk("mariadb", 400))),
        };
        Database {
            server,
            is_down: false,
        }
    }

    /// Its disk, where it has one of its own.
    fn disk(&self) -> Option<&Dir> {
        let dir = match &self.server {
            Server::Sqlite => return None,
            Server::Postgres(server) => server.dir(),
            Server::Mariadb(server) => server.dir(),
        };
        dir.is_small().then_some(dir)
    }

    /// Leaves no byte free on its disk; false where it has none of its own.
    pub(crate) fn fill_disk(&self) -> bool {
        self.disk().inspect(|disk| disk.fill()).is_some()
    }

    pub(crate) fn port(&self) -> Option<u16> {
        match &self.server {
            Server::Sqlite => None,
            Server::Postgres(server) => Some(server.port()),
            Server::Mariadb(server) => Some(server.port()),
        }
    }

    pub(crate) fn password(&self) -> &'static str {
        match &self.server {
            Server::Sqlite => "",
            Server::Postgres(server) => server.password(),
            Server::Mariadb(server) => server.password(),
        }
    }

    /// A user who may do everything, so that triggers can tell who wrote.
    pub(crate) fn create_user(&self, name: &str) {
        let password = self.password();
        match &self.server {
            Server::Sqlite => {}
            Server::Postgres(server) => {
                server.sql(
                    "windrow",
                    &format!("CREATE ROLE {name} SUPERUSER LOGIN PASSWORD '{password}'"),
                );
            }
            Server::Mariadb(server) => {
                server.sql(
                    "windrow",
                    &format!("CREATE USER '{name}'@'%' IDENTIFIED BY '{password}'"),
                );
                server.sql(
                    "windrow",
                    &format!("GRANT ALL ON *.* TO '{name}'@'%' WITH GRANT OPTION"),
                );
            }
        }
    }

    /// Past every proxy.
    pub(crate) fn audit_url(&self, first: &Node) -> String {
        match &self.server {
            Server::Sqlite => format!("sqlite://{}", first.place.join("data/windrow.db").display()),
            Server::Postgres(server) => server.url_with_password("windrow"),
            Server::Mariadb(server) => server.url_with_password("windrow"),
        }
    }

    pub(crate) fn kill(&mut self) {
        self.is_down = true;
        match &mut self.server {
            Server::Sqlite => panic!("an embedded database has no process"),
            Server::Postgres(server) => server.kill(),
            Server::Mariadb(server) => server.kill(),
        }
    }

    /// Starts it again, in order if it runs.
    pub(crate) fn restart(&mut self) {
        self.is_down = false;
        match &mut self.server {
            Server::Sqlite => panic!("an embedded database has no process"),
            Server::Postgres(server) => server.restart(),
            Server::Mariadb(server) => server.restart(),
        }
    }

    /// `STOP` or `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        match &self.server {
            Server::Sqlite => panic!("an embedded database has no process"),
            Server::Postgres(server) => server.signal(name),
            Server::Mariadb(server) => server.signal(name),
        }
    }

    /// Runs, whatever was done to it.
    pub(crate) fn heal(&mut self) {
        if !matches!(self.server, Server::Sqlite) {
            if self.is_down {
                self.restart()
            } else {
                self.signal("CONT")
            }
        }
    }

    /// There is room again; a server that gave up is started again.
    pub(crate) fn spare_disk(&mut self) {
        if let Some(disk) = self.disk() {
            disk.spare();
            let port = self.port().unwrap_or_default();
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
                self.restart();
            }
        }
    }
}

fn disk(what: &str, megabytes: u32) -> Dir {
    Dir::small(what, megabytes).unwrap_or_else(|| {
        eprintln!("  NO SMALL DISK: mounting is not allowed here, so db_disk_full will not be played");
        Dir::new(what)
    })
}
