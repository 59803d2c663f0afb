//! What is counted for people: it decides nothing, but for the speed and the latencies that automatic bounds follow.

use std::time::Duration;

use crate::execution::Execution;
use crate::execution::types::Speed;
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
    /// Watermark, and since when it has stood there with something given out.
    head: (ItemIndex, Moment),
}

/// What left and what came back: the part of `Permits` that the pace can't know. Unit: items since the run began.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// What left and didn't come back unused.
    all: u64,
    /// Of these, attempts beyond the first of their item.
    repeats: u64,
    /// What came back unused.
    returned: u64,
    /// What a busy handler turned away.
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

    /// Items leave, as late as the pace says.
    #[inline]
    pub(in crate::execution) fn on_sent(&mut self, items: u32, lateness: Option<(Duration, Duration)>) {
        if let Some((first, last)) = lateness {
            self.tally.delays.record_between(first, last, items);
        }
        self.sent.all += u64::from(items);
    }

    /// One of the items that leave was tried before.
    #[inline]
    pub(in crate::execution) fn on_repeat(&mut self) {
        self.sent.repeats += 1;
    }

    /// Items came back unused, so many repeats among them.
    pub(in crate::execution) fn on_returned(&mut self, items: u64, repeats: u64) {
        self.sent.all = self.sent.all.saturating_sub(items);
        self.sent.repeats = self.sent.repeats.saturating_sub(repeats);
        self.sent.returned += items;
    }

    /// Of what came back, so many items were turned away by a busy handler.
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

    /// Takes the number settled so far; says whether a second is over.
    #[inline]
    pub(in crate::execution) fn on_time(&mut self, settled: u64, now: Moment) -> bool {
        self.speed.on(settled, now)
    }

    /// What was measured counts for less from now on.
    pub(in crate::execution) fn fade(&mut self) {
        self.latencies.fade();
    }

    /// Notes when watermark moves; while nothing is given out there is nothing that holds it.
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

    /// What became of every permit since the run began.
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
    /// From `now` on this is why nothing leaves; what is lost from here on is lost for this reason.
    #[inline]
    pub(in crate::execution) fn stall(&mut self, reason: Option<StallReason>, now: Moment) {
        let stalls = &mut self.meters.stalls;
        if stalls.current() != reason {
            self.pace.blame(reason, now);
            stalls.on(reason, now);
        }
    }
}
