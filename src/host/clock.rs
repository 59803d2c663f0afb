//! The system's clocks. The only place that reads time.

use std::time::Duration;

use futures_util::future::BoxFuture;
use rustix::time::{ClockId, clock_gettime};

use windrow_core::ids::{Moment, WallMs};
use windrow_engine::ports::clock::Clock;

/// `CLOCK_BOOTTIME` (counts suspended time, unlike `std::time::Instant`) and the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    /// Wall clock minus boot-time clock when the process began. Unit: microseconds.
    offset_us: i64,
}

impl SystemClock {
    /// Reads both clocks once.
    pub fn new() -> SystemClock {
        SystemClock {
            offset_us: read_ns(ClockId::Realtime) / 1000 - read_ns(ClockId::Boottime) / 1000,
        }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

fn read_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Moment {
        Moment(read_ns(ClockId::Boottime).unsigned_abs())
    }

    fn wall(&self) -> WallMs {
        WallMs(read_ns(ClockId::Realtime) / 1_000_000)
    }

    fn wall_micros(&self, moment: Moment) -> i64 {
        i64::try_from(moment.0 / 1000)
            .unwrap_or(i64::MAX)
            .saturating_add(self.offset_us)
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()> {
        let wait = moment.since(self.now());
        Box::pin(tokio::time::sleep(wait.min(Duration::from_secs(3600))))
    }
}
