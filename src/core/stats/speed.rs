//! Speed of a task over its last seconds: the one number that every surface shows.
//!
//! A rate limits the sent attempts, so these are compared with it. The settled items determine when the rest is done.

use std::collections::VecDeque;
use std::time::Duration;

use crate::ids::Moment;
use crate::settings::{Rate, RateLimit};
use crate::stats::permits::MICRO;

/// Span of a measurement: long enough for slow tasks, short enough to follow a change.
pub const SPEED_OVER: Duration = Duration::from_secs(10);
/// Minimum number of items whose time a measurement covers at a slow rate.
const ITEMS_MIN: u64 = 5;
/// Maximum span of a measurement.
const OVER_MAX: Duration = Duration::from_secs(300);
/// Minimum measured time before a speed is known. Below a second, because the sampler is never quite on time.
const KNOWN_AFTER: Duration = Duration::from_millis(900);
/// Age above which a measurement is no longer current.
const STALE_AFTER: Duration = Duration::from_secs(3);
/// Number of completed pieces in a measurement, in addition to the current one.
const PIECES: u32 = 10;

/// Speed in items per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Speed {
    /// Attempts sent: never above the rate and its burst.
    pub sent: f64,
    /// Items settled: above the rate after a stall, below the sent attempts during retries.
    pub settled: f64,
}

impl Speed {
    /// Returns the sum of the speeds of two nodes.
    #[must_use]
    pub fn plus(self, other: Speed) -> Speed {
        Speed {
            sent: self.sent + other.sent,
            settled: self.settled + other.settled,
        }
    }
}

/// Counts between two moments.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// Beginning of the stretch.
    pub from: Moment,
    /// End of the stretch.
    pub to: Moment,
    /// Attempts sent. Unit: millionths.
    pub sent: u64,
    /// Number of items settled.
    pub settled: u64,
}

impl Stretch {
    fn length(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// Speed measurement over consecutive stretches.
#[derive(Clone, Debug, Default)]
pub struct Speedometer {
    stretches: VecDeque<Stretch>,
    rate: Option<RateLimit>,
}

impl Speedometer {
    /// Adds the counts since the last call, and the rate at their end. Earlier stretches are dropped if the rate has
    /// changed, because they say nothing about the new one.
    pub fn record(&mut self, rate: RateLimit, stretch: Stretch) {
        if self.rate.replace(rate).is_some_and(|before| before != rate) {
            return self.stretches.clear();
        }
        let over = over(rate);
        match self.stretches.back_mut() {
            Some(last) if belongs(last, &stretch, over / PIECES) => {
                last.to = stretch.to;
                last.sent += stretch.sent;
                last.settled += stretch.settled;
            }
            _ => self.stretches.push_back(stretch),
        }
        let is_old = |first: &mut Stretch| stretch.to.since(first.to) >= over;
        while self.stretches.pop_front_if(is_old).is_some() {}
    }

    /// Drops everything but the rate, because the task paused.
    pub fn pause(&mut self) {
        self.stretches.clear();
    }

    /// Returns the speed at the end of the last stretch, or `None` while too little is known or if that was long ago.
    pub fn speed(&self, now: Moment) -> Option<Speed> {
        let last = self.stretches.back()?;
        let ran: Duration = self.stretches.iter().map(Stretch::length).sum();
        if ran < KNOWN_AFTER || now.since(last.to) > STALE_AFTER {
            return None;
        }
        let per_second = |count: f64| (count / ran.as_secs_f64() * 1000.0).round() / 1000.0;
        let sum = |of: fn(&Stretch) -> u64| self.stretches.iter().map(of).sum::<u64>() as f64;
        Some(Speed {
            sent: per_second(sum(|stretch| stretch.sent) / MICRO as f64),
            settled: per_second(sum(|stretch| stretch.settled)),
        })
    }
}

/// Returns true if a stretch follows another at once and both are no longer than a piece.
fn belongs(last: &Stretch, next: &Stretch, piece: Duration) -> bool {
    next.from.since(last.to) < piece / PIECES && next.to.since(last.from) <= piece
}

/// Returns the span over which a rate is measured.
fn over(rate: RateLimit) -> Duration {
    let of = |rate: Rate| rate.time_of(ITEMS_MIN).clamp(SPEED_OVER, OVER_MAX);
    rate.most().map_or(SPEED_OVER, of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment(millis * 1_000_000)
    }

    fn stretch(from: u64, to: u64, sent: u64, settled: u64) -> Stretch {
        Stretch {
            from: at(from),
            to: at(to),
            sent: sent * MICRO,
            settled,
        }
    }

    fn rate(text: &str) -> RateLimit {
        RateLimit::Limited(text.parse().expect("a rate"))
    }

    #[test]
    fn it_is_what_was_sent_in_the_last_seconds_whatever_settled() {
        let mut meter = Speedometer::default();
        for second in 0..30 {
            // The handler stalls, and answers everything every other second.
            let settled = if second % 2 == 1 { 600 } else { 0 };
            meter.record(
                rate("300/s"),
                stretch(second * 1000, (second + 1) * 1000, 300, settled),
            );
        }
        let speed = meter.speed(at(30_000)).expect("it ran");
        assert_eq!((speed.sent, speed.settled), (300.0, 300.0));
        assert_eq!(meter.speed(at(33_001)), None, "nothing was counted since");
    }

    #[test]
    fn what_was_sent_at_another_rate_is_not_counted() {
        let mut meter = Speedometer::default();
        for second in 0..5 {
            meter.record(
                rate("300/s"),
                stretch(second * 1000, (second + 1) * 1000, 300, 300),
            );
        }
        meter.record(rate("100/s"), stretch(5000, 6000, 200, 200));
        assert_eq!(meter.speed(at(6000)), None, "both rates are in it");
        meter.record(rate("100/s"), stretch(6000, 7000, 100, 100));
        assert_eq!(meter.speed(at(7000)).map(|speed| speed.sent), Some(100.0));
    }

    #[test]
    fn a_slow_rate_is_measured_over_several_of_its_items() {
        let mut meter = Speedometer::default();
        let slow = RateLimit::Limited(Rate::new(1, Duration::from_secs(60)).expect("a rate"));
        let mut fastest = 0.0_f64;
        for second in 0..900 {
            let sent = u64::from(second % 60 == 0);
            meter.record(slow, stretch(second * 1000, (second + 1) * 1000, sent, sent));
            if second > 300 {
                fastest = fastest.max(meter.speed(at((second + 1) * 1000)).expect("it runs").sent);
            }
        }
        assert!(fastest > 0.015 && fastest < 0.021, "{fastest}");
        assert!(meter.stretches.len() <= 12, "{}", meter.stretches.len());
    }

    #[test]
    fn a_pause_is_no_part_of_it_and_looks_that_are_close_are_one_piece() {
        let mut meter = Speedometer::default();
        for tick in 0..200 {
            meter.record(
                RateLimit::Unlimited,
                stretch(tick * 100, (tick + 1) * 100, 10, 10),
            );
        }
        assert!(meter.stretches.len() <= 12, "{}", meter.stretches.len());
        assert_eq!(meter.speed(at(20_000)).map(|speed| speed.sent), Some(100.0));
        meter.pause();
        assert_eq!(meter.speed(at(20_000)), None);
    }
}
