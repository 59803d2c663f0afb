//! Capacity of a node: which shards may run here, by the sum of their rates.
//!
//! Only the supervisor holds a ledger, so admitting and booking are one step and can't race. The ledger never starts
//! or stops anything, and never books more than the capacity; lowering the capacity revokes no booking.
//!
//! Limits over all tasks of a business are not booked: running tasks share them (`limit`).
//!
//! The restorer builds the waiting line (`line`) anew in each scan, so nothing waits here that is no longer runnable.
//! The ledger remembers only since when the head of the line has been passed: after [`PASSED_OVER_MAX`], nothing is
//! admitted past a head whose start is unknown until it fits.

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

/// Maximum time for which later shards may pass one that doesn't fit, if its start is unknown.
pub const PASSED_OVER_MAX: Duration = Duration::from_secs(60);

/// Amount of capacity, in millionths of an item per second.
///
/// Rates of any period are added exactly in this unit. Needs are rounded up and capacities are rounded down, so
/// rounding never overbooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load(pub u128);

/// Millionths per item times nanoseconds per second.
const MICROS_NANOS: u128 = 1_000_000 * 1_000_000_000;

impl Load {
    /// Returns the load that a task of this rate needs.
    pub fn needed_by(rate: Rate) -> Load {
        Load((u128::from(rate.items()) * MICROS_NANOS).div_ceil(u128::from(rate.period_ns())))
    }

    /// Returns the load that a node of this rate offers.
    pub fn offered_by(rate: Rate) -> Load {
        Load(u128::from(rate.items()) * MICROS_NANOS / u128::from(rate.period_ns()))
    }

    /// Formats the load rounded to three digits, because shares of rates may have endless decimals; whole items keep
    /// all their digits.
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

/// Formats the load in items per second with all its decimals: `500/s`, `0.25/s`.
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

/// Capacity of a node for shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// No limit on the rates (`windrow run`).
    Unlimited,
    /// Limit on the sum of the rates.
    Limited(Rate),
}

/// Precedence of a waiting shard: the lowest rank goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Priority of the task; the highest goes first.
    pub priority: Reverse<i32>,
    /// Start of the wait; within a priority, the longest wait goes first.
    pub since: WallMs,
    /// Shard that waits; the final tie-breaker.
    pub shard: ShardId,
}

impl Rank {
    /// Creates a rank from the priority of the shard's task; the highest priority goes first.
    pub fn new(priority: i32, since: WallMs, shard: ShardId) -> Rank {
        Rank {
            priority: Reverse(priority),
            since,
            shard,
        }
    }
}

/// Request of a shard to run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Shard and its precedence.
    pub rank: Rank,
    /// Rate limit of the shard.
    pub rate: RateLimit,
    /// Share of its task's rate that this is.
    pub share: Share,
    /// Minimum time to finish the rest of the shard; `None` if unknown.
    pub takes: Option<Duration>,
}

/// Outcome of one request to [`Ledger::admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Shard that made the request.
    pub shard: ShardId,
    /// Load booked, or the reason for the refusal.
    pub outcome: Result<Load, Refusal>,
}

#[derive(Clone, Debug)]
struct Booking {
    load: Load,
    share: Share,
    /// Promised end, if the shard was backfilled past one that didn't fit.
    promised: Option<Moment>,
}

/// Bookings of one node.
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
    /// Creates an empty ledger. A task without a rate counts as `unlimited_reserves`.
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

    /// Changes the capacity. All bookings stay, including those that no longer fit.
    pub fn set_capacity(&mut self, capacity: Capacity) {
        self.capacity = match capacity {
            Capacity::Unlimited => None,
            Capacity::Limited(rate) => Some(Load::offered_by(rate)),
        };
    }

    /// Returns the whole capacity; `None` is unlimited.
    pub fn capacity(&self) -> Option<Load> {
        self.capacity
    }

    /// Returns the sum of all bookings.
    pub fn held_sum(&self) -> Load {
        self.held_sum
    }

    /// Returns the load that a shard has booked.
    pub fn held_by(&self, shard: ShardId) -> Option<Load> {
        self.held.get(&shard).map(|booking| booking.load)
    }

    /// Returns the number of booked shards.
    pub fn held_shards(&self) -> usize {
        self.held.len()
    }

    /// Returns the load that can still be booked; practically infinite if the capacity is unlimited.
    pub fn free(&self) -> Load {
        self.whole().minus(self.held_sum)
    }

    /// Books a shard regardless of the waiting line.
    ///
    /// # Errors
    /// If it doesn't fit or is booked already; nothing changes then.
    pub fn reserve(&mut self, request: &Request) -> Result<Load, Refusal> {
        let need = self.check(request)?;
        self.book(request, need, None);
        Ok(need)
    }

    /// Returns the load that the request needs, if it fits now.
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

    /// Changes the booking of a shard. A decrease always fits.
    ///
    /// # Errors
    /// If an increase doesn't fit (the refusal's `free` is the most that would), or if the shard isn't booked. The
    /// booking stays as it was.
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

    /// Changes the booking and the shard's share of its task.
    ///
    /// # Errors
    /// As for [`Ledger::change`].
    pub fn change_share(&mut self, shard: ShardId, share: Share, rate: RateLimit) -> Result<Load, Refusal> {
        let need = self.change(shard, share.of_limit(rate))?;
        if let Some(booking) = self.held.get_mut(&shard) {
            booking.share = share;
        }
        Ok(need)
    }

    /// Changes the bookings of all shards of a task that run here to their shares of `rate`, all or none, and returns
    /// their number. `share` is the share of a shard that would run here if none does.
    ///
    /// # Errors
    /// If it doesn't fit; also if none runs here and the share exceeds the node's whole capacity.
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

    /// Releases the booking of a shard and returns its load; `None` if it had none.
    pub fn release(&mut self, shard: ShardId) -> Option<Load> {
        let Booking { load, .. } = self.held.remove(&shard)?;
        self.held_sum = self.held_sum.minus(load);
        Some(load)
    }

    fn need_of(&self, rate: RateLimit) -> Load {
        rate.most().map_or(self.unlimited_reserves, Load::needed_by)
    }

    fn whole(&self) -> Load {
        self.capacity.unwrap_or(Load(u128::MAX))
    }

    /// `own` is the load that the shard has booked already.
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
