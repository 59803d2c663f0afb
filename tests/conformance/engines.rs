//! Private database servers for the suite: one a topic, emptied before each case.

use std::future::Future;
use std::pin::Pin;

use tokio::runtime::{Builder, Runtime};
use windrow_store::sql::{ServerAddress, ServerKind, Store};

use crate::fixture::Harness;
use crate::servers::{Database, Mariadb, Postgres};

/// The database of all cases.
const DATABASE: &str = "suite";
/// Connections of a store under test.
pub const CONNECTIONS: u32 = 8;

type Run = Box<dyn Fn(Harness) -> Pin<Box<dyn Future<Output = ()> + Send>>>;

/// A fact with its name.
pub struct Case {
    name: &'static str,
    run: Run,
}

pub fn case<F>(name: &'static str, fact: impl Fn(Harness) -> F + 'static) -> Case
where
    F: Future<Output = ()> + Send + 'static,
{
    Case {
        name,
        run: Box::new(move |harness| Box::pin(fact(harness))),
    }
}

/// A server with a database that has the schema.
pub enum Engine {
    Postgres(Postgres),
    Mariadb(Mariadb),
}

impl Engine {
    pub fn postgres() -> Engine {
        let server = Postgres::start();
        server.create_database(DATABASE);
        Engine::Postgres(server)
    }

    pub fn mariadb() -> Engine {
        let server = Mariadb::start();
        server.create_database(DATABASE);
        Engine::Mariadb(server)
    }

    pub fn port(&self) -> u16 {
        self.server().port()
    }

    pub fn password(&self) -> &'static str {
        self.server().password()
    }

    pub fn address(&self) -> ServerAddress {
        self.address_of(DATABASE, CONNECTIONS)
    }

    pub fn address_of(&self, database: &str, connections: u32) -> ServerAddress {
        let kind = match self {
            Engine::Postgres(_) => ServerKind::Postgres,
            Engine::Mariadb(_) => ServerKind::MySql,
        };
        let (url, password) = (self.server().url(database), self.password().to_owned());
        ServerAddress::new(kind, url, Some(password), connections)
    }

    fn server(&self) -> &Database {
        match self {
            Engine::Postgres(server) => server,
            Engine::Mariadb(server) => server,
        }
    }

    fn server_mut(&mut self) -> &mut Database {
        match self {
            Engine::Postgres(server) => server,
            Engine::Mariadb(server) => server,
        }
    }

    pub fn create_database(&self, name: &str) {
        match self {
            Engine::Postgres(server) => server.create_database(name),
            Engine::Mariadb(server) => server.create_database(name),
        }
    }

    /// Rows a line, columns with tabs.
    pub fn sql(&self, sql: &str) -> String {
        self.sql_in(DATABASE, sql)
    }

    pub fn sql_in(&self, database: &str, sql: &str) -> String {
        match self {
            Engine::Postgres(server) => server.sql(database, sql),
            Engine::Mariadb(server) => server.sql(database, sql),
        }
    }

    /// Columns and indexes of all tables, one a line.
    pub fn schema(&self) -> Vec<String> {
        let (of_schema, indexes) = match self {
            Engine::Postgres(_) => (
                "table_schema = 'public'",
                "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
            ),
            Engine::Mariadb(_) => (
                "table_schema = DATABASE()",
                "SELECT table_name, index_name, seq_in_index, column_name, non_unique \
                 FROM information_schema.statistics WHERE table_schema = DATABASE()",
            ),
        };
        let columns = format!(
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns WHERE {of_schema}"
        );
        let found = self.sql(&columns) + "\n" + &self.sql(indexes);
        let mut lines: Vec<String> = found.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    }

    /// The numbers of the connections to the database, but for this one.
    pub fn connections(&self) -> Vec<String> {
        let sql = match self {
            Engine::Postgres(_) => {
                "SELECT pid FROM pg_stat_activity WHERE datname = 'suite' AND pid <> pg_backend_pid()"
            }
            Engine::Mariadb(_) => {
                "SELECT id FROM information_schema.processlist WHERE db = 'suite' AND id <> CONNECTION_ID()"
            }
        };
        self.sql(sql).lines().map(str::to_owned).collect()
    }

    /// Cuts all connections to the database but for this one.
    pub fn cut_all(&self) {
        match self {
            Engine::Postgres(_) => drop(self.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = 'suite' AND pid <> pg_backend_pid()",
            )),
            Engine::Mariadb(server) => {
                for id in self.connections() {
                    // It may have ended by itself.
                    server.kill_connection(&id);
                }
            }
        }
    }

    pub fn restart(&mut self) {
        self.server_mut().restart();
    }

    pub fn signal(&self, name: &str) {
        self.server().signal(name);
    }

    pub fn kill(&mut self) {
        self.server_mut().kill();
    }

    /// Removes all rows; numbers begin at 1 again. The schema and the store's id stay.
    pub fn empty(&self) {
        let of_schema = match self {
            Engine::Postgres(_) => "table_schema = 'public'",
            Engine::Mariadb(_) => "table_schema = DATABASE()",
        };
        let names = format!(
            "SELECT table_name FROM information_schema.tables WHERE {of_schema} \
             AND table_name NOT IN ('meta', 'seaql_migrations')"
        );
        let names: Vec<String> = self.sql(&names).lines().map(str::to_owned).collect();
        assert!(names.len() > 10, "{names:?}");
        let meta = "DELETE FROM meta WHERE name <> 'store_id';".to_owned();
        let sql = match self {
            Engine::Postgres(_) => format!("{meta} TRUNCATE {} RESTART IDENTITY", names.join(", ")),
            Engine::Mariadb(_) => names
                .iter()
                .fold(meta, |sql, name| sql + &format!("TRUNCATE {name};")),
        };
        drop(self.sql(&sql));
    }

    pub async fn store(&self) -> Store {
        Store::connect(&self.address(), true).await.unwrap()
    }

    /// A store over the emptied database.
    pub async fn harness(&self) -> Harness {
        let store = self.store().await;
        self.empty();
        Harness::served(store, self.url()).at(self.address())
    }

    /// With the password: for a connection of the test's own.
    pub fn url(&self) -> String {
        self.server().url_with_password(DATABASE)
    }
}

pub fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Runs all cases, each over an empty store; fails with the names of those that fail.
pub fn all(engine: &Engine, cases: Vec<Case>) {
    let runtime = runtime();
    let mut failed = Vec::new();
    for case in cases {
        let harness = runtime.block_on(engine.harness());
        println!("case {}", case.name);
        if runtime.block_on(runtime.spawn((case.run)(harness))).is_err() {
            failed.push(case.name);
        }
    }
    assert!(failed.is_empty(), "these cases failed: {failed:?}");
}
