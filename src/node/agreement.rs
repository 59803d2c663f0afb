//! Agreement on the witness beside the heartbeats. It belongs to the store (decision 0020, rule 1): a node configured
//! differently would wait on a witness that the other nodes don't use.
//!
//! To change the witness, stop all nodes and start them with the new setting; without a live session the change is
//! safe. Addresses are not compared, because several may lead to one server.

use windrow_config::{Cluster, RedisUrl};
use windrow_engine::actors::runtime::begin;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::session_store::SessionStore;

/// Error of a node that can't agree with the others of its store.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// The other nodes use another witness.
    #[error(
        "the nodes of this store use the witness \"{theirs}\", but this one is configured for \"{mine}\""
    )]
    Differs {
        /// Witness recorded in the store.
        theirs: String,
        /// Witness in this node's configuration.
        mine: String,
    },
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns a description of the configured witness.
pub(super) fn configured(cluster: &Cluster) -> String {
    let Some(url) = &cluster.redis_url else {
        return "database".to_owned();
    };
    // Already checked with the configuration; an invalid URL counts as database 0.
    let database = RedisUrl::parse(url).map_or(0, |url| url.db);
    let mut text = format!("redis, prefix {}, database {database}", cluster.redis_prefix);
    if cluster.takeover_without_redis {
        // Bounds how long a lease carries a run, so all nodes must agree on it.
        text.push_str(", take-over without it");
    }
    text
}

/// Agrees on the witness with the live nodes of the store. Without any, sets it to this node's.
///
/// # Errors
/// See [`WitnessError`].
pub(super) async fn agree(sessions: &dyn SessionStore, cluster: &Cluster) -> Result<(), WitnessError> {
    let mine = configured(cluster);
    let theirs = begin::asked(|| in_force(sessions, &mine)).await?;
    match theirs == mine {
        true => Ok(()),
        false => Err(WitnessError::Differs { theirs, mine }),
    }
}

/// Returns the store's witness, after changing it to `mine` if no session is alive.
async fn in_force(sessions: &dyn SessionStore, mine: &str) -> Result<String, StoreError> {
    let theirs = sessions.witness(mine).await?;
    if theirs == mine || !sessions.change_witness(&theirs, mine).await? {
        return Ok(theirs);
    }
    tracing::warn!(
        before = theirs,
        now = mine,
        "no node is alive; witness of the store changed"
    );
    Ok(mine.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use windrow_core::ids::{SessionId, WallMs};
    use windrow_engine::ports::ownership::session_store::{NewSession, SessionFace};
    use windrow_memory::MemoryStore;

    #[tokio::test]
    async fn a_node_with_another_witness_is_refused_while_one_lives_and_changes_it_when_none_does() {
        let store = MemoryStore::new();
        let database = windrow_config::Config::default().cluster;
        let mut redis = database.clone();
        redis.redis_url = Some("redis://r/2".to_owned());
        assert_eq!(configured(&redis), "redis, prefix windrow, database 2");
        agree(&store, &database).await.unwrap();
        let id = SessionId(Uuid::from_u128(7));
        let session = NewSession {
            id,
            node: "n1".to_owned(),
            version: "1".to_owned(),
            lease_duration: Duration::from_secs(15),
            ckpt_version_max: 1,
            started_at: WallMs(0),
            face: SessionFace::default(),
        };
        store.begin(&session).await.unwrap();
        let refused = agree(&store, &redis).await.unwrap_err();
        assert!(matches!(refused, WitnessError::Differs { .. }), "{refused}");
        agree(&store, &database).await.unwrap();
        store.end(id).await.unwrap();
        agree(&store, &redis).await.unwrap();
        redis.takeover_without_redis = true;
        agree(&store, &redis).await.unwrap();
        assert_eq!(store.witness("x").await.unwrap(), configured(&redis));
    }
}
