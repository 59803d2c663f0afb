//! The live settings of a task as flags: the same for making, changing, cloning and doing again.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;

use windrow_core::settings::table::TuningPatch;
use windrow_core::settings::text::parse_span;
use windrow_core::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, RateLimit};

/// How items are driven; what isn't said stays as it is, or is as the business has it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Pace and limits")]
pub struct Settings {
    /// Item attempts, retries included: 500/s, 30/m, 1/2s, unlimited
    #[arg(long)]
    pub rate: Option<RateLimit>,
    /// How much may leave at once above the steady rate: 100ms (of the rate) or '50 items'
    #[arg(long)]
    pub burst: Option<Burst>,
    /// Items in flight at the same time: a number or auto
    #[arg(long)]
    pub concurrency: Option<Auto<NonZeroU32>>,
    /// Bounds --concurrency auto
    #[arg(long, value_name = "N")]
    pub max_concurrency: Option<NonZeroU32>,
    /// Items between low water and the highest that may leave: a number or auto
    #[arg(long)]
    pub window: Option<Auto<NonZeroU32>>,
    /// Items of one call
    #[arg(long, value_name = "N")]
    pub batch: Option<NonZeroU32>,
    /// How long an item may wait for its batch to fill
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub batch_linger: Option<Duration>,
    /// How long one call of the handler may take (--timeout is of requests to the node)
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub call_timeout: Option<Duration>,
    /// Attempts of one item before it is given up
    #[arg(long, value_name = "N")]
    pub max_attempts: Option<NonZeroU32>,
    /// The wait between attempts: '1s..60s x2 jitter 20%'
    #[arg(long)]
    pub backoff: Option<Backoff>,
    /// What an item without attempts left means: abandon (it) or stop (everything)
    #[arg(long, value_name = "WHAT")]
    pub on_exhausted: Option<OnExhausted>,
    /// Errors that are tolerated: 10/s failed attempts (more: it pauses), 1% or 500 given up (more: it stops), none
    #[arg(long, value_name = "BUDGET")]
    pub error_budget: Option<ErrorBudget>,
    /// The window of the error budget
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub error_window: Option<Duration>,
    /// How often progress is saved
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub checkpoint_interval: Option<Duration>,
    /// Completions that may be unsaved: a number or auto
    #[arg(long, value_name = "N")]
    pub unsaved_max: Option<Auto<NonZeroU32>>,
    /// How long an item may hold a full window before it is parked although in flight
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub straggler_after: Option<Duration>,
    /// A longer retry wait parks the item
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub park_after: Option<Duration>,
    /// Parked items per shard
    #[arg(long, value_name = "N")]
    pub parked_max: Option<u32>,
    /// How long the handler may be down before the task stops; nothing is lost by it
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub outage_patience: Option<Duration>,
    /// How long items without a verdict are tried when nothing else is left to compare them with
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub judge_after: Option<Duration>,
    /// One at a time, in order; --ordered=false takes it back
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub ordered: Option<bool>,
}

impl Settings {
    /// Those that are named.
    pub fn patch(&self) -> TuningPatch {
        TuningPatch {
            rate: self.rate,
            burst: self.burst,
            concurrency: self.concurrency,
            max_concurrency: self.max_concurrency,
            window: self.window,
            batch: self.batch,
            batch_linger: self.batch_linger,
            timeout: self.call_timeout,
            max_attempts: self.max_attempts,
            backoff: self.backoff,
            on_exhausted: self.on_exhausted,
            error_budget: self.error_budget,
            error_window: self.error_window,
            checkpoint_interval: self.checkpoint_interval,
            unsaved_max: self.unsaved_max,
            straggler_after: self.straggler_after,
            park_after: self.park_after,
            parked_max: self.parked_max,
            ordered: self.ordered,
            outage_patience: self.outage_patience,
            judge_after: self.judge_after,
        }
    }
}
