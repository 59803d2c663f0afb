//! Nodes that write to a database, as whoever looks at it sees them: a heartbeat is a number that changes, and says nothing of
//! time.

use std::time::Duration;

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use super::Inspection;
use crate::sql::Fetch;
use crate::sql::entity::session;
use windrow_engine::ports::StoreError;

/// A session that nobody has fenced, as it stands at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The session.
    pub session: String,
    /// Its node.
    pub node: String,
    /// What changes as long as the node lives.
    pub beat: i64,
    /// After so much silence others may take it for dead.
    pub promise: Duration,
}

impl Inspection {
    /// The heartbeats of all sessions that nobody has fenced.
    ///
    /// # Errors
    /// When they can't be read.
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
