//! Nodes of the store: their session rows and the states they advertise themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{amiss, live_session, peer};
use crate::service::cluster::Cluster;
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::SessionId;
use windrow_core::task::lifecycle::ShardState;
use windrow_engine::ports::ownership::peers::{
    ActorsQuery, NodeChangeRequest, NodeFace, Peer, PeerReply, Question, Unreachable,
};
use windrow_engine::ports::ownership::session_store::SessionView;
use windrow_engine::ports::tasks::shard_map::Holding;

/// Most owned shards listed with their nodes.
const HOLDINGS_MAX: u32 = 10_000;
/// Limit of the count per shard state.
const SHARDS_MAX: u32 = 10_000;

/// Session of a node with its shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Newest live session of the node; if none is live, the newest one.
    pub session: SessionView,
    /// Time since the last heartbeat, as observed by this node.
    pub age: Option<Duration>,
    /// Shards owned by the session in the store.
    pub holds: Vec<Holding>,
    /// True if the row is for this node.
    pub is_here: bool,
}

impl NodeRow {
    /// Returns true if heartbeats have been missing for the whole lease duration.
    pub fn is_silent(&self) -> bool {
        !self.session.fenced && self.age.is_some_and(|age| age >= self.session.lease_duration)
    }
}

/// Number of shards by ownership state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardCounts {
    /// Shards owned by a live node.
    pub owned: u64,
    /// Shards whose owner is silent, fenced or gone, to be taken over.
    pub orphaned: u64,
    /// Released shards that are ready to run.
    pub released: u64,
    /// Shards released after an error, to be run later.
    pub recovering: u64,
    /// Limit of the counts: a count this high may actually be higher.
    pub counted_up_to: u64,
}

impl Cluster {
    /// Returns all other nodes by name.
    pub async fn other_nodes(&self) -> Result<Vec<NodeRow>, ServiceError> {
        if !self.parts.is_shared {
            return Ok(Vec::new());
        }
        let mut rows = self.node_rows().await?;
        rows.retain(|row| !row.is_here);
        Ok(rows)
    }

    async fn node_rows(&self) -> Result<Vec<NodeRow>, ServiceError> {
        let sessions = self.sessions().await?;
        let ages = self.node.supervisor.heartbeat_ages();
        let mut held: BTreeMap<SessionId, Vec<Holding>> = BTreeMap::new();
        for holding in self.parts.shards.holdings(None, HOLDINGS_MAX).await? {
            held.entry(holding.session).or_default().push(holding);
        }
        let names: BTreeSet<&str> = sessions.iter().map(|one| one.node.as_str()).collect();
        let row = |name: &str| {
            let newest = || {
                sessions
                    .iter()
                    .filter(|one| one.node == name)
                    .max_by_key(|one| one.started_at)
            };
            let session = live_session(&sessions, name).or_else(newest)?.clone();
            Some(NodeRow {
                age: ages.get(&session.id).copied(),
                holds: held.remove(&session.id).unwrap_or_default(),
                is_here: name == self.parts.node,
                session,
            })
        };
        Ok(names.into_iter().filter_map(row).collect())
    }

    /// Returns another node by name.
    ///
    /// # Errors
    /// `NotFound`; if the store can't be read.
    pub async fn other_node(&self, name: &str) -> Result<NodeRow, ServiceError> {
        let found = self
            .other_nodes()
            .await?
            .into_iter()
            .find(|row| row.session.node == name);
        found.ok_or_else(|| ServiceError::not_found("node", name))
    }

    /// Requests the advertised states of nodes, in the order of the rows.
    pub async fn faces(&self, rows: &[NodeRow]) -> Vec<Result<NodeFace, Unreachable>> {
        let each = rows.iter().map(async |row| {
            let peer = peer_of(row)?;
            match self.ask(&peer, &Question::Node).await? {
                PeerReply::Node(face) => Ok(*face),
                _ => Err(amiss(&peer)),
            }
        });
        futures_util::future::join_all(each).await
    }

    /// Returns the formatted actor tree of another node.
    ///
    /// # Errors
    /// `PeerSilent`.
    pub async fn actors_of(&self, row: &NodeRow, wanted: ActorsQuery) -> Result<String, ServiceError> {
        let peer = peer_of(row)?;
        match self.ask(&peer, &Question::Actors(wanted)).await? {
            PeerReply::Text(text) => Ok(text),
            _ => Err(amiss(&peer).into()),
        }
    }

    /// Changes another node until its next restart. That node records the change in the audit log with the person's
    /// name.
    ///
    /// # Errors
    /// The node's own refusal; `PeerSilent`, in which case the change may have been made.
    pub async fn change(&self, row: &NodeRow, wish: NodeChangeRequest) -> Result<NodeFace, ServiceError> {
        let peer = peer_of(row)?;
        match self.ask(&peer, &Question::Change(Box::new(wish))).await? {
            PeerReply::Node(face) => Ok(*face),
            PeerReply::Refused(faults) => {
                let fault = |(pointer, detail, advice)| FieldFault {
                    pointer,
                    detail,
                    advice,
                    missing: None,
                };
                Err(ServiceError::Unprocessable(
                    faults.into_iter().map(fault).collect(),
                ))
            }
            PeerReply::Failed(why) => Err(Unreachable { node: peer.node, why }.into()),
            _ => Err(amiss(&peer).into()),
        }
    }

    /// Counts shards by ownership state.
    pub async fn shard_counts(&self) -> Result<ShardCounts, ServiceError> {
        let mut counts = ShardCounts {
            counted_up_to: u64::from(SHARDS_MAX),
            ..ShardCounts::default()
        };
        for (state, is_owned, count) in self.parts.shards.shard_counts(SHARDS_MAX).await? {
            match (is_owned, state) {
                (true, _) => counts.owned += count,
                (false, ShardState::Recovering) => counts.recovering += count,
                (false, _) => counts.released += count,
            }
        }
        if self.parts.is_shared {
            let rows = self.node_rows().await?;
            let lives = |row: &&NodeRow| !row.session.fenced && !row.is_silent();
            let held: u64 = rows.iter().filter(lives).map(|row| row.holds.len() as u64).sum();
            counts.orphaned = counts.owned.saturating_sub(held);
            counts.owned -= counts.orphaned;
        }
        Ok(counts)
    }
}

/// Returns the peer for a node, or the reason why it can't be reached.
fn peer_of(row: &NodeRow) -> Result<Peer, Unreachable> {
    let silent = |why: &str| Unreachable {
        node: row.session.node.clone(),
        why: why.to_owned(),
    };
    if row.session.fenced {
        return Err(silent("it lost its session and has not started another"));
    }
    let address = row
        .session
        .face
        .address
        .as_ref()
        .ok_or_else(|| silent("it has no address"))?;
    Ok(peer(&row.session, address))
}
