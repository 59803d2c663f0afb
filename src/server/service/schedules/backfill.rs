//! Backfill of past fires, and skipping of unsettled ones.

use super::Schedules;
use super::names::refuse_misspelt;
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::{ScheduleId, WallMs};
use windrow_engine::ports::schedules::store::{BACKFILL_MAX, Backfill, Fire, FireOutcome, Schedule};
use windrow_engine::ports::tasks::store::Write;

/// Number of past successful fires searched for one that published.
const PAST_LOOKS: u32 = 100;

/// Returns the error for an empty or future time range.
fn no_time(from: WallMs, to: WallMs, now: WallMs) -> ServiceError {
    let (first, last) = (from.to_rfc3339(), to.to_rfc3339());
    if from > now {
        let text = format!("{first} is in the future: later fires happen without a backfill");
        return ServiceError::unprocessable("/from", text);
    }
    let text = format!("{last} is not after {first}");
    ServiceError::unprocessable("/to", text)
}

impl Schedules {
    /// Requests the fires of a past time range and returns them.
    ///
    /// # Errors
    /// `Unprocessable` if there are none or too many, `Conflict` if too many fires would wait, `NotFound`.
    pub async fn backfill(
        &self,
        id: ScheduleId,
        (from, to): (WallMs, Option<WallMs>),
        publishes: bool,
        write: &Write,
    ) -> Result<Vec<Fire>, ServiceError> {
        let schedule = self.get(id).await?;
        // The schedule may be older than this check.
        refuse_misspelt(&schedule.template)?;
        let now = self.store.database_time().await?;
        let to = to.unwrap_or(now);
        if to > now {
            let to = to.to_rfc3339();
            let text = format!("{to} is in the future: later fires happen without a backfill");
            return Err(ServiceError::unprocessable("/to", text));
        }
        if from > now || to <= from {
            return Err(no_time(from, to, now));
        }
        let first = schedule.spec.next_after(WallMs(from.0.saturating_sub(1)));
        let times = std::iter::successors(first, |last| schedule.spec.next_after(*last));
        let times: Vec<WallMs> = times
            .take_while(|time| *time < to)
            .take(BACKFILL_MAX + 1)
            .collect();
        if times.is_empty() {
            let text = "the schedule has no fire between this time and `to`";
            return Err(ServiceError::unprocessable("/from", text));
        }
        if times.len() > BACKFILL_MAX {
            let text =
                format!("the schedule has more than {BACKFILL_MAX} fires between `from` and this time");
            let last = times.last().map(|last| last.to_rfc3339()).unwrap_or_default();
            let fault =
                FieldFault::new("/to", text).advise(format!("backfill in parts, the first one up to {last}"));
            return Err(fault.into());
        }
        if publishes {
            self.refuse_past(&schedule, &times).await?;
        }
        let times = &times;
        let wanted = Backfill { times, publishes };
        let ordered = self.store.backfill(id, wanted, write).await?;
        if !write.dry_run {
            self.node.supervisor.wake_schedules();
            tracing::info!(schedule = %id, fires = ordered.len(), by = write.actor.name, "fires requested");
        }
        Ok(ordered)
    }

    /// Skips one unsettled fire or all of them, and returns those skipped.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if that fire is settled or doesn't exist.
    pub async fn skip(
        &self,
        id: ScheduleId,
        time: Option<WallMs>,
        write: &Write,
    ) -> Result<Vec<Fire>, ServiceError> {
        let skipped = self.store.skip_fires(id, time, write).await?;
        if !write.dry_run && !skipped.is_empty() {
            let count = skipped.len();
            self.node.meters.fired(FireOutcome::Skipped, count as u64);
            self.node.supervisor.wake_schedules();
            tracing::info!(schedule = %id, fires = count, by = write.actor.name, "fires skipped");
        }
        Ok(skipped)
    }

    /// Refuses to publish if the schedule publishes nothing, or if newer data would be replaced by older data.
    async fn refuse_past(&self, schedule: &Schedule, times: &[WallMs]) -> Result<(), ServiceError> {
        let template: serde_json::Value = serde_json::from_str(&schedule.template).unwrap_or_default();
        if !template["publish"].is_string() {
            return Err(ServiceError::unprocessable(
                "/publish",
                "the tasks of this schedule publish nothing",
            ));
        }
        let made = self
            .store
            .fires(schedule.id, Some(FireOutcome::Made), None, PAST_LOOKS);
        let newest = made.await?.into_iter().find(|fire| fire.publishes);
        match newest.filter(|newest| times.last().is_some_and(|last| *last < newest.time)) {
            Some(newest) => Err(ServiceError::conflict(
                format!(
                    "a later fire, of {}, has already created its task: publishing these would replace newer \
                     data with older",
                    newest.time.to_rfc3339()
                ),
                "leave out `publish`; the tasks keep their results",
            )),
            None => Ok(()),
        }
    }
}
