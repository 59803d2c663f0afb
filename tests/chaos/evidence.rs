//! What a round left behind: three logs that know nothing of one another, and what is judged from them.
//!
//! All times are microseconds since the Unix epoch of this machine's clock, which nodes, database, business and test
//! share. Nothing here comes from the inside of a node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;

/// Now.
pub(crate) fn now() -> i64 {
    i64::try_from(OffsetDateTime::now_utc().unix_timestamp_nanos() / 1000).expect("this century")
}

/// Tells what happens, and when.
pub(crate) fn say(text: &str) {
    let time = OffsetDateTime::now_utc().time();
    let (hour, minute, second, milli) = time.as_hms_milli();
    eprintln!("    {hour:02}:{minute:02}:{second:02}.{milli:03} {text}");
}

/// A second of those times.
pub(crate) const SECOND: i64 = 1_000_000;

/// How the business answered a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    Succeeded,
    Skipped,
    Failed,
    /// Come again; also what can't be understood.
    Retry,
    /// Not now: the attempt isn't charged.
    Busy,
    /// Processed, and then nothing that could be read.
    Nothing,
}

impl Verdict {
    /// Whether an item is settled by it.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Verdict::Succeeded | Verdict::Skipped | Verdict::Failed)
    }
}

/// An item that reached the business.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) at: i64,
    /// When the pace let it go, as the node says.
    pub(crate) gate: i64,
    pub(crate) node: String,
    pub(crate) task: i64,
    pub(crate) shard: u32,
    pub(crate) epoch: i64,
    pub(crate) index: u64,
    pub(crate) attempt: u32,
    pub(crate) key: String,
    pub(crate) verdict: Verdict,
    /// Just before the answer was given; none while it wasn't.
    pub(crate) answered: Option<i64>,
}

/// A hook that reached the business.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HookCall {
    pub(crate) at: i64,
    pub(crate) task: i64,
    pub(crate) kind: String,
    pub(crate) id: String,
}

/// An accepted change of a shard's row, as a trigger saw it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ShardWrite {
    pub(crate) id: i64,
    pub(crate) at: i64,
    /// The user of the database who wrote: every node has its own.
    pub(crate) who: String,
    pub(crate) task: i64,
    pub(crate) shard: u32,
    pub(crate) state: String,
    pub(crate) epoch: i64,
    pub(crate) claim: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) seq: i64,
    pub(crate) first: i64,
    pub(crate) end: i64,
    pub(crate) low: i64,
    pub(crate) succeeded: i64,
    pub(crate) skipped: i64,
    pub(crate) failed: i64,
    pub(crate) parked: i64,
    /// The set above watermark, as hexadecimal digits.
    pub(crate) blob: String,
}

impl ShardWrite {
    pub(crate) fn settled(&self) -> i64 {
        self.succeeded + self.skipped + self.failed
    }
}

/// An accepted change of an item's row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ItemWrite {
    pub(crate) id: i64,
    pub(crate) task: i64,
    pub(crate) shard: u32,
    pub(crate) index: u64,
    /// None: the row is gone.
    pub(crate) state: Option<String>,
}

/// An accepted change of a task's row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TaskWrite {
    pub(crate) id: i64,
    pub(crate) at: i64,
    pub(crate) task: i64,
    pub(crate) status: String,
    pub(crate) desired: String,
}

/// What somebody told a node to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    Start,
    Stop,
    /// Early: what was not dispatched is excluded.
    Finish,
    /// Items per second.
    Rate(f64),
}

/// A command that was acknowledged; what was refused or never answered is no promise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Command {
    /// When its first try was sent.
    pub(crate) sent: i64,
    pub(crate) acked: i64,
    pub(crate) task: i64,
    pub(crate) node: String,
    pub(crate) order: Order,
}

/// A command that was acknowledged, and what the database had right afterwards.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Effect {
    /// When it was looked up.
    pub(crate) at: i64,
    pub(crate) what: String,
    pub(crate) wanted: String,
    pub(crate) found: String,
}

/// What a fault does to the witnesses of ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Harm {
    /// A node can't work, or not horizon others: crash, pause, end.
    Node,
    /// Somebody can't horizon the database, or not be sure of it.
    Database,
    /// Somebody can't horizon Redis.
    Redis,
    /// Redis forgot everything.
    RedisLoss,
    /// Answers of the business are lost or late.
    Business,
}

/// A fault that was there for a while.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub(crate) name: String,
    pub(crate) harm: Harm,
    pub(crate) from: i64,
    pub(crate) until: i64,
}

/// What was promised.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bounds {
    /// Items in flight of one shard.
    pub(crate) concurrency: u64,
    /// Completions of one shard that may be unsaved.
    pub(crate) unsaved: u64,
    /// How long a silent owner is believed. Unit: microseconds.
    pub(crate) ttl: i64,
    /// Items at once beyond the rate.
    pub(crate) burst: f64,
    /// Items per second from the start.
    pub(crate) rate: f64,
    pub(crate) items: u64,
}

/// Everything of one task of one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) task: i64,
    pub(crate) bounds: Bounds,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) hooks: Vec<HookCall>,
    pub(crate) writes: Vec<ShardWrite>,
    pub(crate) items: Vec<ItemWrite>,
    pub(crate) tasks: Vec<TaskWrite>,
    pub(crate) commands: Vec<Command>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) faults: Vec<Fault>,
    /// How every item of the task must end, by the business's own rule.
    pub(crate) expected: BTreeMap<String, u64>,
    /// The task as a node shows it at the end.
    pub(crate) view: Value,
    /// What a node then tells of its runs.
    pub(crate) runs: Vec<Value>,
}

impl Evidence {
    /// Whether a fault of this kind was there at some time of a span.
    pub(crate) fn had(&self, harm: Harm, from: i64, until: i64) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.harm == harm && fault.from <= until && fault.until >= from)
    }

    /// Whether anything at all was wrong at some time of a span.
    pub(crate) fn had_any(&self, from: i64, until: i64) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.from <= until && fault.until >= from)
    }
}
