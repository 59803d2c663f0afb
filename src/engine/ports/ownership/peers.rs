//! What nodes ask of one another: the state of a task is in the store, but what moves (rates, windows, the tree) is
//! known by the node that runs it.
//!
//! Questions only read, except [`Question::Book`] and [`Question::Change`]. Whoever asks can do without an answer: a peer
//! that is silent makes an answer poorer, never wrong and never a failure.

use std::collections::BTreeMap;
use std::time::Duration;
use windrow_words::engine as say;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use windrow_core::execution::WindowPicture;
use windrow_core::explain::{HeldBack, Live, Spell, Stay};
use windrow_core::ids::{ItemCount, ItemIndex, SessionId, ShardId, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::HandlerState;
use windrow_core::settings::RateLimit;
use windrow_core::stats::series::Point;
use windrow_core::stats::stall::StallReason;

/// Where questions go, below a node's address.
pub const PATH: &str = "/internal/v1/ask";
/// The largest question. Unit: bytes.
pub const QUESTION_BYTES_MAX: usize = 256 << 10;
/// The largest answer. Unit: bytes. (A window of a million indexes is a bitmap of 128 KiB; a task has 64 shards at most.)
pub const ANSWER_BYTES_MAX: usize = 32 << 20;
/// How far apart the clocks of two nodes may be. A question that was sealed earlier, or later, is refused.
pub const SKEW_MAX: Duration = Duration::from_secs(60);

/// Another node, as its session's row says how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub node: String,
    /// Its session: a question is for this life of the node and no other.
    pub session: SessionId,
    /// The base of its façade's URL.
    pub address: String,
}

/// What a node asks another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// How the runs of these tasks stand there.
    Tasks(Vec<TaskId>),
    /// The windows of a task there, each in at most so many cells.
    Windows(TaskId, u32),
    /// What was counted of a task there between two times. Unit of the step: milliseconds.
    Past(TaskId, WallMs, WallMs, u64),
    /// The same of all tasks together.
    PastOfAll(WallMs, WallMs, u64),
    /// What explains the last so many seconds of a task there.
    Explain(TaskId, u32),
    /// How the node stands.
    Node,
    /// The tree of its actors, written out.
    Actors(ActorsQuery),
    /// Whether a raised rate of a task fits there; unless it is only tried, it is booked.
    Book {
        /// The task.
        task: TaskId,
        /// The rate of the whole task.
        rate: RateLimit,
        /// Nothing is booked.
        is_trial: bool,
    },
    /// Change the node until its next restart.
    Change(Box<NodeChangeRequest>),
}

impl Question {
    /// Whether two who ask the same may share an answer.
    pub fn only_reads(&self) -> bool {
        !matches!(self, Question::Book { .. } | Question::Change(_))
    }
}

/// Which part of a tree, and how it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorsQuery {
    /// Only the actors of this task.
    pub task: Option<TaskId>,
    /// Levels below the root; none is all.
    pub depth: Option<u32>,
    /// As text for people, not as JSON.
    pub is_text: bool,
}

/// A change of a node that somebody asked another node for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeChangeRequest {
    /// The sum of task rates that it may hold.
    pub capacity_rate: Option<RateLimit>,
    /// Which lines its own log has.
    pub log_filter: Option<String>,
    /// Who asks, as the audit shows them.
    pub actor: String,
    /// `cli`, `api` or `ui`.
    pub source: String,
    /// Why.
    pub reason: Option<String>,
    /// The request that asked for it.
    pub request_id: Option<String>,
    /// Nothing is changed.
    pub is_trial: bool,
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PeerReply {
    /// Of each task that was asked for and has a run there.
    Tasks(Vec<LiveTask>),
    /// The windows there.
    Windows(Vec<(ShardId, WindowPicture)>),
    /// What was counted, oldest first.
    Past(Vec<PastSlice>),
    /// What explains it.
    Explain(Box<ExplainPart>),
    /// How the node stands, also after a change.
    Node(Box<NodeFace>),
    /// Text to be given on.
    Text(String),
    /// It is booked, or would be.
    Booked,
    /// It doesn't fit: a sentence, and what would.
    NoRoom {
        /// Why.
        why: String,
        /// The highest rate that fits.
        free: String,
    },
    /// It isn't done: where, what is wrong, and what would do.
    Refused(Vec<(String, String, Option<String>)>),
    /// It can't be done now, for instance since the store can't be reached.
    Failed(String),
}

/// The runs of a task on a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveTask {
    /// The task.
    pub task: TaskId,
    /// Its shards there.
    pub shards: Vec<LiveShard>,
    /// Attempts that they sent each second of late; none before that is known.
    pub actual_rate: Option<f64>,
    /// Items that they settled each second; an earlier version doesn't say.
    #[serde(default)]
    pub settled_rate: Option<f64>,
}

/// A run as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveShard {
    /// Its shard.
    pub shard: ShardId,
    /// How many items it has to do.
    pub total: ItemCount,
    /// Where they stand.
    pub counters: Counters,
    /// The lowest index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// The window's size.
    pub window: u32,
    /// Items that may be in flight.
    pub concurrency: u32,
    /// The 95th percentile of how long calls take.
    pub latency_p95: Option<Duration>,
    /// Why nothing leaves, if so.
    pub stall: Option<StallReason>,
    /// How the handler fares; of an earlier version nothing is known of it.
    #[serde(default)]
    pub handler: HandlerState,
}

/// What was counted between two times of a node's wall clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastSlice {
    /// Its beginning.
    pub from: WallMs,
    /// Its end.
    pub to: WallMs,
    /// What was counted.
    #[serde(with = "packed")]
    pub point: Point,
}

/// What one node knows of the last seconds of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExplainPart {
    /// How far back it reaches, and for how much of it something ran there; none when nothing is known.
    pub span: Option<(Duration, Duration)>,
    /// What was counted.
    #[serde(with = "packed")]
    pub point: Point,
    /// How the runs there stand; none while none is live.
    pub live: Option<Live>,
    /// How many runs there are.
    pub runs: u32,
    /// Their shards, each with the part of the rate that the node has no room for.
    #[serde(default)]
    pub shards: Vec<(ShardId, Option<HeldBack>)>,
    /// The slowest one's 95th percentile, finer than that of `point`.
    pub latency_p95: Option<Duration>,
    /// How the handler fares for them; of an earlier version nothing is known of it.
    #[serde(default)]
    pub handler: HandlerState,
    /// Failed attempts by their code, since the runs began.
    pub codes: Vec<(String, u64)>,
    /// What the node has left for other rates; none without a bound. Unit: items per second.
    pub free_rate: Option<f64>,
    /// It begins where the rate of the task was changed, which is later than was asked for. (An earlier version doesn't.)
    #[serde(default)]
    pub since_change: bool,
    /// The keys of shared limits that held runs there back last, and how many runs each; an earlier version says none.
    #[serde(default)]
    pub held_by: BTreeMap<String, u32>,
    /// When its shards were counted there, as far as `point` goes; an earlier version says none.
    #[serde(default)]
    pub stays: Vec<Stay>,
    /// The newest time in it in which the node could save nothing; an earlier version says none.
    #[serde(default)]
    pub unsaved: Option<Spell>,
    /// The longest time in it in which the node did nothing at all; an earlier version says none.
    #[serde(default)]
    pub stood_still: Option<Spell>,
}

/// How a node stands, beyond what its session's row says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeFace {
    /// `serving`, `drained` or `draining`.
    pub state: String,
    /// Of its program.
    pub version: String,
    /// The sum of task rates that it may hold.
    pub capacity_rate: String,
    /// How much of it is taken.
    pub reserved_rate: String,
    /// What a task without a rate counts as.
    pub unlimited_reserves: String,
    /// Whether tasks run there at all.
    pub run_tasks: bool,
    /// Which lines its own log has.
    pub log_filter: String,
    /// Tasks that wait for room, as its last look found them.
    pub waiting: usize,
    /// For how long it has served.
    pub uptime_seconds: u64,
    /// Its wall clock.
    pub now: WallMs,
    /// What runs there: the shard, and which run of it.
    pub runs: Vec<(ShardId, u32)>,
    /// Why it can't reach the Redis of leases, if so; an earlier version doesn't say.
    #[serde(default)]
    pub redis_fault: Option<String>,
}

/// A peer gave no answer. Nothing is known then; what was asked for may have been done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::node_unreachable(node, why))]
pub struct Unreachable {
    /// The peer.
    pub node: String,
    /// A sentence.
    pub why: String,
}

/// Asks other nodes.
#[async_trait]
pub trait Peers: Send + Sync {
    /// Asks a peer, for a bounded time. Whoever asks the same meanwhile is given the same answer. Cancel safe for
    /// questions that only read.
    ///
    /// # Errors
    /// When no answer came, or one that can't be believed or read.
    async fn ask(&self, peer: &Peer, question: &Question) -> Result<PeerReply, Unreachable>;
}

/// What goes with a question so that it is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// For whom it is.
    pub to: SessionId,
    /// Who asks.
    pub from: String,
    /// When it was sealed.
    pub at: WallMs,
    /// Never the same twice.
    pub nonce: String,
    /// Proves that whoever asks has the nodes' key, and wrote just this.
    pub proof: String,
}

/// A question isn't believed; why is for the node's own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Not sealed with the nodes' key, or changed since.
    #[error("{}", say::seal_forged())]
    Forged,
    /// Sealed too long ago, or in the future.
    #[error("{}", say::seal_stale())]
    Stale,
    /// Seen before.
    #[error("{}", say::seal_replayed())]
    Replayed,
    /// More than are remembered were heard within the time for which they are.
    #[error("{}", say::seal_too_many())]
    TooMany,
}

/// Seals questions and answers between nodes that share a key.
pub trait PeerSeal: Send + Sync {
    /// Seals a question to a session.
    fn seal(&self, to: SessionId, from: &str, body: &[u8], now: WallMs) -> Seal;

    /// Looks whether a question was sealed so. It is believed once.
    fn check(&self, seal: &Seal, body: &[u8], now: WallMs) -> Result<(), SealError>;

    /// The proof of an answer to the question with this nonce.
    fn prove(&self, nonce: &str, body: &[u8]) -> String;

    /// Whether an answer was proved so.
    fn is_proved(&self, nonce: &str, body: &[u8], proof: &str) -> bool;
}

/// Points in their short form, in base64.
mod packed {
    use super::{Engine, Point, STANDARD};
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(point: &Point, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(point.pack()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Point, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD
            .decode(text)
            .map(|bytes| Point::unpack(&bytes))
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_asked_and_answered_reads_back() {
        let shard = ShardId {
            task: TaskId(3),
            no: 1,
        };
        let mut point = Point {
            succeeded: 7,
            ..Point::default()
        };
        point.calls.record(Duration::from_millis(9), 7);
        point.gauges.stall = Some(StallReason::WindowFull);
        let live = Live {
            in_flight: 3,
            ..Live::default()
        };
        let rate = |text: &str| RateLimit::Limited(text.parse().expect("a rate"));
        let (rate, wanted) = (rate("500/3s"), rate("500/s"));
        let held = HeldBack {
            rate,
            wanted,
            age: Duration::from_millis(5),
            why: "no room".to_owned(),
        };
        let part = ExplainPart {
            span: Some((Duration::from_secs(60), Duration::from_millis(59_250))),
            point: point.clone(),
            live: Some(live),
            codes: vec![("TIMEOUT".to_owned(), 3)],
            shards: vec![(shard, Some(held)), (ShardId { no: 2, ..shard }, None)],
            ..ExplainPart::default()
        };
        let answers = [
            PeerReply::Explain(Box::new(part)),
            PeerReply::Past(vec![PastSlice {
                from: WallMs(5),
                to: WallMs(9),
                point,
            }]),
            PeerReply::Refused(vec![("/log_filter".to_owned(), "no".to_owned(), None)]),
            PeerReply::Windows(vec![(
                shard,
                WindowPicture::saved(
                    ItemIndex(3),
                    ItemIndex(9),
                    vec![u64::MAX],
                    std::num::NonZeroU32::MIN,
                ),
            )]),
        ];
        for answer in answers {
            let text = serde_json::to_vec(&answer).expect("written");
            assert_eq!(serde_json::from_slice::<PeerReply>(&text).expect("read"), answer);
        }
        let rate = "25/2s".parse().expect("a rate");
        let question = Question::Book {
            task: TaskId(3),
            rate: RateLimit::Limited(rate),
            is_trial: true,
        };
        let text = serde_json::to_vec(&question).expect("written");
        assert_eq!(serde_json::from_slice::<Question>(&text).expect("read"), question);
        let all = Question::PastOfAll(WallMs(5), WallMs(9), 1000);
        let text = serde_json::to_vec(&all).expect("written");
        assert_eq!(serde_json::from_slice::<Question>(&text).expect("read"), all);
        assert!(!question.only_reads() && Question::Node.only_reads());
    }
}
