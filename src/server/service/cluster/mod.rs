//! The other nodes that share the store: their sessions, their shards, and their replies.
//!
//! Stored data is valid everywhere. Live data is requested from its owner. If an owner doesn't respond, the response
//! has less data, and says so.

pub mod nodes;
mod this;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::service::node::ThisNode;
use windrow_core::ids::{SessionId, TaskId, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::node_audit::NodeAudit;
use windrow_engine::ports::durability::Durable;
use windrow_engine::ports::ownership::peers::{Peer, PeerReply, PeerSeal, Peers, Question, Unreachable};
use windrow_engine::ports::ownership::session_store::{SessionStore, SessionView};
use windrow_engine::ports::tasks::list::{RunRecord, TaskList};
use windrow_engine::ports::tasks::shard_map::{ShardMap, StoredShard};

/// Time for which the list of sessions is cached; sessions have a heartbeat once a second.
const ROSTER_FRESH: Duration = Duration::from_secs(1);
/// Minimum interval between lookups of an unknown session.
const ROSTER_AGAIN: Duration = Duration::from_millis(100);
/// Number of past runs of a task searched for nodes with its history.
pub(super) const RUNS_MAX: u32 = 100;

/// Everything the service needs to work with other nodes.
pub struct ClusterParts {
    /// Name of this node.
    pub node: String,
    /// Start time of this process. An earlier session with this node's name belongs to another process.
    pub began: WallMs,
    /// True if other nodes can share the store; false for a store in this node's own directory.
    pub is_shared: bool,
    /// Base URL of this node.
    pub address: Option<String>,
    /// Type of the database: `sqlite`, `postgres` or `mysql`.
    pub database: &'static str,
    /// Store of node sessions.
    pub sessions: Arc<dyn SessionStore>,
    /// Store of shard ownership.
    pub shards: Arc<dyn ShardMap>,
    /// Durability check of the store.
    pub durable: Arc<dyn Durable>,
    /// Client for requests to other nodes.
    pub peers: Arc<dyn Peers>,
    /// Signer and verifier of requests between nodes.
    pub seal: Arc<dyn PeerSeal>,
}

/// Cached list of sessions with the time it was read.
#[derive(Default)]
pub(super) struct Roster(Mutex<Option<(Instant, Arc<Vec<SessionView>>)>>);

/// Reachability of the node that owns a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The session belongs to this node.
    Here,
    /// The session belongs to another node, at this address.
    There(Peer),
    /// The node can't be reached, for this reason.
    Nowhere(Unreachable),
}

/// Nodes that share the store.
pub struct Cluster {
    pub(super) node: Arc<ThisNode>,
    /// Access to the other nodes.
    pub parts: ClusterParts,
    pub(super) lists: Arc<dyn TaskList>,
    pub(super) audit: Arc<dyn NodeAudit>,
    pub(super) roster: Roster,
}

impl Cluster {
    pub(in crate::service) fn new<S>(node: Arc<ThisNode>, parts: ClusterParts, store: &Arc<S>) -> Cluster
    where
        S: TaskList + NodeAudit + 'static,
    {
        Cluster {
            node,
            parts,
            lists: store.clone(),
            audit: store.clone(),
            roster: Roster::default(),
        }
    }

    /// Returns all stored sessions, at most one second old.
    pub(super) async fn sessions(&self) -> Result<Arc<Vec<SessionView>>, StoreError> {
        self.sessions_not_older(ROSTER_FRESH).await
    }

    async fn sessions_not_older(&self, age: Duration) -> Result<Arc<Vec<SessionView>>, StoreError> {
        let mut known = self.roster.0.lock().await;
        if let Some((at, sessions)) = known.as_ref()
            && at.elapsed() < age
        {
            return Ok(sessions.clone());
        }
        let sessions = Arc::new(self.parts.sessions.list().await?);
        *known = Some((Instant::now(), sessions.clone()));
        Ok(sessions)
    }

    /// Invalidates the cached list of sessions.
    pub(super) async fn forget_sessions(&self) {
        *self.roster.0.lock().await = None;
    }

    /// Returns true if a session belongs to this process.
    pub async fn is_own_session(&self, id: SessionId) -> Result<bool, StoreError> {
        let cluster = &self.parts;
        let is_own = |sessions: &[SessionView]| {
            let mut own = sessions
                .iter()
                .filter(|one| one.node == cluster.node && one.started_at >= cluster.began);
            own.any(|one| one.id == id && !one.fenced)
        };
        if is_own(&self.sessions().await?) {
            return Ok(true);
        }
        Ok(is_own(&self.sessions_not_older(ROSTER_AGAIN).await?))
    }

    /// Returns the way to reach the owner of a shard.
    pub(super) fn reach(&self, session: SessionId, sessions: &[SessionView]) -> Reach {
        let silent = |node: &str, why: &str| {
            Reach::Nowhere(Unreachable {
                node: node.to_owned(),
                why: why.to_owned(),
            })
        };
        let Some(found) = sessions.iter().find(|one| one.id == session) else {
            return silent("a node", "its session is gone");
        };
        if found.node == self.parts.node {
            return Reach::Here;
        }
        if found.fenced {
            return silent(&found.node, "it lost its session; another node takes over");
        }
        match &found.face.address {
            Some(address) => Reach::There(peer(found, address)),
            None => silent(&found.node, "it has no address"),
        }
    }

    /// Sends a question to a peer.
    pub(super) async fn ask(&self, peer: &Peer, question: &Question) -> Result<PeerReply, Unreachable> {
        let answer = self.parts.peers.ask(peer, question).await;
        if let Err(silent) = &answer {
            tracing::debug!(%silent, "peer didn't respond");
        }
        answer
    }

    /// Sends questions to several peers concurrently.
    pub(super) async fn ask_all(
        &self,
        asked: Vec<(Peer, Question)>,
    ) -> Vec<(Peer, Result<PeerReply, Unreachable>)> {
        let each = asked.into_iter().map(async |(peer, question)| {
            let answer = self.ask(&peer, &question).await;
            (peer, answer)
        });
        join_all(each).await
    }

    /// Sends one question to several peers. Returns the replies that `read` understands, with their nodes; adds all
    /// other peers to `unreachable`.
    pub(super) async fn gather<T>(
        &self,
        peers: Vec<Peer>,
        question: &Question,
        read: impl Fn(PeerReply) -> Option<T>,
        unreachable: &mut Vec<Unreachable>,
    ) -> Vec<(String, T)> {
        let asked = peers.into_iter().map(|peer| (peer, question.clone())).collect();
        let mut found = Vec::new();
        for (peer, reply) in self.ask_all(asked).await {
            match reply.map(&read) {
                Ok(Some(read)) => found.push((peer.node, read)),
                Ok(None) => unreachable.push(amiss(&peer)),
                Err(why) => unreachable.push(why),
            }
        }
        found
    }

    /// Returns the shards of a task, the other nodes that own any of them, and the owners that can't be reached.
    pub(super) async fn owners(&self, task: TaskId) -> (Vec<StoredShard>, Vec<Peer>, Vec<Unreachable>) {
        if !self.parts.is_shared {
            return (Vec::new(), Vec::new(), Vec::new());
        }
        let read = async {
            let shards = self.parts.shards.shards_of(&[task]).await?;
            Ok::<_, StoreError>((shards, self.sessions().await?))
        };
        let (shards, sessions) = match read.await {
            Ok(read) => read,
            Err(error) => {
                tracing::debug!(%error, "owners of a task not available");
                return (Vec::new(), Vec::new(), Vec::new());
            }
        };
        let owners: BTreeMap<SessionId, Reach> = shards
            .iter()
            .filter_map(|shard| shard.life.session)
            .map(|session| (session, self.reach(session, &sessions)))
            .collect();
        let (mut peers, mut silent) = (Vec::new(), Vec::new());
        for reach in owners.into_values() {
            match reach {
                Reach::Here => {}
                Reach::There(peer) => peers.push(peer),
                Reach::Nowhere(why) => silent.push(why),
            }
        }
        (shards, peers, silent)
    }

    /// Returns the other live nodes, and those of them that can't be reached.
    pub(super) async fn others(&self) -> (Vec<Peer>, Vec<Unreachable>) {
        if !self.parts.is_shared {
            return (Vec::new(), Vec::new());
        }
        let sessions = self.sessions().await.unwrap_or_default();
        let mut living: BTreeMap<&str, &SessionView> = BTreeMap::new();
        for one in sessions
            .iter()
            .filter(|one| !one.fenced && one.node != self.parts.node)
        {
            let newest = living.entry(&one.node).or_insert(one);
            if one.started_at > newest.started_at {
                *newest = one;
            }
        }
        let (mut peers, mut silent) = (Vec::new(), Vec::new());
        for one in living.into_values() {
            match &one.face.address {
                Some(address) => peers.push(peer(one, address)),
                None => silent.push(Unreachable {
                    node: one.node.clone(),
                    why: "it has no address".to_owned(),
                }),
            }
        }
        (peers, silent)
    }

    /// Returns the other nodes that may have a task's history since a time: those that own a part of it or ran it
    /// then.
    pub(super) async fn witnesses(&self, task: TaskId, since: WallMs) -> (Vec<Peer>, Vec<Unreachable>) {
        let (_, mut peers, mut silent) = self.owners(task).await;
        if !self.parts.is_shared {
            return (peers, silent);
        }
        let mut runs = self.lists.runs(task, None, RUNS_MAX).await.unwrap_or_default();
        runs.retain(|run| run.ended_at.is_none_or(|ended| ended >= since));
        for (name, peer) in self.who_ran(&runs, &peers).await {
            match peer {
                Some(peer) => peers.push(peer),
                None => silent.push(Unreachable {
                    node: name,
                    why: "it has ended, and its measurements are lost".to_owned(),
                }),
            }
        }
        (peers, silent)
    }

    /// Returns the nodes of past runs, except this node and those in `known`, with their peers if they are alive.
    pub(super) async fn who_ran(&self, runs: &[RunRecord], known: &[Peer]) -> Vec<(String, Option<Peer>)> {
        let sessions = self.sessions().await.unwrap_or_default();
        let names: BTreeSet<&String> = runs.iter().filter_map(|run| run.node.as_ref()).collect();
        let is_other = |name: &str| name != self.parts.node && known.iter().all(|peer| peer.node != name);
        let living = |name: &str| {
            let session = live_session(&sessions, name)?;
            session.face.address.as_ref().map(|at| peer(session, at))
        };
        let others = names.into_iter().filter(|name| is_other(name));
        others.map(|name| (name.clone(), living(name))).collect()
    }
}

/// Returns the current live session of a node.
pub(super) fn live_session<'a>(sessions: &'a [SessionView], node: &str) -> Option<&'a SessionView> {
    sessions
        .iter()
        .filter(|one| one.node == node && !one.fenced)
        .max_by_key(|one| one.started_at)
}

pub(super) fn peer(session: &SessionView, address: &str) -> Peer {
    Peer {
        node: session.node.clone(),
        session: session.id,
        address: address.to_owned(),
    }
}

/// Returns the error for a reply that doesn't match the question.
pub(super) fn amiss(peer: &Peer) -> Unreachable {
    Unreachable {
        node: peer.node.clone(),
        why: "unexpected reply; check that it runs the same version".to_owned(),
    }
}
