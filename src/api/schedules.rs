//! Schedules and their fires.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::body::{Body, Names};
use crate::task::{IfEmpty, NewSource, TaskWarning};
use windrow_core::task::spec::Request;

/// A schedule: creates a task at each fire.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Id of the schedule.
    #[serde(deserialize_with = "crate::read::id")]
    pub id: String,
    /// Business of its tasks.
    pub business: String,
    /// Name, unique within the business.
    pub name: String,
    /// Cron expression; null if it has `every`.
    pub cron: Option<String>,
    /// IANA time zone of `cron`.
    pub zone: Option<String>,
    /// Interval between fires; null if it has `cron`.
    pub every: Option<String>,
    /// Time before which it doesn't fire.
    #[schema(format = "date-time")]
    pub start: Option<String>,
    /// Time from which on it no longer fires.
    #[schema(format = "date-time")]
    pub end: Option<String>,
    /// Maximum deliberate delay of a fire.
    pub jitter: String,
    /// Handling of a fire while a task of the schedule is running: `skip`, `queue`, `cancel_running` or `allow`.
    pub overlap: String,
    /// Missed fires to catch up on: `latest`, `none`, or e.g. `all 10`.
    pub missed: String,
    /// True while it doesn't fire on its own.
    pub paused: bool,
    /// Template of the task that each fire creates.
    #[serde(deserialize_with = "crate::read::flat")]
    #[schema(value_type = Template)]
    pub task: Option<Box<RawValue>>,
    /// Time of the next fire; null while paused and after the last one.
    #[schema(format = "date-time")]
    pub next_fire: Option<String>,
    /// Time when the next fire is due, including jitter.
    #[schema(format = "date-time")]
    pub next_due: Option<String>,
    /// Name of whoever created it.
    pub created_by: String,
    /// Revision number, also the ETag; grows with each change.
    pub revision: u64,
    /// Time when it was created.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = "date-time")]
    pub updated_at: String,
    /// Latest recorded fire; null before the first.
    #[schema(value_type = Option<Fire>)]
    pub last_fire: Option<Fire>,
    /// Number of latest consecutive fires that created no task.
    pub idle_fires: u64,
    /// Problem of the schedule: its fires create no task, or its last task stopped or has failures. Null if it is
    /// healthy.
    pub trouble: Option<String>,
}

/// A schedule with its next and unsettled fires.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ScheduleAhead {
    #[serde(flatten)]
    pub schedule: Schedule,
    /// Next five fires; for a paused schedule, those that it would have.
    pub next_fires: Vec<String>,
    /// Number of fires whose tasks are being created.
    pub pending: u64,
    /// Number of fires waiting until no task of the schedule is running.
    pub queued: u64,
    /// Warnings about fires that won't have the intended effect.
    pub warnings: Vec<TaskWarning>,
}

/// Upcoming fires of a schedule.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NextFires {
    /// Times of the fires.
    pub items: Vec<String>,
}

/// A fire of a schedule, or a row of consecutive missed fires.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Fire {
    /// Schedule of the fire.
    pub schedule: String,
    /// Time set by the schedule.
    #[schema(format = "date-time")]
    pub time: String,
    /// `scheduled`, `triggered` or `backfilled`.
    pub kind: String,
    /// `pending`, `queued`, `made`, `skipped`, `missed` or `failed`.
    pub outcome: String,
    /// Task that was created; it may have been deleted since.
    pub task: Option<String>,
    /// Name of the task still to be created; null if it has none or if the name depends on the time of the previous
    /// fire.
    pub name: Option<String>,
    /// Last of the missed fires that this entry stands for; null for a single fire.
    #[schema(format = "date-time")]
    pub last: Option<String>,
    /// Number of fires that this entry stands for.
    pub count: u64,
    /// Time when it was decided.
    #[schema(format = "date-time")]
    pub decided_at: String,
    /// Time when its outcome became final.
    #[schema(format = "date-time")]
    pub settled_at: Option<String>,
    /// Number of attempts to create its task; it fails after five.
    pub attempts: u32,
    /// Explanation of the outcome, if it isn't obvious.
    pub text: Option<String>,
    /// True if its task publishes as the schedule's tasks do.
    pub publishes: bool,
}

/// Template of the task that each fire creates. Strings may contain `{fire_time}` and `{previous_fire_time}`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduledTask {
    /// Source of the items. A URL is fetched anew at each fire. An upload isn't allowed, since one task takes it.
    #[serde(deserialize_with = "windrow_core::settings::json::object")]
    pub source: NewSource,
    /// Deadline relative to the task's creation, after which it is stopped: `25m`.
    #[schema(max_length = 80)]
    pub deadline_after: Option<String>,
    /// Dataset of which the results become a generation when the task finishes; created with its first task. A token
    /// of a business may name only that business's datasets: its slug, or names that begin with the slug and a dot.
    #[schema(max_length = 40, pattern = r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")]
    pub publish: Option<String>,
    /// Handling of a source without items: `ok` (default, the task finishes at once) or `error` (the fire fails).
    pub if_empty: Option<IfEmpty>,
    /// Share of items that must have succeeded or been skipped for publication: `all` (default), `any`, or a
    /// percentage such as `99.5%`.
    #[schema(pattern = r"^(all|any|[0-9]{1,3}(\.[0-9]{1,2})?%)$")]
    pub publish_if: Option<String>,
    /// Output member by which readers look up results in the generation.
    #[schema(min_length = 1, max_length = 128)]
    pub publish_key: Option<String>,
    /// Producer of the generation's summary: `none`, `hook`, or `command:NAME` for a command of the node.
    #[schema(max_length = 80)]
    pub reduce: Option<String>,
}

impl Names for ScheduledTask {
    const REQUEST: Request = Request::Schedule;
}

/// Handling of a fire while an earlier task of the schedule hasn't ended. Stopped tasks are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The fire creates no task.
    Skip,
    /// The fire waits until the earlier task ends; at most one waits.
    Queue,
    /// The earlier task is cancelled first.
    CancelRunning,
    /// Both tasks run concurrently.
    Allow,
}

/// A schedule to create, with either `cron` or `every`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSchedule {
    /// Business of its tasks.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub business: String,
    /// Name, unique within the business; never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub name: String,
    /// Template of the task that each fire creates; at most 64 KiB.
    #[schema(value_type = Template)]
    pub task: Box<RawValue>,
    /// Cron expression: `minute hour day month weekday`, or six fields starting with seconds.
    #[schema(max_length = 200)]
    pub cron: Option<String>,
    /// IANA time zone of `cron`; UTC by default.
    #[schema(max_length = 64)]
    pub zone: Option<String>,
    /// Interval in whole seconds, such as `30m`. Fires fall on multiples of it, counted from `start` or from 1970.
    #[schema(max_length = 80)]
    pub every: Option<String>,
    /// Time before which it doesn't fire.
    #[schema(format = "date-time")]
    pub start: Option<String>,
    /// Time from which on it no longer fires.
    #[schema(format = "date-time")]
    pub end: Option<String>,
    /// Maximum deliberate delay; each fire gets its own.
    #[schema(max_length = 80, default = "0s")]
    pub jitter: Option<String>,
    /// Handling of a fire while a task of the schedule is running.
    #[schema(value_type = Option<Overlap>, default = "skip")]
    pub overlap: Option<Overlap>,
    /// Missed fires to catch up on: `latest`, `none`, or e.g. `all 10`.
    #[schema(pattern = "^(latest|none|all [0-9]{1,3})$", default = "latest")]
    pub missed: Option<String>,
    /// Create the schedule paused.
    pub paused: Option<bool>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Change of a schedule: members that are present are set, null removes one, the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditSchedule {
    /// Merge patch for the task template: members that are present are set, null removes one, the rest stays. A
    /// `source` replaces the previous one.
    #[schema(value_type = Option<std::collections::BTreeMap<String, serde_json::Value>>)]
    pub task: Option<Box<RawValue>>,
    /// As when creating; replaces `every`.
    #[schema(max_length = 200)]
    pub cron: Option<String>,
    /// As when creating a schedule.
    #[schema(max_length = 64)]
    pub zone: Option<String>,
    /// As when creating; replaces `cron`.
    #[schema(max_length = 80)]
    pub every: Option<String>,
    /// Time before which it doesn't fire; null removes it.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub start: Option<Option<String>>,
    /// Time from which on it no longer fires; null removes it.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub end: Option<Option<String>>,
    /// As when creating a schedule.
    #[schema(max_length = 80)]
    pub jitter: Option<String>,
    /// As when creating a schedule.
    #[schema(value_type = Option<Overlap>)]
    pub overlap: Option<Overlap>,
    /// As when creating a schedule.
    #[schema(pattern = "^(latest|none|all [0-9]{1,3})$")]
    pub missed: Option<String>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Request to run the fires that the schedule has in a range of time.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Backfill {
    /// Start of the range, inclusive.
    #[schema(format = "date-time")]
    pub from: String,
    /// End of the range, exclusive; must be in the past. Defaults to now.
    #[schema(format = "date-time")]
    pub to: Option<String>,
    /// Publish the results, as the schedule's tasks do. A fire publishes nothing once a later fire has created its
    /// task, since that would replace newer results with older ones.
    #[serde(default)]
    pub publish: bool,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Request to skip unsettled fires.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkipFires {
    /// Time of the fire to skip; if omitted, all unsettled fires are skipped.
    #[schema(format = "date-time")]
    pub time: Option<String>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Task template of a schedule, with attributes and settings.
pub type Template = Body<ScheduledTask>;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schedule_that_is_only_tried_is_read_with_its_task_and_without_a_number() {
        let ahead = ScheduleAhead {
            schedule: Schedule {
                task: RawValue::from_string(r#"{"b":1,"a":2}"#.to_owned()).ok(),
                ..Schedule::default()
            },
            queued: 3,
            ..ScheduleAhead::default()
        };
        let mut tried = json!(ahead);
        tried["id"] = json!(null);
        let read: ScheduleAhead = serde_json::from_value(tried).expect("a schedule");
        assert_eq!((read.schedule.id.as_str(), read.queued), ("", 3));
        assert_eq!(read.schedule.task.expect("a task").get(), r#"{"a":2,"b":1}"#);
    }
}
