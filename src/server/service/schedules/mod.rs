//! Schedules: creating, reading, changing, deleting and firing them manually. The store's clock decides when they
//! fire. Their tasks are created in `http/schedules/maker.rs`, because a template has the form of a request.

mod backfill;
pub mod fares;
pub mod names;

use std::sync::Arc;
use std::time::Duration;

use super::{FieldFault, ServiceError};
use crate::service::node::ThisNode;
use windrow_core::business::is_slug;
use windrow_core::ids::{ScheduleId, WallMs};
use windrow_core::schedule::cron::{Cron, zones};
use windrow_core::schedule::timing::Timing;
use windrow_core::schedule::{Missed, Overlap, Spec, SpecFault};
use windrow_core::text::likeness::nearest;
use windrow_engine::ports::schedules::store::{
    Fire, FireOutcome, InTheWay, NewSchedule, OpenFires, Schedule, ScheduleEdit, ScheduleError,
    ScheduleFilter, ScheduleStore,
};
use windrow_engine::ports::tasks::store::{TaskStore, Write};

/// Attempts at a change without an expected revision when concurrent changes interfere.
const TRIES: u32 = 4;
/// Largest template, in bytes. Long lists of items belong in a file that the source names.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// Number of next fires shown with a schedule.
pub const NEXT_SHOWN: usize = 5;
/// Maximum number of next fires returned.
pub const NEXT_MAX: usize = 100;
/// Longest wait for the task of a manual fire; the interval of the checks follows.
const FIRE_PATIENCE: Duration = Duration::from_secs(10);
const FIRE_LOOK_EVERY: Duration = Duration::from_millis(50);

/// Timing from a request. `None` keeps the current value or uses the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpecRequest {
    /// Cron expression for its times.
    pub cron: Option<String>,
    /// Time zone of the cron expression.
    pub zone: Option<String>,
    /// Fixed interval between fires.
    pub every: Option<Duration>,
    /// Earliest fire; the inner `None` removes it.
    pub start: Option<Option<WallMs>>,
    /// End of the schedule, exclusive; the inner `None` removes it.
    pub end: Option<Option<WallMs>>,
    /// Maximum random delay of a fire.
    pub jitter: Option<Duration>,
    /// Behavior while a task is running.
    pub overlap: Option<Overlap>,
    /// Behavior for fires missed during an outage.
    pub missed: Option<Missed>,
}

impl SpecRequest {
    /// Applies the request to the existing timing, or to the defaults.
    ///
    /// # Errors
    /// `Unprocessable` with all errors found.
    fn over(&self, before: Option<&Spec>) -> Result<Spec, ServiceError> {
        let timing = self.timing(before.map(|spec| &spec.timing))?;
        let spec = Spec {
            timing,
            start: self.start.unwrap_or_else(|| before.and_then(|spec| spec.start)),
            end: self.end.unwrap_or_else(|| before.and_then(|spec| spec.end)),
            jitter: self
                .jitter
                .unwrap_or_else(|| before.map(|spec| spec.jitter).unwrap_or_default()),
            overlap: self
                .overlap
                .unwrap_or_else(|| before.map(|spec| spec.overlap).unwrap_or_default()),
            missed: self
                .missed
                .unwrap_or_else(|| before.map(|spec| spec.missed).unwrap_or_default()),
        };
        ServiceError::refuse(spec.faults().into_iter().map(fault).collect())?;
        Ok(spec)
    }

    fn timing(&self, before: Option<&Timing>) -> Result<Timing, ServiceError> {
        let known = match before {
            Some(Timing::Cron(cron)) => Some(cron),
            Some(Timing::Every(_)) | None => None,
        };
        match (&self.cron, self.every, before) {
            (Some(_), Some(_), _) => Err(ServiceError::from(
                FieldFault::new("/every", "excludes `cron`").advise("set only one of them"),
            )),
            (Some(cron), None, _) => self.cron(cron, known),
            (None, Some(_), _) | (None, None, Some(Timing::Every(_))) if self.zone.is_some() => {
                Err(ServiceError::from(
                    FieldFault::new("/zone", "`every` counts elapsed time and has no zone")
                        .advise("leave it out"),
                ))
            }
            (None, Some(every), _) => Timing::every(every).map_err(|wrong| fault(wrong).into()),
            (None, None, Some(Timing::Cron(cron))) if self.zone.is_some() => self.cron(cron.text(), known),
            (None, None, Some(timing)) => Ok(timing.clone()),
            (None, None, None) => Err(ServiceError::from(
                FieldFault::new("/cron", "a schedule needs `cron` or `every`")
                    .advise("\"cron\":\"0 3 * * *\", or \"every\":\"30m\""),
            )),
        }
    }

    fn cron(&self, text: &str, known: Option<&Cron>) -> Result<Timing, ServiceError> {
        let zone = self
            .zone
            .as_deref()
            .or_else(|| known.map(Cron::zone))
            .unwrap_or("UTC");
        Cron::parse(text, zone)
            .map(Timing::Cron)
            .map_err(|wrong| match wrong.member {
                "zone" => match nearest(zone, zones().map(str::to_owned)) {
                    Some(like) => fault(wrong).advise(format!("did you mean {like}?")).into(),
                    None => fault(wrong).into(),
                },
                _ => fault(wrong).into(),
            })
    }
}

fn fault(wrong: SpecFault) -> FieldFault {
    FieldFault::new(format!("/{}", wrong.member), wrong.what).advise(wrong.advice)
}

/// Request to create a schedule.
#[derive(Clone, Debug)]
pub struct ScheduleRequest {
    /// Slug of the business.
    pub business: String,
    /// Name of the schedule.
    pub name: String,
    /// Timing of the fires.
    pub spec: SpecRequest,
    /// Template of its tasks, already checked.
    pub template: String,
    /// True if a business requests it, which limits the rights of its tasks.
    pub is_guarded: bool,
    /// True if it is created paused.
    pub paused: bool,
}

/// Changes to a schedule; `None` keeps a value.
#[derive(Clone, Debug, Default)]
pub struct ScheduleChange {
    /// Timing of the fires.
    pub spec: SpecRequest,
    /// Template of its tasks, already checked, and true if a business requests it.
    pub template: Option<(String, bool)>,
    /// Paused state to set.
    pub paused: Option<bool>,
}

/// Service for recurring tasks.
pub struct Schedules {
    pub(super) node: Arc<ThisNode>,
    pub(super) store: Arc<dyn ScheduleStore>,
    tasks: Arc<dyn TaskStore>,
}

impl Schedules {
    pub(super) fn new(
        node: Arc<ThisNode>,
        store: Arc<dyn ScheduleStore>,
        tasks: Arc<dyn TaskStore>,
    ) -> Schedules {
        Schedules { node, store, tasks }
    }

    /// Creates a schedule.
    ///
    /// # Errors
    /// `Unprocessable` with all errors found; `NameTaken`; `Conflict` if the business has reached its maximum.
    pub async fn create(&self, request: ScheduleRequest, write: &Write) -> Result<Schedule, ServiceError> {
        if !is_slug(&request.name) {
            let fault = FieldFault::new("/name", "must be 1 to 40 lowercase letters, digits and -");
            // For `business/name`, suggest the name alone.
            let meant = request.name.rsplit('/').next().filter(|name| is_slug(name));
            return Err(ServiceError::from(fault.advise(meant.unwrap_or("team-board"))));
        }
        let spec = request.spec.over(None)?;
        let now = self.store.database_time().await?;
        self.refuse_never(&spec, now)?;
        let new = NewSchedule {
            business: request.business,
            name: request.name,
            spec,
            template: request.template,
            is_guarded: request.is_guarded,
            paused: request.paused,
        };
        let made = self.store.create_schedule(&new, write).await?;
        self.changed(&made, "schedule created", write);
        Ok(made)
    }

    /// Rejects a schedule that will never fire, because it must be a mistake.
    fn refuse_never(&self, spec: &Spec, now: WallMs) -> Result<(), ServiceError> {
        if spec.next_after(now).is_some() {
            return Ok(());
        }
        let member = match (&spec.timing, spec.end) {
            (_, Some(end)) if end <= now => "/end",
            (Timing::Cron(_), _) => "/cron",
            (Timing::Every(_), _) => "/every",
        };
        Err(ServiceError::from(
            FieldFault::new(member, "it would never fire again").advise("use a time in the future"),
        ))
    }

    /// Returns a schedule by id.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn get(&self, id: ScheduleId) -> Result<Schedule, ServiceError> {
        let found = self.store.schedule(id).await?;
        found.ok_or_else(|| ScheduleError::NotFound(id).into())
    }

    /// Returns schedules by id.
    pub async fn list(
        &self,
        filter: &ScheduleFilter,
        after: Option<ScheduleId>,
        count: u32,
    ) -> Result<Vec<Schedule>, ServiceError> {
        Ok(self.store.schedules(filter, after, count).await?)
    }

    /// Returns the number of unsettled fires of a schedule.
    pub async fn open_fires(&self, id: ScheduleId) -> Result<OpenFires, ServiceError> {
        Ok(self.store.open_fires(id).await?)
    }

    /// Returns the next fires of a schedule, or those after a time; for a paused one, the fires it would have.
    pub async fn next_fires(
        &self,
        schedule: &Schedule,
        after: Option<WallMs>,
        count: usize,
    ) -> Result<Vec<WallMs>, ServiceError> {
        let spec = &schedule.spec;
        let first = match (after, schedule.next_fire) {
            (Some(after), _) => spec.next_after(after),
            (None, Some(next)) => Some(next),
            (None, None) => spec.next_after(self.store.database_time().await?),
        };
        let fires = std::iter::successors(first, |last| spec.next_after(*last));
        Ok(fires.take(count.min(NEXT_MAX)).collect())
    }

    /// Changes a schedule; with `expected`, only at that revision. If the timing changes, the next fire is
    /// recomputed.
    ///
    /// # Errors
    /// `Unprocessable` with all errors found, `EtagMismatch`, `NotFound`.
    pub async fn change(
        &self,
        id: ScheduleId,
        change: ScheduleChange,
        expected: Option<u64>,
        write: &Write,
    ) -> Result<Schedule, ServiceError> {
        for _ in 0..TRIES {
            let before = self.get(id).await?;
            let spec = match change.spec == SpecRequest::default() {
                true => None,
                false => {
                    let spec = change.spec.over(Some(&before.spec))?;
                    self.refuse_never(&spec, self.store.database_time().await?)?;
                    Some(spec)
                }
            };
            let edit = ScheduleEdit {
                spec,
                template: change.template.clone(),
                paused: change.paused,
            };
            let revision = expected.unwrap_or(before.revision);
            match self.store.change_schedule(id, revision, &edit, write).await {
                Err(ScheduleError::Changed { .. }) if expected.is_none() => {}
                Err(error) => return Err(error.into()),
                Ok(changed) => {
                    if changed != before {
                        self.changed(&changed, "schedule changed", write);
                    }
                    return Ok(changed);
                }
            }
        }
        Err(super::businesses::changing_too_fast(&id.to_string()))
    }

    /// Deletes a schedule with the records of its fires; its tasks remain.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn delete(&self, id: ScheduleId, write: &Write) -> Result<Schedule, ServiceError> {
        let gone = self.store.delete_schedule(id, write).await?;
        self.changed(&gone, "schedule deleted", write);
        Ok(gone)
    }

    /// Fires a schedule now and waits briefly for the task.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if a task is in the way.
    pub async fn trigger(&self, id: ScheduleId, write: &Write) -> Result<Fire, ServiceError> {
        let fire = self.store.trigger(id, write).await?;
        if write.dry_run {
            return Ok(fire);
        }
        self.node.supervisor.wake_schedules();
        let until = self.node.clock.now().plus(FIRE_PATIENCE);
        while self.node.clock.now() < until {
            let before = Some(WallMs(fire.time.0 + 1));
            let now = self.store.fires(id, None, before, 1).await?.into_iter().next();
            match now.filter(|now| now.time == fire.time) {
                Some(now) if now.outcome == FireOutcome::Pending && now.text.is_none() => {}
                Some(now) => return Ok(now),
                None => return Err(ScheduleError::NotFound(id).into()),
            }
            self.node
                .clock
                .sleep_until(self.node.clock.now().plus(FIRE_LOOK_EVERY))
                .await;
        }
        Ok(fire)
    }

    /// Returns the fires of a schedule, newest first.
    pub async fn fires(
        &self,
        id: ScheduleId,
        outcome: Option<FireOutcome>,
        before: Option<WallMs>,
        count: u32,
    ) -> Result<Vec<Fire>, ServiceError> {
        Ok(self.store.fires(id, outcome, before, count).await?)
    }

    fn changed(&self, schedule: &Schedule, what: &'static str, write: &Write) {
        if !write.dry_run {
            self.node.supervisor.wake_schedules();
            tracing::info!(schedule = %schedule.id, name = schedule.name, by = write.actor.name, "{what}");
        }
    }
}

/// Returns advice for firing a schedule despite the task in the way.
pub(super) fn past(way: &InTheWay) -> String {
    let schedule = &way.schedule;
    let end = match way.task {
        Some(task) => format!("`windrow task wait {task}`, or cancel it"),
        None => format!("`windrow schedule fires {schedule}` shows why it isn't created"),
    };
    match (way.overlap, way.waiting) {
        (Overlap::Queue, 0) => end,
        (Overlap::Queue, _) => format!("`windrow schedule skip {schedule}` skips the waiting fires; {end}"),
        _ => format!("{end}; or `windrow schedule set {schedule} --overlap queue`"),
    }
}
