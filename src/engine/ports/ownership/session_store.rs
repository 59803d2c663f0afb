//! Node sessions: the heartbeat rows that show which node processes are alive.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::capacity::Load;
use windrow_core::ids::{ClaimId, Epoch, SessionId, ShardId, WallMs};
use windrow_core::task::lifecycle::Desired;

/// Advertised state of a session, for people and other nodes; changes while it lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFace {
    /// Address of its node's API server for other nodes and people, if it has one.
    pub address: Option<String>,
    /// Pools whose tasks it takes: `None` takes all, an empty list takes no task.
    pub pools: Option<Vec<String>>,
    /// Capacity of its node; `None` is unlimited.
    pub capacity: Option<Load>,
    /// Labels shown with the node.
    pub labels: BTreeMap<String, String>,
    /// True if it hands its work over and takes nothing new.
    pub draining: bool,
}

/// Session that is about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Id made by the node, never reused.
    pub id: SessionId,
    /// Name of the node.
    pub node: String,
    /// Version of this program.
    pub version: String,
    /// Time after its last heartbeat that the others must wait before they may fence it.
    pub lease_duration: Duration,
    /// Newest version of checkpoints that it can read.
    pub ckpt_version_max: u8,
    /// Wall-clock time of its start.
    pub started_at: WallMs,
    /// Advertised state at its start.
    pub face: SessionFace,
}

/// Shard row of this session, read with the heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedShard {
    /// Shard of the row.
    pub shard: ShardId,
    /// Epoch in the database.
    pub epoch: Epoch,
    /// Claim in the database.
    pub claim: ClaimId,
    /// Desired state of its task.
    pub desired: Desired,
    /// Revision of its task's live settings.
    pub control_rev: u64,
    /// True if another node is to have it: its run drains and releases it.
    pub leaves: bool,
}

/// Result of a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// The session is alive.
    Alive {
        /// Shards that the session owns.
        shards: Vec<OwnedShard>,
        /// True if people want its node to hand its work over and take nothing new.
        drain: bool,
    },
    /// The session was fenced, or its row is gone: drop everything and begin a new one.
    Fenced,
}

/// Session as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Id of the session.
    pub id: SessionId,
    /// Name of its node.
    pub node: String,
    /// Number that changes with each heartbeat.
    pub heartbeat: i64,
    /// True if it was fenced.
    pub fenced: bool,
    /// Duration of its lease; see [`NewSession::lease_duration`].
    pub lease_duration: Duration,
    /// Version of its program.
    pub version: String,
    /// Newest checkpoint version that it reads; see [`NewSession::ckpt_version_max`].
    pub ckpt_version_max: u8,
    /// Wall-clock time of its start.
    pub started_at: WallMs,
    /// Advertised state of the session.
    pub face: SessionFace,
    /// True if people want its node to hand its work over; [`SessionFace::draining`] says whether it does.
    pub drain: bool,
}

/// Store of sessions: begins, renews, watches and fences them (decision 0020, rules 1–6, 11, 18).
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Inserts the row of a new session. It begins drained if a session of the same node that still has a row is
    /// drained.
    async fn begin(&self, session: &NewSession) -> Result<(), StoreError>;

    /// Moves the heartbeat by a random step, unless the session is fenced, and reads its shards.
    ///
    /// # Errors
    /// An error changes nothing about the session's validity.
    async fn beat(&self, id: SessionId) -> Result<Heartbeat, StoreError>;

    /// Returns all sessions that have a row.
    async fn list(&self) -> Result<Vec<SessionView>, StoreError>;

    /// Fences a session whose heartbeat is still `heartbeat`. Returns true if it is fenced now. The audit records it
    /// once, even if the session owned nothing.
    ///
    /// # Errors
    /// If the outcome is unknown.
    async fn fence(&self, id: SessionId, heartbeat: i64, now: WallMs) -> Result<bool, StoreError>;

    /// Fences every session but `survivor`, without waiting: only for the holder of the state directory's lock.
    async fn fence_all_but(&self, survivor: SessionId) -> Result<u64, StoreError>;

    /// Changes the advertised state of a session, unless it is fenced. Returns true if it did.
    async fn describe(&self, id: SessionId, face: &SessionFace) -> Result<bool, StoreError>;

    /// Records what people want of a node: hand everything over and take nothing new, or take work again. The request
    /// is in all rows of that name, and goes with the last of them. Returns true if a session of the node isn't
    /// fenced.
    async fn request_drain(&self, node: &str, drain: bool) -> Result<bool, StoreError>;

    /// Returns the witness in addition to the heartbeats, on which all nodes of the store agree: the one that the
    /// store has, or `mine` from now on if it has none. At most 190 characters.
    async fn witness(&self, mine: &str) -> Result<String, StoreError>;

    /// Changes that witness from one to another, unless a session lives. Returns true if it did.
    async fn change_witness(&self, from: &str, to: &str) -> Result<bool, StoreError>;

    /// Deletes the row of an ended session that no shard refers to; keeps it otherwise.
    async fn end(&self, id: SessionId) -> Result<(), StoreError>;
}
