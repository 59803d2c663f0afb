//! The database of a cluster: a private server with a user for every node, or the embedded one of a lone node.

use crate::node::Node;
use crate::servers::{Mariadb, Postgres};
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
            StoreKind::Postgres => Server::Postgres(Postgres::start()),
            StoreKind::Mariadb => Server::Mariadb(Mariadb::start()),
        };
        Database { server, is_down: false }
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
                server.sql("windrow", &format!("CREATE ROLE {name} SUPERUSER LOGIN PASSWORD '{password}'"));
            }
            Server::Mariadb(server) => {
                server.sql("windrow", &format!("CREATE USER '{name}'@'%' IDENTIFIED BY '{password}'"));
                server.sql("windrow", &format!("GRANT ALL ON *.* TO '{name}'@'%' WITH GRANT OPTION"));
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
            if self.is_down { self.restart() } else { self.signal("CONT") }
        }
    }
}
