//! Node sessions: the heartbeat rows that say which node process lives.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::capacity::Load;
use windrow_core::ids::{ClaimId, Epoch, SessionId, ShardId, WallMs};
use windrow_core::task::lifecycle::Desired;

/// How a session shows itself to people and to other nodes; changes while it lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFace {
    /// How other nodes and people reach its node's façade; none has none.
    pub address: Option<String>,
    /// The pools whose tasks it takes: none takes all, an empty list takes no task.
    pub pools: Option<Vec<String>>,
    /// What its node may run; none is unlimited.
    pub capacity: Option<Load>,
    /// Shown with the node.
    pub labels: BTreeMap<String, String>,
    /// Whether it hands its work over and takes nothing new.
    pub draining: bool,
}

/// What a session says of itself when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Made by the node, never reused.
    pub id: SessionId,
    /// The node's name.
    pub node: String,
    /// This program's version.
    pub version: String,
    /// How long after its last heartbeat the others must wait before they may fence it.
    pub lease_duration: Duration,
    /// The newest version of checkpoints that it can read.
    pub ckpt_version_max: u8,
    /// The wall clock.
    pub started_at: WallMs,
    /// How it shows itself.
    pub face: SessionFace,
}

/// A shard row of this session, read with the heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedShard {
    /// The shard.
    pub shard: ShardId,
    /// Its epoch in the database.
    pub epoch: Epoch,
    /// Its claim in the database.
    pub claim: ClaimId,
    /// What its task wants.
    pub desired: Desired,
    /// The revision of its task's live settings.
    pub control_rev: u64,
    /// Another node is to have it: its run drains and releases it.
    pub leaves: bool,
}

/// What a heartbeat found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// The session lives.
    Alive {
        /// Its own shards.
        shards: Vec<OwnedShard>,
        /// People want that its node hands its work over and takes nothing new.
        drain: bool,
    },
    /// The session was fenced, or its row is gone: drop everything and begin a new one.
    Fenced,
}

/// A session as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// Its node's name.
    pub node: String,
    /// The number that changes with each heartbeat.
    pub heartbeat: i64,
    /// Whether it was fenced.
    pub fenced: bool,
    /// Its lease duration, see [`NewSession::lease_duration`].
    pub lease_duration: Duration,
    /// The version of its program.
    pub version: String,
    /// See [`NewSession::ckpt_version_max`].
    pub ckpt_version_max: u8,
    /// When it began.
    pub started_at: WallMs,
    /// How it shows itself.
    pub face: SessionFace,
    /// People want that its node hands its work over; [`SessionFace::draining`] says whether it does.
    pub drain: bool,
}

/// Begins, beats, watches and fences sessions (decision 0020, rules 1–6, 11, 18).
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Inserts the row of a new session. It begins drained where a session of the same node that still has a row is.
    async fn begin(&self, session: &NewSession) -> Result<(), StoreError>;

    /// Moves the heartbeat by a random step where the session isn't fenced, and reads its shards.
    ///
    /// # Errors
    /// An error changes nothing about trust.
    async fn beat(&self, id: SessionId) -> Result<Heartbeat, StoreError>;

    /// All sessions whose row exists.
    async fn list(&self) -> Result<Vec<SessionView>, StoreError>;

    /// Fences a session whose heartbeat is still `heartbeat`; says whether it is fenced now. The audit says so once, also where
    /// the session owned nothing.
    ///
    /// # Errors
    /// When the outcome is unknown.
    async fn fence(&self, id: SessionId, heartbeat: i64, now: WallMs) -> Result<bool, StoreError>;

    /// Fences every session but `survivor`, without waiting: only for the holder of the state directory's lock.
    async fn fence_all_but(&self, survivor: SessionId) -> Result<u64, StoreError>;

    /// Changes how a session shows itself, unless it is fenced; says whether it did.
    async fn describe(&self, id: SessionId, face: &SessionFace) -> Result<bool, StoreError>;

    /// Says what people want of a node: hand everything over and take nothing new, or take work again. The wish is in
    /// all rows of that name, and goes with the last of them. Says whether a session of the node isn't fenced.
    async fn request_drain(&self, node: &str, drain: bool) -> Result<bool, StoreError>;

    /// The witness beside the heartbeats, on which all nodes of the store agree: the one that the store has, or `mine`
    /// from now on if it has none. At most 190 characters.
    async fn witness(&self, mine: &str) -> Result<String, StoreError>;

    /// Changes that witness from one to another, unless a session lives; says whether it did.
    async fn change_witness(&self, from: &str, to: &str) -> Result<bool, StoreError>;

    /// Deletes the row of an ended session that no shard refers to; keeps it otherwise.
    async fn end(&self, id: SessionId) -> Result<(), StoreError>;
}
