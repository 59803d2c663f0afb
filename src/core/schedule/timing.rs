//! Fire times of a schedule: a fixed period, or a cron expression in a time zone.

use std::time::Duration;
use windrow_words::schedule as say;

use super::cron::Cron;
use super::{PERIOD_MAX, PERIOD_MIN, SpecFault};
use crate::ids::WallMs;
use crate::settings::text::span_text;

/// Rule for the fire times of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum Timing {
    /// Fixed period: at whole multiples of it since the schedule's `start`, or since 1970 in UTC, so that `30m` is at
    /// every full and half hour.
    Every(Duration),
    /// Cron expression in a time zone.
    Cron(Cron),
}

impl Timing {
    /// Creates the timing of a fixed period (`every`).
    ///
    /// # Errors
    /// Fails if the period is too short, too long, or no whole number of seconds.
    pub fn every(period: Duration) -> Result<Timing, SpecFault> {
        let is_whole = period.subsec_nanos() == 0;
        if is_whole && (PERIOD_MIN..=PERIOD_MAX).contains(&period) {
            return Ok(Timing::Every(period));
        }
        let what = say::no_period(span_text(period));
        Err(SpecFault::new(
            "every",
            what,
            say::period_form(PERIOD_MIN, PERIOD_MAX),
        ))
    }

    /// Returns the name of its zone; UTC if it has none.
    pub fn zone(&self) -> &'static str {
        match self {
            Timing::Every(_) => "UTC",
            Timing::Cron(cron) => cron.zone(),
        }
    }

    /// Returns the first fire time after `after`, or `None` if there is no further one.
    pub(super) fn next_after(&self, after: WallMs, start: Option<WallMs>) -> Option<WallMs> {
        let next = match self {
            Timing::Every(period) => every_after(*period, after, start.unwrap_or_default()),
            Timing::Cron(cron) => cron.next_after(after),
        };
        // A time that can't be written as text never fires.
        next.filter(|next| *next <= WallMs::LAST)
    }
}

fn every_after(period: Duration, after: WallMs, start: WallMs) -> Option<WallMs> {
    let period = i64::try_from(period.as_millis())
        .ok()
        .filter(|period| *period > 0)?;
    let since = after.0.checked_sub(start.0)?;
    let periods = since.div_euclid(period).checked_add(1)?;
    let next = periods.checked_mul(period)?.checked_add(start.0)?;
    Some(WallMs(next))
}
