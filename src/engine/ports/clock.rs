//! Time as the node sees it. Everything above `core` learns the time only from here.

use futures_util::future::BoxFuture;

use windrow_core::ids::{Moment, WallMs};

/// Clock that counts suspended time, with the wall clock for people.
pub trait Clock: Send + Sync {
    /// Returns the current time on the boot-time clock.
    fn now(&self) -> Moment;

    /// Returns the current time on the wall clock.
    fn wall(&self) -> WallMs;

    /// Returns the wall-clock time of a moment of this process, in microseconds since the Unix epoch. It uses one
    /// offset taken when the process began, so that differences between two answers are exact.
    fn wall_micros(&self, moment: Moment) -> i64;

    /// Completes at or shortly after `moment`. Cancel safe.
    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()>;
}
