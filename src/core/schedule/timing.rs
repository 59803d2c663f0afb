//! The times at which a schedule fires: every so often, or as a cron expression says in a time zone.

use std::time::Duration;

use super::cron::Cron;
use super::{PERIOD_MAX, PERIOD_MIN, SpecFault};
use crate::ids::WallMs;
use crate::settings::text::span_text;

/// At which times a schedule fires.
#[derive(Clone, Debug, PartialEq)]
pub enum Timing {
    /// Every so often: at whole multiples of the period since the schedule's `start`, or since 1970 in UTC, so that `30m`
    /// is at every full and half hour.
    Every(Duration),
    /// As a cron expression says, in a zone.
    Cron(Cron),
}

impl Timing {
    /// The period of `every`.
    ///
    /// # Errors
    /// When it is too short, too long, or no whole number of seconds.
    pub fn every(period: Duration) -> Result<Timing, SpecFault> {
        let is_whole = period.subsec_nanos() == 0;
        if is_whole && (PERIOD_MIN..=PERIOD_MAX).contains(&period) {
            return Ok(Timing::Every(period));
        }
        Err(SpecFault {
            member: "every",
            what: format!("{} is no period of a schedule", span_text(period)),
            advice: format!(
                "whole seconds, at least {} and at most {}",
                span_text(PERIOD_MIN),
                span_text(PERIOD_MAX)
            ),
        })
    }

    /// The name of its zone; UTC where it has none.
    pub fn zone(&self) -> &'static str {
        match self {
            Timing::Every(_) => "UTC",
            Timing::Cron(cron) => cron.zone(),
        }
    }

    /// The first time after `after`; none when there is none any more.
    pub(super) fn next_after(&self, after: WallMs, start: Option<WallMs>) -> Option<WallMs> {
        let next = match self {
            Timing::Every(period) => every_after(*period, after, start.unwrap_or_default()),
            Timing::Cron(cron) => cron.next_after(after),
        };
        // What no text can say fires never.
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
