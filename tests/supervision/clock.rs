//! The virtual clock as a node sees it.

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use windrow_core::ids::{Moment, WallMs};
use windrow_engine::ports::clock::Clock;

/// Tokio's clock, which tests pause.
pub struct VirtualClock {
    pub start: Instant,
}

const BOOT_MS: i64 = 1_795_000_000_000;

impl Clock for VirtualClock {
    fn now(&self) -> Moment {
        Moment(1_000_000_000 + u64::try_from(self.start.elapsed().as_nanos()).expect("a test is short"))
    }

    fn wall(&self) -> WallMs {
        WallMs(self.wall_micros(self.now()) / 1000)
    }

    fn wall_micros(&self, moment: Moment) -> i64 {
        BOOT_MS * 1000 + i64::try_from(moment.0 / 1000).expect("a test is short")
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()> {
        let wait = moment.since(self.now());
        Box::pin(tokio::time::sleep(wait))
    }
}
