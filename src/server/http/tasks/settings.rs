//! The live settings in bodies: flat, as `[task_defaults]` has them, but for what belongs to retries.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::document::schema;
use windrow_core::settings::json::span;
use windrow_core::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, RateLimit};
use windrow_core::task::Tuning;

/// Attempts of items.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RetryBody {
    /// Attempts of an item before it is exhausted.
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub(super) max_attempts: Option<NonZeroU32>,
    /// The wait between attempts, such as `1s..60s x2 jitter 20%`.
    #[schema(value_type = Option<String>, max_length = 80)]
    pub(super) backoff: Option<Backoff>,
    /// What exhaustion means: `abandon` or `stop`.
    #[schema(value_type = Option<String>, pattern = "^ *(abandon|stop) *$", max_length = 80)]
    pub(super) on_exhausted: Option<OnExhausted>,
}

/// Makes a body of the members that are given and of all settings, and reads the settings out of it.
macro_rules! with_settings {
    ($(#[$about:meta])* $name:ident { $($(#[$attribute:meta])* $member:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$attribute])* pub(super) $member: $kind,)*
            /// Attempts in a time, such as `500/s`; or `unlimited`.
            #[schema(value_type = Option<String>, pattern = "^( *[0-9][0-9_]*k? */ *[0-9]*(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))* *| *unlimited *)$", max_length = 80)]
            rate: Option<windrow_core::settings::RateLimit>,
            /// What may leave at once above the steady rate.
            #[schema(value_type = Option<crate::http::document::schema::Burst>)]
            burst: Option<windrow_core::settings::Burst>,
            /// Items in flight at the same time.
            #[schema(value_type = Option<crate::http::document::schema::NumberOrAuto>)]
            concurrency: Option<windrow_core::settings::Auto<std::num::NonZeroU32>>,
            /// Bounds `concurrency = "auto"`.
            #[schema(value_type = Option<u32>, minimum = 1)]
            max_concurrency: Option<std::num::NonZeroU32>,
            /// The distance from low water to the highest dispatchable index.
            #[schema(value_type = Option<crate::http::document::schema::NumberOrAuto>)]
            window: Option<windrow_core::settings::Auto<std::num::NonZeroU32>>,
            /// Items of one call.
            #[schema(value_type = Option<u32>, minimum = 1)]
            batch: Option<std::num::NonZeroU32>,
            /// How long an item may wait for its batch to fill.
            #[serde(default, with = "windrow_core::settings::value::written_option")]
            #[schema(value_type = Option<String>, pattern = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$", max_length = 80)]
            batch_linger: Option<std::time::Duration>,
            /// How long a call may take.
            #[serde(default, with = "windrow_core::settings::value::written_option")]
            #[schema(value_type = Option<String>, pattern = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$", max_length = 80)]
            timeout: Option<std::time::Duration>,
            /// Attempts of items.
            #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
            retry: Option<crate::http::tasks::settings::RetryBody>,
            /// The errors that are tolerated.
            #[schema(value_type = Option<crate::http::document::schema::ErrorBudget>)]
            error_budget: Option<windrow_core::settings::ErrorBudget>,
            /// The window of the error budget.
            #[serde(default, with = "windrow_core::settings::value::written_option")]
            #[schema(value_type = Option<String>, pattern = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$", max_length = 80)]
            error_window: Option<std::time::Duration>,
            /// How often progress is saved.
            #[serde(default, with = "windrow_core::settings::value::written_option")]
            #[schema(value_type = Option<String>, pattern = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$", max_length = 80)]
            checkpoint_interval: Option<std::time::Duration>,
            /// Completions that may be unsaved.
            #[schema(value_type = Option<crate::http::document::schema::NumberOrAuto>)]
            unsaved_max: Option<windrow_core::settings::Auto<std::num::NonZeroU32>>,
            /// How long an item may hold a full window before it is parked although in flight.
            #[serde(default, with = "windrow_core::settings::value::written_option")]
            #[schema(value_type = Option<String>, pattern = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$", max_length = 80)]
            straggler_after: Option<std::time::Duration>,
            /// A longer retry wait parks the item.
            #[serde(default, with = "windrow_core::settings::value::written_option")]
            #[schema(value_type = Option<String>, pattern = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$", max_length = 80)]
            park_after: Option<std::time::Duration>,
            /// Parked items per shard.
            parked_max: Option<u32>,
            /// How long the handler may be down before the task stops; nothing is lost by it.
            #[serde(default, with = "windrow_core::settings::value::written_option")]
            #[schema(value_type = Option<String>, pattern = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$", max_length = 80)]
            outage_patience: Option<std::time::Duration>,
            /// How long items without a verdict are tried when nothing else is left to compare them with.
            #[serde(default, with = "windrow_core::settings::value::written_option")]
            #[schema(value_type = Option<String>, pattern = "^[0-9]{1,20}(ns|us|ms|s|m|h|d)( ?[0-9]{1,20}(ns|us|ms|s|m|h|d))*$", max_length = 80)]
            judge_after: Option<std::time::Duration>,
            /// One at a time, in index order.
            ordered: Option<bool>,
        }

        impl $name {
            /// The settings that are named.
            pub(super) fn tuning(&self) -> windrow_core::settings::table::TuningPatch {
                let retry = self.retry.clone().unwrap_or_default();
                windrow_core::settings::table::TuningPatch {
                    rate: self.rate,
                    burst: self.burst,
                    concurrency: self.concurrency,
                    max_concurrency: self.max_concurrency,
                    window: self.window,
                    batch: self.batch,
                    batch_linger: self.batch_linger,
                    timeout: self.timeout,
                    max_attempts: retry.max_attempts,
                    backoff: retry.backoff,
                    on_exhausted: retry.on_exhausted,
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
    };
}
pub(super) use with_settings;

/// The live settings of a task, as they are written.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct SettingsJson {
    /// Attempts in a time, or `unlimited`.
    #[schema(value_type = String)]
    rate: RateLimit,
    /// What may leave at once above the steady rate.
    #[schema(value_type = String)]
    burst: Burst,
    /// Items in flight at the same time.
    #[schema(value_type = schema::NumberOrAuto)]
    concurrency: Auto<NonZeroU32>,
    /// Bounds `concurrency = "auto"`.
    max_concurrency: u32,
    /// The distance from low water to the highest dispatchable index.
    #[schema(value_type = schema::NumberOrAuto)]
    window: Auto<NonZeroU32>,
    /// Items of one call.
    batch: u32,
    /// How long an item may wait for its batch to fill.
    #[serde(with = "span")]
    #[schema(value_type = String)]
    batch_linger: Duration,
    /// How long a call may take.
    #[serde(with = "span")]
    #[schema(value_type = String)]
    timeout: Duration,
    /// Attempts of items.
    retry: RetryJson,
    /// The errors that are tolerated.
    #[schema(value_type = String)]
    error_budget: ErrorBudget,
    /// The window of the error budget.
    #[serde(with = "span")]
    #[schema(value_type = String)]
    error_window: Duration,
    /// How often progress is saved.
    #[serde(with = "span")]
    #[schema(value_type = String)]
    checkpoint_interval: Duration,
    /// Completions that may be unsaved.
    #[schema(value_type = schema::NumberOrAuto)]
    unsaved_max: Auto<NonZeroU32>,
    /// How long an item may hold a full window before it is parked although in flight.
    #[serde(with = "span")]
    #[schema(value_type = String)]
    straggler_after: Duration,
    /// A longer retry wait parks the item.
    #[serde(with = "span")]
    #[schema(value_type = String)]
    park_after: Duration,
    /// Parked items per shard.
    parked_max: u32,
    /// How long the handler may be down before the task stops; nothing is lost by it.
    #[serde(with = "span")]
    #[schema(value_type = String)]
    outage_patience: Duration,
    /// How long items without a verdict are tried when nothing else is left to compare them with.
    #[serde(with = "span")]
    #[schema(value_type = String)]
    judge_after: Duration,
    /// One at a time, in index order.
    ordered: bool,
}

/// Attempts of items.
#[derive(Debug, Serialize, ToSchema)]
struct RetryJson {
    /// Attempts of an item before it is exhausted.
    max_attempts: u32,
    /// The wait between attempts.
    #[schema(value_type = String)]
    backoff: Backoff,
    /// What exhaustion means.
    #[schema(value_type = String)]
    on_exhausted: OnExhausted,
}

impl From<&Tuning> for SettingsJson {
    fn from(tuning: &Tuning) -> SettingsJson {
        SettingsJson {
            rate: tuning.rate,
            burst: tuning.burst,
            concurrency: tuning.concurrency,
            max_concurrency: tuning.max_concurrency.get(),
            window: tuning.window,
            batch: tuning.batch.get(),
            batch_linger: tuning.batch_linger,
            timeout: tuning.timeout,
            retry: RetryJson {
                max_attempts: tuning.max_attempts.get(),
                backoff: tuning.backoff,
                on_exhausted: tuning.on_exhausted,
            },
            error_budget: tuning.error_budget,
            error_window: tuning.error_window,
            checkpoint_interval: tuning.checkpoint_interval,
            unsaved_max: tuning.unsaved_max,
            straggler_after: tuning.straggler_after,
            park_after: tuning.park_after,
            parked_max: tuning.parked_max,
            ordered: tuning.ordered,
            outage_patience: tuning.outage_patience,
            judge_after: tuning.judge_after,
        }
    }
}
