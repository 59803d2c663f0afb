//! Work that recurs: when a schedule fires, and what becomes of each fire.
//!
//! A schedule fires at times that its [`Timing`] names, each at most once. [`plan::plan`] decides what becomes of those that
//! are due: a task is made, or the fire waits, or it is listed as skipped or missed. Nothing here knows what time it is.

pub mod cron;
pub mod names;
pub mod placeholders;
pub mod plan;
#[cfg(test)]
mod tests;
pub mod timing;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use self::timing::Timing;
use crate::ids::{ScheduleId, WallMs};
use crate::settings::text::span_text;
use crate::slugs;

/// The shortest time between two fires: whoever needs less needs a task that runs all the time.
pub const PERIOD_MIN: Duration = Duration::from_secs(1);
/// The longest `every`. (A year, and a day for leap years.)
pub const PERIOD_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// The longest jitter.
pub const JITTER_MAX: Duration = Duration::from_secs(24 * 3600);
/// Missed fires that are caught up with, at most.
pub const CATCH_UP_MAX: u32 = 100;
/// A fire is missed once the next one is due, or when it is this late.
pub const GRACE: Duration = Duration::from_secs(60);

slugs! {
    /// What becomes of a fire while a task of the same schedule has not ended. A stopped task is in nobody's way.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Overlap {
        /// It makes no task.
        #[default]
        Skip = "skip",
        /// It waits until that one has ended; at most one waits, or as many as are caught up with.
        Queue = "queue",
        /// That one is cancelled, and this one waits until it has ended; of several that wait only the newest stays.
        CancelRunning = "cancel_running",
        /// Both run.
        Allow = "allow",
    }
}

/// Which of the fires that were missed are made up for. Never more than [`CATCH_UP_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// The newest.
    #[default]
    Latest,
    /// So many, the newest, in their order.
    All(u32),
    /// None: only what is less than [`GRACE`] late.
    None,
}

impl Missed {
    /// How many fires may go at once after an outage.
    pub fn most(self) -> usize {
        match self {
            Missed::Latest | Missed::None => 1,
            Missed::All(most) => most as usize,
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missed::Latest => f.write_str("latest"),
            Missed::All(most) => write!(f, "all {most}"),
            Missed::None => f.write_str("none"),
        }
    }
}

/// A text is not a policy for missed fires.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not what becomes of missed fires; one of latest, none, all 10 (at most all {CATCH_UP_MAX})"
)]
pub struct NotMissed(pub String);

impl FromStr for Missed {
    type Err = NotMissed;

    fn from_str(text: &str) -> Result<Missed, NotMissed> {
        let wrong = || NotMissed(text.to_owned());
        match text.trim() {
            "latest" => Ok(Missed::Latest),
            "none" => Ok(Missed::None),
            other => {
                let most = other.strip_prefix("all ").map(str::trim);
                let most = most.and_then(|most| most.parse::<u32>().ok());
                most.filter(|most| (1..=CATCH_UP_MAX).contains(most))
                    .map(Missed::All)
                    .ok_or_else(wrong)
            }
        }
    }
}

/// When a schedule fires, and what becomes of its fires.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// At which times.
    pub timing: Timing,
    /// No fire before this time; also where the periods of `every` begin.
    pub start: Option<WallMs>,
    /// No fire at or after this time.
    pub end: Option<WallMs>,
    /// Each fire is late by a time of its own, at most this one.
    pub jitter: Duration,
    /// While a task of it runs.
    pub overlap: Overlap,
    /// After an outage.
    pub missed: Missed,
}

/// What is wrong with a schedule: a member, why, and what would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecFault {
    /// The member's name.
    pub member: &'static str,
    /// What is wrong.
    pub what: String,
    /// What would do.
    pub advice: String,
}

impl Spec {
    /// The first fire after a time; none after the last one.
    pub fn next_after(&self, time: WallMs) -> Option<WallMs> {
        let begin = self.start.map(|start| WallMs(start.0.saturating_sub(1)));
        let after = begin.map_or(time, |begin| begin.max(time));
        let next = self.timing.next_after(after, self.start)?;
        let is_over = self.end.is_some_and(|end| next >= end);
        (!is_over).then_some(next)
    }

    /// When a fire is due: its time and its part of the jitter, the same on every node.
    pub fn due(&self, schedule: ScheduleId, fire: WallMs) -> WallMs {
        let most = u64::try_from(self.jitter.as_millis()).unwrap_or(u64::MAX);
        if most == 0 {
            return fire;
        }
        let late = mixed(schedule.0.cast_unsigned() ^ mixed(fire.0.cast_unsigned())) % most;
        fire.plus(Duration::from_millis(late))
    }

    /// What can't be together. All of it.
    pub fn faults(&self) -> Vec<SpecFault> {
        let mut faults = Vec::new();
        if let (Some(start), Some(end)) = (self.start, self.end)
            && end <= start
        {
            let advice = format!("a time after {}", start.to_rfc3339());
            faults.push(SpecFault {
                member: "end",
                what: "is not later than `start`".to_owned(),
                advice,
            });
        }
        let most = match self.timing {
            Timing::Every(period) => JITTER_MAX.min(period.saturating_sub(Duration::from_millis(1))),
            Timing::Cron(_) => JITTER_MAX,
        };
        if self.jitter > most {
            faults.push(SpecFault {
                member: "jitter",
                what: format!("is more than {}", span_text(most)),
                advice: "less than the time between two fires".to_owned(),
            });
        }
        faults
    }
}

/// Spreads a number over all numbers (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
