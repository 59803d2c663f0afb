//! What the database servers have in common: the user `windrow`, a password, and URLs.

use super::process::Dir;
use super::server::{Server, is_a};

pub const USER: &str = "windrow";
pub const PASSWORD: &str = "wind-row";

/// A running server of databases; commits are durable, as in production.
pub struct Database {
    server: Server,
    scheme: &'static str,
}

impl Database {
    /// A server whose URLs begin with `scheme`.
    pub fn new(scheme: &'static str, server: Server) -> Database {
        Database { server, scheme }
    }

    /// Ends it in order and returns its directory.
    pub fn ended(self) -> Dir {
        self.server.ended()
    }

    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// The URL of a database without the password, as a configuration has it.
    pub fn url(&self, database: &str) -> String {
        format!("{}://{USER}@127.0.0.1:{}/{database}", self.scheme, self.port())
    }

    /// The URL of a database, with the password.
    pub fn url_with_password(&self, database: &str) -> String {
        format!(
            "{}://{USER}:{PASSWORD}@127.0.0.1:{}/{database}",
            self.scheme,
            self.port()
        )
    }
}

is_a!(Database, server: Server);
