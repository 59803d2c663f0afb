//! MariaDB (10.6 and later) and MySQL (8.0 and later).
//!
//! - `SET a = …, b = f(a)` is evaluated from left to right with the new `a`: see `run_claim`.
//! - An upsert that changes a row counts as two: nothing uses the counts of upserts.
//! - `last_insert_id` of several rows is that of the first: ids are not read back after inserting rows together.
//! - Tables have a collation that compares bytes (see the migrations), so text compares as in the other databases.
//! - sqlx sets `CLIENT_FOUND_ROWS`: an update that changes nothing still counts its row.

use futures_util::future::BoxFuture;
use sea_orm::sqlx::error::DatabaseError;
use sea_orm::sqlx::mysql::{
    MySql, MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlPoolOptions,
};
use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::{self, ConnectOptions as _, Connection as _, Executor, Row};
use sea_orm::{ConnectOptions, ConnectionTrait, DatabaseConnection, DbBackend, Statement};
use windrow_words::store as say;

use super::driver::{gather, nonce, tested};
use super::server::{Limits, ServerAddress};
use super::{Reply, Sort};
use crate::sql::error;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::durability::Durability;

/// Error number of "unknown system variable": MySQL lacks some of MariaDB's, and vice versa.
const UNKNOWN_VARIABLE: u16 = 1193;

/// Configures the connections of a pool: the password, which is in no URL, and the limits of statements.
pub(super) fn prepare(options: &mut ConnectOptions, address: &ServerAddress, limits: Limits) {
    let password = address.password.clone();
    options.map_sqlx_mysql_opts(move |mysql| signed(mysql, password.as_deref()));
    options.map_sqlx_mysql_pool_opts(move |pool: sqlx::pool::PoolOptions<MySql>| -> MySqlPoolOptions {
        tested(pool, is_whole).after_connect(move |connection, _| Box::pin(begin_session(connection, limits)))
    });
}

fn signed(mysql: MySqlConnectOptions, password: Option<&str>) -> MySqlConnectOptions {
    match password {
        Some(password) => mysql.password(password),
        None => mysql,
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

async fn begin_session(connection: &mut MySqlConnection, limits: Limits) -> Result<(), sqlx::Error> {
    connection
        .execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        .await?;
    // Batches embed values in their text, with quotes escaped by backslashes.
    connection
        .execute("SET SESSION sql_mode = REPLACE(@@sql_mode, 'NO_BACKSLASH_ESCAPES', '')")
        .await?;
    let seconds = |time: std::time::Duration| time.as_secs().max(1);
    let variables = [
        ("innodb_lock_wait_timeout", seconds(limits.lock)),
        // Known to MariaDB only.
        ("max_statement_time", seconds(limits.statement)),
        ("idle_transaction_timeout", seconds(limits.idle)),
        // Known to MySQL only, for reads, in milliseconds.
        ("max_execution_time", seconds(limits.statement) * 1000),
    ];
    for (name, value) in variables {
        let set = sqlx::AssertSqlSafe(format!("SET SESSION {name} = {value}"));
        match connection.execute(set).await {
            Err(cause) if !is_unknown_variable(&cause) => return Err(cause),
            _ => {}
        }
    }
    Ok(())
}

/// Tests a connection. MySQL cannot report an open transaction, so any is rolled back. The random number proves that
/// the answer belongs to this question.
fn is_whole(connection: &mut MySqlConnection) -> BoxFuture<'_, Result<bool, sqlx::Error>> {
    let number = nonce();
    let ask = format!("ROLLBACK; SELECT CAST({number} AS SIGNED)");
    Box::pin(async move {
        let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(ask))
            .fetch_all(connection)
            .await?;
        Ok(rows.len() == 1 && rows[0].try_get::<i64, _>(0)? == number)
    })
}

fn is_unknown_variable(cause: &sqlx::Error) -> bool {
    let error = cause
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>());
    error.is_some_and(|error| error.number() == UNKNOWN_VARIABLE)
}

/// Reads whether commits wait for the disk: `innodb_flush_log_at_trx_commit` must be 1.
pub(super) async fn durability(db: &DatabaseConnection) -> Result<Durability, StoreError> {
    let ask = Statement::from_string(
        DbBackend::MySql,
        "SELECT CAST(@@innodb_flush_log_at_trx_commit AS SIGNED)",
    );
    let row = db.query_one_raw(ask).await.map_err(error)?;
    let row = row.ok_or_else(|| StoreError::Refused(say::no_settings().to_string()))?;
    let level: i64 = row.try_get_by_index(0).map_err(error)?;
    Ok(Durability {
        setting: format!("innodb_flush_log_at_trx_commit {level}"),
        is_durable: level == 1,
    })
}

/// Pooled connection that takes several statements in one text.
pub(super) struct Wire(PoolConnection<MySql>);

impl Wire {
    pub(super) async fn acquire(pool: &DatabaseConnection) -> Result<Wire, sqlx::Error> {
        pool.get_mysql_connection_pool().acquire().await.map(Wire)
    }

    /// Sends statements together. Returns one reply for each, or the first error.
    pub(super) async fn say(&mut self, text: String) -> Result<Vec<Reply>, sqlx::Error> {
        let said = sqlx::raw_sql(sqlx::AssertSqlSafe(text)).fetch_many(&mut *self.0);
        gather::<MySql>(said, |done| done.rows_affected()).await
    }
}

/// Error number for a database that doesn't exist on the server.
const NO_DATABASE: u16 = 1049;

/// True if the server has no such database.
pub(super) fn lacks_database(refused: &dyn DatabaseError) -> bool {
    let refused = refused.try_downcast_ref::<MySqlDatabaseError>();
    refused.is_some_and(|refused| refused.number() == NO_DATABASE)
}

/// Classifies an error of this driver; `None` for another driver's.
pub(super) fn sorted(error: &dyn DatabaseError) -> Option<Sort> {
    let error = error.try_downcast_ref::<MySqlDatabaseError>()?;
    Some(sort(error.number()))
}

/// Classifies an error number of a server or a client.
fn sort(number: u16) -> Sort {
    match number {
        // Deadlock; a row changed since it was read; a unique value that another transaction wrote at the same
        // moment.
        1213 | 1020 | 1062 | 1586 => Sort::Conflict,
        // Lock wait timeout: MySQL rolls back only the statement, so the transaction is dropped here.
        1205 | 3572 => Sort::Transient,
        // Full disk or memory, too many connections, shutdown, aborted and killed connections, time limits.
        3
        | 28
        | 1021
        | 1030
        | 1037
        | 1038
        | 1040
        | 1041
        | 1053
        | 1077
        | 1078
        | 1079
        | 1114
        | 1152
        | 1158..=1161
        | 1184
        | 1203
        | 1226
        | 1317
        | 1412
        | 1637
        | 1906
        | 1927
        | 1969
        | 3024
        | 3168
        | 3170
        | 3675
        | 4031 => Sort::Transient,
        // Standby or failover: the address will lead to the new primary.
        1290 | 1792 | 1836 | 3100 | 3101 => Sort::Transient,
        2000..=2099 => Sort::Transient,
        // A statement cached before a migration.
        1243 | 1615 => Sort::Transient,
        _ => Sort::Permanent,
    }
}
