//! Recurring work: fire times of a schedule, and the outcome of each fire.
//!
//! A schedule fires at the times of its [`Timing`], each at most once. [`plan::plan`] decides the outcome of those
//! that are due: a task is created, the fire waits, or it is listed as skipped or missed. Nothing here reads the
//! clock.

pub mod cron;
pub mod names;
pub mod placeholders;
pub mod plan;
use windrow_words::{Message, schedule as say};
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

/// Minimum time between two fires. A shorter one calls for a task that runs all the time.
pub const PERIOD_MIN: Duration = Duration::from_secs(1);
/// Maximum of `every`. (A year, and a day for leap years.)
pub const PERIOD_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// Maximum jitter of a fire.
pub const JITTER_MAX: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of missed fires that are made up for.
pub const CATCH_UP_MAX: u32 = 100;
/// Delay after which a fire is missed; it is also missed once the next one is due.
pub const GRACE: Duration = Duration::from_secs(60);

slugs! {
    /// Rule for a fire while a task of the same schedule has not ended. A stopped task doesn't block a fire.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Overlap {
        /// Skip the fire: it makes no task.
        #[default]
        Skip = "skip",
        /// Wait until that task has ended; at most one fire waits, or as many as are made up for.
        Queue = "queue",
        /// Cancel that task and wait until it has ended; of several waiting fires only the latest stays.
        CancelRunning = "cancel_running",
        /// Run both at the same time.
        Allow = "allow",
    }
}

/// Rule for missed fires that are made up for. Never more than [`CATCH_UP_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// Only the latest fire.
    #[default]
    Latest,
    /// The latest ones, up to this number, in their order.
    All(u32),
    /// None, except a fire less than [`GRACE`] late.
    None,
}

impl Missed {
    /// Returns the number of fires that may be made up for at once after a downtime.
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

/// Error for a text that is not a rule for missed fires.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::not_missed(format!("{:?}", .0), CATCH_UP_MAX))]
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

/// Fire times of a schedule, and the rules for its fires.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Rule for the fire times.
    pub timing: Timing,
    /// Time before which nothing fires; also the start of the periods of `every`.
    pub start: Option<WallMs>,
    /// Time at and after which nothing fires.
    pub end: Option<WallMs>,
    /// Maximum delay of a fire; each fire has its own.
    pub jitter: Duration,
    /// Rule for a fire while a task of the schedule runs.
    pub overlap: Overlap,
    /// Rule for missed fires after a downtime.
    pub missed: Missed,
}

/// Fault of a schedule: the member, the reason, and an accepted value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecFault {
    /// Name of the member.
    pub member: &'static str,
    /// Description of the fault.
    pub what: String,
    /// Value that would be accepted.
    pub advice: String,
}

impl SpecFault {
    /// Creates the fault of a member.
    pub fn new(member: &'static str, what: Message, advice: Message) -> SpecFault {
        let (what, advice) = (what.to_string(), advice.to_string());
        SpecFault { member, what, advice }
    }
}

impl Spec {
    /// Returns the first fire after a time, or `None` after the last one.
    pub fn next_after(&self, time: WallMs) -> Option<WallMs> {
        let begin = self.start.map(|start| WallMs(start.0.saturating_sub(1)));
        let after = begin.map_or(time, |begin| begin.max(time));
        let next = self.timing.next_after(after, self.start)?;
        let is_over = self.end.is_some_and(|end| next >= end);
        (!is_over).then_some(next)
    }

    /// Returns when a fire is due: its time plus its share of the jitter, the same on every node.
    pub fn due(&self, schedule: ScheduleId, fire: WallMs) -> WallMs {
        let most = u64::try_from(self.jitter.as_millis()).unwrap_or(u64::MAX);
        if most == 0 {
            return fire;
        }
        let late = mixed(schedule.0.cast_unsigned() ^ mixed(fire.0.cast_unsigned())) % most;
        fire.plus(Duration::from_millis(late))
    }

    /// Returns every combination of members that is not allowed.
    pub fn faults(&self) -> Vec<SpecFault> {
        let mut faults = Vec::new();
        if let (Some(start), Some(end)) = (self.start, self.end)
            && end <= start
        {
            let advice = say::a_time_after(start.to_rfc3339());
            faults.push(SpecFault::new("end", say::end_before_start(), advice));
        }
        let most = match self.timing {
            Timing::Every(period) => JITTER_MAX.min(period.saturating_sub(Duration::from_millis(1))),
            Timing::Cron(_) => JITTER_MAX,
        };
        if self.jitter > most {
            let (what, advice) = (say::is_more_than(span_text(most)), say::less_than_period());
            faults.push(SpecFault::new("jitter", what, advice));
        }
        faults
    }
}

/// Maps a number one-to-one to a spread-out one (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
