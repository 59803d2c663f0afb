//! How a task is cut into shards, and which part of its rate each may use.
//!
//! A task is cut once, when it starts. While it runs a share only grows: a shard that is done leaves its part to the
//! others, so the parts never add up to more than the whole and nobody has to agree on anything.

pub mod trust;

use std::num::{NonZeroU32, NonZeroU64};

use super::ids::{ItemIndex, WallMs};
use super::settings::{Auto, Rate, RateLimit};
use super::task::{Canary, ShardRange};

/// The most shards that a person may ask for.
pub const SHARDS_MAX: u32 = 256;
/// The most shards that `auto` makes.
pub const SHARDS_AUTO_MAX: u32 = 64;
/// Shards for each node that `auto` makes at most, so that a node that leaves hands over a part of its work to each
/// of the others.
const SHARDS_PER_NODE: u32 = 4;
/// The whole in the unit of the stored share.
const WHOLE: u64 = 1 << 30;

/// A shard's part of its task's rate: one of so many equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share(NonZeroU32);

impl Share {
    /// All of it: the only shard, or the only one that isn't done.
    pub const ALL: Share = Share(NonZeroU32::MIN);

    /// One of `parts`; all of it where nothing is to be shared.
    pub fn one_of(parts: u32) -> Share {
        Share(NonZeroU32::new(parts).unwrap_or(NonZeroU32::MIN))
    }

    /// The part of each of so many shards.
    pub fn of_each(shards: usize) -> Share {
        Share::one_of(u32::try_from(shards).unwrap_or(u32::MAX))
    }

    /// As the store keeps it. Unit: 2⁻³⁰ of the whole, rounded down.
    pub fn stored(self) -> i64 {
        (WHOLE / u64::from(self.0.get())).cast_signed()
    }

    /// What the store keeps; none is the whole. The largest part that is no more than what is stored.
    pub fn read(stored: Option<i64>) -> Share {
        let Some(stored) = stored else { return Share::ALL };
        let parts = WHOLE / (stored.max(0).unsigned_abs() + 1) + 1;
        Share::one_of(u32::try_from(parts).unwrap_or(u32::MAX))
    }

    /// How many such parts make the whole.
    pub fn parts(self) -> u32 {
        self.0.get()
    }

    /// Whether nothing is left for others.
    pub fn is_all(self) -> bool {
        self == Share::ALL
    }

    /// The part of a number, rounded down.
    pub fn of(self, number: u64) -> u64 {
        number / u64::from(self.parts())
    }

    /// The part of a rate: exact, or slower where it can't be written.
    pub fn of_rate(self, rate: Rate) -> Rate {
        let parts = u64::from(self.parts());
        let common = common_divisor(rate.items(), parts);
        rate.stretched(rate.items() / common, parts / common)
    }

    /// The part of a limit; a part of no limit is none.
    pub fn of_limit(self, limit: RateLimit) -> RateLimit {
        match limit {
            RateLimit::Unlimited => RateLimit::Unlimited,
            RateLimit::Limited(rate) => RateLimit::Limited(self.of_rate(rate)),
        }
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The nodes that a task could run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// How many.
    pub count: u32,
    /// What the largest of them has; none is as much as comes. Unit: millionths of an item per second.
    pub capacity_micros: Option<u128>,
}

/// The capacities of the nodes; none is as much as comes.
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

/// What decides into how many shards a task is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What people asked for.
    pub shards: Auto<NonZeroU32>,
    /// How fast the task may go.
    pub rate: RateLimit,
    /// Items in flight, where they are chosen.
    pub concurrency: Auto<NonZeroU32>,
    /// The most that one run has in flight by itself.
    pub max_concurrency: NonZeroU32,
    /// One at a time, in index order: nothing to share.
    pub ordered: bool,
    /// The most parts that the settings can be shared by; none is any number.
    pub parts_max: Option<u32>,
    /// The first items, which one shard must hold.
    pub canary: Option<Canary>,
}

impl Wanted {
    /// The number of shards of a task over `range`: never more than items, and so few that the canary lies, with an
    /// item to spare, within the first.
    ///
    /// `auto` is the smallest number with which the part of each fits a node: a capacity of 2,000/s runs 5,000/s in
    /// three. Where no rate limits the task every node takes part.
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

/// How many shards leave the first with more items than the canary has.
fn most_beside(canary: NonZeroU64, items: u64) -> u64 {
    // The first has ⌈items / n⌉, which is more than c where items > c × n.
    (items.saturating_sub(1) / canary.get()).max(1)
}

/// Cuts a range into contiguous parts of nearly the same length; the first ones are one longer. An empty range is one
/// part.
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

/// Why no shard of a task dispatches for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// The handler answered 429 or 503.
    BackPressure,
    /// A reply asked for it.
    Asked,
    /// The task had more failed attempts than its budget allows: it recovers.
    ErrorBudget,
}

impl PauseReason {
    const ALL: [PauseReason; 3] = [
        PauseReason::BackPressure,
        PauseReason::Asked,
        PauseReason::ErrorBudget,
    ];

    /// The slug.
    pub fn as_str(self) -> &'static str {
        match self {
            PauseReason::BackPressure => "back_pressure",
            PauseReason::Asked => "asked",
            PauseReason::ErrorBudget => "error_budget",
        }
    }

    /// The reason of a slug.
    pub fn parse(text: &str) -> Option<PauseReason> {
        PauseReason::ALL
            .into_iter()
            .find(|reason| reason.as_str() == text)
    }
}

/// No shard of the task dispatches before a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The time.
    pub until: WallMs,
    /// Why.
    pub reason: PauseReason,
}

impl Pause {
    /// The one that lasts longer; of equals, the one that was there.
    pub fn longer(held: Option<Pause>, other: Option<Pause>) -> Option<Pause> {
        match (held, other) {
            (Some(held), Some(other)) => Some(if other.until > held.until { other } else { held }),
            (held, other) => held.or(other),
        }
    }
}

/// The task has at most this rate until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow {
    /// Of the whole task.
    pub rate: Rate,
    /// The time.
    pub until: WallMs,
}

/// What a handler told one shard and what concerns all of them: it travels with the shard's next checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// A pause of the task.
    pub pause: Option<Pause>,
    /// A lower rate of the task.
    pub slow: Option<Slow>,
    /// The task ends here; what was dispatched is done all the same.
    pub finish: Option<ItemIndex>,
}

impl Told {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Told::default()
    }

    /// Adds what was told before this and got lost on its way.
    pub fn after(&mut self, earlier: Told) {
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
