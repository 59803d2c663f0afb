//! Counters for the numbers of new rows, as each database keeps them.

use sea_orm::{ConnectionTrait, DbBackend, Statement};
use windrow_words::store as say;

use crate::sql::error;
use windrow_engine::ports::StoreError;

/// Returns the highest number that a table has assigned; zero before the first.
pub(crate) async fn highest(db: &impl ConnectionTrait, table: &str) -> Result<i64, StoreError> {
    let backend = db.get_database_backend();
    let kept = match backend {
        DbBackend::Postgres => format!(
            "SELECT GREATEST(COALESCE(pg_sequence_last_value(pg_get_serial_sequence('{table}', 'id')::regclass), 0), \
             COALESCE((SELECT MAX(id) FROM {table}), 0)) AS n"
        ),
        DbBackend::MySql => format!(
            "SELECT CAST(GREATEST(COALESCE((SELECT `auto_increment` - 1 FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_name = '{table}'), 0), \
             COALESCE((SELECT MAX(id) FROM {table}), 0)) AS SIGNED) AS n"
        ),
        _ => format!(
            "SELECT MAX(COALESCE((SELECT seq FROM sqlite_sequence WHERE name = '{table}'), 0), \
             COALESCE((SELECT MAX(id) FROM {table}), 0)) AS n"
        ),
    };
    let row = db.query_one_raw(Statement::from_string(backend, kept)).await;
    let row = row
        .map_err(error)?
        .ok_or_else(|| StoreError::Unavailable(say::no_counter(table).to_string()))?;
    row.try_get("", "n").map_err(error)
}

/// Sets the counter, so that the next row of a table gets the number after this one.
pub(crate) async fn begin_above(
    db: &impl ConnectionTrait,
    table: &str,
    number: i64,
) -> Result<(), StoreError> {
    let backend = db.get_database_backend();
    match backend {
        DbBackend::Postgres => {
            let set = format!("SELECT setval(pg_get_serial_sequence('{table}', 'id'), {number})");
            let set = db.query_one_raw(Statement::from_string(backend, set)).await;
            set.map(drop).map_err(error)
        }
        DbBackend::MySql => {
            let next = number.saturating_add(1);
            run(db, &format!("ALTER TABLE {table} AUTO_INCREMENT = {next}")).await
        }
        _ => {
            // `sqlite_sequence` has a row only for tables that had a row before.
            run(db, &format!("DELETE FROM sqlite_sequence WHERE name = '{table}'")).await?;
            let insert = format!("INSERT INTO sqlite_sequence (name, seq) VALUES ('{table}', {number})");
            run(db, &insert).await
        }
    }
}

async fn run(db: &impl ConnectionTrait, sql: &str) -> Result<(), StoreError> {
    db.execute_unprepared(sql).await.map(drop).map_err(error)
}
