//! Representation of a task.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use windrow_core::items::counters::Counters;
use windrow_core::settings::table::Tuning;
use windrow_core::task::spec::TaskSpec;

use super::costs::TaskCost;
use super::live::{CutOff, HandlerDown, LastError, TaskLive, TaskShard, TaskSkips};
use crate::attributes::TaskAttributes;
use crate::body::Own;
use crate::message::Message;
use crate::settings::TaskSettings;

/// A task with its state, settings and progress.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct Task {
    /// Id of the task, e.g. `t42`.
    #[serde(deserialize_with = "crate::read::id")]
    pub id: String,
    /// Business of the task.
    pub business: String,
    /// Current status of the task.
    pub status: String,
    /// Result; only when finished.
    pub result: Option<String>,
    /// Reason why it is stopping or stopped.
    pub stop_reason: Option<String>,
    /// Machine-readable reason for the status, if it needs one.
    pub status_reason: Option<String>,
    /// Explanation for people; while the task runs, the problem with its handler.
    pub status_text: Option<String>,
    /// The same as a message, if it is about the handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_text_message: Option<Message>,
    /// Items in flight when the current stop didn't wait for them; they may be repeated.
    pub cut_off: Option<CutOff>,
    /// Set while its handler is down: reason, start, and time of the next probe.
    pub handler_down: Option<HandlerDown>,
    /// Latest error of its calls, while it runs.
    pub last_error: Option<LastError>,
    /// Time since which it has this status.
    pub since: String,
    /// Next automatic action, with its time.
    pub next: Option<TaskNext>,
    /// Total number of items.
    pub total: u64,
    /// Number of items in each state; they add up to `total`.
    pub counts: TaskCounts,
    /// Watermark: every item below it is settled or parked. With several shards, that of the first unfinished shard.
    pub watermark: u64,
    /// State of each shard.
    pub shard_list: Vec<TaskShard>,
    #[serde(flatten)]
    pub pace: TaskPace,
    #[serde(flatten, skip_deserializing)]
    #[schema(value_type = TaskAttributes)]
    pub spec: TaskSpec,
    #[serde(flatten, skip_deserializing)]
    pub settings: TaskSettings,
    /// Node pool that runs it.
    pub pool: String,
    /// Source of the items.
    pub source: TaskSource,
    /// For tasks created open: `open` while items may be appended, then `sealed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intake: Option<String>,
    /// First index that an early finish excluded; higher than requested if later items had already been dispatched.
    pub finish_at: Option<u64>,
    /// Items that an operator asked to skip.
    pub skips: Option<TaskSkips>,
    /// Dataset generation to be published from its results.
    pub publish: Option<TaskPublish>,
    /// Task whose failures it redrives.
    pub parent: Option<String>,
    /// Schedule that created it.
    pub schedule: Option<String>,
    /// Time of the schedule's fire that created it.
    pub fire_time: Option<String>,
    /// Number of times it was started, which is the number of the current start.
    pub start: u32,
    /// Version, also the ETag; changes with each change of the task.
    pub version: u64,
    /// Time when it was created.
    pub created_at: String,
    /// Time when it first ran.
    pub started_at: Option<String>,
    /// Time when it ended.
    pub finished_at: Option<String>,
    /// State while it runs, gathered from all its nodes.
    pub live: Option<TaskLive>,
    /// Use of each counted unit so far; null if nothing is counted, and in lists while the task doesn't run. Then it is
    /// that of the last checkpoint.
    #[serde(default)]
    pub costs: Option<BTreeMap<String, TaskCost>>,
    #[serde(flatten)]
    pub beside: TaskBeside,
}

impl Serialize for Task {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Task::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for Task {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Task, D::Error> {
        from.deserialize_map(Members)
    }
}

/// Visitor that reads attributes and settings directly from the text: serde buffers flattened members, and its buffer
/// holds neither raw JSON nor every number.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Task;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a task")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Task, A::Error> {
        let mut members = Own::new(map, None);
        let task = Task::deserialize(MapAccessDeserializer::new(&mut members))?;
        let (spec, tuning) = members.named();
        Ok(Task {
            spec: spec.apply(&TaskSpec::default()),
            settings: (&tuning.apply(&Tuning::default())).into(),
            ..task
        })
    }
}

/// Members shown with a task but not in events.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskBeside {
    /// Outcome of its redrives; absent if there are none, and in events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven: Option<TaskRedriven>,
    /// Warnings about settings that won't have the intended effect. Only when a single task is returned, not in lists
    /// and events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<TaskWarning>,
    /// Names of the nodes that run it; filled in by clients on demand, never part of a body.
    #[serde(skip)]
    pub nodes: Option<String>,
}

/// Next automatic action of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskNext {
    /// `start`, `recover` or `stop`.
    pub action: String,
    /// Time of the action.
    pub at: String,
    /// Number of the recovery attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Maximum number of recovery attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
}

/// Number of items in each state.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskCounts {
    /// Items settled with a success.
    pub succeeded: u64,
    /// Items with nothing to do.
    pub skipped: u64,
    /// Items that failed permanently.
    pub failed: u64,
    /// Retrying items outside the window, waiting for a later attempt.
    pub parked: u64,
    /// Items sent to the handler without a verdict so far.
    pub in_flight: u64,
    /// Items not yet dispatched or waiting in the window for a retry.
    pub pending: u64,
    /// Items that will never be dispatched.
    pub excluded: u64,
}

impl TaskCounts {
    /// Builds the counts from the counters and the pending remainder.
    pub fn new(counters: &Counters, pending: u64) -> TaskCounts {
        TaskCounts {
            succeeded: counters.succeeded,
            skipped: counters.skipped,
            failed: counters.failed,
            parked: counters.parked,
            in_flight: counters.in_flight,
            pending,
            excluded: counters.excluded,
        }
    }
}

/// Progress, pace, and estimated end of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskPace {
    /// Progress in settled items.
    pub progress: TaskProgress,
    /// Attempts sent per second over the last ten seconds; at slow rates, over the time of five items. 0 while the
    /// task isn't running, null if unknown (so far, or because a node can't be asked).
    pub actual_rate: Option<f64>,
    /// Seconds until the task is done, at the current pace of settling; a lower bound while items are parked. Null if
    /// unknown and while items may be added.
    pub eta_seconds: Option<u64>,
}

/// Progress of a task. Items excluded at the beginning or by an early finish count in neither number.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskProgress {
    /// Items with a final result.
    pub settled: u64,
    /// Items to do, including the settled ones.
    pub of: u64,
    /// Percentage settled, rounded to one decimal; 100 only when nothing is left.
    pub percent: f64,
}

/// Outcome of a task's redrives, including redrives of redrives.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskRedriven {
    /// Items recovered by a redrive.
    pub recovered: u64,
    /// Items that still count as failed.
    pub still_failed: u64,
    /// True if no item was counted for two redrives; false only if there are too many to check each.
    pub exact: bool,
}

/// Source of a task, without its items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskSource {
    /// `range`, `inline`, `csv`, `ndjson`, `lines`, `redrive`, or, for an open task, `appended`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Upload that holds the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<String>,
    /// URL that the rows were fetched from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Task whose failures are the items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// Warning about a setting that won't have the intended effect.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskWarning {
    /// `deadline_too_early`, `not_started`, `results_room` or `rate_beyond_reach` for a task; `fires_share_names` or
    /// `placeholder_misspelt` for a schedule.
    pub code: String,
    /// JSON pointer to the member concerned.
    pub pointer: String,
    /// Explanation of the problem.
    pub detail: String,
    /// Suggested fix, if any.
    pub advice: Option<String>,
}

/// Dataset generation that a task publishes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskPublish {
    /// Name of the dataset.
    pub dataset: String,
    /// Number of the generation.
    pub generation: u64,
    /// Share of items that must have succeeded: `all`, `any`, or a percentage.
    #[serde(rename = "if")]
    pub condition: String,
    /// Producer of the summary: `none`, `hook`, or `command:NAME`.
    pub reduce: String,
    /// Output member by which readers look up results.
    pub key: Option<String>,
    /// True if the task ended and its generation was not published; the generation has the reason.
    pub withheld: bool,
}
