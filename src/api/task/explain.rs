//! Explanation of a task's pace.

use serde::{Deserialize, Serialize};
use serde_json::Map;
use serde_json::Value;
use utoipa::ToSchema;

use super::live::{HandlerDown, LastError, TaskSkips};
use super::view::TaskNext;
use crate::limits::LimitPart;
use crate::message::Message;
use crate::page::SilentNode;

/// Explanation of a task's actual rate. The causes add up to the missing rate.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// Id of the task.
    pub task: String,
    /// Status of the task.
    pub status: String,
    /// Machine-readable reason for the status, if it needs one.
    pub status_reason: Option<String>,
    /// Explanation of the status in one sentence.
    pub status_text: Option<String>,
    /// Time since which it has this status.
    pub since: String,
    /// Next automatic action, with its time.
    pub next: Option<TaskNext>,
    /// Time span covered, in seconds. Shorter than requested if the task or its rate is more recent.
    pub span_seconds: f64,
    /// Configured rate, such as `500/s`, `auto` or `unlimited`.
    #[serde(default)]
    pub rate: String,
    /// Rate allowed, in items per second; null while no rate limits the task.
    pub target_rate: Option<f64>,
    /// Attempts sent per second within the span.
    pub actual_rate: f64,
    /// Sum of the causes: target minus attempts sent, apart from what a burst saved or used. Null without a target.
    pub missing_rate: Option<f64>,
    /// Repeated attempts per second, beyond the first of each item; included in the attempts sent.
    pub repeat_rate: f64,
    /// Causes of the missing rate, largest first.
    pub causes: Vec<ExplainedCause>,
    /// Reasons why a task without a rate waits, largest first.
    pub waits: Vec<ExplainedWait>,
    /// Set while its handler is down: reason, start, and time of the next probe.
    pub handler_down: Option<HandlerDown>,
    /// Latest error of its calls.
    pub last_error: Option<LastError>,
    /// Summary in a few sentences.
    pub why: String,
    /// The same as messages, to be shown in other languages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why_messages: Vec<Message>,
    /// Suggestions, most effective first.
    pub advice: Vec<ExplainedAdvice>,
    /// Nodes that run the task.
    pub nodes: Vec<ExplainedNode>,
    /// State of each shard.
    pub shards: Vec<ExplainedShard>,
    /// Nodes that run part of it and can't be asked; their share of the rate is the cause `unknown`.
    pub unreachable: Vec<SilentNode>,
    /// Shared limit that held the task back, if any.
    pub limit: Option<ExplainedLimit>,
    /// Items that an operator asked to skip.
    pub skips: Option<TaskSkips>,
}

/// A limit shared by tasks on all nodes, with its users.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedLimit {
    /// Name of the limit; for a business's own limit, the name of the business.
    pub name: String,
    /// Kind of limit: `business` or `named`.
    pub kind: String,
    /// Limit in units of it that held the task back, such as `90k tokens/min`; missing if its rate or concurrency did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Businesses that name it; a business sees only itself.
    pub businesses: Vec<String>,
    /// Nodes whose runs currently have demand for it.
    pub users: Vec<LimitPart>,
}

/// A node that runs part of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedNode {
    /// Name of the node.
    pub node: String,
    /// Number of the task's runs on it.
    pub runs: u32,
}

/// One cause of the missing rate.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedCause {
    /// Machine-readable name of the cause.
    pub slug: String,
    /// Name of the cause in two or three words.
    pub title: String,
    /// The same as a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title_message: Option<Message>,
    /// Missing permits per second.
    pub rate: f64,
    /// Fraction of the missing rate; null if nothing is missing.
    pub share: Option<f64>,
    /// Details of the cause.
    pub text: String,
    /// The same as a message; missing if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_message: Option<Message>,
}

/// One reason why a task without a rate waits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedWait {
    /// Machine-readable name of the reason.
    pub slug: String,
    /// Name of the reason in two or three words.
    pub title: String,
    /// The same as a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title_message: Option<Message>,
    /// Fraction of the time since the run began.
    pub share: f64,
}

/// A suggestion, or the reason why nothing helps.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedAdvice {
    /// Cause that the suggestion addresses.
    pub about: String,
    /// Suggestion in one sentence.
    pub text: String,
    /// The same as a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_message: Option<Message>,
    /// Members for a PATCH of the task, if a change of settings helps.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub change: Option<Map<String, Value>>,
    /// Predicted attempts per second after the change.
    pub predicted_rate: Option<f64>,
    /// Reason why no setting helps, or helps only in part.
    pub hindrance: Option<String>,
    /// The same as a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindrance_message: Option<Message>,
}

/// State of one shard.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedShard {
    /// Name of the shard, e.g. `t42.0`.
    pub shard: String,
    /// `idle`, `running`, `recovering`, `stopped` or `done`.
    pub state: String,
    /// Node that runs it; null if none does.
    pub node: Option<String>,
    /// Share of the rate that its node has no capacity for; null if the shard has its full share.
    pub held_back: Option<ExplainedHeldBack>,
}

/// Share of a rate that a node has no capacity for; requested again every few seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ExplainedHeldBack {
    /// Rate allowed in the meantime.
    pub rate: String,
    /// Rate that the shard should have.
    pub wanted: String,
    /// Time since the first refusal, in seconds.
    pub for_seconds: f64,
    /// Latest explanation given by the node.
    pub why: String,
}
