//! Questions between nodes: the state of a task is in the store, but what moves (rates, windows, the tree) is known
//! only by the node that runs it.
//!
//! Questions only read, except [`Question::Book`] and [`Question::Change`]. The node that asks can do without an
//! answer: a silent peer makes an answer poorer, never wrong and never a failure.

use std::collections::BTreeMap;
use std::time::Duration;
use windrow_words::engine as say;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::ports::handling::handler::Workers;
use windrow_core::execution::{MeterPicture, WindowPicture};
use windrow_core::explain::{HeldBack, Live, Spell, Stay};
use windrow_core::ids::{ItemCount, ItemIndex, SessionId, ShardId, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::HandlerState;
use windrow_core::pilot::Picture;
use windrow_core::settings::RateLimit;
use windrow_core::stats::series::Point;
use windrow_core::stats::stall::StallReason;

/// Path of questions, below a node's address.
pub const PATH: &str = "/internal/v1/ask";
/// Largest question, in bytes.
pub const QUESTION_BYTES_MAX: usize = 256 << 10;
/// Largest answer, in bytes. (A window of a million indexes is a bitmap of 128 KiB; a task has 64 shards at most.)
pub const ANSWER_BYTES_MAX: usize = 32 << 20;
/// Largest difference between the clocks of two nodes. A question sealed earlier, or later, is refused.
pub const SKEW_MAX: Duration = Duration::from_secs(60);

/// Another node, with the address from its session's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Name of the node.
    pub node: String,
    /// Session of the node: a question is for this life of the node and no other.
    pub session: SessionId,
    /// Base URL of its API server.
    pub address: String,
}

/// Question from one node to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// State of the runs of these tasks on the node.
    Tasks(Vec<TaskId>),
    /// Windows of a task on the node, each in at most this number of cells.
    Windows(TaskId, u32),
    /// Counts of a task on the node between two times, with the step in milliseconds.
    Past(TaskId, WallMs, WallMs, u64),
    /// Counts of all tasks together on the node between two times, with the step in milliseconds.
    PastOfAll(WallMs, WallMs, u64),
    /// Explanation of the last seconds of a task on the node, with their number.
    Explain(TaskId, u32),
    /// State of the node itself.
    Node,
    /// Tree of its actors, written out.
    Actors(ActorsQuery),
    /// Check whether a raised rate of a task fits on the node; it is booked unless this is a trial.
    Book {
        /// Task with the raised rate.
        task: TaskId,
        /// Rate of the whole task.
        rate: RateLimit,
        /// True if nothing is booked.
        is_trial: bool,
    },
    /// Change the node until its next restart.
    Change(Box<NodeChangeRequest>),
}

impl Question {
    /// True if two callers that ask the same may share an answer.
    pub fn only_reads(&self) -> bool {
        !matches!(self, Question::Book { .. } | Question::Change(_))
    }
}

/// Part of a tree, and its format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorsQuery {
    /// Only the actors of this task.
    pub task: Option<TaskId>,
    /// Levels below the root; `None` shows all.
    pub depth: Option<u32>,
    /// True for text for people, false for JSON.
    pub is_text: bool,
}

/// Change of a node that was requested at another node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeChangeRequest {
    /// Sum of task rates that it may hold.
    pub capacity_rate: Option<RateLimit>,
    /// Filter for the lines of its own log.
    pub log_filter: Option<String>,
    /// Author of the change, as the audit shows it.
    pub actor: String,
    /// Role of the author behind a proxy, with its origin.
    #[serde(default)]
    pub role: Option<String>,
    /// Source of the change: `cli`, `api` or `ui`.
    pub source: String,
    /// Reason for the change.
    pub reason: Option<String>,
    /// Request that asked for it.
    pub request_id: Option<String>,
    /// True if nothing is changed.
    pub is_trial: bool,
}

/// Answer of a node to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PeerReply {
    /// State of each requested task that has a run there.
    Tasks(Vec<LiveTask>),
    /// Windows of the shards there.
    Windows(Vec<(ShardId, WindowPicture)>),
    /// Counts of the period, oldest first.
    Past(Vec<PastSlice>),
    /// Explanation of the last seconds.
    Explain(Box<ExplainPart>),
    /// State of the node, also after a change.
    Node(Box<NodeFace>),
    /// Text to be passed on as it is.
    Text(String),
    /// The rate is booked, or would be.
    Booked,
    /// The rate doesn't fit: the reason, and a rate that would.
    NoRoom {
        /// Reason as a sentence.
        why: String,
        /// Highest rate that fits.
        free: String,
    },
    /// The change is refused: the place, the problem, and a value that would do, for each fault.
    Refused(Vec<(String, String, Option<String>)>),
    /// The request can't be done now, for instance since the store is unreachable.
    Failed(String),
}

/// Runs of a task on a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveTask {
    /// Task of the runs.
    pub task: TaskId,
    /// Shards that run there.
    pub shards: Vec<LiveShard>,
    /// Recent attempts per second; `None` before it is known.
    pub actual_rate: Option<f64>,
    /// Items settled per second; an earlier version doesn't say.
    #[serde(default)]
    pub settled_rate: Option<f64>,
}

/// State of a live run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveShard {
    /// Shard of the run.
    pub shard: ShardId,
    /// Number of items to do.
    pub total: ItemCount,
    /// Counters of its items.
    pub counters: Counters,
    /// Lowest index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Size of the window.
    pub window: u32,
    /// Maximum number of items that may be in flight.
    pub concurrency: u32,
    /// 95th percentile of the call durations.
    pub latency_p95: Option<Duration>,
    /// Reason why nothing is sent, if so.
    pub stall: Option<StallReason>,
    /// Limits that the autopilot has found; `None` without one, and from an earlier version.
    #[serde(default)]
    pub autopilot: Option<Picture>,
    /// Use of each meter; empty without meters, and from an earlier version.
    #[serde(default)]
    pub costs: Vec<MeterPicture>,
    /// State of the handler; unknown from an earlier version.
    #[serde(default)]
    pub handler: HandlerState,
    /// Worker processes of the run; `None` if its handler has none, and from an earlier version.
    #[serde(default)]
    pub workers: Option<Workers>,
}

/// Counts between two times of a node's wall clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastSlice {
    /// Start of the period.
    pub from: WallMs,
    /// End of the period.
    pub to: WallMs,
    /// Counts of the period.
    #[serde(with = "packed")]
    pub point: Point,
}

/// Data of one node about the last seconds of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExplainPart {
    /// Length of the period, and the part of it in which something ran there; `None` when nothing is known.
    pub span: Option<(Duration, Duration)>,
    /// Counts of the period.
    #[serde(with = "packed")]
    pub point: Point,
    /// State of the runs there; `None` while none is live.
    pub live: Option<Live>,
    /// Number of runs there.
    pub runs: u32,
    /// Shards of the runs, each with the rate that the node has no room for.
    #[serde(default)]
    pub shards: Vec<(ShardId, Option<HeldBack>)>,
    /// 95th percentile of the slowest run, finer than that of `point`.
    pub latency_p95: Option<Duration>,
    /// State of the handler for these runs; unknown from an earlier version.
    #[serde(default)]
    pub handler: HandlerState,
    /// Failed attempts by their code, since the runs began.
    pub codes: Vec<(String, u64)>,
    /// Rate that the node has left for others, in items per second; `None` without a bound.
    pub free_rate: Option<f64>,
    /// True if the period begins where the rate of the task was changed, later than requested. (An earlier version
    /// never sets it.)
    #[serde(default)]
    pub since_change: bool,
    /// Keys of the shared limits that last held runs back there, with the number of runs; empty from an earlier
    /// version. Behind the key of a named limit a space and its limit in units follow, if one of these did.
    #[serde(default)]
    pub held_by: BTreeMap<String, u32>,
    /// Times in which its shards were counted there, as far as `point` goes; empty from an earlier version.
    #[serde(default)]
    pub stays: Vec<Stay>,
    /// Newest spell of the period in which the node could save nothing; `None` from an earlier version.
    #[serde(default)]
    pub unsaved: Option<Spell>,
    /// Longest spell of the period in which the node did nothing at all; `None` from an earlier version.
    #[serde(default)]
    pub stood_still: Option<Spell>,
    /// Other tasks there whose autopilots steer calls to the same service; none from an earlier version.
    #[serde(default)]
    pub company: u32,
}

/// State of a node, beyond its session's row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeFace {
    /// State: `serving`, `drained` or `draining`.
    pub state: String,
    /// Version of its program.
    pub version: String,
    /// Sum of task rates that it may hold.
    pub capacity_rate: String,
    /// Sum of task rates that are reserved.
    pub reserved_rate: String,
    /// Rate that a task without a rate counts as.
    pub unlimited_reserves: String,
    /// True if tasks run there at all.
    pub run_tasks: bool,
    /// Filter for the lines of its own log.
    pub log_filter: String,
    /// Tasks that wait for room, as its last scan found them.
    pub waiting: usize,
    /// Seconds for which it has served.
    pub uptime_seconds: u64,
    /// Current time of its wall clock.
    pub now: WallMs,
    /// Live runs of the node: the shard, and the number of its run.
    pub runs: Vec<(ShardId, u32)>,
    /// Reason why it can't reach the Redis of leases, if so; an earlier version doesn't say.
    #[serde(default)]
    pub redis_fault: Option<String>,
}

/// Error of a peer that gave no answer. Nothing is known then; the request may have been carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::node_unreachable(node, why))]
pub struct Unreachable {
    /// Name of the peer.
    pub node: String,
    /// Reason as a sentence.
    pub why: String,
}

/// Client that asks other nodes.
#[async_trait]
pub trait Peers: Send + Sync {
    /// Asks a peer, for a bounded time. Callers that ask the same meanwhile get the same answer. Cancel safe for
    /// questions that only read.
    ///
    /// # Errors
    /// If no answer came, or one that can't be verified or read.
    async fn ask(&self, peer: &Peer, question: &Question) -> Result<PeerReply, Unreachable>;
}

/// Seal of a question, by which it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Session that the question is for.
    pub to: SessionId,
    /// Sender of the question.
    pub from: String,
    /// Time at which it was sealed.
    pub at: WallMs,
    /// Value that is never used twice.
    pub nonce: String,
    /// Proof that the sender has the nodes' key, and wrote exactly this.
    pub proof: String,
}

/// Reason why a question isn't accepted, for the node's own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Not sealed with the nodes' key, or changed since.
    #[error("{}", say::seal_forged())]
    Forged,
    /// Sealed too long ago, or in the future.
    #[error("{}", say::seal_stale())]
    Stale,
    /// Received before with the same nonce.
    #[error("{}", say::seal_replayed())]
    Replayed,
    /// More questions were received than can be remembered for their time.
    #[error("{}", say::seal_too_many())]
    TooMany,
}

/// Sealing of questions and answers between nodes that share a key.
pub trait PeerSeal: Send + Sync {
    /// Seals a question to a session.
    fn seal(&self, to: SessionId, from: &str, body: &[u8], now: WallMs) -> Seal;

    /// Checks the seal of a question, which is accepted once.
    fn check(&self, seal: &Seal, body: &[u8], now: WallMs) -> Result<(), SealError>;

    /// Returns the proof of an answer to the question with this nonce.
    fn prove(&self, nonce: &str, body: &[u8]) -> String;

    /// True if `proof` is the proof of this answer.
    fn is_proved(&self, nonce: &str, body: &[u8], proof: &str) -> bool;
}

/// Serialization of points in their short form, in base64.
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
