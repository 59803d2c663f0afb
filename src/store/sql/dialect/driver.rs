//! Parts of the drivers of servers: tests of a connection, and the replies to a batch.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use sea_orm::QueryResult;
use sea_orm::sqlx::pool::PoolOptions;
use sea_orm::sqlx::{self, Either};

use super::Reply;

/// Time a connection has to prove that it is whole.
const PATIENCE: Duration = Duration::from_secs(2);
/// Idle time after which a connection is tested before use.
const IDLE_UNTESTED_MAX: Duration = Duration::from_secs(1);

/// Test that a connection answers the question it was asked and is outside any transaction, according to the server.
pub(super) type IsWhole<D> =
    for<'c> fn(&'c mut <D as sqlx::Database>::Connection) -> BoxFuture<'c, Result<bool, sqlx::Error>>;

/// Makes a pool test its connections: after use, and before use if they were idle.
///
/// A cancelled operation (a timeout, a caller that hung up) leaves a connection in a state the driver does not fully
/// know. A `BEGIN` whose response nobody read does not count, and what is written there later would never be
/// committed; over MySQL's protocol, the next query may get the response of the previous one. So the server is asked,
/// and a connection without the right answer is closed. The driver also tests after use, but only for a sign of life
/// and without a timeout: if a connection vanished silently, that takes a quarter of an hour, and the pool keeps its
/// place all that time.
pub(super) fn tested<D: sqlx::Database>(pool: PoolOptions<D>, is_whole: IsWhole<D>) -> PoolOptions<D> {
    pool.after_release(move |connection, _| Box::pin(answered(is_whole(connection))))
        .before_acquire(move |connection, meta| {
            Box::pin(async move {
                if meta.idle_for > IDLE_UNTESTED_MAX {
                    answered(is_whole(connection)).await
                } else {
                    Ok(true)
                }
            })
        })
}

async fn answered(asked: BoxFuture<'_, Result<bool, sqlx::Error>>) -> Result<bool, sqlx::Error> {
    let late = || sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
    let is_whole = tokio::time::timeout(PATIENCE, asked)
        .await
        .unwrap_or_else(|_| Err(late()))?;
    if !is_whole {
        tracing::debug!("connection left in the middle of a request; closing it");
    }
    Ok(is_whole)
}

/// Returns a number that no earlier response contains.
pub(super) fn nonce() -> i64 {
    let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
    (random >> 1).cast_signed()
}

/// Part of a server's response: a row of a statement, or its end.
type Part<D> = Either<<D as sqlx::Database>::QueryResult, <D as sqlx::Database>::Row>;

/// Collects the replies to the statements of a batch.
pub(super) async fn gather<D: sqlx::Database>(
    mut told: BoxStream<'_, Result<Part<D>, sqlx::Error>>,
    affected: fn(&D::QueryResult) -> u64,
) -> Result<Vec<Reply>, sqlx::Error>
where
    QueryResult: From<D::Row>,
{
    let (mut replies, mut reply) = (Vec::new(), Reply::default());
    while let Some(part) = told.try_next().await? {
        match part {
            Either::Right(row) => reply.rows.push(row.into()),
            Either::Left(done) => {
                reply.affected = affected(&done);
                replies.push(std::mem::take(&mut reply));
            }
        }
    }
    Ok(replies)
}
