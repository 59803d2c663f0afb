//! What a task is: what it means (fixed once it has dispatched) and how it is driven (may change while it runs).

pub mod failed_codes;
pub mod deadline;
pub mod lifecycle;
pub mod meaning;
pub mod room;
pub mod spec;
pub mod supply;

use std::num::NonZeroU64;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::ids::{ItemCount, ItemIndex};
use super::settings::Auto;

pub use super::settings::Rate;
pub use super::settings::table::Tuning;

/// The longest name of a task. Unit: characters.
pub const NAME_CHARS_MAX: usize = 128;
/// The largest window. Unit: items. (a bitmap of 128 KiB; the bound of `window` and `batch` in the table of settings.)
pub const WINDOW_ITEMS_MAX: u32 = 1 << 20;
/// The smallest automatic window. Unit: items.
pub const WINDOW_ITEMS_AUTO_MIN: u32 = 4096;

impl Tuning {
    /// The concurrency to begin with: `auto` is 64 until a latency is known (`config.toml`); ordered is 1.
    pub fn concurrency_at_start(&self) -> u32 {
        match self.concurrency {
            _ if self.ordered => 1,
            Auto::Auto => 64
                .max(2 * self.batch.get())
                .min(self.max_concurrency.get().max(self.batch.get())),
            Auto::Fixed(number) => number.get(),
        }
    }

    /// The same where a person has decided that it is the items which fail, and no outage.
    #[must_use]
    pub fn judging_items(self) -> Tuning {
        Tuning {
            judge_after: Auto::Fixed(Duration::ZERO),
            ..self
        }
    }

    /// The window's size for a concurrency: `auto` is max(2 × concurrency, 4096); at most 1 Mi.
    pub fn window_items(&self, concurrency: u32) -> u32 {
        let wanted = match self.window {
            _ if self.ordered => 64,
            Auto::Auto => concurrency.saturating_mul(2).max(WINDOW_ITEMS_AUTO_MIN),
            Auto::Fixed(number) => number.get(),
        };
        wanted.min(WINDOW_ITEMS_MAX)
    }
}

/// The first items of a task, which are run and settled before any other leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// How many, counted from the first that is not excluded.
    #[serde(deserialize_with = "at_least_one")]
    pub items: NonZeroU64,
    /// What follows when they are settled.
    #[serde(default, deserialize_with = "crate::settings::json::or_default")]
    pub then: CanaryThen,
}

fn at_least_one<'de, D: Deserializer<'de>>(from: D) -> Result<NonZeroU64, D::Error> {
    NonZeroU64::new(u64::deserialize(from)?).ok_or_else(|| D::Error::custom("a canary has at least one item"))
}

/// What follows a canary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryThen {
    /// The task stops (`canary_done`); a start goes on with the rest.
    #[default]
    Stop,
    /// The task goes on by itself if none of them was failed, else it stops (`canary_done`).
    Continue,
}

/// The part of a shard that is pinned when the task starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardRange {
    /// The first index.
    pub start: ItemIndex,
    /// One past the last index.
    pub end: ItemIndex,
}

impl ShardRange {
    /// The indexes of a task that are not left out at its head.
    pub fn of_task(total: ItemCount, skip_first: ItemIndex) -> ShardRange {
        let end = ItemIndex(total.0);
        ShardRange {
            start: skip_first.min(end),
            end,
        }
    }

    /// How many items.
    pub fn len(self) -> ItemCount {
        ItemCount(self.end.0.saturating_sub(self.start.0))
    }

    /// Whether there is nothing to do.
    pub fn is_empty(self) -> bool {
        self.len().0 == 0
    }
}
