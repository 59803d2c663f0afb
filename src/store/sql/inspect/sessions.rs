//! Heartbeats of nodes that write to a database, as seen by an inspection: a heartbeat is a number that changes and
//! says nothing about time.

use std::time::Duration;

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use super::Inspection;
use crate::sql::Fetch;
use crate::sql::entity::session;
use windrow_engine::ports::StoreError;

/// Heartbeat of a session that is not fenced, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Id of the session, one per process.
    pub session: String,
    /// Name of the session's node.
    pub node: String,
    /// Number that changes as long as the node lives.
    pub beat: i64,
    /// Silence after which others may consider the node dead.
    pub promise: Duration,
}

impl Inspection {
    /// Returns the heartbeats of all sessions that are not fenced.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn heartbeats(&self) -> Result<Vec<Heartbeat>, StoreError> {
        let rows = session::Entity::find()
            .filter(session::Column::Fenced.eq(false))
            .order_by_asc(session::Column::Id)
            .rows(&self.db)
            .await?;
        let heartbeat = |row: session::Model| Heartbeat {
            session: row.id,
            node: row.node,
            beat: row.hb,
            promise: Duration::from_millis(row.promise_ms.unsigned_abs()),
        };
        Ok(rows.into_iter().map(heartbeat).collect())
    }
}
