//! Connections and transactions whose statements have a time limit.
//!
//! The driver has none: if a connection vanishes silently, the caller waits as long as the kernel does, a quarter of
//! an hour. A statement over its limit has an unknown outcome, like any lost answer; its connection is tested when it
//! is returned (`server::tested`).

use std::io;
use std::sync::Arc;
use std::time::Duration;
use windrow_words::store as say;

use async_trait::async_trait;
use sea_orm::sqlx;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, ExecResult, QueryResult,
    RuntimeErr, Statement,
};

use super::anchor::Anchor;
use super::error;
use windrow_engine::ports::StoreError;

/// Timeout for closing all connections to a server; the process ends after it.
const CLOSE_MAX: Duration = Duration::from_secs(2);
/// Timeout for closing the embedded database, whose last connection writes the journal back.
const CLOSE_FILE_MAX: Duration = Duration::from_secs(30);

/// Connection or transaction that limits the time of each statement. The embedded database has no limit, since it
/// cannot vanish.
#[derive(Debug, Clone)]
pub(crate) struct Bounded<C> {
    inner: C,
    limit: Option<Duration>,
    anchor: Option<Arc<Anchor>>,
}

/// Transaction that is rolled back if dropped without a commit.
pub(crate) type Transaction = Bounded<DatabaseTransaction>;

impl<C> Bounded<C> {
    pub(crate) fn new(inner: C, limit: Option<Duration>) -> Bounded<C> {
        Bounded {
            inner,
            limit,
            anchor: None,
        }
    }

    /// Returns the same, failing from the moment the database files are no longer in place.
    pub(crate) fn anchored(self, anchor: &Arc<Anchor>) -> Bounded<C> {
        Bounded {
            anchor: Some(anchor.clone()),
            ..self
        }
    }

    /// Runs a statement, and fails if its file is gone afterwards.
    async fn asked<T>(&self, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        let done = Self::within(self.limit, work).await;
        // Checked first, since any other error follows from it.
        self.holds()?;
        done
    }

    fn holds(&self) -> Result<(), DbErr> {
        self.anchor.as_ref().map_or(Ok(()), |anchor| anchor.holds())
    }

    /// Returns the time limit of a statement.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Runs several statements under a common limit of their own.
    pub(crate) async fn answers_within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = self.limit.map(|_| limit);
        within(limit, work, StoreError::Unavailable).await
    }

    async fn within<T>(
        limit: Option<Duration>,
        work: impl Future<Output = Result<T, DbErr>>,
    ) -> Result<T, DbErr> {
        within(limit, work, |text| {
            let late = sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, text));
            DbErr::Conn(RuntimeErr::SqlxError(Arc::new(late)))
        })
        .await
    }
}

pub(super) async fn within<T, E>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, E>>,
    late: impl FnOnce(String) -> E,
) -> Result<T, E> {
    let Some(limit) = limit else { return work.await };
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(late(say::no_answer_within(limit).to_string())))
}

impl Bounded<DatabaseConnection> {
    /// Begins a transaction that reads and writes; no other write comes in between.
    pub(crate) async fn begin_write(&self) -> Result<Transaction, DbErr> {
        let begun = self.asked(super::begin_write(&self.inner)).await?;
        Ok(self.like(begun))
    }

    /// Begins a transaction that reads one snapshot of the store.
    pub(crate) async fn begin_read(&self) -> Result<Transaction, DbErr> {
        let begun = self.asked(super::begin_read(&self.inner)).await?;
        Ok(self.like(begun))
    }

    fn like(&self, inner: DatabaseTransaction) -> Transaction {
        Bounded {
            inner,
            limit: self.limit,
            anchor: self.anchor.clone(),
        }
    }

    /// Returns the connection itself, for statements without a limit.
    pub(crate) fn unbounded(&self) -> &DatabaseConnection {
        &self.inner
    }
}

/// Closes the connections in this order. Waits for those in use and those being opened, which an unreachable server
/// can delay; whatever is not closed in time ends with the process.
pub(crate) async fn close_all(connections: &[&Bounded<DatabaseConnection>]) -> Result<(), DbErr> {
    let is_server = connections.iter().any(|connection| connection.limit.is_some());
    let limit = if is_server { CLOSE_MAX } else { CLOSE_FILE_MAX };
    let closing = async {
        let mut closed = Ok(());
        for connection in connections {
            closed = closed.and(connection.inner.close_by_ref().await);
        }
        closed
    };
    Transaction::within(Some(limit), closing).await
}

impl Transaction {
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        let committed = Self::within(self.limit, self.inner.commit()).await;
        committed
            .and_then(|()| self.anchor.map_or(Ok(()), |anchor| anchor.holds()))
            .map_err(error)
    }

    pub(crate) async fn rollback(self) -> Result<(), StoreError> {
        Self::within(self.limit, self.inner.rollback())
            .await
            .map_err(error)
    }
}

#[async_trait]
impl<C: ConnectionTrait> ConnectionTrait for Bounded<C> {
    fn get_database_backend(&self) -> DbBackend {
        self.inner.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.asked(self.inner.execute_raw(statement)).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.asked(self.inner.execute_unprepared(sql)).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.asked(self.inner.query_one_raw(statement)).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.asked(self.inner.query_all_raw(statement)).await
    }

    fn support_returning(&self) -> bool {
        self.inner.support_returning()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_that_somebody_has_does_not_keep_the_others_from_their_end() {
        let inner = sea_orm::Database::connect("sqlite::memory:")
            .await
            .expect("opened");
        let held = inner.clone();
        let limited = Bounded::new(inner, Some(Duration::from_secs(60)));
        let _transaction = super::super::begin_read(&held).await.expect("begun");
        let all = [&limited];
        let closing = tokio::time::timeout(CLOSE_MAX * 3, close_all(&all));
        let closed = closing.await.expect("it doesn't wait for ever");
        assert!(closed.expect_err("one is left").to_string().contains("within 2s"));
    }
}
