//! Vocabulary of numbers: every id, index, count and instant has its own type.
//!
//! Nothing here computes anything interesting. The types exist so that an index, a count, an attempt and an epoch can
//! never be mixed up, and so that a value that was checked once at the border stays checked.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;
use windrow_words::task as say;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::text::quoted;

/// Largest index and largest count: both are stored in a signed 64-bit column.
pub const INDEX_MAX: u64 = i64::MAX as u64;

/// 0-based position of an item in its task; at most [`INDEX_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(transparent)]
pub struct ItemIndex(pub u64);

impl ItemIndex {
    /// Returns the index `count` places further on.
    #[inline]
    pub fn plus(self, count: u64) -> ItemIndex {
        ItemIndex(self.0 + count)
    }
}

/// Number of items; at most [`INDEX_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(transparent)]
pub struct ItemCount(pub u64);

/// 1-based number of a handler call for one item. It survives restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Attempt(NonZeroU32);

impl Attempt {
    /// First attempt of an item.
    pub const FIRST: Attempt = Attempt(NonZeroU32::MIN);

    /// Creates the attempt with this 1-based number; 0 is read as the first.
    #[inline]
    pub fn new(number: u32) -> Attempt {
        Attempt(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
    }

    /// Returns the 1-based number.
    #[inline]
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// Returns the attempt after this one.
    #[inline]
    pub fn next(self) -> Attempt {
        Attempt(self.0.saturating_add(1))
    }
}

/// Instant on the node's monotonic clock, which also counts suspended time, in nanoseconds since boot. Never compared
/// between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// Returns this instant plus `wait`, saturating at the end of time.
    #[inline]
    pub fn plus(self, wait: Duration) -> Moment {
        Moment(self.0.saturating_add(nanos(wait)))
    }

    /// Returns this instant minus `wait`, saturating at boot.
    #[inline]
    pub fn minus(self, wait: Duration) -> Moment {
        Moment(self.0.saturating_sub(nanos(wait)))
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}

/// Wall-clock time, in milliseconds since the Unix epoch. For people and for due times in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(transparent)]
pub struct WallMs(pub i64);

impl WallMs {
    /// Returns this time plus `wait`.
    pub fn plus(self, wait: Duration) -> WallMs {
        WallMs(
            self.0
                .saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// Returns this time minus `span`.
    pub fn minus(self, span: Duration) -> WallMs {
        WallMs(
            self.0
                .saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// Last time that RFC 3339 can express: the end of the year 9999.
    pub const LAST: WallMs = WallMs(253_402_300_799_999);

    /// Formats as RFC 3339 in UTC with milliseconds, `2026-11-20T17:02:11.500Z`; a time out of range becomes the
    /// nearest one in range.
    pub fn to_rfc3339(self) -> String {
        let millis = u64::try_from(self.min(WallMs::LAST).0).unwrap_or(0);
        let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        humantime::format_rfc3339_millis(time).to_string()
    }

    /// Parses RFC 3339 with any offset; a blank counts as the `+` that a query turned into it.
    ///
    /// # Errors
    /// If the text is not RFC 3339, or the time is before 1970, or in UTC after the year 9999.
    pub fn from_rfc3339(text: &str) -> Result<WallMs, NotATime> {
        let time = chrono::DateTime::parse_from_rfc3339(&text.trim().replace(' ', "+"));
        let at = time.map(|time| WallMs(time.timestamp_millis()));
        at.ok()
            .filter(|at| (WallMs(0)..=WallMs::LAST).contains(at))
            .ok_or_else(|| NotATime(quoted(text).to_string()))
    }

    /// Returns the time from `earlier` to this one; zero if `earlier` is later.
    pub fn since(self, earlier: WallMs) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Error for a text that is not a time in RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::no_time(.0))]
pub struct NotATime(String);

/// Number of a task, from a database sequence, never reused. Shown as `t42`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId(pub i64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

/// Error for a text that is not a task id: `t` and a positive number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::no_task_id(format!("{:?}", .0), "t42"))]
pub struct NotATaskId(pub String);

impl FromStr for TaskId {
    type Err = NotATaskId;

    fn from_str(text: &str) -> Result<TaskId, NotATaskId> {
        let number = text
            .strip_prefix('t')
            .and_then(|digits| digits.parse::<i64>().ok());
        number
            .filter(|n| *n > 0)
            .map(TaskId)
            .ok_or_else(|| NotATaskId(text.to_owned()))
    }
}

/// Number of a schedule, never reused. Shown as `s7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleId(pub i64);

impl fmt::Display for ScheduleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

/// Error for a text that is not a schedule number: `s` and a positive number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::no_schedule_id(format!("{:?}", .0), "s7"))]
pub struct NotAScheduleId(pub String);

impl FromStr for ScheduleId {
    type Err = NotAScheduleId;

    fn from_str(text: &str) -> Result<ScheduleId, NotAScheduleId> {
        let number = text
            .strip_prefix('s')
            .and_then(|digits| digits.parse::<i64>().ok());
        number
            .filter(|number| *number > 0)
            .map(ScheduleId)
            .ok_or_else(|| NotAScheduleId(text.to_owned()))
    }
}

/// Contiguous index range of a task, the unit that one node owns: task and 0-based number. Shown as `t42.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShardId {
    /// Task that the shard belongs to.
    pub task: TaskId,
    /// Number of the shard within its task; a split creates new ones.
    pub no: u32,
}

/// Number of the shard that publishes a task's results: beyond all shards that a task is cut into
/// ([`SHARDS_MAX`](crate::shards::SHARDS_MAX)).
const PUBLICATION: u32 = 1_000;

impl ShardId {
    /// Returns the shard without items whose owner reduces the results and publishes them. It is created for tasks
    /// that publish, when all others are done.
    pub fn publication(task: TaskId) -> ShardId {
        ShardId {
            task,
            no: PUBLICATION,
        }
    }

    /// True for the shard that publishes the results.
    pub fn is_publication(self) -> bool {
        self.no == PUBLICATION
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.task, self.no)
    }
}

/// Number of one ownership of a shard by one launcher, for people: 1, 2, 3 …
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunNo(pub u32);

/// Fencing number of a run: raised by the database at each claim, opaque, only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// Identity of one claim; distinguishes two epochs of the same number after a database rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub Uuid);

/// Identity of one life of a node process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub Uuid);

/// Sequence number of a run's durable writes; starts at 1 in each run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointSeq(pub u64);

impl CheckpointSeq {
    /// Returns the number after this one.
    pub fn next(self) -> CheckpointSeq {
        CheckpointSeq(self.0 + 1)
    }
}

/// Incarnation of an executor; messages of an older one are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// Short random id that a store gets at migration, and the first part of every item key. `[a-z0-9]{6}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreId(pub String);

impl StoreId {
    /// Returns the key of an item, the same for every attempt, run, node and redrive: `{store}-t42-3817`.
    pub fn item_key(&self, task: TaskId, index: ItemIndex) -> String {
        format!("{}{}", self.item_key_head(task), index.0)
    }

    /// Returns the prefix of the keys of a task's items: the index follows.
    pub fn item_key_head(&self, task: TaskId) -> String {
        format!("{}-{task}-", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids_read_back_as_they_are_shown() {
        assert_eq!("t42".parse(), Ok(TaskId(42)));
        assert_eq!(TaskId(42).to_string(), "t42");
        for bad in ["42", "t0", "t-1", "t", "task", "t99999999999999999999"] {
            assert!(bad.parse::<TaskId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn moments_saturate_instead_of_wrapping() {
        assert_eq!(Moment(u64::MAX).plus(Duration::from_secs(1)), Moment(u64::MAX));
        assert_eq!(Moment(5).minus(Duration::from_secs(1)), Moment(0));
        assert_eq!(Moment(5).since(Moment(9)), Duration::ZERO);
    }
}
