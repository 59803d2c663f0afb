//! Some of the live settings, as a business's defaults and a request name them: what isn't named stays.

use serde::{Deserialize, Serialize};

use crate::live_settings;
use crate::settings::table::written_option;
use crate::task::Tuning;

macro_rules! tuning_patch {
    ($($(#[doc = $about:literal])* $name:ident: $type:ty = $default:tt;)*) => {
        /// The settings that are named. Its keys are those of `[task_defaults]`.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct TuningPatch {
            $($(#[doc = $about])*
            #[serde(skip_serializing_if = "Option::is_none", with = "written_option")]
            pub $name: Option<$type>,)*
        }

        impl TuningPatch {
            /// The settings with what is named here in place of what they say. Whether they are sound together is for
            /// `tuning_check` to say.
            pub fn apply(&self, to: &Tuning) -> Tuning {
                Tuning { $($name: self.$name.unwrap_or(to.$name),)* }
            }
        }
    };
}
live_settings!(tuning_patch);

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        assert_eq!(
            changed.error_window,
            Duration::from_secs(30),
            "the budget leaves its window"
        );
        assert_eq!(
            serde_json::to_string(&patch).expect("a patch can be written"),
            text
        );
        assert!(serde_json::from_str::<TuningPatch>(r#"{"rats":1}"#).is_err());
    }
}
