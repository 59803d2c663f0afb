//! Schema migration, safe while other processes migrate at the same time.

use std::collections::BTreeSet;
use windrow_words::store as say;

use migration::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement};

use super::begin_write;
use crate::sql::error;
use windrow_engine::ports::StoreError;

/// Table in which the migrator records the steps that are done.
const STEPS_DONE: &str = "seaql_migrations";
/// Key of the lock around migrations: "windrow" in ASCII, an arbitrary number that others don't use.
const LOCK_KEY: i64 = 0x0077_696e_6472_6f77;
/// Time that MariaDB waits for that lock, in seconds.
const LOCK_WAIT: u32 = 600;

/// Applies the missing steps. The lock around them makes a second process wait, then find nothing left to do.
///
/// `single` is the only connection of its pool, since lock and steps belong to one session.
pub(crate) async fn apply_steps(single: &DatabaseConnection) -> Result<(), StoreError> {
    if !is_step_missing(single).await? {
        return Ok(());
    }
    match single.get_database_backend() {
        DbBackend::MySql => in_mysql(single).await,
        backend => {
            let transaction = begin_write(single).await.map_err(error)?;
            if backend == DbBackend::Postgres {
                let lock = format!("SELECT pg_advisory_xact_lock({LOCK_KEY})");
                transaction
                    .execute_raw(Statement::from_string(backend, lock))
                    .await
                    .map_err(error)?;
            }
            if is_step_missing(&transaction).await? {
                Migrator::up(&transaction, None).await.map_err(error)?;
            }
            transaction.commit().await.map_err(error)
        }
    }
}

/// Applies the steps on MariaDB or MySQL, where they are not transactional; each can be repeated after an
/// interruption. The lock belongs to the session, so its connection must be the only one.
async fn in_mysql(single: &DatabaseConnection) -> Result<(), StoreError> {
    let name = "CONCAT('windrow ', DATABASE())";
    let statement = |sql: String| Statement::from_string(DbBackend::MySql, sql);
    let lock = statement(format!("SELECT CAST(GET_LOCK({name}, {LOCK_WAIT}) AS SIGNED)"));
    let taken = single.query_one_raw(lock).await.map_err(error)?;
    let taken: Option<i64> = taken
        .map(|row| row.try_get_by_index(0))
        .transpose()
        .map_err(error)?;
    if taken != Some(1) {
        return Err(StoreError::Unavailable(say::migrating().to_string()));
    }
    let done = match is_step_missing(single).await {
        Ok(true) => Migrator::up(single, None).await.map_err(error),
        Ok(false) => Ok(()),
        Err(error) => Err(error),
    };
    let released = single
        .execute_raw(statement(format!("DO RELEASE_LOCK({name})")))
        .await
        .map_err(error);
    done?;
    released.map(drop)
}

/// Returns true if the database lacks a step of this program. Fails if it has a step that this program doesn't know.
pub(crate) async fn is_step_missing<C: ConnectionTrait>(db: &C) -> Result<bool, StoreError> {
    let done = steps_done(db).await?;
    let known: BTreeSet<String> = steps_known().into_iter().collect();
    match done.difference(&known).next() {
        Some(unknown) => Err(StoreError::NewerSchema(unknown.clone())),
        None => Ok(known.len() > done.len()),
    }
}

/// Returns the steps of this program, in order.
pub(crate) fn steps_known() -> Vec<String> {
    Migrator::migrations()
        .iter()
        .map(|step| step.name().to_owned())
        .collect()
}

/// Returns the steps that a database has.
pub(crate) async fn steps_done<C: ConnectionTrait>(db: &C) -> Result<BTreeSet<String>, StoreError> {
    let backend = db.get_database_backend();
    let table = match backend {
        DbBackend::Postgres => format!(
            "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = '{STEPS_DONE}'"
        ),
        DbBackend::MySql => format!(
            "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '{STEPS_DONE}'"
        ),
        _ => format!("SELECT name FROM sqlite_master WHERE type = 'table' AND name = '{STEPS_DONE}'"),
    };
    if db
        .query_one_raw(Statement::from_string(backend, table))
        .await
        .map_err(error)?
        .is_none()
    {
        return Ok(BTreeSet::new());
    }
    let names = Statement::from_string(backend, format!("SELECT version FROM {STEPS_DONE}"));
    let rows = db.query_all_raw(names).await.map_err(error)?;
    rows.iter()
        .map(|row| row.try_get::<String>("", "version").map_err(error))
        .collect()
}
