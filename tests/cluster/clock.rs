//! A node's own clock: it runs a little fast or slow, and jumps when the node was suspended.
//!
//! A suspended node is modelled by time, not by stopping its tasks: from the moment it is frozen its clock already
//! shows the moment at which it will be thawed, and nothing that it sends leaves before (`link.rs`). So whatever its
//! code does meanwhile is what a process does in the instant in which it wakes: every timer that fell due fires, and
//! trust is measured at the time of waking.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use windrow_core::ids::{Moment, WallMs};
use windrow_engine::ports::clock::Clock;

const BOOT_MICROS: i64 = 1_795_000_000_000_000;
const MILLION: i128 = 1_000_000;

/// See the module.
pub(crate) struct NodeClock {
    world: Instant,
    /// Nodes booted at different times: their moments can't be compared.
    base: u64,
    /// How much it runs fast. Unit: parts per million.
    ppm: i64,
    /// How much its wall clock is wrong. Unit: microseconds.
    skew: i64,
    /// Unit: nanoseconds of the world.
    frozen_until: AtomicU64,
}

impl NodeClock {
    pub(crate) fn new(world: Instant, base_s: u64, ppm: i64, skew_ms: i64) -> NodeClock {
        let (base, skew) = (base_s * 1_000_000_000, skew_ms * 1000);
        NodeClock {
            world,
            base,
            ppm,
            skew,
            frozen_until: AtomicU64::new(0),
        }
    }

    /// The world's time. Unit: nanoseconds since it began.
    pub(crate) fn world_now(&self) -> u64 {
        u64::try_from(self.world.elapsed().as_nanos()).expect("a scenario is short")
    }

    /// Suspends it, unless it is suspended: what it was about to do has been promised a moment of thawing, and one that
    /// moves would be a call that is held up behind the gate, which no protocol can take back.
    pub(crate) fn freeze(&self, lasting: Duration) {
        if self.frozen_for().is_some() {
            return;
        }
        let until = self.world_now() + u64::try_from(lasting.as_nanos()).expect("a scenario is short");
        self.frozen_until.store(until, Ordering::Relaxed);
    }

    /// How long it is still suspended, if it is.
    pub(crate) fn frozen_for(&self) -> Option<Duration> {
        let left = self
            .frozen_until
            .load(Ordering::Relaxed)
            .saturating_sub(self.world_now());
        (left > 0).then(|| Duration::from_nanos(left))
    }

    fn shown(&self) -> u64 {
        let world = i128::from(self.world_now().max(self.frozen_until.load(Ordering::Relaxed)));
        let node = world + world * i128::from(self.ppm) / MILLION;
        self.base + u64::try_from(node).expect("time is positive")
    }
}

impl Clock for NodeClock {
    fn now(&self) -> Moment {
        Moment(self.shown())
    }

    fn wall(&self) -> WallMs {
        WallMs(self.wall_micros(self.now()) / 1000)
    }

    fn wall_micros(&self, moment: Moment) -> i64 {
        let since = i64::try_from(moment.0.saturating_sub(self.base) / 1000).expect("a scenario is short");
        BOOT_MICROS + self.skew + since
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'static, ()> {
        let wait = i128::from(moment.0.saturating_sub(self.shown()));
        let wait = wait * MILLION / (MILLION + i128::from(self.ppm)) + 1;
        let wait = Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX / 4));
        let frozen = self.frozen_for().unwrap_or_default();
        Box::pin(tokio::time::sleep(wait + frozen))
    }
}
