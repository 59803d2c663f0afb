//! Task model: its meaning (fixed once it has dispatched) and its settings (may change while it runs).

pub mod deadline;
pub mod failed_codes;
pub mod lifecycle;
pub mod meaning;
pub mod room;
pub mod spec;
pub mod supply;

use std::num::NonZeroU64;
use std::time::Duration;
use windrow_words::task as say;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::ids::{ItemCount, ItemIndex};
use super::settings::Auto;

pub use super::settings::Rate;
pub use super::settings::table::Tuning;

/// Maximum length of a task name. Unit: characters.
pub const NAME_CHARS_MAX: usize = 128;
/// Maximum window. Unit: items. (A bitmap of 128 KiB; the bound of `window` and `batch` in the table of settings.)
pub const WINDOW_ITEMS_MAX: u32 = 1 << 20;
/// Minimum of the automatic window. Unit: items.
pub const WINDOW_ITEMS_AUTO_MIN: u32 = 4096;

impl Tuning {
    /// Returns the initial concurrency: `auto` is 64 until a latency is known (`config.toml`), or the maximum where the
    /// autopilot finds it; ordered is 1.
    pub fn concurrency_at_start(&self) -> u32 {
        match self.concurrency {
            _ if self.ordered => 1,
            Auto::Auto if self.rate.is_auto() => self.max_concurrency.get().max(self.batch.get()),
            Auto::Auto => 64
                .max(2 * self.batch.get())
                .min(self.max_concurrency.get().max(self.batch.get())),
            Auto::Fixed(number) => number.get(),
        }
    }

    /// Returns the settings for a person's decision that the items are at fault and that the handler isn't down.
    #[must_use]
    pub fn judging_items(self) -> Tuning {
        Tuning {
            judge_after: Auto::Fixed(Duration::ZERO),
            ..self
        }
    }

    /// Returns the window size for a concurrency: `auto` is max(2 × concurrency, 4096); at most 1 Mi.
    pub fn window_items(&self, concurrency: u32) -> u32 {
        let wanted = match self.window {
            _ if self.ordered => 64,
            Auto::Auto => concurrency.saturating_mul(2).max(WINDOW_ITEMS_AUTO_MIN),
            Auto::Fixed(number) => number.get(),
        };
        wanted.min(WINDOW_ITEMS_MAX)
    }
}

/// First items of a task, which are run and settled before any other is dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// Number of items, counted from the first that is not excluded.
    #[serde(deserialize_with = "at_least_one")]
    pub items: NonZeroU64,
    /// Next step when they are settled.
    #[serde(default, deserialize_with = "crate::settings::json::or_default")]
    pub then: CanaryThen,
}

fn at_least_one<'de, D: Deserializer<'de>>(from: D) -> Result<NonZeroU64, D::Error> {
    NonZeroU64::new(u64::deserialize(from)?).ok_or_else(|| D::Error::custom(say::empty_canary()))
}

/// Step that follows a canary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryThen {
    /// The task stops (`canary_done`); a start runs the rest.
    #[default]
    Stop,
    /// The task continues by itself if none of them failed; otherwise it stops (`canary_done`).
    Continue,
}

/// Range of a shard, fixed when the task starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardRange {
    /// First index of the range.
    pub start: ItemIndex,
    /// One past the last index.
    pub end: ItemIndex,
}

impl ShardRange {
    /// Returns the indexes of a task without those left out at its head.
    pub fn of_task(total: ItemCount, skip_first: ItemIndex) -> ShardRange {
        let end = ItemIndex(total.0);
        ShardRange {
            start: skip_first.min(end),
            end,
        }
    }

    /// Returns the number of items.
    pub fn len(self) -> ItemCount {
        ItemCount(self.end.0.saturating_sub(self.start.0))
    }

    /// Returns true if the range is empty.
    pub fn is_empty(self) -> bool {
        self.len().0 == 0
    }
}
