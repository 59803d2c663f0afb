//! Division of a task into shards, and of its rate into shares.
//!
//! A task is cut once, when it starts. While it runs a share only grows: a shard that is done leaves its share to the
//! others, so the shares never add up to more than the whole and no agreement is needed.

pub mod trust;

use std::num::{NonZeroU32, NonZeroU64};

use super::ids::{ItemIndex, WallMs};
use super::settings::{Auto, Rate, RateLimit};
use super::task::{Canary, ShardRange};

/// Maximum number of shards that a person may ask for.
pub const SHARDS_MAX: u32 = 256;
/// Maximum number of shards that `auto` makes.
pub const SHARDS_AUTO_MAX: u32 = 64;
/// Maximum number of shards per node that `auto` makes, so that a node that leaves hands over a part of its work to
/// each of the others.
const SHARDS_PER_NODE: u32 = 4;
/// Whole rate in the unit of the stored share.
const WHOLE: u64 = 1 << 30;

/// Share of a shard in its task's rate: one of several equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share(NonZeroU32);

impl Share {
    /// Whole rate: for the only shard, or the only one that isn't done.
    pub const ALL: Share = Share(NonZeroU32::MIN);

    /// Creates one of `parts` equal shares; the whole if there is nothing to share.
    pub fn one_of(parts: u32) -> Share {
        Share(NonZeroU32::new(parts).unwrap_or(NonZeroU32::MIN))
    }

    /// Returns the share of each of `shards` shards.
    pub fn of_each(shards: usize) -> Share {
        Share::one_of(u32::try_from(shards).unwrap_or(u32::MAX))
    }

    /// Returns the form that the store keeps. Unit: 2⁻³⁰ of the whole, rounded down.
    pub fn stored(self) -> i64 {
        (WHOLE / u64::from(self.0.get())).cast_signed()
    }

    /// Reads the form that the store keeps; `None` is the whole. Returns the largest share that is no more than what
    /// is stored.
    pub fn read(stored: Option<i64>) -> Share {
        let Some(stored) = stored else { return Share::ALL };
        let parts = WHOLE / (stored.max(0).unsigned_abs() + 1) + 1;
        Share::one_of(u32::try_from(parts).unwrap_or(u32::MAX))
    }

    /// Returns the number of such shares in the whole.
    pub fn parts(self) -> u32 {
        self.0.get()
    }

    /// Returns true if nothing is left for others.
    pub fn is_all(self) -> bool {
        self == Share::ALL
    }

    /// Returns the share of a number, rounded down.
    pub fn of(self, number: u64) -> u64 {
        number / u64::from(self.parts())
    }

    /// Returns the share of a rate: exact, or slower if it can't be represented.
    pub fn of_rate(self, rate: Rate) -> Rate {
        let parts = u64::from(self.parts());
        let common = common_divisor(rate.items(), parts);
        rate.stretched(rate.items() / common, parts / common)
    }

    /// Returns the share of a limit; unlimited stays unlimited.
    pub fn of_limit(self, limit: RateLimit) -> RateLimit {
        limit.map(|rate| self.of_rate(rate))
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Nodes that a task could run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// Number of these nodes.
    pub count: u32,
    /// Capacity of the largest node; `None` is unlimited. Unit: millionths of an item per second.
    pub capacity_micros: Option<u128>,
}

/// Collects the capacities of the nodes; `None` is unlimited.
impl FromIterator<Option<u128>> for Nodes {
    fn from_iter<I: IntoIterator<Item = Option<u128>>>(capacities: I) -> Nodes {
        let none = Nodes {
            count: 0,
            capacity_micros: Some(0),
        };
        capacities.into_iter().fold(none, |nodes, capacity| Nodes {
            count: nodes.count + 1,
            capacity_micros: nodes
                .capacity_micros
                .zip(capacity)
                .map(|(most, one)| most.max(one)),
        })
    }
}

/// Inputs that determine the number of shards of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// Number of shards that people asked for.
    pub shards: Auto<NonZeroU32>,
    /// Rate limit of the task.
    pub rate: RateLimit,
    /// Items in flight, if chosen by people.
    pub concurrency: Auto<NonZeroU32>,
    /// Maximum number of items that one run has in flight by itself.
    pub max_concurrency: NonZeroU32,
    /// True if items go one at a time, in index order: nothing to share.
    pub ordered: bool,
    /// Maximum number of shares that the settings can be divided into; `None` is any number.
    pub parts_max: Option<u32>,
    /// First items of the task, which one shard must hold.
    pub canary: Option<Canary>,
}

impl Sharding {
    /// Returns the number of shards of a task over `range`: never more than items, and so few that the canary, with
    /// an item to spare, is within the first.
    ///
    /// `auto` is the smallest number with which the share of each fits a node: with a capacity of 2,000/s, 5,000/s
    /// run in three shards. If no rate limits the task, every node takes part.
    pub fn count(&self, range: ShardRange, nodes: Nodes) -> u32 {
        let asked = match self.shards {
            _ if self.ordered => 1,
            Auto::Fixed(shards) => shards.get().min(SHARDS_MAX),
            Auto::Auto => self.automatic(nodes),
        };
        let items = range.len().0;
        let asked = u64::from(asked).min(items.max(1));
        let count = self
            .canary
            .map_or(asked, |canary| asked.min(most_beside(canary.items, items)));
        u32::try_from(count).unwrap_or(SHARDS_MAX)
    }

    fn automatic(&self, nodes: Nodes) -> u32 {
        let by_rate = match (self.rate, nodes.capacity_micros) {
            (RateLimit::Unlimited, _) => nodes.count,
            // One autopilot finds a service's limits; several would each find a part.
            (RateLimit::Auto(_), _) => 1,
            (RateLimit::Limited(_), None | Some(0)) => 1,
            (RateLimit::Limited(rate), Some(capacity)) => {
                let needed = u128::from(rate.micros_per_second()).div_ceil(capacity);
                u32::try_from(needed).unwrap_or(u32::MAX)
            }
        };
        let by_concurrency = match self.concurrency {
            Auto::Auto => 1,
            Auto::Fixed(number) => number.get().div_ceil(self.max_concurrency.get()),
        };
        let most = nodes.count.saturating_mul(SHARDS_PER_NODE).min(SHARDS_AUTO_MAX);
        let most = most.min(self.parts_max.unwrap_or(u32::MAX));
        by_rate.max(by_concurrency).min(most).max(1)
    }
}

/// Returns the maximum number of shards for which the first has more items than the canary.
fn most_beside(canary: NonZeroU64, items: u64) -> u64 {
    // The first shard has ⌈items / n⌉ items, which is more than c if items > c × n.
    (items.saturating_sub(1) / canary.get()).max(1)
}

/// Cuts a range into contiguous parts of nearly the same length; the first ones are one item longer. An empty range
/// is one part.
///
/// ```
/// use windrow_core::ids::ItemIndex;
/// use windrow_core::shards::cut;
/// use windrow_core::task::ShardRange;
///
/// let parts = cut(ShardRange { start: ItemIndex(0), end: ItemIndex(10) }, 3);
/// let bounds: Vec<(u64, u64)> = parts.iter().map(|part| (part.start.0, part.end.0)).collect();
/// assert_eq!(bounds, [(0, 4), (4, 7), (7, 10)]);
/// ```
pub fn cut(range: ShardRange, count: u32) -> Vec<ShardRange> {
    let items = range.len().0;
    let count = u64::from(count).clamp(1, items.max(1));
    let (each, longer) = (items / count, items % count);
    let mut start = range.start.0;
    let mut parts = Vec::new();
    for no in 0..count {
        let end = start + each + u64::from(no < longer);
        parts.push(ShardRange {
            start: ItemIndex(start),
            end: ItemIndex(end),
        });
        start = end;
    }
    parts
}

crate::slugs! {
    /// Reason why no shard of a task dispatches for a while.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PauseReason {
        /// The handler answered 429 or 503.
        BackPressure = "back_pressure",
        /// A reply asked for the pause.
        Asked = "asked",
        /// The task had more failed attempts than its budget allows, and recovers.
        ErrorBudget = "error_budget",
    }
}

/// Pause in which no shard of the task dispatches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// End of the pause.
    pub until: WallMs,
    /// Reason for the pause.
    pub reason: PauseReason,
}

impl Pause {
    /// Returns the pause that lasts longer; if they are equal, `held`.
    pub fn longer(held: Option<Pause>, other: Option<Pause>) -> Option<Pause> {
        match (held, other) {
            (Some(held), Some(other)) => Some(if other.until > held.until { other } else { held }),
            (held, other) => held.or(other),
        }
    }
}

/// Temporary upper bound of the task's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow {
    /// Maximum rate of the whole task.
    pub rate: Rate,
    /// End of the slow-down.
    pub until: WallMs,
}

/// Directives that a handler gave to one shard and that concern all of them. They are saved with the shard's next
/// checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Pause of the whole task.
    pub pause: Option<Pause>,
    /// Lower rate of the whole task.
    pub slow: Option<Slow>,
    /// New end of the task; items dispatched before are still processed.
    pub finish: Option<ItemIndex>,
}

impl Directives {
    /// Returns true if there is no directive.
    pub fn is_empty(&self) -> bool {
        *self == Directives::default()
    }

    /// Merges earlier directives that were lost on their way.
    pub fn after(&mut self, earlier: Directives) {
        self.pause = Pause::longer(earlier.pause, self.pause);
        self.slow = self.slow.or(earlier.slow);
        self.finish = match (self.finish, earlier.finish) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

#[cfg(test)]
mod tests;
