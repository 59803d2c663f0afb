//! The recent past of a task: a ring of seconds and a ring of tens of seconds, of as many bytes as they are given.
//!
//! Points are differences, so that a sum over any span is exact, whatever runs and shards they come from. A point never
//! spans a time in which nothing of the task ran here. The owner says how much memory there is, by [`Series::trim`].

mod joined;
mod point;

use std::collections::VecDeque;
use std::time::Duration;

pub use joined::{Piece, WallSlice, joined};
pub use point::{Gauges, Point};

use crate::ids::Moment;

/// Seconds that are kept: a quarter of an hour.
pub const FINE_MAX: usize = 900;
/// Seconds that are kept however little memory there is: a minute, and what it takes to see all of it.
pub const FINE_MIN: usize = 70;
/// The length of a coarse point.
pub const COARSE_STEP: Duration = Duration::from_secs(10);
/// Coarse points that are kept: six hours.
pub const COARSE_MAX: usize = 2160;
/// Points that follow one another with a longer gap don't belong together.
const GAP: Duration = Duration::from_millis(1500);
/// What the allocator adds to each block that it gives. Unit: bytes.
const BLOCK_BYTES: usize = 16;

/// What was counted between two moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its beginning.
    pub from: Moment,
    /// Its end.
    pub to: Moment,
    /// What was counted.
    pub point: Point,
}

impl Slice {
    /// How long it is.
    pub fn length(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// What was counted of a task over the last seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// How far back it reaches: less than was asked for when the task is younger, or when that is no longer kept.
    pub covered: Duration,
    /// For how much of it something of the task ran here.
    pub running: Duration,
    /// How long ago the first point of the sums began: up to half of it before what was asked for.
    pub reach: Duration,
    /// The sums, and how things stood at the last point.
    pub point: Point,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Series {
    fine: Ring,
    coarse: Ring,
    /// The coarse point that is being made.
    open: Option<Slice>,
}

impl Series {
    /// Appends what was counted between two moments; they lie after all before.
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

    /// Forgets the oldest points until all take at most so many bytes, but for the last [`FINE_MIN`] seconds.
    pub fn trim(&mut self, bytes: usize) {
        self.fine.trim(FINE_MIN, FINE_MAX, bytes / 2);
        self.coarse
            .trim(0, COARSE_MAX, bytes.saturating_sub(self.fine.bytes));
    }

    /// How much memory the points take. Unit: bytes.
    pub fn bytes(&self) -> usize {
        self.fine.bytes + self.coarse.bytes
    }

    /// The beginning of what is known; none when nothing is.
    pub fn begins(&self) -> Option<Moment> {
        let open = self.open.as_ref().map(|open| open.from);
        [self.fine.begins(), self.coarse.begins(), open]
            .into_iter()
            .flatten()
            .min()
    }

    /// The sum of what was counted in the time before `now`; none when nothing is known of it.
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

    /// What was counted between two moments, oldest first, each point by its middle. Seconds where they are kept and
    /// wanted (`step` is below [`COARSE_STEP`]), tens of seconds else.
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

/// Points, oldest first.
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

    /// Whether it knows no more than another ring.
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

/// Whether the middle of `[begin, end]` lies in `(from, to]`.
fn is_between(begin: Moment, end: Moment, from: Moment, to: Moment) -> bool {
    let middle = begin.plus(end.since(begin) / 2);
    middle > from && middle <= to
}

#[cfg(test)]
mod tests;
