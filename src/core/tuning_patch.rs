//! Some of the live settings, as a business's defaults and a request name them: what isn't named stays.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, RateLimit};
use super::settings_serde::span_option;
use super::task::Tuning;

/// The settings that are named. Its keys are those of `[task_defaults]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TuningPatch {
    /// See [`Tuning::rate`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateLimit>,
    /// See [`Tuning::burst`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// See [`Tuning::concurrency`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Auto<NonZeroU32>>,
    /// See [`Tuning::max_concurrency`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<NonZeroU32>,
    /// See [`Tuning::window`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Auto<NonZeroU32>>,
    /// See [`Tuning::batch`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<NonZeroU32>,
    /// See [`Tuning::batch_linger`].
    #[serde(skip_serializing_if = "Option::is_none", with = "span_option")]
    pub batch_linger: Option<Duration>,
    /// See [`Tuning::timeout`].
    #[serde(skip_serializing_if = "Option::is_none", with = "span_option")]
    pub timeout: Option<Duration>,
    /// See [`Tuning::max_attempts`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<NonZeroU32>,
    /// See [`Tuning::backoff`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// See [`Tuning::on_exhausted`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exhausted: Option<OnExhausted>,
    /// See [`Tuning::error_budget`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_budget: Option<ErrorBudget>,
    /// The window of the error budget.
    #[serde(skip_serializing_if = "Option::is_none", with = "span_option")]
    pub error_window: Option<Duration>,
    /// See [`Tuning::checkpoint_interval`].
    #[serde(skip_serializing_if = "Option::is_none", with = "span_option")]
    pub checkpoint_interval: Option<Duration>,
    /// See [`Tuning::unsaved_max`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved_max: Option<Auto<NonZeroU32>>,
    /// See [`Tuning::straggler_after`].
    #[serde(skip_serializing_if = "Option::is_none", with = "span_option")]
    pub straggler_after: Option<Duration>,
    /// See [`Tuning::park_after`].
    #[serde(skip_serializing_if = "Option::is_none", with = "span_option")]
    pub park_after: Option<Duration>,
    /// See [`Tuning::parked_max`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked_max: Option<u32>,
    /// See [`Tuning::outage_patience`].
    #[serde(skip_serializing_if = "Option::is_none", with = "span_option")]
    pub outage_patience: Option<Duration>,
    /// See [`Tuning::judge_after`].
    #[serde(skip_serializing_if = "Option::is_none", with = "span_option")]
    pub judge_after: Option<Duration>,
    /// See [`Tuning::ordered`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordered: Option<bool>,
}

impl TuningPatch {
    /// The settings with what is named here in place of what they say. Whether they are sound together is for
    /// `tuning_check` to say.
    pub fn apply(&self, to: &Tuning) -> Tuning {
        let budget = self.error_budget.unwrap_or(to.error_budget);
        let error_window = self.error_window.unwrap_or(to.error_budget.window);
        Tuning {
            rate: self.rate.unwrap_or(to.rate),
            burst: self.burst.unwrap_or(to.burst),
            concurrency: self.concurrency.unwrap_or(to.concurrency),
            max_concurrency: self.max_concurrency.unwrap_or(to.max_concurrency),
            window: self.window.unwrap_or(to.window),
            batch: self.batch.unwrap_or(to.batch),
            batch_linger: self.batch_linger.unwrap_or(to.batch_linger),
            timeout: self.timeout.unwrap_or(to.timeout),
            max_attempts: self.max_attempts.unwrap_or(to.max_attempts),
            backoff: self.backoff.unwrap_or(to.backoff),
            on_exhausted: self.on_exhausted.unwrap_or(to.on_exhausted),
            error_budget: ErrorBudget { window: error_window, ..budget },
            checkpoint_interval: self.checkpoint_interval.unwrap_or(to.checkpoint_interval),
            unsaved_max: self.unsaved_max.unwrap_or(to.unsaved_max),
            straggler_after: self.straggler_after.unwrap_or(to.straggler_after),
            park_after: self.park_after.unwrap_or(to.park_after),
            parked_max: self.parked_max.unwrap_or(to.parked_max),
            ordered: self.ordered.unwrap_or(to.ordered),
            outage_patience: self.outage_patience.unwrap_or(to.outage_patience),
            judge_after: self.judge_after.unwrap_or(to.judge_after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_what_it_names_and_nothing_else() {
        let whole: Tuning = serde_json::from_str(
            r#"{"rate":"500/s","burst":"100ms","concurrency":"auto","max_concurrency":1024,"window":4096,
"batch":1,"batch_linger":"5ms","timeout":"10s","max_attempts":5,"backoff":"1s..60s x2 jitter 20%",
"on_exhausted":"abandon","error_budget":"10/s 1%","error_window":"30s","checkpoint_interval":"1s",
"unsaved_max":"auto","straggler_after":"1s","park_after":"2s","parked_max":10000,"ordered":false}"#,
        )
        .expect("the text is sound");
        assert_eq!(TuningPatch::default().apply(&whole), whole);
        let text = r#"{"rate":"5/s","timeout":"3s","error_budget":"1%"}"#;
        let patch: TuningPatch = serde_json::from_str(text).expect("the text is sound");
        let changed = patch.apply(&whole);
        assert_eq!(changed.timeout, Duration::from_secs(3));
        assert_eq!(changed.error_budget.window, Duration::from_secs(30), "the window is a key of its own");
        assert_eq!(serde_json::to_string(&patch).expect("a patch can be written"), text);
        assert!(serde_json::from_str::<TuningPatch>(r#"{"rats":1}"#).is_err());
    }
}
