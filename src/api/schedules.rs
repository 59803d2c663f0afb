//! Schedules and their fires.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::body::{Body, Names};
use crate::task::{IfEmpty, NewSource, TaskWarning};
use windrow_core::task::spec::Request;

/// A schedule.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Its number.
    #[serde(deserialize_with = "crate::read::id")]
    pub id: String,
    /// The business.
    pub business: String,
    /// Its name.
    pub name: String,
    /// At which times, unless it has `every`.
    pub cron: Option<String>,
    /// The zone of those.
    pub zone: Option<String>,
    /// How often, unless it has `cron`.
    pub every: Option<String>,
    /// No fire before.
    #[schema(format = "date-time")]
    pub start: Option<String>,
    /// No fire at or after.
    #[schema(format = "date-time")]
    pub end: Option<String>,
    /// How late each fire may be on purpose.
    pub jitter: String,
    /// While a task of it runs: `skip`, `queue`, `cancel_running` or `allow`.
    pub overlap: String,
    /// Which missed fires are made up for.
    pub missed: String,
    /// Whether it fires by itself at present.
    pub paused: bool,
    /// The task of each fire.
    #[serde(deserialize_with = "crate::read::flat")]
    #[schema(value_type = Template)]
    pub task: Option<Box<RawValue>>,
    /// Its next fire; null while it is paused and after the last one.
    #[schema(format = "date-time")]
    pub next_fire: Option<String>,
    /// When that is due, with its jitter.
    #[schema(format = "date-time")]
    pub next_due: Option<String>,
    /// Who made it.
    pub created_by: String,
    /// Grows with each change; the tag.
    pub revision: u64,
    /// When it was made.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// When it was last changed.
    #[schema(format = "date-time")]
    pub updated_at: String,
    /// Its newest fire of which something is known; null before that.
    #[schema(value_type = Option<Fire>)]
    pub last_fire: Option<Fire>,
    /// Its newest fires that made no task, one after the other.
    pub idle_fires: u64,
    /// Why it isn't well: its fires make no task, or its last task stopped or has failures; null where it is.
    pub trouble: Option<String>,
}

/// A schedule, its next fires, and those that are not settled.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ScheduleAhead {
    #[serde(flatten)]
    pub schedule: Schedule,
    /// Its next five fires; of a paused one, those that it would have.
    pub next_fires: Vec<String>,
    /// Fires whose tasks are being made.
    pub pending: u64,
    /// Fires that wait until no task of it runs.
    pub queued: u64,
    /// What of its fires would not come about as it was wished.
    pub warnings: Vec<TaskWarning>,
}

/// Fires to come.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NextFires {
    /// Their times.
    pub items: Vec<String>,
}

/// A fire of a schedule, or of missed ones a run of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Fire {
    /// The schedule.
    pub schedule: String,
    /// The time that the schedule names.
    #[schema(format = "date-time")]
    pub time: String,
    /// `scheduled`, `triggered` or `backfilled`.
    pub kind: String,
    /// `pending`, `queued`, `made`, `skipped`, `missed` or `failed`.
    pub outcome: String,
    /// The task that was made; it may be deleted by now.
    pub task: Option<String>,
    /// What the task will be called that is still to be made; null where it has no name, or one that says when the fire before was.
    pub name: Option<String>,
    /// The last of the missed fires that this stands for; null where it is one.
    #[schema(format = "date-time")]
    pub last: Option<String>,
    /// How many fires this stands for.
    pub count: u64,
    /// When it was decided.
    #[schema(format = "date-time")]
    pub decided_at: String,
    /// When its outcome was final.
    #[schema(format = "date-time")]
    pub settled_at: Option<String>,
    /// How often its task was tried to be made; after five tries it has failed.
    pub attempts: u32,
    /// Why it is what it is, where that isn't plain.
    pub text: Option<String>,
    /// Whether its task publishes what the schedule's tasks do.
    pub publishes: bool,
}

/// The task of each fire. Its texts may have `{fire_time}` and `{previous_fire_time}` in them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduledTask {
    /// Where its items come from; an address is fetched anew with each fire. (No upload: a task takes it.)
    #[serde(deserialize_with = "windrow_core::settings::json::object")]
    pub source: NewSource,
    /// Stopped so long after it was made: `25m`.
    #[schema(max_length = 80)]
    pub deadline_after: Option<String>,
    /// The dataset that its results become a generation of, once it is finished; made with its first task. A token
    /// of a business names its own: its slug, or what begins with that and a dot.
    #[schema(max_length = 40, pattern = r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")]
    pub publish: Option<String>,
    /// What a source without items is: `ok`, the default (a task that finishes at once), or `error` (the fire fails).
    pub if_empty: Option<IfEmpty>,
    /// How many items must have succeeded, or been skipped, for that: `all` (the default), `any`, or such as `99.5%`.
    #[schema(pattern = r"^(all|any|[0-9]{1,3}(\.[0-9]{1,2})?%)$")]
    pub publish_if: Option<String>,
    /// The member of the outputs by which readers look up in the generation.
    #[schema(min_length = 1, max_length = 128)]
    pub publish_key: Option<String>,
    /// What makes the generation's summary of the results: `none`, `hook`, or `command:NAME` with a command of the node.
    #[schema(max_length = 80)]
    pub reduce: Option<String>,
}

impl Names for ScheduledTask {
    const REQUEST: Request = Request::Schedule;
}

/// What becomes of a fire while a task of the same schedule has not ended; a stopped task is in nobody's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It makes no task.
    Skip,
    /// It waits until that one has ended; at most one waits.
    Queue,
    /// That one is cancelled first.
    CancelRunning,
    /// Both run.
    Allow,
}

/// A schedule to be made. It has `cron` or `every`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSchedule {
    /// The business.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub business: String,
    /// Its name, unique within the business; never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub name: String,
    /// The task of each fire; at most 64 KiB.
    #[schema(value_type = Template)]
    pub task: Box<RawValue>,
    /// `minute hour day month weekday`, or six fields with seconds first.
    #[schema(max_length = 200)]
    pub cron: Option<String>,
    /// The IANA name of the zone whose clocks `cron` is about; UTC if it isn't said.
    #[schema(max_length = 64)]
    pub zone: Option<String>,
    /// A period of whole seconds, such as `30m`; it fires at whole multiples of it since `start`, or since 1970.
    #[schema(max_length = 80)]
    pub every: Option<String>,
    /// No fire before this time.
    #[schema(format = "date-time")]
    pub start: Option<String>,
    /// No fire at or after this time.
    #[schema(format = "date-time")]
    pub end: Option<String>,
    /// Each fire is late by a time of its own, at most this one.
    #[schema(max_length = 80, default = "0s")]
    pub jitter: Option<String>,
    /// While a task of it runs.
    #[schema(value_type = Option<Overlap>, default = "skip")]
    pub overlap: Option<Overlap>,
    /// Which missed fires are made up for: `latest`, `none`, or `all 10`.
    #[schema(pattern = "^(latest|none|all [0-9]{1,3})$", default = "latest")]
    pub missed: Option<String>,
    /// Whether it begins paused.
    pub paused: Option<bool>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// A change of a schedule: what is named is set, null takes away, the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditSchedule {
    /// The task of each fire, as a merge-patch over what it is: what is named is set, null takes away, the rest stays. A `source`
    /// takes the place of the other one.
    #[schema(value_type = Option<std::collections::BTreeMap<String, serde_json::Value>>)]
    pub task: Option<Box<RawValue>>,
    /// As in a create; it takes the place of `every`.
    #[schema(max_length = 200)]
    pub cron: Option<String>,
    /// As in a create.
    #[schema(max_length = 64)]
    pub zone: Option<String>,
    /// As in a create; it takes the place of `cron`.
    #[schema(max_length = 80)]
    pub every: Option<String>,
    /// No fire before this time; null takes it away.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub start: Option<Option<String>>,
    /// No fire at or after this time; null takes it away.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub end: Option<Option<String>>,
    /// As in a create.
    #[schema(max_length = 80)]
    pub jitter: Option<String>,
    /// As in a create.
    #[schema(value_type = Option<Overlap>)]
    pub overlap: Option<Overlap>,
    /// As in a create.
    #[schema(pattern = "^(latest|none|all [0-9]{1,3})$")]
    pub missed: Option<String>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Fires that are ordered: those that the schedule names from one time to before another.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Backfill {
    /// The first time.
    #[schema(format = "date-time")]
    pub from: String,
    /// Before this time, which is over; without it until now.
    #[schema(format = "date-time")]
    pub to: Option<String>,
    /// Whether their tasks publish what the schedule's tasks do. A fire publishes nothing once that of a later time has made
    /// its task: what is current would be older than before.
    #[serde(default)]
    pub publish: bool,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Fires that are given up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkipFires {
    /// The one of this time; without it all that are not settled.
    #[schema(format = "date-time")]
    pub time: Option<String>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// The task of each fire, and settings.
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
