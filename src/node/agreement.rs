//! The witness beside the heartbeats belongs to the store (decision 0020, rule 1): a node that is configured otherwise
//! than the others would wait for something else than what they live on.
//!
//! It is changed by stopping all nodes and starting them with the new setting: without a live session nobody can be
//! surprised. Addresses are not compared: one server may be reached by several.

use windrow_config::{Cluster, RedisUrl};
use windrow_engine::actors::runtime::begin;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::session_store::SessionStore;

/// A node can't agree with the others of its store.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// They have another witness.
    #[error(
        "the nodes of this store agreed on \"{theirs}\" as their witness, this one is configured for \"{mine}\""
    )]
    Differs {
        /// What the store says.
        theirs: String,
        /// What this node's configuration says.
        mine: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The witness that a configuration asks for, in words.
pub(super) fn configured(cluster: &Cluster) -> String {
    let Some(url) = &cluster.redis_url else {
        return "database".to_owned();
    };
    // Checked when the configuration was read; one that isn't a URL is not compared by its database.
    let database = RedisUrl::parse(url).map_or(0, |url| url.db);
    let mut text = format!("redis, prefix {}, database {database}", cluster.redis_prefix);
    if cluster.takeover_without_redis {
        // It bounds how long a lease carries a run: all nodes must know.
        text.push_str(", take-over without it");
    }
    text
}

/// Agrees with the other nodes of the store, or with nobody where no session lives.
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

/// The witness of the store, after it was changed to this one where no session lives.
async fn in_force(sessions: &dyn SessionStore, mine: &str) -> Result<String, StoreError> {
    let theirs = sessions.witness(mine).await?;
    if theirs == mine || !sessions.change_witness(&theirs, mine).await? {
        return Ok(theirs);
    }
    tracing::warn!(
        before = theirs,
        now = mine,
        "no node lives; the store's witness was changed"
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
