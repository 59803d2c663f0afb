//! PostgreSQL, 13 and later.

use futures_util::future::BoxFuture;
use sea_orm::sqlx::error::DatabaseError;
use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgConnection, PgDatabaseError, PgPoolOptions, Postgres};
use sea_orm::sqlx::{self, ConnectOptions as _, Connection as _, Executor, Row};
use sea_orm::{ConnectOptions, ConnectionTrait, DatabaseConnection, DbBackend, Statement};
use windrow_words::store as say;

use super::driver::{gather, nonce, tested};
use super::server::{Limits, ServerAddress};
use super::{Reply, Sort};
use crate::sql::error;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::durability::Durability;

/// Configures the connections of a pool: the password, which is in no URL, and the limits of statements.
pub(super) fn prepare(options: &mut ConnectOptions, address: &ServerAddress, limits: Limits) {
    let password = address.password.clone();
    options.map_sqlx_postgres_opts(move |postgres| signed(postgres, password.as_deref()));
    let session = session(limits);
    options.map_sqlx_postgres_pool_opts(move |pool: sqlx::pool::PoolOptions<Postgres>| -> PgPoolOptions {
        let session = session.clone();
        tested(pool, is_whole).after_connect(move |connection, _| {
            let session = session.clone();
            Box::pin(async move { connection.execute(sqlx::AssertSqlSafe(session)).await.map(drop) })
        })
    });
}

fn signed(postgres: PgConnectOptions, password: Option<&str>) -> PgConnectOptions {
    let postgres = postgres.application_name("windrow");
    match password {
        Some(password) => postgres.password(password),
        None => postgres,
    }
}

/// Opens one connection outside any pool and closes it. Fails with the server's own error, which a pool would hide
/// behind its timeout.
pub(super) async fn knock(url: &str, address: &ServerAddress) -> Result<(), sqlx::Error> {
    signed(url.parse()?, address.password.as_deref())
        .connect()
        .await?
        .close()
        .await
}

/// Tests that a connection is outside any transaction: a statement then begins its own, so both timestamps are equal;
/// inside one they differ.
fn is_whole(connection: &mut PgConnection) -> BoxFuture<'_, Result<bool, sqlx::Error>> {
    let number = nonce();
    let ask = format!("SELECT {number}::int8 WHERE transaction_timestamp() = statement_timestamp()");
    Box::pin(async move {
        let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(ask))
            .fetch_all(connection)
            .await?;
        Ok(rows.len() == 1 && rows[0].try_get::<i64, _>(0)? == number)
    })
}

/// Returns the session settings as statements: poolers in between reject start-up parameters that they don't know.
fn session(limits: Limits) -> String {
    format!(
        "SET default_transaction_isolation = 'read committed'; SET lock_timeout = {}; SET statement_timeout = {}; \
         SET idle_in_transaction_session_timeout = {}",
        limits.lock.as_millis(),
        limits.statement.as_millis(),
        limits.idle.as_millis(),
    )
}

/// Reads whether commits wait for the disk: neither `synchronous_commit` nor `fsync` may be off.
pub(super) async fn durability(db: &DatabaseConnection) -> Result<Durability, StoreError> {
    let mut settings = Vec::new();
    for name in ["synchronous_commit", "fsync"] {
        let ask = Statement::from_string(DbBackend::Postgres, format!("SHOW {name}"));
        let row = db.query_one_raw(ask).await.map_err(error)?;
        let row = row.ok_or_else(|| StoreError::Refused(say::no_settings().to_string()))?;
        settings.push(row.try_get_by_index::<String>(0).map_err(error)?);
    }
    let is_durable = settings.iter().all(|setting| setting != "off");
    Ok(Durability {
        setting: format!("synchronous_commit {}, fsync {}", settings[0], settings[1]),
        is_durable,
    })
}

/// Pooled connection that takes several statements in one text.
pub(super) struct Wire(PoolConnection<Postgres>);

impl Wire {
    pub(super) async fn acquire(pool: &DatabaseConnection) -> Result<Wire, sqlx::Error> {
        pool.get_postgres_connection_pool().acquire().await.map(Wire)
    }

    /// Sends statements together. Returns one reply for each, or the first error.
    pub(super) async fn say(&mut self, text: String) -> Result<Vec<Reply>, sqlx::Error> {
        let said = sqlx::raw_sql(sqlx::AssertSqlSafe(text)).fetch_many(&mut *self.0);
        gather::<Postgres>(said, |done| done.rows_affected()).await
    }
}

/// SQLSTATE for a database that doesn't exist on the server.
const NO_DATABASE: &str = "3D000";

/// True if the server has no such database.
pub(super) fn lacks_database(refused: &dyn DatabaseError) -> bool {
    let refused = refused.try_downcast_ref::<PgDatabaseError>();
    refused.is_some_and(|refused| refused.code() == NO_DATABASE)
}

/// Classifies an error of this driver; `None` for another driver's.
pub(super) fn sorted(error: &dyn DatabaseError) -> Option<Sort> {
    let error = error.try_downcast_ref::<PgDatabaseError>()?;
    Some(sort(error.code()))
}

/// Classifies an SQLSTATE of the server.
fn sort(code: &str) -> Sort {
    match code {
        // Serialization failure, deadlock, or a unique value that another transaction wrote at the same moment: the
        // next attempt reads it.
        "40001" | "40P01" | "23505" => Sort::Conflict,
        // Lock and statement timeouts, shutdown, idle in a transaction, a schema that is being changed.
        "55P03" | "57014" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25P04" | "40003" | "55006" => {
            Sort::Transient
        }
        // Standby or failover: the address will lead to the new primary.
        "25006" => Sort::Transient,
        // A statement cached before a migration.
        "0A000" | "26000" => Sort::Transient,
        // Connections, resources (disk, memory, too many connections), the system.
        _ if ["08", "53", "58"].iter().any(|class| code.starts_with(class)) => Sort::Transient,
        _ => Sort::Permanent,
    }
}
