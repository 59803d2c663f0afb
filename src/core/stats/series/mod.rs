//! Recent history of a task: a ring of seconds and a ring of tens of seconds, within a memory bound.
//!
//! Points are differences, so a sum over any span is exact, whatever runs and shards they come from. A point never
//! spans a time in which nothing of the task ran here. The owner sets the memory bound with [`Series::trim`].

mod joined;
mod point;

use std::collections::VecDeque;
use std::time::Duration;

pub use joined::{Piece, WallSlice, joined};
pub use point::{Gauges, Point};

use crate::ids::Moment;

/// Maximum number of fine points: a quarter of an hour of seconds.
pub const FINE_MAX: usize = 900;
/// Number of fine points kept however little memory there is: a minute, and the margin to see all of it.
pub const FINE_MIN: usize = 70;
/// Length of a coarse point.
pub const COARSE_STEP: Duration = Duration::from_secs(10);
/// Maximum number of coarse points: six hours.
pub const COARSE_MAX: usize = 2160;
/// Maximum gap between points that are joined.
const GAP: Duration = Duration::from_millis(1500);
/// Overhead of the allocator per block. Unit: bytes.
const BLOCK_BYTES: usize = 16;

/// Counts between two moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Beginning of the slice.
    pub from: Moment,
    /// End of the slice.
    pub to: Moment,
    /// Counts of the slice.
    pub point: Point,
}

impl Slice {
    /// Returns the length of the slice.
    pub fn length(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// Counts of a task over the last seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Time that is covered: shorter than requested if the task is younger, or if older points are no longer kept.
    pub covered: Duration,
    /// Part of the covered time in which something of the task ran here.
    pub running: Duration,
    /// Age of the first point in the sums, which may begin up to half its length before the requested time.
    pub reach: Duration,
    /// Sums over the span, with the gauges of the last point.
    pub point: Point,
}

/// Recent history of a task at two resolutions.
#[derive(Clone, Debug, Default)]
pub struct Series {
    fine: Ring,
    coarse: Ring,
    /// Coarse point that is being built.
    open: Option<Slice>,
}

impl Series {
    /// Appends the counts between two moments, which must be after all earlier ones.
    pub fn push(&mut self, slice: &Slice) {
        self.fine.push(slice);
        let follows = |open: &Slice| slice.from.since(open.to) <= GAP;
        if let Some(before_gap) = self.open.take_if(|open| !follows(open)) {
            self.coarse.push(&before_gap);
        }
        match &mut self.open {
            Some(open) => {
                open.to = slice.to;
                open.point.extend(&slice.point);
            }
            None => self.open = Some(slice.clone()),
        }
        if let Some(full) = self.open.take_if(|open| open.length() + GAP / 2 >= COARSE_STEP) {
            self.coarse.push(&full);
        }
    }

    /// Drops the oldest points until the rest takes at most `bytes`, but keeps the last [`FINE_MIN`] seconds.
    pub fn trim(&mut self, bytes: usize) {
        self.fine.trim(FINE_MIN, FINE_MAX, bytes / 2);
        self.coarse
            .trim(0, COARSE_MAX, bytes.saturating_sub(self.fine.bytes));
    }

    /// Returns the memory that the points take. Unit: bytes.
    pub fn bytes(&self) -> usize {
        self.fine.bytes + self.coarse.bytes
    }

    /// Returns the beginning of the known history, or `None` if it is empty.
    pub fn begins(&self) -> Option<Moment> {
        let open = self.open.as_ref().map(|open| open.from);
        [self.fine.begins(), self.coarse.begins(), open]
            .into_iter()
            .flatten()
            .min()
    }

    /// Sums the counts of the last `length` before `now`; `None` if nothing is known of that time.
    pub fn span(&self, now: Moment, length: Duration) -> Option<Span> {
        let cut = now.minus(length);
        let slices = self.slices(cut, now, Duration::ZERO);
        let first = slices.first()?.from;
        let begins = first.max(cut);
        let mut point = Point::default();
        let mut running = Duration::ZERO;
        for slice in &slices {
            point.extend(&slice.point);
            running += slice.length();
        }
        let covered = now.since(begins);
        Some(Span {
            covered,
            running: running.min(covered),
            reach: now.since(first),
            point,
        })
    }

    /// Returns the points between two moments, oldest first, assigning each by its middle. Seconds if they are kept
    /// and wanted (`step` is below [`COARSE_STEP`]), otherwise tens of seconds.
    pub fn slices(&self, from: Moment, to: Moment, step: Duration) -> Vec<Slice> {
        let is_kept = !self.fine.has_lost || self.fine.begins().is_some_and(|begins| begins <= from);
        if step < COARSE_STEP && (is_kept || self.coarse.reach(&self.fine)) {
            return self.fine.between(from, to);
        }
        let open = self
            .open
            .iter()
            .filter(|open| is_between(open.from, open.to, from, to))
            .cloned();
        self.coarse.between(from, to).into_iter().chain(open).collect()
    }
}

/// Ring of packed points, oldest first.
#[derive(Clone, Debug, Default)]
struct Ring {
    points: VecDeque<Packed>,
    bytes: usize,
    has_lost: bool,
}

#[derive(Clone, Debug)]
struct Packed {
    from: Moment,
    to: Moment,
    bytes: Box<[u8]>,
}

impl Packed {
    fn size(&self) -> usize {
        size_of::<Packed>() + BLOCK_BYTES + self.bytes.len()
    }
}

impl Ring {
    fn push(&mut self, slice: &Slice) {
        let packed = Packed {
            from: slice.from,
            to: slice.to,
            bytes: slice.point.pack(),
        };
        self.bytes += packed.size();
        self.points.push_back(packed);
    }

    fn trim(&mut self, least: usize, most: usize, bytes: usize) {
        while self.points.len() > most || (self.bytes > bytes && self.points.len() > least) {
            let Some(oldest) = self.points.pop_front() else {
                return;
            };
            self.bytes -= oldest.size();
            self.has_lost = true;
        }
    }

    fn begins(&self) -> Option<Moment> {
        self.points.front().map(|packed| packed.from)
    }

    /// Returns true if it reaches back no further than another ring.
    fn reach(&self, other: &Ring) -> bool {
        match (self.begins(), other.begins()) {
            (Some(mine), Some(theirs)) => theirs <= mine,
            (mine, _) => mine.is_none(),
        }
    }

    fn between(&self, from: Moment, to: Moment) -> Vec<Slice> {
        let first = self.points.partition_point(|packed| packed.to <= from);
        let found = self.points.range(first..).take_while(|packed| packed.from < to);
        let found = found.filter(|packed| is_between(packed.from, packed.to, from, to));
        found
            .map(|packed| Slice {
                from: packed.from,
                to: packed.to,
                point: Point::unpack(&packed.bytes),
            })
            .collect()
    }
}

/// Returns true if the middle of `[begin, end]` is in `(from, to]`.
fn is_between(begin: Moment, end: Moment, from: Moment, to: Moment) -> bool {
    let middle = begin.plus(end.since(begin) / 2);
    middle > from && middle <= to
}

#[cfg(test)]
mod tests;
