//! System clocks. The only place that reads time.

use std::time::Duration;

use futures_util::future::BoxFuture;
use rustix::time::{ClockId, clock_gettime};

use windrow_core::ids::{Moment, WallMs};
use windrow_engine::ports::clock::Clock;

/// Clock over `CLOCK_BOOTTIME` (counts suspended time, unlike `std::time::Instant`) and the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    /// Wall clock minus boot-time clock when the process began, in microseconds.
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

/// File with the error of this process's wall clock in milliseconds, for tests of wrong clocks.
#[cfg(debug_assertions)]
static OFFSET_FILE: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();

/// Makes the wall clock of this process wrong by the amount in a file, read each time. Not in release builds.
#[cfg(debug_assertions)]
pub fn misdate(file: std::path::PathBuf) {
    OFFSET_FILE.get_or_init(|| file);
}

#[cfg(debug_assertions)]
fn offset_ms() -> i64 {
    let text = OFFSET_FILE
        .get()
        .and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(not(debug_assertions))]
fn offset_ms() -> i64 {
    0
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Moment {
        Moment(read_ns(ClockId::Boottime).unsigned_abs())
    }

    fn wall(&self) -> WallMs {
        WallMs(read_ns(ClockId::Realtime) / 1_000_000 + offset_ms())
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
