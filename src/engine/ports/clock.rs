//! Time, as the node sees it. The only way that anything above `core` learns what time it is.

use futures_util::future::BoxFuture;

use windrow_core::ids::{Moment, WallMs};

/// A clock that counts suspended time, and the wall clock for people.
pub trait Clock: Send + Sync {
    /// Now, on the boot-time clock.
    fn now(&self) -> Moment;

    /// Now, on the wall clock.
    fn wall(&self) -> WallMs;

    /// The wall-clock time of a moment of this process, by one offset taken when the process began, so that
    /// differences between two answers are exact. Unit: microseconds since the Unix epoch.
    fn wall_micros(&self, moment: Moment) -> i64;

    /// Ends at or shortly after `moment`. Cancel safe.
    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()>;
}
