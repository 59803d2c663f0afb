//! A node's capacity: which shards may run here, by the sum of their rates.
//!
//! Only the supervisor holds a ledger, so admitting and booking are one step and can't race. The ledger never
//! starts or stops anything, and never books more than the capacity; lowering the capacity takes nothing back.
//!
//! What all tasks of a business may have together isn't booked: they share it while they run (`limit`).
//!
//! The waiting line (`line`) is what the restorer finds, in each scan anew: nobody waits here who is no longer
//! runnable. The ledger remembers only since when the head of the line has been passed, because after
//! [`PASSED_OVER_MAX`] nothing behind one whose start can't be foreseen is admitted until it fits.

mod line;
pub mod placement;
mod refusal;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

pub use refusal::{Obstacle, Refusal};

use super::ids::{Moment, ShardId, TaskId, WallMs};
use super::settings::{Rate, RateLimit};
use super::shards::Share;

/// How long later candidates may pass one that doesn't fit, where its start can't be foreseen.
pub const PASSED_OVER_MAX: Duration = Duration::from_secs(60);

/// An amount of capacity. Unit: millionths of an item per second.
///
/// Rates of any period are added exactly in this unit; what a task needs is rounded up and what a node has is
/// rounded down, so rounding never overbooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load(pub u128);

/// Millionths of an item times nanoseconds of a second.
const MICROS_NANOS: u128 = 1_000_000 * 1_000_000_000;

impl Load {
    /// What a task of this rate needs.
    pub fn needed_by(rate: Rate) -> Load {
        Load((u128::from(rate.items()) * MICROS_NANOS).div_ceil(u128::from(rate.period_ns())))
    }

    /// What a node of this rate has.
    pub fn offered_by(rate: Rate) -> Load {
        Load(u128::from(rate.items()) * MICROS_NANOS / u128::from(rate.period_ns()))
    }

    /// As people read it beside others: parts of rates have no end of decimals, and three digits say how much it is.
    ///
    /// ```
    /// use windrow_core::capacity::Load;
    ///
    /// let shown = [26_666_667, 110_000_001, 2_000_000_000, 1_234_500_000, 12_346].map(|load| Load(load).rounded());
    /// assert_eq!(shown, ["26.7/s", "110/s", "2000/s", "1234/s", "0.0123/s"]);
    /// ```
    pub fn rounded(self) -> String {
        let digits = self.0.checked_ilog10().map_or(0, |least| least + 1);
        // Whole items keep all their digits.
        let unit = 10_u128.pow(digits.saturating_sub(3).min(6));
        Load((self.0 + (unit - 1) / 2) / unit * unit).to_string()
    }

    fn plus(self, other: Load) -> Load {
        Load(self.0.saturating_add(other.0))
    }

    fn minus(self, other: Load) -> Load {
        Load(self.0.saturating_sub(other.0))
    }
}

/// As a rate in items per second, with as many decimals as it has: `500/s`, `0.25/s`.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (items, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micros == 0 {
            return write!(f, "{items}/s");
        }
        let fraction = format!("{micros:06}");
        write!(f, "{items}.{}/s", fraction.trim_end_matches('0'))
    }
}

/// How much a node may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// As much as comes (`windrow run`).
    Unlimited,
    /// At most this sum of rates.
    Limited(Rate),
}

/// Precedence of a shard that waits: the lowest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Of the task; higher goes first.
    pub priority: Reverse<i32>,
    /// Since when it waits; of the same priority, who waited longer goes first.
    pub since: WallMs,
    /// The shard.
    pub shard: ShardId,
}

impl Rank {
    /// Precedence of a shard by its task's priority, of which a higher one goes first.
    pub fn new(priority: i32, since: WallMs, shard: ShardId) -> Rank {
        Rank {
            priority: Reverse(priority),
            since,
            shard,
        }
    }
}

/// A shard that would like to run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The shard, and its precedence.
    pub rank: Rank,
    /// How fast it may go.
    pub rate: RateLimit,
    /// Of which part of its task's rate that is.
    pub share: Share,
    /// The least time that what is left of it takes; none where that isn't known.
    pub takes: Option<Duration>,
}

/// What came of one request of [`Ledger::admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The shard.
    pub shard: ShardId,
    /// Booked, or why not.
    pub outcome: Result<Load, Refusal>,
}

#[derive(Clone, Debug)]
struct Booking {
    load: Load,
    share: Share,
    /// When it was to have ended, where it was filled in behind one that didn't fit.
    promised: Option<Moment>,
}

/// The bookings of one node.
///
/// ```
/// use windrow_core::capacity::{Capacity, Ledger, Obstacle, Rank, Request};
/// use windrow_core::ids::{ShardId, TaskId, WallMs};
/// use windrow_core::shards::Share;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut ledger = Ledger::new(Capacity::Limited("2000/s".parse()?), "1000/s".parse()?);
/// let one = Request {
///     rank: Rank::new(0, WallMs(0), ShardId { task: TaskId(1), no: 0 }),
///     rate: "1500/s".parse()?,
///     share: Share::ALL,
///     takes: None,
/// };
/// let rank = Rank::new(0, WallMs(0), ShardId { task: TaskId(2), no: 0 });
/// let two = Request { rank, rate: "501/s".parse()?, ..one.clone() };
/// ledger.reserve(&one)?;
/// let refusal = ledger.reserve(&two).unwrap_err();
/// assert_eq!(refusal.obstacle, Obstacle::Full);
/// ledger.release(one.rank.shard);
/// assert!(ledger.reserve(&two).is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Ledger {
    capacity: Option<Load>,
    unlimited_reserves: Load,
    held: BTreeMap<ShardId, Booking>,
    held_sum: Load,
    passed_over_since: HashMap<ShardId, Moment>,
}

impl Ledger {
    /// An empty ledger. A task without a rate counts as `unlimited_reserves`.
    pub fn new(capacity: Capacity, unlimited_reserves: Rate) -> Ledger {
        let mut ledger = Ledger {
            capacity: None,
            unlimited_reserves: Load::needed_by(unlimited_reserves),
            held: BTreeMap::new(),
            held_sum: Load(0),
            passed_over_since: HashMap::new(),
        };
        ledger.set_capacity(capacity);
        ledger
    }

    /// Changes the capacity; bookings stay, also those that no longer fit.
    pub fn set_capacity(&mut self, capacity: Capacity) {
        self.capacity = match capacity {
            Capacity::Unlimited => None,
            Capacity::Limited(rate) => Some(Load::offered_by(rate)),
        };
    }

    /// The whole capacity; none is unlimited.
    pub fn capacity(&self) -> Option<Load> {
        self.capacity
    }

    /// The sum of all bookings.
    pub fn held_sum(&self) -> Load {
        self.held_sum
    }

    /// What a shard has booked.
    pub fn held_by(&self, shard: ShardId) -> Option<Load> {
        self.held.get(&shard).map(|booking| booking.load)
    }

    /// How many shards are booked.
    pub fn held_shards(&self) -> usize {
        self.held.len()
    }

    /// What can still be booked; all there is where the capacity is unlimited.
    pub fn free(&self) -> Load {
        self.whole().minus(self.held_sum)
    }

    /// Books a shard without looking at the line.
    ///
    /// # Errors
    /// When it doesn't fit or is booked already; nothing is changed then.
    pub fn reserve(&mut self, request: &Request) -> Result<Load, Refusal> {
        let need = self.check(request)?;
        self.book(request, need, None);
        Ok(need)
    }

    /// What it needs, where that fits now.
    fn check(&self, request: &Request) -> Result<Load, Refusal> {
        let need = self.need_of(request.rate);
        if self.held.contains_key(&request.rank.shard) {
            return Err(self.refusal(need, self.free(), Obstacle::Held));
        }
        self.check_fit(need, Load(0))?;
        Ok(need)
    }

    fn book(&mut self, request: &Request, load: Load, promised: Option<Moment>) {
        let booking = Booking {
            load,
            share: request.share,
            promised,
        };
        self.held.insert(request.rank.shard, booking);
        self.held_sum = self.held_sum.plus(load);
        self.passed_over_since.remove(&request.rank.shard);
    }

    /// Changes what a shard has booked. Less always fits.
    ///
    /// # Errors
    /// When more is wanted than fits (the refusal's `free` is the most that would), or the shard isn't booked.
    /// The booking stays as it was.
    pub fn change(&mut self, shard: ShardId, rate: RateLimit) -> Result<Load, Refusal> {
        let need = self.need_of(rate);
        let Some(held) = self.held_by(shard) else {
            return Err(self.refusal(need, self.free(), Obstacle::NotHeld));
        };
        if need > held {
            self.check_fit(need, held)?;
        }
        self.rebook(shard, need);
        Ok(need)
    }

    /// The same where the shard's part of its task has changed, too.
    ///
    /// # Errors
    /// As [`Ledger::change`].
    pub fn change_share(&mut self, shard: ShardId, share: Share, rate: RateLimit) -> Result<Load, Refusal> {
        let need = self.change(shard, share.of_limit(rate))?;
        if let Some(booking) = self.held.get_mut(&shard) {
            booking.share = share;
        }
        Ok(need)
    }

    /// Changes what each shard of a task that runs here has booked to its part of `rate`, all of them or none, and says
    /// how many. `share` is the part of one that would run here, where none does.
    ///
    /// # Errors
    /// When it doesn't fit; also when none runs here but the part is more than the node's whole capacity.
    pub fn change_task(&mut self, task: TaskId, rate: RateLimit, share: Share) -> Result<usize, Refusal> {
        let need = self.need_of(share.of_limit(rate));
        let (first, last) = (ShardId { task, no: 0 }, ShardId { task, no: u32::MAX });
        let held = self.held.range(first..=last);
        let before: Vec<(ShardId, Load, Share)> = held
            .map(|(shard, booking)| (*shard, booking.load, booking.share))
            .collect();
        if before.is_empty() && self.capacity.is_some_and(|whole| need > whole) {
            return Err(self.refusal(need, self.free(), Obstacle::TooBig));
        }
        for (at, (shard, _, share)) in before.iter().enumerate() {
            if let Err(refusal) = self.change(*shard, share.of_limit(rate)) {
                before[..at]
                    .iter()
                    .for_each(|(shard, load, _)| self.rebook(*shard, *load));
                return Err(refusal);
            }
        }
        Ok(before.len())
    }

    fn rebook(&mut self, shard: ShardId, need: Load) {
        let Some(booking) = self.held.get_mut(&shard) else {
            return;
        };
        let held = std::mem::replace(&mut booking.load, need);
        self.held_sum = self.held_sum.minus(held).plus(need);
    }

    /// Gives back what a shard has booked, and says how much; none when it had nothing.
    pub fn release(&mut self, shard: ShardId) -> Option<Load> {
        let Booking { load, .. } = self.held.remove(&shard)?;
        self.held_sum = self.held_sum.minus(load);
        Some(load)
    }

    fn need_of(&self, rate: RateLimit) -> Load {
        match rate {
            RateLimit::Unlimited => self.unlimited_reserves,
            RateLimit::Limited(rate) => Load::needed_by(rate),
        }
    }

    fn whole(&self) -> Load {
        self.capacity.unwrap_or(Load(u128::MAX))
    }

    /// `own` is what the shard holds already.
    fn check_fit(&self, need: Load, own: Load) -> Result<(), Refusal> {
        let free = self.whole().minus(self.held_sum.minus(own));
        if self.capacity.is_some_and(|whole| need > whole) {
            return Err(self.refusal(need, free, Obstacle::TooBig));
        }
        match self.capacity {
            Some(_) if need > free => Err(self.refusal(need, free, Obstacle::Full)),
            _ => Ok(()),
        }
    }

    fn refusal(&self, need: Load, free: Load, obstacle: Obstacle) -> Refusal {
        Refusal {
            need,
            free,
            capacity: self.whole(),
            obstacle,
            holder: None,
        }
    }
}
