//! What is sent of schedules, and what is answered.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::template::Template;
use crate::http::answer::time::rfc3339;
use crate::http::guard::{reason, some, time, time_option};
use crate::http::tasks::warnings::WarningJson;
use crate::service::ServiceError;
use crate::service::schedules::SpecRequest;
use crate::service::schedules::fares::Fares;
use crate::service::schedules::names::foretold;
use windrow_core::ids::WallMs;
use windrow_core::schedule::timing::Timing;
use windrow_core::schedule::{Missed, Overlap};
use windrow_core::settings::text::{parse_span, span_text};
use windrow_engine::ports::schedules::store::{Fire, Schedule};

/// What becomes of a fire while a task of the same schedule has not ended; a stopped task is in nobody's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OverlapBody {
    /// It makes no task.
    Skip,
    /// It waits until that one has ended; at most one waits.
    Queue,
    /// That one is cancelled first.
    CancelRunning,
    /// Both run.
    Allow,
}

impl From<OverlapBody> for Overlap {
    fn from(body: OverlapBody) -> Overlap {
        match body {
            OverlapBody::Skip => Overlap::Skip,
            OverlapBody::Queue => Overlap::Queue,
            OverlapBody::CancelRunning => Overlap::CancelRunning,
            OverlapBody::Allow => Overlap::Allow,
        }
    }
}

/// A schedule to be made. It has `cron` or `every`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleBody {
    /// The business.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub(super) business: String,
    /// Its name, unique within the business; never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub(super) name: String,
    /// The task of each fire; at most 64 KiB.
    #[schema(value_type = Template)]
    pub(super) task: Box<RawValue>,
    /// `minute hour day month weekday`, or six fields with seconds first.
    #[schema(max_length = 200)]
    cron: Option<String>,
    /// The IANA name of the zone whose clocks `cron` is about; UTC if it isn't said.
    #[schema(max_length = 64)]
    zone: Option<String>,
    /// A period of whole seconds, such as `30m`; it fires at whole multiples of it since `start`, or since 1970.
    #[schema(max_length = 80)]
    every: Option<String>,
    /// No fire before this time.
    #[schema(format = "date-time")]
    start: Option<String>,
    /// No fire at or after this time.
    #[schema(format = "date-time")]
    end: Option<String>,
    /// Each fire is late by a time of its own, at most this one.
    #[schema(max_length = 80, default = "0s")]
    jitter: Option<String>,
    /// While a task of it runs.
    #[schema(value_type = Option<OverlapBody>, default = "skip")]
    overlap: Option<OverlapBody>,
    /// Which missed fires are made up for: `latest`, `none`, or `all 10`.
    #[schema(pattern = "^(latest|none|all [0-9]{1,3})$", default = "latest")]
    missed: Option<String>,
    /// Whether it begins paused.
    pub(super) paused: Option<bool>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    pub(super) reason: Option<String>,
}

impl ScheduleBody {
    pub(super) fn spec(&self) -> Result<SpecRequest, ServiceError> {
        Ok(SpecRequest {
            cron: self.cron.clone(),
            zone: self.zone.clone(),
            every: span("/every", self.every.as_deref())?,
            start: time_option("/start", self.start.as_ref())?.map(Some),
            end: time_option("/end", self.end.as_ref())?.map(Some),
            jitter: span("/jitter", self.jitter.as_deref())?,
            overlap: self.overlap.map(Overlap::from),
            missed: missed(self.missed.as_deref())?,
        })
    }
}

/// A change of a schedule: what is named is set, null takes away, the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleEditBody {
    /// The task of each fire, as a merge-patch over what it is: what is named is set, null takes away, the rest stays. A `source`
    /// takes the place of the other one.
    #[schema(value_type = Option<std::collections::BTreeMap<String, serde_json::Value>>)]
    pub(super) task: Option<Box<RawValue>>,
    /// As in a create; it takes the place of `every`.
    #[schema(max_length = 200)]
    cron: Option<String>,
    /// As in a create.
    #[schema(max_length = 64)]
    zone: Option<String>,
    /// As in a create; it takes the place of `cron`.
    #[schema(max_length = 80)]
    every: Option<String>,
    /// No fire before this time; null takes it away.
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = Option<String>, format = "date-time")]
    start: Option<Option<String>>,
    /// No fire at or after this time; null takes it away.
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = Option<String>, format = "date-time")]
    end: Option<Option<String>>,
    /// As in a create.
    #[schema(max_length = 80)]
    jitter: Option<String>,
    /// As in a create.
    #[schema(value_type = Option<OverlapBody>)]
    overlap: Option<OverlapBody>,
    /// As in a create.
    #[schema(pattern = "^(latest|none|all [0-9]{1,3})$")]
    missed: Option<String>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    pub(super) reason: Option<String>,
}

impl ScheduleEditBody {
    pub(super) fn spec(&self) -> Result<SpecRequest, ServiceError> {
        let moment = |pointer: &str, text: &Option<Option<String>>| match text {
            None => Ok(None),
            Some(text) => time_option(pointer, text.as_ref()).map(Some),
        };
        Ok(SpecRequest {
            cron: self.cron.clone(),
            zone: self.zone.clone(),
            every: span("/every", self.every.as_deref())?,
            start: moment("/start", &self.start)?,
            end: moment("/end", &self.end)?,
            jitter: span("/jitter", self.jitter.as_deref())?,
            overlap: self.overlap.map(Overlap::from),
            missed: missed(self.missed.as_deref())?,
        })
    }
}

fn span(pointer: &str, text: Option<&str>) -> Result<Option<std::time::Duration>, ServiceError> {
    let read = text.map(parse_span).transpose();
    read.map_err(|error| ServiceError::invalid(pointer, error.to_string()))
}

fn missed(text: Option<&str>) -> Result<Option<Missed>, ServiceError> {
    let read = text.map(str::parse::<Missed>).transpose();
    read.map_err(|error| ServiceError::invalid("/missed", error.to_string()))
}

/// Fires that are ordered: those that the schedule names from one time to before another.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackfillBody {
    /// The first time.
    #[schema(format = "date-time")]
    from: String,
    /// Before this time, which is over; without it until now.
    #[schema(format = "date-time")]
    to: Option<String>,
    /// Whether their tasks publish what the schedule's tasks do. A fire publishes nothing once that of a later time has made
    /// its task: what is current would be older than before.
    #[serde(default)]
    pub(super) publish: bool,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    pub(super) reason: Option<String>,
}

impl BackfillBody {
    pub(super) fn range(&self) -> Result<(WallMs, Option<WallMs>), ServiceError> {
        Ok((time("/from", &self.from)?, time_option("/to", self.to.as_ref())?))
    }
}

/// Fires that are given up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkipFiresBody {
    /// The one of this time; without it all that are not settled.
    #[schema(format = "date-time")]
    time: Option<String>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    pub(super) reason: Option<String>,
}

impl SkipFiresBody {
    pub(super) fn time(&self) -> Result<Option<WallMs>, ServiceError> {
        time_option("/time", self.time.as_ref())
    }
}

/// A schedule.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Schedule)]
pub(crate) struct ScheduleJson {
    /// Its number.
    id: String,
    /// The business.
    business: String,
    /// Its name.
    name: String,
    /// At which times, unless it has `every`.
    cron: Option<String>,
    /// The zone of those.
    zone: Option<String>,
    /// How often, unless it has `cron`.
    every: Option<String>,
    /// No fire before.
    #[schema(format = "date-time")]
    start: Option<String>,
    /// No fire at or after.
    #[schema(format = "date-time")]
    end: Option<String>,
    /// How late each fire may be on purpose.
    jitter: String,
    /// While a task of it runs: `skip`, `queue`, `cancel_running` or `allow`.
    overlap: &'static str,
    /// Which missed fires are made up for.
    missed: String,
    /// Whether it fires by itself at present.
    paused: bool,
    /// The task of each fire.
    #[schema(value_type = Template)]
    task: Option<Box<RawValue>>,
    /// Its next fire; null while it is paused and after the last one.
    #[schema(format = "date-time")]
    next_fire: Option<String>,
    /// When that is due, with its jitter.
    #[schema(format = "date-time")]
    next_due: Option<String>,
    /// Who made it.
    created_by: String,
    /// Grows with each change; the tag.
    revision: u64,
    /// When it was made.
    #[schema(format = "date-time")]
    created_at: String,
    /// When it was last changed.
    #[schema(format = "date-time")]
    updated_at: String,
    /// Its newest fire of which something is known; null before that.
    #[schema(value_type = Option<FireJson>)]
    last_fire: Option<FireJson>,
    /// Its newest fires that made no task, one after the other.
    idle_fires: u64,
    /// Why it isn't well: its fires make no task, or its last task stopped or has failures; null where it is.
    trouble: Option<String>,
}

impl ScheduleJson {
    pub(super) fn new(schedule: &Schedule, fares: &Fares) -> ScheduleJson {
        let spec = &schedule.spec;
        let (cron, every) = match &spec.timing {
            Timing::Cron(cron) => (Some(cron), None),
            Timing::Every(period) => (None, Some(*period)),
        };
        ScheduleJson {
            id: schedule.id.to_string(),
            business: schedule.business.clone(),
            name: schedule.name.clone(),
            cron: cron.map(|cron| cron.text().to_owned()),
            zone: cron.map(|cron| cron.zone().to_owned()),
            every: every.map(span_text),
            start: spec.start.map(rfc3339),
            end: spec.end.map(rfc3339),
            jitter: span_text(spec.jitter),
            overlap: spec.overlap.as_str(),
            missed: spec.missed.to_string(),
            paused: schedule.paused,
            task: RawValue::from_string(schedule.template.clone()).ok(),
            next_fire: schedule.next_fire.map(rfc3339),
            next_due: schedule.next_due.map(rfc3339),
            created_by: schedule.created_by.clone(),
            revision: schedule.revision,
            created_at: rfc3339(schedule.created_at),
            updated_at: rfc3339(schedule.updated_at),
            last_fire: fares.last.as_ref().map(|fire| FireJson::new(schedule, fire)),
            idle_fires: fares.idle,
            trouble: fares.trouble.clone(),
        }
    }
}

/// A schedule, its next fires, and those that are not settled.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScheduleAhead)]
pub(crate) struct ScheduleAheadJson {
    #[serde(flatten)]
    pub(super) schedule: ScheduleJson,
    /// Its next five fires; of a paused one, those that it would have.
    pub(super) next_fires: Vec<String>,
    /// Fires whose tasks are being made.
    pub(super) pending: u64,
    /// Fires that wait until no task of it runs.
    pub(super) queued: u64,
    /// What of its fires would not come about as it was wished.
    pub(super) warnings: Vec<WarningJson>,
}

/// Fires to come.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NextFires)]
pub(crate) struct NextFiresJson {
    /// Their times.
    pub(super) items: Vec<String>,
}

/// A fire of a schedule, or of missed ones a run of them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Fire)]
pub(crate) struct FireJson {
    /// The schedule.
    schedule: String,
    /// The time that the schedule names.
    #[schema(format = "date-time")]
    time: String,
    /// `scheduled`, `triggered` or `backfilled`.
    kind: &'static str,
    /// `pending`, `queued`, `made`, `skipped`, `missed` or `failed`.
    outcome: &'static str,
    /// The task that was made; it may be deleted by now.
    task: Option<String>,
    /// What the task will be called that is still to be made; null where it has no name, or one that says when the fire before was.
    name: Option<String>,
    /// The last of the missed fires that this stands for; null where it is one.
    #[schema(format = "date-time")]
    last: Option<String>,
    /// How many fires this stands for.
    count: u64,
    /// When it was decided.
    #[schema(format = "date-time")]
    decided_at: String,
    /// When its outcome was final.
    #[schema(format = "date-time")]
    settled_at: Option<String>,
    /// How often its task was tried to be made; after five tries it has failed.
    attempts: u32,
    /// Why it is what it is, where that isn't plain.
    text: Option<String>,
    /// Whether its task publishes what the schedule's tasks do.
    publishes: bool,
}

impl FireJson {
    pub(super) fn all(schedule: &Schedule, fires: &[Fire]) -> Vec<FireJson> {
        fires.iter().map(|fire| FireJson::new(schedule, fire)).collect()
    }

    pub(super) fn new(schedule: &Schedule, fire: &Fire) -> FireJson {
        FireJson {
            schedule: fire.schedule.to_string(),
            time: rfc3339(fire.time),
            kind: fire.kind.as_str(),
            outcome: fire.outcome.as_str(),
            task: fire.task.map(|task| task.to_string()),
            name: foretold(schedule, fire),
            last: (fire.count > 1).then(|| rfc3339(fire.last)),
            count: fire.count,
            decided_at: rfc3339(fire.decided_at),
            settled_at: fire.settled_at.map(rfc3339),
            attempts: fire.attempts,
            text: fire.text.clone(),
            publishes: fire.publishes,
        }
    }
}
