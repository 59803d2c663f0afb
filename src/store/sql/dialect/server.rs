//! Connections to database servers: addresses, limits, and errors when no connection can be made.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use windrow_words::store as say;

use sea_orm::sqlx;
use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbErr, RuntimeErr};
use tokio::time::Instant;

use super::{mysql, postgres};
use crate::sql::error;
use windrow_engine::ports::{NO_DATABASE, StoreError};

/// Timeout for a caller waiting for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the first connection of a node that starts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for a connection that only inspects the database.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for a heartbeat waiting for a connection; shorter, since its next attempt is near.
const ACQUIRE_TIMEOUT_PULSE: Duration = Duration::from_secs(5);
/// Connections of the heartbeat: one in use, the other a spare in case the first hangs.
const PULSES: u32 = 2;
/// Idle time after which a connection is closed.
const IDLE_MAX: Duration = Duration::from_secs(300);

/// Type of database server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// PostgreSQL, version 13 or later.
    Postgres,
    /// MariaDB 10.6 or later, or MySQL 8.0 or later.
    MySql,
}

/// Address of a database. No text it formats contains the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// Type of server, which selects the driver.
    pub kind: ServerKind,
    /// URL of the database, without a password.
    pub url: String,
    /// Maximum number of connections, not counting those of the heartbeat.
    pub max_connections: u32,
    pub(super) password: Option<String>,
}

impl ServerAddress {
    /// Creates an address. The URL contains no password.
    pub fn new(
        kind: ServerKind,
        url: String,
        password: Option<String>,
        max_connections: u32,
    ) -> ServerAddress {
        ServerAddress {
            kind,
            url,
            max_connections,
            password,
        }
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// Time limits that a server enforces on the statements of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Longest wait for a row that another transaction has locked.
    pub(super) lock: Duration,
    /// Longest run time of one statement.
    pub(super) statement: Duration,
    /// Longest idle time within a transaction: a node suspended there gives up its row locks.
    pub(super) idle: Duration,
}

const USUAL: Limits = Limits {
    lock: Duration::from_secs(3),
    statement: Duration::from_secs(30),
    idle: Duration::from_secs(5),
};
const PULSE: Limits = Limits {
    lock: Duration::from_secs(1),
    statement: Duration::from_secs(2),
    idle: Duration::from_secs(3),
};
/// Limits for migrations: a step on a large table takes as long as it takes.
const PATIENT: Limits = Limits {
    lock: Duration::from_secs(60),
    statement: Duration::from_secs(24 * 3600),
    idle: Duration::from_secs(600),
};

/// Connection pools of a node.
pub(crate) struct Pools {
    pub(crate) usual: DatabaseConnection,
    /// Pool reserved for the heartbeat.
    pub(crate) pulse: DatabaseConnection,
}

/// Opens the pools of a node. The first connection is made at once, so that a wrong address fails here.
pub(crate) async fn open(address: &ServerAddress) -> Result<Pools, StoreError> {
    let usual = pool(address, address.max_connections.max(2), (USUAL, ACQUIRE_TIMEOUT)).await?;
    let pulse = pool(address, PULSES, (PULSE, ACQUIRE_TIMEOUT_PULSE)).await?;
    Ok(Pools { usual, pulse })
}

/// Runs startup work that needs several responses of the server. If the server goes away in between, waits for it as
/// if it were not up yet; `work` receives the time that is left.
pub(crate) async fn patiently<T, F>(
    address: &ServerAddress,
    work: impl Fn(Duration) -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let end = Instant::now() + CONNECT_TIMEOUT;
    loop {
        match work(end.saturating_duration_since(Instant::now())).await {
            Err(StoreError::Unavailable(why)) if Instant::now() < end => {
                tracing::warn!(why, "lost the database in between; trying again");
                tokio::time::sleep(KNOCK_EVERY).await;
            }
            Err(StoreError::Unavailable(why)) => {
                return Err(unreachable(address, StoreError::Unavailable(why)));
            }
            done => return done,
        }
    }
}

/// Opens a single connection without tight limits, for migrations. Waits up to `patience` for the server.
pub(crate) async fn open_one(
    address: &ServerAddress,
    patience: Duration,
) -> Result<DatabaseConnection, StoreError> {
    reach(address, patience).await?;
    pool(address, 1, (PATIENT, CONNECT_TIMEOUT)).await
}

/// Opens a single connection for inspection, which fails early if nobody answers.
pub(crate) async fn open_to_look(address: &ServerAddress) -> Result<DatabaseConnection, StoreError> {
    reach(address, LOOK_TIMEOUT).await?;
    pool(address, 1, (PATIENT, LOOK_TIMEOUT)).await
}

/// Interval between two attempts to reach a server that is not up yet.
const KNOCK_EVERY: Duration = Duration::from_millis(500);
/// Timeout of the first attempt, short so that a problem is logged soon. Later ones get `KNOCK_MAX`, for distant
/// servers.
const FIRST_KNOCK_MAX: Duration = Duration::from_secs(2);
const KNOCK_MAX: Duration = Duration::from_secs(10);

/// Waits until the server accepts a connection. A pool would wait too, but silently, and then report only a timeout.
async fn reach(address: &ServerAddress, patience: Duration) -> Result<(), StoreError> {
    let end = Instant::now() + patience;
    let mut is_told = false;
    loop {
        let within = if is_told { KNOCK_MAX } else { FIRST_KNOCK_MAX };
        let why = match knock(address, within).await {
            Ok(()) => return Ok(()),
            Err(StoreError::Unavailable(why)) if Instant::now() < end => why,
            Err(refused) => return Err(unreachable(address, refused)),
        };
        if !is_told {
            let url = &address.url;
            tracing::warn!(
                why,
                "can't connect to {url} yet; trying for {} s",
                patience.as_secs()
            );
            is_told = true;
        }
        tokio::time::sleep(KNOCK_EVERY).await;
    }
}

async fn knock(address: &ServerAddress, within: Duration) -> Result<(), StoreError> {
    let url = url(address);
    let knocked = async {
        match address.kind {
            ServerKind::Postgres => postgres::knock(&url, address).await,
            ServerKind::MySql => mysql::knock(&url, address).await,
        }
    };
    let late = || {
        sqlx::Error::Io(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            say::no_answer().english(),
        ))
    };
    let knocked = tokio::time::timeout(within, knocked)
        .await
        .unwrap_or_else(|_| Err(late()));
    knocked.map_err(|cause| match is_without_database(&cause) {
        true => StoreError::Refused(format!("{NO_DATABASE}{}", database(&address.url))),
        false => error(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(cause)))),
    })
}

/// Returns true if the server answers but has no such database.
fn is_without_database(cause: &sqlx::Error) -> bool {
    cause
        .as_database_error()
        .is_some_and(|refused| postgres::lacks_database(refused) || mysql::lacks_database(refused))
}

/// Returns the name of the database in a URL.
fn database(url: &str) -> &str {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = path.split_once('/').map_or("", |(_, path)| path);
    path.split('?').next().unwrap_or_default()
}

async fn pool(
    address: &ServerAddress,
    connections: u32,
    (limits, patience): (Limits, Duration),
) -> Result<DatabaseConnection, StoreError> {
    let mut options = ConnectOptions::new(url(address));
    options
        .max_connections(connections)
        .min_connections(connections.min(PULSES))
        .sqlx_logging(false);
    options.acquire_timeout(patience).connect_timeout(patience);
    options.test_before_acquire(false);
    if connections == 1 {
        // The session of a single connection holds a lock.
        options.idle_timeout(None).max_lifetime(None);
    } else {
        options.idle_timeout(Some(IDLE_MAX));
    }
    match address.kind {
        ServerKind::Postgres => postgres::prepare(&mut options, address, limits),
        ServerKind::MySql => mysql::prepare(&mut options, address, limits),
    }
    Database::connect(options)
        .await
        .map_err(|cause| unreachable(address, error(cause)))
}

/// Prefix of the error for a server that cannot be reached.
const UNREACHABLE: &str = "can't connect to";

/// Returns the URL with the only scheme that the driver accepts.
fn url(address: &ServerAddress) -> String {
    let rest = address
        .url
        .split_once("://")
        .map_or(address.url.as_str(), |(_, rest)| rest);
    match address.kind {
        ServerKind::Postgres => format!("postgres://{rest}"),
        ServerKind::MySql => format!("mysql://{rest}"),
    }
}

/// Adds the address to an error once, since the driver leaves it out.
fn unreachable(address: &ServerAddress, cause: StoreError) -> StoreError {
    let told = |text: String| match text.starts_with(UNREACHABLE) {
        true => text,
        false => format!("{UNREACHABLE} {}: {text}", address.url),
    };
    match cause {
        StoreError::Unavailable(text) => StoreError::Unavailable(told(text)),
        StoreError::Refused(text) => StoreError::Refused(told(text)),
        newer => newer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_is_not_there_is_told_by_its_own_reason() {
        // A port that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = port.expect("a port").port();
        for (kind, scheme) in [(ServerKind::Postgres, "postgres"), (ServerKind::MySql, "mariadb")] {
            let url = format!("{scheme}://windrow@127.0.0.1:{port}/windrow");
            let address = ServerAddress::new(kind, url, None, 2);
            let error = reach(&address, Duration::from_millis(700))
                .await
                .expect_err("nobody is there");
            let said = error.to_string();
            assert!(
                said.contains("refused") && !said.contains("pool timed out"),
                "{said}"
            );
        }
    }
}
