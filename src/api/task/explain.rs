//! Explanation of a pace.

use serde::{Deserialize, Serialize};
use serde_json::Map;
use serde_json::Value;
use utoipa::ToSchema;

use super::live::{HandlerDown, LastError, TaskSkips};
use super::view::TaskNext;
use crate::limits::LimitPart;
use crate::page::SilentNode;

/// Why a task is as fast as it is. The causes add up to what is missing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The task.
    pub task: String,
    /// Where it stands.
    pub status: String,
    /// A machine slug, where the status needs a reason.
    pub status_reason: Option<String>,
    /// A sentence for people.
    pub status_text: Option<String>,
    /// Since when it has this status.
    pub since: String,
    /// What happens next by itself, and when.
    pub next: Option<TaskNext>,
    /// The time that this is about: less than was asked for when the task is younger, or its rate is.
    pub span_seconds: f64,
    /// What the rate gave, in items per second; null while no rate limits the task.
    pub target_rate: Option<f64>,
    /// Attempts sent per second, in this time.
    pub actual_rate: f64,
    /// Sum of the causes: the target less what was sent, but for what a burst kept or used. Null without a target.
    pub missing_rate: Option<f64>,
    /// Attempts beyond the first of their item, per second: part of what was sent.
    pub repeat_rate: f64,
    /// Causes of what is missing, largest first.
    pub causes: Vec<ExplainedCause>,
    /// What a task without a rate waits for, largest first.
    pub waits: Vec<ExplainedWait>,
    /// While its handler doesn't answer: why, since when, and when it is tried next.
    pub handler_down: Option<HandlerDown>,
    /// What last went wrong with its calls.
    pub last_error: Option<LastError>,
    /// A few sentences.
    pub why: String,
    /// What would help, the best first.
    pub advice: Vec<ExplainedAdvice>,
    /// The nodes that run it.
    pub nodes: Vec<ExplainedNode>,
    /// Its shards, and where they stand.
    pub shards: Vec<ExplainedShard>,
    /// Nodes that have a part of it and can't be asked: their part of the rate is the cause `unknown`.
    pub unreachable: Vec<SilentNode>,
    /// The limit that it shares with other tasks, where that kept something back.
    pub limit: Option<ExplainedLimit>,
    /// The items that people want skipped.
    pub skips: Option<TaskSkips>,
}

/// A limit that tasks share on all nodes, and who uses it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedLimit {
    /// Its name: that of the business whose own it is, or one of its own.
    pub name: String,
    /// `business` or `named`.
    pub kind: String,
    /// The businesses that name it; a business is told only of itself.
    pub businesses: Vec<String>,
    /// The nodes whose runs want something of it now.
    pub users: Vec<LimitPart>,
}

/// A node that runs a part of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedNode {
    /// Its name.
    pub node: String,
    /// How many runs of the task it has.
    pub runs: u32,
}

/// A part of what is missing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedCause {
    /// What it is.
    pub slug: String,
    /// The same in two or three words.
    pub title: String,
    /// Permits per second.
    pub rate: f64,
    /// Its part of what is missing; null when nothing is.
    pub share: Option<f64>,
    /// What else is known of it.
    pub text: String,
}

/// What a task without a rate waits for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedWait {
    /// What it is.
    pub slug: String,
    /// The same in two or three words.
    pub title: String,
    /// The share of the time since the run began.
    pub share: f64,
}

/// Something that would help, or why nothing does.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedAdvice {
    /// Against which cause.
    pub about: String,
    /// A sentence.
    pub text: String,
    /// The members of a PATCH of the task, if settings help.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub change: Option<Map<String, Value>>,
    /// Attempts per second that would then be sent.
    pub predicted_rate: Option<f64>,
    /// Why no setting helps, or not all the way.
    pub hindrance: Option<String>,
}

/// Where a shard of a task stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedShard {
    /// Its name, `t42.0`.
    pub shard: String,
    /// `idle`, `running`, `recovering`, `stopped` or `done`.
    pub state: String,
    /// The node that runs it; null where none does.
    pub node: Option<String>,
    /// The part of the rate that this node has no room for; null where it has what it should have.
    pub held_back: Option<ExplainedHeldBack>,
}

/// A part of the rate that a node has no room for. It is asked for again every few seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedHeldBack {
    /// How fast the shard may go meanwhile.
    pub rate: String,
    /// How fast it should go.
    pub wanted: String,
    /// For how long it has been refused.
    pub for_seconds: f64,
    /// What the node said last.
    pub why: String,
}
