//! Conversion of schedules and fires to rows and back.

use std::time::Duration;

use sea_orm::ActiveValue::{NotSet, Set};

use crate::sql::damaged;
use crate::sql::entity::{fire, schedule};
use windrow_core::ids::{ScheduleId, TaskId, WallMs};
use windrow_core::schedule::cron::Cron;
use windrow_core::schedule::plan::Gap;
use windrow_core::schedule::timing::Timing;
use windrow_core::schedule::{Missed, Overlap, Spec, SpecFault};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::schedules::store::{Fire, FireKind, FireOutcome, NewSchedule, Schedule};

pub(super) fn view(row: &schedule::Model, business: String) -> Result<Schedule, StoreError> {
    Ok(Schedule {
        id: ScheduleId(row.id),
        business,
        name: row.name.clone(),
        spec: spec(row)?,
        template: row.template.clone(),
        is_guarded: row.is_guarded,
        paused: row.paused,
        next_fire: row.next_fire.map(WallMs),
        next_due: row.next_due.map(WallMs),
        created_by: row.created_by.clone(),
        revision: row.revision.cast_unsigned(),
        created_at: WallMs(row.created_at),
        updated_at: WallMs(row.updated_at),
    })
}

/// Parses the timing and the policies of a schedule.
pub(super) fn spec(row: &schedule::Model) -> Result<Spec, StoreError> {
    let missed: Result<Missed, _> = row.missed.parse();
    Ok(Spec {
        timing: timing(row)?,
        start: row.start_at.map(WallMs),
        end: row.end_at.map(WallMs),
        jitter: millis(row.jitter_ms),
        overlap: Overlap::parse(&row.overlap).ok_or_else(|| damaged("schedule.overlap", &row.overlap))?,
        missed: missed.map_err(|_| damaged("schedule.missed", &row.missed))?,
    })
}

fn timing(row: &schedule::Model) -> Result<Timing, StoreError> {
    let fault = |fault: SpecFault| damaged("schedule.timing", &fault.what);
    match (&row.cron, &row.zone, row.every_ms) {
        (Some(cron), Some(zone), None) => Cron::parse(cron, zone).map(Timing::Cron).map_err(fault),
        (None, None, Some(every)) => Timing::every(millis(every)).map_err(fault),
        _ => Err(damaged("schedule.timing", &ScheduleId(row.id).to_string())),
    }
}

fn millis(column: i64) -> Duration {
    Duration::from_millis(column.max(0).cast_unsigned())
}

fn column(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the columns of a schedule that users set.
pub(super) fn said(spec: &Spec) -> schedule::ActiveModel {
    let (cron, every) = match &spec.timing {
        Timing::Cron(cron) => (Some(cron), None),
        Timing::Every(period) => (None, Some(column(*period))),
    };
    schedule::ActiveModel {
        cron: Set(cron.map(|cron| cron.text().to_owned())),
        zone: Set(cron.map(|cron| cron.zone().to_owned())),
        every_ms: Set(every),
        start_at: Set(spec.start.map(|at| at.0)),
        end_at: Set(spec.end.map(|at| at.0)),
        jitter_ms: Set(column(spec.jitter)),
        overlap: Set(spec.overlap.as_str().to_owned()),
        missed: Set(spec.missed.to_string()),
        ..schedule::ActiveModel::default()
    }
}

/// Builds the row of a new schedule, without a next fire.
pub(super) fn new_row(new: &NewSchedule, business_id: i64, by: &str, now: WallMs) -> schedule::ActiveModel {
    let row = schedule::ActiveModel {
        id: NotSet,
        business_id: Set(business_id),
        name: Set(new.name.clone()),
        template: Set(new.template.clone()),
        is_guarded: Set(new.is_guarded),
        paused: Set(new.paused),
        created_by: Set(by.chars().take(190).collect()),
        revision: Set(1),
        created_at: Set(now.0),
        updated_at: Set(now.0),
        ..said(&new.spec)
    };
    // The jitter depends on the id, which isn't known yet.
    armed(row, &new.spec, (ScheduleId(0), None), now)
}

/// Sets the next fire of a row, which is `None` if the schedule is paused or over.
pub(super) fn armed(
    row: schedule::ActiveModel,
    spec: &Spec,
    (id, next): (ScheduleId, Option<WallMs>),
    now: WallMs,
) -> schedule::ActiveModel {
    schedule::ActiveModel {
        next_fire: Set(next.map(|next| next.0)),
        next_due: Set(next.map(|next| spec.due(id, next).0)),
        armed_at: Set(now.0),
        ..row
    }
}

pub(super) fn fire_view(row: fire::Model) -> Result<Fire, StoreError> {
    Ok(Fire {
        schedule: ScheduleId(row.schedule_id),
        time: WallMs(row.fire_time),
        kind: kind(&row)?,
        outcome: FireOutcome::parse(&row.outcome).ok_or_else(|| damaged("fire.outcome", &row.outcome))?,
        task: row.task_id.map(TaskId),
        last: WallMs(row.last_time),
        count: row.fire_count.cast_unsigned(),
        decided_at: WallMs(row.decided_at),
        settled_at: row.settled_at.map(WallMs),
        attempts: row.attempts.cast_unsigned(),
        publishes: publishes(&row)?,
        text: row.note,
    })
}

/// Returns true if the task of a fire publishes like the schedule's other tasks; a backfilled one does so only on
/// request.
pub(super) fn publishes(row: &fire::Model) -> Result<bool, StoreError> {
    Ok(row.publishes || kind(row)? != FireKind::Backfilled)
}

pub(super) fn kind(row: &fire::Model) -> Result<FireKind, StoreError> {
    FireKind::parse(&row.kind).ok_or_else(|| damaged("fire.kind", &row.kind))
}

/// Builds the row of a fire that is decided now.
pub(super) fn decided(
    id: ScheduleId,
    time: WallMs,
    (kind, outcome): (FireKind, FireOutcome),
    note: Option<&str>,
    now: WallMs,
) -> fire::Model {
    let is_open = matches!(outcome, FireOutcome::Pending | FireOutcome::Queued);
    fire::Model {
        schedule_id: id.0,
        fire_time: time.0,
        kind: kind.as_str().to_owned(),
        outcome: outcome.as_str().to_owned(),
        task_id: None,
        last_time: time.0,
        fire_count: 1,
        decided_at: now.0,
        settled_at: (!is_open).then_some(now.0),
        lease_until: 0,
        attempts: 0,
        note: note.map(str::to_owned),
        publishes: false,
    }
}

/// Builds the row that stands for missed fires.
pub(super) fn missed(id: ScheduleId, gap: Gap, now: WallMs) -> fire::Model {
    fire::Model {
        last_time: gap.last.0,
        fire_count: gap.count.cast_signed(),
        ..decided(
            id,
            gap.first,
            (FireKind::Scheduled, FireOutcome::Missed),
            None,
            now,
        )
    }
}
