//! Several statements in one round trip, for operations that a distant database makes slow: a takeover and its reads.
//!
//! Values are part of the text, quoted by the builder. Nothing is prepared, since that costs another round trip for
//! each statement new to a connection. A connection left inside a transaction is detected when it is returned
//! (`driver::tested`).

use std::sync::Arc;
use std::time::Duration;

use sea_orm::sqlx;
use sea_orm::{
    DatabaseConnection, DbBackend, DbErr, EntityTrait, FromQueryResult, QueryResult, QueryTrait, RuntimeErr,
};
use tokio::time::Instant;

use super::{Bounded, bounded, error, mysql, postgres};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::meters::Meters;

/// Connection to a server that takes several statements at once.
pub(crate) struct Talk {
    connection: Connection,
    limit: Option<Duration>,
    meters: Arc<Meters>,
}

enum Connection {
    Postgres(postgres::Wire),
    MySql(mysql::Wire),
}

/// Reply to one statement of a batch.
#[derive(Default)]
pub(crate) struct Reply {
    pub(super) rows: Vec<QueryResult>,
    /// Number of rows that the statement changed.
    pub(crate) affected: u64,
}

impl Reply {
    /// Returns all rows as models of an entity.
    pub(crate) fn all<M: FromQueryResult>(&self) -> Result<Vec<M>, StoreError> {
        let rows = self.rows.iter().map(|row| M::from_query_result(row, ""));
        rows.collect::<Result<_, _>>().map_err(error)
    }

    /// Returns the first row as a model, if there is one.
    pub(crate) fn one<M: FromQueryResult>(&self) -> Result<Option<M>, StoreError> {
        let row = self.rows.first().map(|row| M::from_query_result(row, ""));
        row.transpose().map_err(error)
    }

    /// Returns the first column of the first row.
    pub(crate) fn value<T: sea_orm::TryGetable>(&self) -> Result<Option<T>, StoreError> {
        let value = self.rows.first().map(|row| row.try_get_by_index(0));
        value.transpose().map_err(error)
    }
}

impl Bounded<DatabaseConnection> {
    /// Acquires a connection for batches; `None` for the embedded database, which is never far away.
    pub(crate) async fn talk(&self, meters: &Arc<Meters>) -> Result<Option<Talk>, DbErr> {
        let pool = self.unbounded();
        let connection = match pool.get_database_backend() {
            DbBackend::Postgres => postgres::Wire::acquire(pool).await.map(Connection::Postgres),
            DbBackend::MySql => mysql::Wire::acquire(pool).await.map(Connection::MySql),
            _ => return Ok(None),
        };
        Ok(Some(Talk {
            connection: connection.map_err(db_error)?,
            limit: self.limit(),
            meters: meters.clone(),
        }))
    }
}

impl Talk {
    /// Formats a statement together with its values.
    pub(crate) fn text(&self, statement: &impl QueryTrait) -> String {
        let backend = match self.connection {
            Connection::Postgres(_) => DbBackend::Postgres,
            Connection::MySql(_) => DbBackend::MySql,
        };
        statement.build(backend).to_string()
    }

    /// Sends statements together. Returns one reply for each, or the first error.
    pub(crate) async fn say(&mut self, statements: &[String]) -> Result<Vec<Reply>, StoreError> {
        let text = statements.join(";\n");
        let limit = self.limit;
        let said = async {
            match &mut self.connection {
                Connection::Postgres(wire) => wire.say(text).await,
                Connection::MySql(wire) => wire.say(text).await,
            }
            .map_err(|cause| error(db_error(cause)))
        };
        let begun = Instant::now();
        let told = bounded::within(limit, said, StoreError::Unavailable).await;
        self.meters.queried("other", begun.elapsed(), told.is_err());
        told
    }

    /// Sends reads that see one snapshot of the store.
    pub(crate) async fn read(&mut self, reads: Vec<String>) -> Result<Vec<Reply>, StoreError> {
        let begin: &[&str] = match self.connection {
            Connection::Postgres(_) => &["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"],
            Connection::MySql(_) => &[
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                "START TRANSACTION READ ONLY",
            ],
        };
        let mut texts: Vec<String> = begin.iter().map(|text| (*text).to_owned()).collect();
        texts.extend(reads);
        texts.push("COMMIT".to_owned());
        let replies = self.say(&texts).await?;
        Ok(replies.into_iter().skip(begin.len()).collect())
    }

    /// Sends a single read and returns its rows.
    pub(crate) async fn all<E: EntityTrait>(
        &mut self,
        select: &sea_orm::Select<E>,
    ) -> Result<Vec<E::Model>, StoreError> {
        let text = self.text(select);
        let replies = self.say(&[text]).await?;
        replies.first().map_or(Ok(Vec::new()), Reply::all)
    }
}

fn db_error(cause: sqlx::Error) -> DbErr {
    DbErr::Conn(RuntimeErr::SqlxError(Arc::new(cause)))
}
