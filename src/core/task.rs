//! What a task is: what it means (fixed once it has dispatched) and how it is driven (may change while it runs).

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ids::{ItemCount, ItemIndex};
use super::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, RateLimit};
use super::settings_serde::TuningText;

pub use super::settings::Rate;

/// The largest window. Unit: items. (a bitmap of 128 KiB.)
pub const WINDOW_ITEMS_MAX: u32 = 1 << 20;
/// The smallest automatic window. Unit: items.
pub const WINDOW_ITEMS_AUTO_MIN: u32 = 4096;

/// The live settings of a task. Every key and default is described in `config.toml`, `[task_defaults]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TuningText", into = "TuningText")]
pub struct Tuning {
    /// How fast.
    pub rate: RateLimit,
    /// How much at once.
    pub burst: Burst,
    /// Calls' items in flight at the same time.
    pub concurrency: Auto<NonZeroU32>,
    /// Bounds `concurrency = "auto"` only.
    pub max_concurrency: NonZeroU32,
    /// The distance from low water to the highest dispatchable index.
    pub window: Auto<NonZeroU32>,
    /// Items of one call.
    pub batch: NonZeroU32,
    /// How long a fresh item may wait for its batch to fill.
    pub batch_linger: Duration,
    /// How long a call may take.
    pub timeout: Duration,
    /// Attempts of an item before it is exhausted.
    pub max_attempts: NonZeroU32,
    /// The wait between attempts.
    pub backoff: Backoff,
    /// What exhaustion means.
    pub on_exhausted: OnExhausted,
    /// The errors that are tolerated. Its window is `error_window`.
    pub error_budget: ErrorBudget,
    /// How often progress is saved.
    pub checkpoint_interval: Duration,
    /// Completions that may be unsaved: with what is in flight, the bound on repeats after a crash.
    pub unsaved_max: Auto<NonZeroU32>,
    /// How long an item may hold a full window before it is parked although in flight.
    pub straggler_after: Duration,
    /// A longer retry wait parks the item.
    pub park_after: Duration,
    /// Parked items per shard.
    pub parked_max: u32,
    /// One at a time, in index order.
    pub ordered: bool,
    /// How long the handler may be down before the task stops; nothing is lost by it.
    pub outage_patience: Duration,
    /// How long items without a verdict are tried when nothing else is left to compare them with. Zero: people have decided
    /// that it is the items; they are judged at once, also where none ever succeeded.
    pub judge_after: Duration,
}

/// How long a handler may be down: a night and a day.
pub const OUTAGE_PATIENCE_DEFAULT: Duration = Duration::from_secs(24 * 3600);
/// How long the last items are tried: most outages of a deploy or a restart are over by then.
pub const JUDGE_AFTER_DEFAULT: Duration = Duration::from_secs(600);

impl Tuning {
    /// The concurrency to begin with: `auto` is 64 until a latency is known (`config.toml`); ordered is 1.
    pub fn concurrency_at_start(&self) -> u32 {
        match self.concurrency {
            _ if self.ordered => 1,
            Auto::Auto => 64.max(2 * self.batch.get()).min(self.max_concurrency.get().max(self.batch.get())),
            Auto::Fixed(number) => number.get(),
        }
    }

    /// The same where a person has decided that it is the items which fail, and no outage.
    #[must_use]
    pub fn judging_items(self) -> Tuning {
        Tuning { judge_after: Duration::ZERO, ..self }
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
    pub items: NonZeroU64,
    /// What follows when they are settled.
    #[serde(default)]
    pub then: CanaryThen,
}

/// What follows a canary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryThen {
    /// The task stops (`canary_done`); a start goes on with the rest.
    #[default]
    Stop,
    /// The task goes on by itself if none of them was abandoned, else it stops (`canary_done`).
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
    /// How many items.
    pub fn len(self) -> ItemCount {
        ItemCount(self.end.0.saturating_sub(self.start.0))
    }

    /// Whether there is nothing to do.
    pub fn is_empty(self) -> bool {
        self.len().0 == 0
    }
}
