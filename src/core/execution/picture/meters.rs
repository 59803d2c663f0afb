//! Counters for people. They decide nothing, except for the speed and the latencies that automatic bounds follow.

use std::time::Duration;

use crate::execution::Execution;
use crate::execution::limits::Speed;
use crate::ids::{ItemIndex, Moment};
use crate::items::verdict::RetryAdvice;
use crate::pace::Pace;
use crate::stats::histogram::Histogram;
use crate::stats::permits::{MICRO, Permits};
use crate::stats::stall::{StallReason, Stalls};
use crate::stats::tally::Tally;

#[derive(Debug)]
pub(in crate::execution) struct Meters {
    latencies: Histogram,
    tally: Box<Tally>,
    speed: Speed,
    stalls: Stalls,
    sent: Sent,
    /// Watermark, and the time since which it has stood there with something dispatched.
    head: (ItemIndex, Moment),
}

/// Items sent and returned since the run began: the part of `Permits` that the pace can't know.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Items sent that didn't come back unused.
    all: u64,
    /// Attempts among these beyond the first of their item.
    repeats: u64,
    /// Items that came back unused.
    returned: u64,
    /// Items that a busy handler turned away.
    refused: u64,
}

impl Meters {
    pub(in crate::execution) fn new(settled: u64, low: ItemIndex, now: Moment) -> Meters {
        Meters {
            latencies: Histogram::default(),
            tally: Box::default(),
            speed: Speed::new(settled, now),
            stalls: Stalls::default(),
            sent: Sent::default(),
            head: (low, now),
        }
    }

    /// Counts items that are sent, and how late they are according to the pace.
    #[inline]
    pub(in crate::execution) fn on_sent(&mut self, items: u32, lateness: Option<(Duration, Duration)>) {
        if let Some((first, last)) = lateness {
            self.tally.delays.record_between(first, last, items);
        }
        self.sent.all += u64::from(items);
    }

    /// Counts a sent item that was tried before.
    #[inline]
    pub(in crate::execution) fn on_repeat(&mut self) {
        self.sent.repeats += 1;
    }

    /// Counts items that came back unused, and the repeats among them.
    pub(in crate::execution) fn on_returned(&mut self, items: u64, repeats: u64) {
        self.sent.all = self.sent.all.saturating_sub(items);
        self.sent.repeats = self.sent.repeats.saturating_sub(repeats);
        self.sent.returned += items;
    }

    /// Counts those of the returned items that a busy handler turned away.
    pub(in crate::execution) fn on_refused(&mut self, items: u64) {
        self.sent.returned -= items;
        self.sent.refused += items;
    }

    pub(in crate::execution) fn returned(&self) -> u64 {
        self.sent.returned
    }

    pub(in crate::execution) fn on_failed(&mut self, code: &str, advice: RetryAdvice) {
        self.tally.failed.count(code, advice);
    }

    pub(in crate::execution) fn on_latencies(&mut self, latencies: &mut Histogram) {
        if latencies.count() > 0 {
            self.latencies.add(latencies);
            self.tally.calls.add(latencies);
            latencies.clear();
        }
    }

    /// Updates the speed with the number settled so far; returns true if a second is over.
    #[inline]
    pub(in crate::execution) fn on_time(&mut self, settled: u64, now: Moment) -> bool {
        self.speed.on(settled, now)
    }

    /// Reduces the weight of past measurements.
    pub(in crate::execution) fn fade(&mut self) {
        self.latencies.fade();
    }

    /// Notes when the watermark moves; while nothing is dispatched, nothing holds it.
    #[inline]
    pub(in crate::execution) fn watch_head(&mut self, low: ItemIndex, high: ItemIndex, now: Moment) {
        if low != self.head.0 || low >= high {
            self.head = (low, now);
        }
    }

    pub(in crate::execution) fn head_age(&self, low: ItemIndex, high: ItemIndex, now: Moment) -> Duration {
        if low == self.head.0 && low < high {
            now.since(self.head.1)
        } else {
            Duration::ZERO
        }
    }

    pub(in crate::execution) fn latencies(&self) -> &Histogram {
        &self.latencies
    }

    pub(in crate::execution) fn speed(&self) -> &Speed {
        &self.speed
    }

    pub(in crate::execution) fn stalls(&self) -> &Stalls {
        &self.stalls
    }

    pub(in crate::execution) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns the use of every permit since the run began.
    pub(in crate::execution) fn permits(&self, pace: &Pace, now: Moment) -> Permits {
        let sent = &self.sent;
        let mut permits = pace.permits(now);
        permits.first = sent.all.saturating_sub(sent.repeats).saturating_mul(MICRO);
        permits.repeats = sent.repeats.saturating_mul(MICRO);
        permits.returned = sent.returned.saturating_mul(MICRO);
        let turned_away = &mut permits.lost[StallReason::BackPressure as usize];
        *turned_away = turned_away.saturating_add(sent.refused.saturating_mul(MICRO));
        permits
    }
}

impl Execution {
    /// Sets the reason why nothing is sent from `now` on; permits lost from then on are attributed to it.
    #[inline]
    pub(in crate::execution) fn stall(&mut self, reason: Option<StallReason>, now: Moment) {
        let stalls = &mut self.meters.stalls;
        if stalls.current() != reason {
            self.pace.blame(reason, now);
            stalls.on(reason, now);
        }
    }
}
