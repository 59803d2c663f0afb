//! Request and response bodies of schedules.

use serde_json::value::RawValue;

use crate::http::answer::time::rfc3339;
use crate::http::guard::{time, time_option};
use crate::service::ServiceError;
use crate::service::schedules::SpecRequest;
use crate::service::schedules::fares::Fares;
use crate::service::schedules::names::foretold;
use windrow_core::ids::WallMs;
use windrow_core::schedule::timing::Timing;
use windrow_core::schedule::{Missed, Overlap};
use windrow_core::settings::text::{parse_span, span_text};
use windrow_engine::ports::schedules::store::{Fire, Schedule};

fn overlap(body: api::Overlap) -> Overlap {
    match body {
        api::Overlap::Skip => Overlap::Skip,
        api::Overlap::Queue => Overlap::Queue,
        api::Overlap::CancelRunning => Overlap::CancelRunning,
        api::Overlap::Allow => Overlap::Allow,
    }
}

pub(crate) fn spec(body: &api::CreateSchedule) -> Result<SpecRequest, ServiceError> {
    Ok(SpecRequest {
        cron: body.cron.clone(),
        zone: body.zone.clone(),
        every: span("/every", body.every.as_deref())?,
        start: time_option("/start", body.start.as_ref())?.map(Some),
        end: time_option("/end", body.end.as_ref())?.map(Some),
        jitter: span("/jitter", body.jitter.as_deref())?,
        overlap: body.overlap.map(overlap),
        missed: missed(body.missed.as_deref())?,
    })
}

pub(crate) fn spec_change(body: &api::EditSchedule) -> Result<SpecRequest, ServiceError> {
    let moment = |pointer: &str, text: &Option<Option<String>>| match text {
        None => Ok(None),
        Some(text) => time_option(pointer, text.as_ref()).map(Some),
    };
    Ok(SpecRequest {
        cron: body.cron.clone(),
        zone: body.zone.clone(),
        every: span("/every", body.every.as_deref())?,
        start: moment("/start", &body.start)?,
        end: moment("/end", &body.end)?,
        jitter: span("/jitter", body.jitter.as_deref())?,
        overlap: body.overlap.map(overlap),
        missed: missed(body.missed.as_deref())?,
    })
}

fn span(pointer: &str, text: Option<&str>) -> Result<Option<std::time::Duration>, ServiceError> {
    let read = text.map(parse_span).transpose();
    read.map_err(|error| ServiceError::invalid(pointer, error.to_string()))
}

fn missed(text: Option<&str>) -> Result<Option<Missed>, ServiceError> {
    let read = text.map(str::parse::<Missed>).transpose();
    read.map_err(|error| ServiceError::invalid("/missed", error.to_string()))
}

pub(crate) fn range(body: &api::Backfill) -> Result<(WallMs, Option<WallMs>), ServiceError> {
    Ok((time("/from", &body.from)?, time_option("/to", body.to.as_ref())?))
}

pub(crate) fn fire_time(body: &api::SkipFires) -> Result<Option<WallMs>, ServiceError> {
    time_option("/time", body.time.as_ref())
}

pub(crate) fn show_schedule(schedule: &Schedule, fares: &Fares) -> api::Schedule {
    let spec = &schedule.spec;
    let (cron, every) = match &spec.timing {
        Timing::Cron(cron) => (Some(cron), None),
        Timing::Every(period) => (None, Some(*period)),
    };
    api::Schedule {
        id: schedule.id.to_string(),
        business: schedule.business.clone(),
        name: schedule.name.clone(),
        cron: cron.map(|cron| cron.text().to_owned()),
        zone: cron.map(|cron| cron.zone().to_owned()),
        every: every.map(span_text),
        start: spec.start.map(rfc3339),
        end: spec.end.map(rfc3339),
        jitter: span_text(spec.jitter),
        overlap: spec.overlap.as_str().to_owned(),
        missed: spec.missed.to_string(),
        paused: schedule.paused,
        task: RawValue::from_string(schedule.template.clone()).ok(),
        next_fire: schedule.next_fire.map(rfc3339),
        next_due: schedule.next_due.map(rfc3339),
        created_by: schedule.created_by.clone(),
        revision: schedule.revision,
        created_at: rfc3339(schedule.created_at),
        updated_at: rfc3339(schedule.updated_at),
        last_fire: fares.last.as_ref().map(|fire| show_fire(schedule, fire)),
        idle_fires: fares.idle,
        trouble: fares.trouble.clone(),
    }
}

pub(crate) fn show_fires(schedule: &Schedule, fires: &[Fire]) -> Vec<api::Fire> {
    fires.iter().map(|fire| show_fire(schedule, fire)).collect()
}

pub(crate) fn show_fire(schedule: &Schedule, fire: &Fire) -> api::Fire {
    api::Fire {
        schedule: fire.schedule.to_string(),
        time: rfc3339(fire.time),
        kind: fire.kind.as_str().to_owned(),
        outcome: fire.outcome.as_str().to_owned(),
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
