//! A node's capacity: which shards may run here, by the sum of their rates.
//!
//! Only the supervisor holds a ledger, so admitting and booking are one step and can't race. The ledger never
//! starts or stops anything, and never books more than the capacity; lowering the capacity takes nothing back.
//!
//! The waiting line is what the restorer finds, in each scan anew: nobody waits here who is no longer runnable.
//! The ledger remembers only since when a candidate has been passed over, because after [`PASSED_OVER_MAX`] nothing
//! behind it is admitted until it fits.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use super::ids::{Moment, ShardId, WallMs};
use super::settings::{Rate, RateLimit};

/// How long later candidates may overtake one that doesn't fit. (`design.md` §5.)
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

/// A shard that would like to run here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The shard.
    pub shard: ShardId,
    /// How fast it may go.
    pub rate: RateLimit,
    /// Higher goes first.
    pub priority: i32,
    /// Since when it waits; of the same priority, who waited longer goes first.
    pub waiting_since: WallMs,
}

/// Why a shard may not run here now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Not now; when others have ended it fits.
    Full,
    /// Never: it needs more than the node's whole capacity.
    TooBig,
    /// It would fit, but this one was passed over for too long and goes first.
    Behind(ShardId),
    /// It is booked already.
    Held,
    /// It isn't booked, so there is nothing to change.
    NotHeld,
}

/// A shard was not booked, or not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Refusal {
    /// What it needs.
    pub need: Load,
    /// What would fit now; for a change, what the shard holds included.
    pub free: Load,
    /// The node's whole capacity.
    pub capacity: Load,
    /// Why not.
    pub obstacle: Obstacle,
}

impl Refusal {
    fn text(&self) -> String {
        let Refusal { need, free, capacity, obstacle } = self;
        match obstacle {
            Obstacle::Full => format!("it needs {need}, {free} of the node's {capacity} would fit now"),
            Obstacle::TooBig => {
                format!(
                    "it needs {need}, more than the node's whole capacity of {capacity}; lower its rate or raise node.capacity_rate"
                )
            }
            Obstacle::Behind(shard) => format!("{shard} has waited longer and goes first"),
            Obstacle::Held => "it runs here already".to_owned(),
            Obstacle::NotHeld => "it doesn't run here".to_owned(),
        }
    }
}

/// What came of one request of [`Ledger::admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The shard.
    pub shard: ShardId,
    /// Booked, or why not.
    pub outcome: Result<Load, Refusal>,
}

/// The bookings of one node.
///
/// ```
/// use windrow::domain::capacity::{Capacity, Ledger, Obstacle};
/// use windrow::domain::ids::{ShardId, TaskId};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut ledger = Ledger::new(Capacity::Limited("2000/s".parse()?), "1000/s".parse()?);
/// let (one, two) = (ShardId { task: TaskId(1), no: 0 }, ShardId { task: TaskId(2), no: 0 });
/// ledger.reserve(one, "1500/s".parse()?)?;
/// let refusal = ledger.reserve(two, "501/s".parse()?).unwrap_err();
/// assert_eq!(refusal.obstacle, Obstacle::Full);
/// ledger.release(one);
/// assert!(ledger.reserve(two, "501/s".parse()?).is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Ledger {
    capacity: Option<Load>,
    unlimited_reserves: Load,
    held: BTreeMap<ShardId, Load>,
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

    /// The sum of all bookings.
    pub fn held_sum(&self) -> Load {
        self.held_sum
    }

    /// What a shard has booked.
    pub fn held_by(&self, shard: ShardId) -> Option<Load> {
        self.held.get(&shard).copied()
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
    pub fn reserve(&mut self, shard: ShardId, rate: RateLimit) -> Result<Load, Refusal> {
        let need = self.need_of(rate);
        if self.held.contains_key(&shard) {
            return Err(self.refusal(need, self.free(), Obstacle::Held));
        }
        self.check_fit(need, self.free())?;
        self.held.insert(shard, need);
        self.held_sum = self.held_sum.plus(need);
        self.passed_over_since.remove(&shard);
        Ok(need)
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
        let others = self.held_sum.minus(held);
        if need > held {
            self.check_fit(need, self.whole().minus(others))?;
        }
        self.held.insert(shard, need);
        self.held_sum = others.plus(need);
        Ok(need)
    }

    /// Gives back what a shard has booked, and says how much; none when it had nothing.
    pub fn release(&mut self, shard: ShardId) -> Option<Load> {
        let held = self.held.remove(&shard)?;
        self.held_sum = self.held_sum.minus(held);
        Some(held)
    }

    /// Books whoever fits among all that wait, by priority, then by waiting time. Answers in that order.
    ///
    /// One that doesn't fit now may be overtaken for [`PASSED_OVER_MAX`] from the first time that happens; then
    /// nothing behind it is booked until it fits or no longer waits. One that never fits blocks nobody.
    pub fn admit(&mut self, waiting: &[Request], now: Moment) -> Vec<Admission> {
        let mut line: Vec<Request> = waiting.to_vec();
        line.sort_by_key(|request| (-i64::from(request.priority), request.waiting_since, request.shard));
        self.passed_over_since.retain(|shard, _| line.iter().any(|request| request.shard == *shard));
        let mut overtaken: Vec<ShardId> = Vec::new();
        let mut blocked_by = None;
        let mut answers = Vec::with_capacity(line.len());
        for Request { shard, rate, .. } in line {
            let outcome = match blocked_by {
                Some(first) => Err(self.refusal(self.need_of(rate), self.free(), Obstacle::Behind(first))),
                None => self.reserve(shard, rate),
            };
            match &outcome {
                Ok(_) => {
                    for shard in overtaken.drain(..) {
                        self.passed_over_since.entry(shard).or_insert(now);
                    }
                }
                Err(refusal) if refusal.obstacle == Obstacle::Full => {
                    overtaken.push(shard);
                    blocked_by = self.has_waited_enough(shard, now).then_some(shard);
                }
                Err(_) => {}
            }
            answers.push(Admission { shard, outcome });
        }
        answers
    }

    fn has_waited_enough(&self, shard: ShardId, now: Moment) -> bool {
        self.passed_over_since.get(&shard).is_some_and(|since| now.since(*since) >= PASSED_OVER_MAX)
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

    fn check_fit(&self, need: Load, free: Load) -> Result<(), Refusal> {
        match self.capacity {
            Some(whole) if need > whole => Err(self.refusal(need, free, Obstacle::TooBig)),
            Some(_) if need > free => Err(self.refusal(need, free, Obstacle::Full)),
            _ => Ok(()),
        }
    }

    fn refusal(&self, need: Load, free: Load, obstacle: Obstacle) -> Refusal {
        Refusal { need, free, capacity: self.whole(), obstacle }
    }
}
