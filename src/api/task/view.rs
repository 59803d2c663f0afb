//! A task as people look at it.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use windrow_core::items::counters::Counters;
use windrow_core::settings::table::Tuning;
use windrow_core::task::spec::TaskSpec;

use super::live::{CutOff, HandlerDown, LastError, TaskLive, TaskShard, TaskSkips};
use crate::attributes::TaskAttributes;
use crate::body::Own;
use crate::settings::TaskSettings;

/// A task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct Task {
    /// Its number, `t42`.
    #[serde(deserialize_with = "crate::read::id")]
    pub id: String,
    /// The business.
    pub business: String,
    /// Where it stands.
    pub status: String,
    /// How it ended; only when finished.
    pub result: Option<String>,
    /// Why it is stopping or stopped.
    pub stop_reason: Option<String>,
    /// A machine slug, where the status needs a reason.
    pub status_reason: Option<String>,
    /// A sentence for people; while it runs, what goes wrong with its handler.
    pub status_text: Option<String>,
    /// Which items were in flight when its present stop didn't wait for them: they may repeat.
    pub cut_off: Option<CutOff>,
    /// While its handler doesn't answer: why, since when, and when it is tried next.
    pub handler_down: Option<HandlerDown>,
    /// While it runs: what last went wrong with its calls.
    pub last_error: Option<LastError>,
    /// Since when it has this status.
    pub since: String,
    /// What happens next by itself, and when.
    pub next: Option<TaskNext>,
    /// How many items.
    pub total: u64,
    /// Where they stand; the terms add up to `total`.
    pub counts: TaskCounts,
    /// Below it every item is settled or parked; of several shards that of the first that isn't done.
    pub watermark: u64,
    /// Those parts.
    pub shard_list: Vec<TaskShard>,
    #[serde(flatten)]
    pub pace: TaskPace,
    #[serde(flatten, skip_deserializing)]
    #[schema(value_type = TaskAttributes)]
    pub spec: TaskSpec,
    #[serde(flatten, skip_deserializing)]
    pub settings: TaskSettings,
    /// The nodes that run it.
    pub pool: String,
    /// Where its items come from.
    pub source: TaskSource,
    /// Of a task that was made open: `open` while items may be appended, then `sealed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intake: Option<String>,
    /// First index that an early finish left out; higher than the one that was asked for where more had left.
    pub finish_at: Option<u64>,
    /// The items that people want skipped.
    pub skips: Option<TaskSkips>,
    /// What its results become once it is finished.
    pub publish: Option<TaskPublish>,
    /// The task whose failures it does again.
    pub parent: Option<String>,
    /// The schedule that made it.
    pub schedule: Option<String>,
    /// For which of its times.
    pub fire_time: Option<String>,
    /// How often it was started; the number of the present start.
    pub start: u32,
    /// Changes with each change of the task; the tag.
    pub version: u64,
    /// When it was made.
    pub created_at: String,
    /// When it first ran.
    pub started_at: Option<String>,
    /// When it ended.
    pub finished_at: Option<String>,
    /// What is known of it while it runs, on whatever nodes.
    pub live: Option<TaskLive>,
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

/// Reads attributes and settings from the text itself: serde buffers the members of what is flattened, and its buffer holds
/// neither raw JSON nor every number.
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

/// What is told of a task where people look at it, and not in events.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskBeside {
    /// What its redrives made of its failures; none where it has no redrive, and in events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven: Option<TaskRedriven>,
    /// What would not come about as it was wished; only where one task is answered, not in lists and events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<TaskWarning>,
    /// The nodes that run it, where a client has asked for them; no member of bodies.
    #[serde(skip)]
    pub nodes: Option<String>,
}

/// What happens next by itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskNext {
    /// `start`, `recover` or `stop`.
    pub action: String,
    /// When.
    pub at: String,
    /// Which recovery it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// How many there are at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
}

/// Where the items of a task stand.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskCounts {
    /// Settled well.
    pub succeeded: u64,
    /// Settled: nothing to do.
    pub skipped: u64,
    /// Failed for good.
    pub failed: u64,
    /// Waiting for a later retry, outside the window.
    pub parked: u64,
    /// Given to the handler, no verdict yet.
    pub in_flight: u64,
    /// Left.
    pub pending: u64,
    /// Never to be dispatched.
    pub excluded: u64,
}

impl TaskCounts {
    /// Terms of the sum, with what they leave.
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

/// How far a task is, how fast it goes and when it will be done.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskPace {
    /// The progress.
    pub progress: TaskProgress,
    /// Attempts sent each second, over the last ten; of a slow rate, over the time of five items. 0 while it doesn't run,
    /// null where it isn't known (yet, or since a node can't be asked).
    pub actual_rate: Option<f64>,
    /// In how many seconds it will be done, at the pace at which items settle now; with parked items that is the least.
    /// Null while that isn't known, and while items may be added.
    pub eta_seconds: Option<u64>,
}

/// How far a task is. What is left out, at the head or by an early finish, is in neither number.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskProgress {
    /// Items with a final verdict.
    pub settled: u64,
    /// Items that are to be done, those included.
    pub of: u64,
    /// The share that is settled, rounded to a tenth; 100 only when nothing is left.
    pub percent: f64,
}

/// What redrives made of a task's failures, those of redrives of them included.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskRedriven {
    /// Items that a redrive settled well.
    pub recovered: u64,
    /// Items that have failed still.
    pub still_failed: u64,
    /// Whether no item was counted for two redrives: false only where they are too many to look at each.
    pub exact: bool,
}

/// A task's source, without its items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskSource {
    /// `range`, `inline`, `csv`, `ndjson`, `lines`, `redrive`, or `appended` of an open task.
    #[serde(rename = "type")]
    pub kind: String,
    /// The upload that holds the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<String>,
    /// The address that they were fetched from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The task whose failures they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// What would not come about as it was wished.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskWarning {
    /// Of a task `deadline_too_early`, `not_started`, `results_room` or `rate_beyond_reach`; of a schedule
    /// `fires_share_names` or `placeholder_misspelt`.
    pub code: String,
    /// The member that it is about, as a JSON pointer.
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
    /// What would do.
    pub advice: Option<String>,
}

/// What a task publishes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskPublish {
    /// The dataset.
    pub dataset: String,
    /// The number of its generation.
    pub generation: u64,
    /// How many of its items must have succeeded: `all`, `any`, or a percentage.
    #[serde(rename = "if")]
    pub condition: String,
    /// What makes the summary: `none`, `hook`, or `command:NAME`.
    pub reduce: String,
    /// The member of the outputs by which readers look up.
    pub key: Option<String>,
    /// The task has ended, and its generation was not published; the generation says why.
    pub withheld: bool,
}
