//! Tokio's clock, paused or not. The clock of the program asks the kernel's page of the time in a way that valgrind doesn't know.

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use windrow_core::ids::{Moment, WallMs};
use windrow_engine::ports::clock::Clock;

/// Counts from this moment.
pub(crate) struct TokioClock(pub(crate) Instant);

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        Moment(1_000_000_000 + u64::try_from(self.0.elapsed().as_nanos()).unwrap())
    }

    fn wall(&self) -> WallMs {
        WallMs(self.wall_micros(self.now()) / 1000)
    }

    fn wall_micros(&self, moment: Moment) -> i64 {
        1_795_000_000_000_000 + i64::try_from(moment.0 / 1000).unwrap()
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(moment.since(self.now())))
    }
}
