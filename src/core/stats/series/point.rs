//! Counts of a task in one span of time, and their packed form: a second of a task takes some dozens of bytes.

use std::time::Duration;

use crate::stats::histogram::{BUCKETS, Histogram, share};
use crate::stats::permits::Permits;
use crate::stats::stall::StallReason;

/// Counts of a span, and the gauges at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Account of the permits.
    pub permits: Permits,
    /// Items settled as successful.
    pub succeeded: u64,
    /// Items settled because there was nothing to do.
    pub skipped: u64,
    /// Items that failed for good.
    pub failed: u64,
    /// Number of failed attempts.
    pub failed_attempts: u64,
    /// Durations of the calls.
    pub calls: Histogram,
    /// State at the end of the span.
    pub gauges: Gauges,
}

/// State of a task at a moment, over all its shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Number of items sent to the handler and not answered.
    pub in_flight: u64,
    /// Maximum number of items in flight.
    pub concurrency: u64,
    /// Sum of the window sizes.
    pub window: u64,
    /// Items between the watermark and the highest dispatched.
    pub window_used: u64,
    /// Watermark: the lowest index that is neither settled nor parked.
    pub watermark: u64,
    /// Rate in force; `None` is unpaced. Unit: millionths of an item per second.
    pub target_micros: Option<u64>,
    /// Reason why nothing was dispatched, if so.
    pub stall: Option<StallReason>,
    /// Rate above which the service refuses calls, as the autopilot found it. Unit: millionths of a call per second.
    pub found_micros: Option<u64>,
    /// Share of the last calls that the service refused, where the autopilot counts them. Unit: millionths.
    pub refused_ppm: Option<u64>,
}

impl Gauges {
    /// Merges the gauges of another shard at the same moment.
    pub fn join(&mut self, other: &Gauges) {
        self.in_flight += other.in_flight;
        self.concurrency += other.concurrency;
        self.window += other.window;
        self.window_used += other.window_used;
        self.watermark = self.watermark.min(other.watermark);
        let sum = |one: Option<u64>, other| one.into_iter().chain(other).reduce(u64::saturating_add);
        self.target_micros = sum(self.target_micros, other.target_micros);
        self.found_micros = sum(self.found_micros, other.found_micros);
        self.refused_ppm = self.refused_ppm.max(other.refused_ppm);
        self.stall = self.stall.or(other.stall);
    }
}

impl Point {
    /// Returns the number of items with a final verdict.
    pub fn settled(&self) -> u64 {
        self.succeeded + self.skipped + self.failed
    }

    /// Adds the counts of another shard or span; the gauges stay.
    pub fn add(&mut self, more: &Point) {
        self.permits.add(&more.permits);
        self.succeeded += more.succeeded;
        self.skipped += more.skipped;
        self.failed += more.failed;
        self.failed_attempts += more.failed_attempts;
        self.calls.add(&more.calls);
    }

    /// Adds the span that follows this one, and takes its gauges.
    pub fn extend(&mut self, later: &Point) {
        self.add(later);
        self.gauges = later.gauges.clone();
    }

    /// Returns the counts of the first `part` of a span of `whole`, assuming an even distribution; rounded down.
    #[must_use]
    pub(super) fn head(&self, part: u64, whole: u64) -> Point {
        let of = |count| share(count, part, whole);
        Point {
            permits: self.permits.head(part, whole),
            succeeded: of(self.succeeded),
            skipped: of(self.skipped),
            failed: of(self.failed),
            failed_attempts: of(self.failed_attempts),
            calls: self.calls.head(part, whole),
            gauges: self.gauges.clone(),
        }
    }

    /// Returns the rest after a head of the same point.
    #[must_use]
    pub(super) fn after(&self, head: &Point) -> Point {
        Point {
            permits: self.permits.since(&head.permits),
            succeeded: self.succeeded.saturating_sub(head.succeeded),
            skipped: self.skipped.saturating_sub(head.skipped),
            failed: self.failed.saturating_sub(head.failed),
            failed_attempts: self.failed_attempts.saturating_sub(head.failed_attempts),
            calls: self.calls.since(&head.calls),
            gauges: self.gauges.clone(),
        }
    }

    /// Returns the packed form: some dozens of bytes for a usual second.
    pub fn pack(&self) -> Box<[u8]> {
        let mut packer = Packer::new();
        let (permits, gauges) = (&self.permits, &self.gauges);
        let stall = gauges.stall.map_or(0, |reason| reason as u64 + 1);
        let target = gauges.target_micros.map_or(0, |micros| micros.saturating_add(1));
        let nanos = self.calls.nanos();
        let single = [
            permits.due,
            permits.first,
            permits.repeats,
            permits.returned,
            permits.late,
            permits.slowed,
            self.succeeded,
            self.skipped,
            self.failed,
            self.failed_attempts,
            gauges.in_flight,
            gauges.concurrency,
            gauges.window,
            gauges.window_used,
            gauges.watermark,
            target,
            stall,
            // The high half, for a sum of calls beyond 584 years.
            (nanos & u128::from(u64::MAX)) as u64,
            (nanos >> 64) as u64,
        ];
        single
            .iter()
            .chain(&permits.lost)
            .chain(&[0; OCTAVES])
            .for_each(|number| packer.put(*number));
        pack_calls(&self.calls, &mut packer);
        // Behind all that an earlier version reads.
        for number in [gauges.found_micros, gauges.refused_ppm] {
            packer.put(number.map_or(0, |number| number.saturating_add(1)));
        }
        packer.finish()
    }

    /// Reads the form that [`Point::pack`] wrote; missing numbers are zero.
    pub fn unpack(bytes: &[u8]) -> Point {
        let mut numbers = Unpacker::new(bytes);
        let mut next = || numbers.next();
        let mut point = Point::default();
        let permits = &mut point.permits;
        (permits.due, permits.first, permits.repeats) = (next(), next(), next());
        (permits.returned, permits.late, permits.slowed) = (next(), next(), next());
        (point.succeeded, point.skipped, point.failed) = (next(), next(), next());
        point.failed_attempts = next();
        let gauges = &mut point.gauges;
        (gauges.in_flight, gauges.concurrency) = (next(), next());
        (gauges.window, gauges.window_used, gauges.watermark) = (next(), next(), next());
        gauges.target_micros = next().checked_sub(1);
        let stall = next().checked_sub(1).and_then(|at| usize::try_from(at).ok());
        gauges.stall = stall.and_then(|at| StallReason::ALL.get(at).copied());
        let nanos = u128::from(next()) | u128::from(next()) << 64;
        permits.lost.iter_mut().for_each(|lost| *lost = next());
        let octaves: [u64; OCTAVES] = std::array::from_fn(|_| next());
        point.calls = unpack_calls(octaves, nanos, &mut next);
        let gauges = &mut point.gauges;
        (gauges.found_micros, gauges.refused_ppm) = (next().checked_sub(1), next().checked_sub(1));
        point
    }
}

/// Number of buckets in an earlier version, which counted calls by powers of two of nanoseconds; its nodes may still
/// be asked, and ask.
const OCTAVES: usize = 64;

/// Writes the longest call, the number of buckets, and for each its distance from the one before and its count.
fn pack_calls(calls: &Histogram, packer: &mut Packer) {
    packer.put(calls.longest());
    packer.put(calls.counts().len() as u64);
    let mut before = 0;
    for (bucket, count) in calls.counts() {
        packer.put(u64::from(bucket - before));
        packer.put(*count);
        before = *bucket;
    }
}

fn unpack_calls(octaves: [u64; OCTAVES], nanos: u128, mut next: impl FnMut() -> u64) -> Histogram {
    let longest = next();
    let buckets = (next() as usize).min(BUCKETS);
    let mut at = 0_u64;
    let counts = (0..buckets).map(|_| {
        at = at.saturating_add(next()).min(BUCKETS as u64 - 1);
        (at as u16, next())
    });
    let mut calls = Histogram::of(counts.collect(), nanos, longest);
    // The middle of the range that an earlier version recorded.
    let middle = |octave: usize| Duration::from_nanos((3 << octave) / 2);
    let old = octaves.into_iter().take(OCTAVES - 1).enumerate();
    old.for_each(|(octave, count)| calls.place(middle(octave), count));
    calls
}

/// Initial capacity, enough for most points, so that a buffer grows once. Unit: bytes.
const PACKED_USUAL: usize = 128;

/// Writer of numbers in groups of eight: a byte that marks which are not zero, then those, seven bits a byte.
struct Packer {
    bytes: Vec<u8>,
    mask_at: usize,
    count: usize,
}

impl Packer {
    fn new() -> Packer {
        Packer {
            bytes: Vec::with_capacity(PACKED_USUAL),
            mask_at: 0,
            count: 0,
        }
    }

    fn put(&mut self, number: u64) {
        if self.count.is_multiple_of(8) {
            self.mask_at = self.bytes.len();
            self.bytes.push(0);
        }
        if number != 0 {
            self.bytes[self.mask_at] |= 1 << (self.count % 8);
            let mut rest = number;
            while rest >= 0x80 {
                self.bytes.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            self.bytes.push(rest as u8);
        }
        self.count += 1;
    }

    fn finish(self) -> Box<[u8]> {
        Box::from(self.bytes.as_slice())
    }
}

/// Reader of the form that a [`Packer`] wrote; past its end all numbers are zero.
struct Unpacker<'a> {
    bytes: std::slice::Iter<'a, u8>,
    mask: u8,
    count: usize,
}

impl<'a> Unpacker<'a> {
    fn new(bytes: &'a [u8]) -> Unpacker<'a> {
        Unpacker {
            bytes: bytes.iter(),
            mask: 0,
            count: 0,
        }
    }

    fn next(&mut self) -> u64 {
        if self.count.is_multiple_of(8) {
            self.mask = self.bytes.next().copied().unwrap_or(0);
        }
        let is_there = self.mask >> (self.count % 8) & 1 == 1;
        self.count += 1;
        let (mut number, mut shift) = (0, 0);
        while is_there && let Some(byte) = self.bytes.next() {
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_usual_second_is_short() {
        let mut point = Point::default();
        (point.permits.due, point.permits.first, point.succeeded) = (500_000_000, 498_000_000, 498);
        point.permits.lost[StallReason::WindowFull as usize] = 2_000_000;
        (0..500).for_each(|n| point.calls.record(Duration::from_micros(90_000 + 100 * n), 1));
        point.gauges.watermark = 389_329;
        (point.gauges.in_flight, point.gauges.concurrency) = (64, 256);
        (point.gauges.window, point.gauges.window_used) = (4096, 411);
        point.gauges.target_micros = Some(500_000_000);
        let packed = point.pack();
        assert_eq!(Point::unpack(&packed), point);
        assert!(packed.len() < 90, "{} bytes", packed.len());
    }

    #[test]
    fn what_an_earlier_version_counted_is_read() {
        let mut packer = Packer::new();
        let before = 19 + StallReason::ALL.len();
        (0..before).for_each(|_| packer.put(0));
        // From 67 ms to 134 ms.
        (0..OCTAVES).for_each(|octave| packer.put(if octave == 26 { 500 } else { 0 }));
        let calls = Point::unpack(&packer.finish()).calls;
        let p50 = calls.percentile(50).expect("some");
        assert!(
            p50 > Duration::from_millis(67) && p50 < Duration::from_millis(134),
            "{p50:?}"
        );
        assert_eq!(calls.count(), 500);
    }

    proptest! {
        #[test]
        fn whatever_is_packed_comes_back(numbers in proptest::collection::vec(any::<u64>(), 96), sparse in any::<bool>()) {
            let mut numbers = numbers.into_iter().map(|n| if sparse && n % 3 > 0 { 0 } else { n / 4 });
            let mut next = || numbers.next().unwrap_or_default();
            let mut point = Point::default();
            (point.permits.due, point.permits.first, point.permits.late) = (next(), next(), next());
            (point.permits.repeats, point.permits.returned) = (next(), next());
            point.permits.slowed = next();
            point.permits.lost.iter_mut().for_each(|lost| *lost = next());
            (point.succeeded, point.skipped, point.failed) = (next(), next(), next());
            point.failed_attempts = next();
            point.gauges.target_micros = Some(next()).filter(|n| n % 2 == 0);
            point.gauges.stall = StallReason::ALL.get((next() % 20) as usize).copied();
            (point.gauges.in_flight, point.gauges.concurrency, point.gauges.watermark) = (next(), next(), next());
            (point.gauges.window, point.gauges.window_used) = (next(), next());
            point.gauges.found_micros = Some(next()).filter(|n| n % 2 == 0);
            point.gauges.refused_ppm = Some(next()).filter(|n| n % 2 == 0);
            let counts = (0..60).map(|at| (at * 13, next().max(1)));
            point.calls = Histogram::of(counts.collect(), u128::from(next()) << 40, next());
            prop_assert_eq!(Point::unpack(&point.pack()), point);
        }
    }
}
