//! Live settings of a task, declared once: name, type, default, bounds and description.
//!
//! This table generates [`Tuning`] and [`TuningPatch`], their stored form, the keys of `[task_defaults]` in a
//! configuration, requests and answers of the API with their description, the flags of the command line,
//! `config.toml` and the reference in `docs/`.

use std::num::NonZeroU32;
use std::time::Duration;
use windrow_words::settings as say;

use serde::{Deserialize, Deserializer, Serialize};

use crate::settings::check::TuningFault;
use crate::settings::value::{Kind, Value, Written, default, written, written_option};
use crate::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, RateLimit, Results};

/// Description of a live setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name in a configuration, in JSON and (with dashes) as a flag.
    pub name: &'static str,
    /// Form in which it is written.
    pub kind: Kind,
    /// Default value, as TOML.
    pub default: &'static str,
    /// Description: a summary sentence, and further paragraphs.
    pub about: &'static str,
    /// Exclusive lower bound, as TOML; `None` if its type is bound enough.
    pub above: Option<&'static str>,
    /// Inclusive upper bound, as TOML.
    pub most: Option<&'static str>,
}

impl Setting {
    /// Returns the first paragraph of the description, without a full stop.
    pub fn summary(&self) -> String {
        paragraphs(self.about).next().unwrap_or_default()
    }

    /// Returns the fault of a value with this size, if it is out of bounds.
    fn fault(&self, value: Measured) -> Option<TuningFault> {
        let (size, [floor, most]) = (value.size?, value.bounds);
        let is_out = floor.is_some_and(|floor| size <= floor) || most.is_some_and(|most| size > most);
        let bounds = [self.above, self.most].map(|bound| bound.map(|bound| bound.trim_matches('"')));
        let what = match bounds {
            [Some(above), Some(most)] => say::between(above, most),
            [Some(above), None] => say::above(above),
            [None, most] => say::at_most(most.unwrap_or_default()),
        };
        is_out.then(|| TuningFault {
            key: self.name,
            what: what.to_string(),
            advice: self.default.to_owned(),
        })
    }
}

/// Splits a documentation comment into its paragraphs, each in one line.
pub fn paragraphs(about: &str) -> impl Iterator<Item = String> {
    let lines = |paragraph: &str| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    about
        .split("\n\n")
        .map(move |paragraph| lines(paragraph).trim().to_owned())
        .filter(|text| !text.is_empty())
}

/// Size of a value and its bounds, in the unit of its type.
struct Measured {
    size: Option<u128>,
    bounds: [Option<u128>; 2],
}

/// Returns the size of a bound, in the unit of the type.
fn bound<T: Value>(written: Option<&str>) -> Option<u128> {
    default::<T>(written?).size()
}

macro_rules! optional {
    () => {
        None
    };
    ($value:literal) => {
        Some(stringify!($value))
    };
}

macro_rules! live_settings {
    ($($(#[doc = $about:literal])+ $name:ident: $type:ty = $default:tt $(above $floor:tt)? $(to $most:tt)?;)+) => {
        /// All live settings, in display order.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            kind: <$type as Value>::KIND,
            default: stringify!($default),
            about: concat!($($about, "\n"),+),
            above: optional!($($floor)?),
            most: optional!($($most)?),
        }),+];

        /// Live settings of a task.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        // A task that was saved before a setting was added has the default for it.
        #[serde(deny_unknown_fields, default)]
        pub struct Tuning {
            $($(#[doc = $about])+ #[serde(with = "written")] pub $name: $type,)+
        }

        impl Default for Tuning {
            fn default() -> Tuning {
                Tuning { $($name: default(stringify!($default)),)+ }
            }
        }

        impl Tuning {
            /// Returns the names of the settings that differ.
            pub fn differences(&self, other: &Tuning) -> Vec<&'static str> {
                let all = [$((stringify!($name), self.$name != other.$name)),+];
                all.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
            }

            /// Returns a fault for each setting that is out of bounds.
            pub(super) fn out_of_bounds(&self) -> Vec<TuningFault> {
                let all = [$(Measured {
                    size: self.$name.size(),
                    bounds: [bound::<$type>(optional!($($floor)?)), bound::<$type>(optional!($($most)?))],
                }),+];
                SETTINGS.iter().zip(all).filter_map(|(setting, value)| setting.fault(value)).collect()
            }
        }

        /// Some of the live settings, as a business's defaults and a request name them: those not named stay
        /// unchanged.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct TuningPatch {
            $($(#[doc = $about])+
            #[serde(skip_serializing_if = "Option::is_none", with = "written_option")]
            pub $name: Option<$type>,)+
        }

        impl TuningPatch {
            /// Returns `to` with the settings named here replaced. Consistency is checked by
            /// [`faults`](crate::settings::check::faults).
            pub fn apply(&self, to: &Tuning) -> Tuning {
                Tuning { $($name: self.$name.unwrap_or(to.$name),)+ }
            }

            /// Merges both patches; where both name a setting, `other` wins.
            pub fn and(&self, other: &TuningPatch) -> TuningPatch {
                TuningPatch { $($name: other.$name.or(self.$name),)+ }
            }

            /// Parses one setting from its text.
            ///
            /// # Errors
            /// Returns the expected form, or that no such setting exists.
            pub fn parse(name: &str, text: &str) -> Result<TuningPatch, String> {
                let mut patch = TuningPatch::default();
                match name {
                    $(stringify!($name) => patch.$name = Some(<$type>::parse(text)?),)+
                    _ => return Err(say::unknown(name).to_string()),
                }
                Ok(patch)
            }

            /// Reads the value of one setting; `null` leaves it unnamed.
            ///
            /// # Errors
            /// Fails if the value can't be read, the setting was named before, or no setting has this name.
            pub fn read<'de, D: Deserializer<'de>>(&mut self, name: &str, from: D) -> Result<(), D::Error> {
                use serde::de::Error;
                match name {
                    $(stringify!($name) if self.$name.is_some() => {
                        return Err(D::Error::duplicate_field(stringify!($name)));
                    }
                    stringify!($name) => {
                        self.$name = Option::<Written<$type>>::deserialize(from)?.map(|Written(value)| value);
                    })+
                    _ => return Err(D::Error::custom(say::unknown(name))),
                }
                Ok(())
            }
        }
    };
}

live_settings! {
    /// Rate of item attempts, retries included: 500/s, 30/m, 1/2s, unlimited, or auto (found by the autopilot)
    ///
    /// "auto up to 500/s" sets a ceiling; `windrow run` without --rate: auto with --request and --url, else unlimited
    rate: RateLimit = "100/s";
    /// Items sent at once above the steady rate: 100ms (of the rate) or '50 items'
    ///
    /// 100ms at 500/s is 50 items; a span is never below max(2 × batch, 4)
    burst: Burst = "100ms" to "365d";
    /// Maximum items in flight: a number or auto
    ///
    /// auto = max(64, rate × p95 × 1.5), lowered by the autopilot if more in flight makes calls slower (HTTP handlers);
    /// with rate = "auto", found by the autopilot from 4 up
    concurrency: Auto<NonZeroU32> = "auto";
    /// Upper bound of concurrency = auto
    max_concurrency: NonZeroU32 = 1024;
    /// Number of items ahead of the oldest unfinished one that may be sent, or auto
    ///
    /// auto = max(2 × concurrency, 4096)
    window: Auto<NonZeroU32> = "auto" to 1048576;
    /// Number of items per call
    batch: NonZeroU32 = 1 to 1048576;
    /// Longest wait of an item for its batch to fill
    batch_linger: Duration = "5ms";
    /// Timeout of one handler call
    timeout: Duration = "10s" above "0s" to "365d";
    /// Attempts per item before it fails; calls while the handler is down don't count
    ///
    /// Attempts are counted across restarts
    max_attempts: NonZeroU32 = 5;
    /// Wait between attempts: '1s..60s x2 jitter 20%'
    ///
    /// First wait..longest wait, factor, jitter
    backoff: Backoff = "1s..60s x2 jitter 20%" to "365d";
    /// When retries run out: fail (mark the item failed and continue) or stop (the task)
    on_exhausted: OnExhausted = "fail";
    /// Tolerated errors: auto (pause while most attempts fail), 10/s failed attempts (more: pause), 1% or 500 failed
    /// items (more: stop), none
    ///
    /// auto: more attempts fail than succeed, and more than 10/s. Both: "auto 1%", "10/s 1%"
    error_budget: ErrorBudget = "auto";
    /// Window over which failed attempts are counted for the error budget
    error_window: Duration = "10s" above "0s" to "365d";
    /// Interval between checkpoints, which save progress
    checkpoint_interval: Duration = "1s" above "0s" to "365d";
    /// Maximum unsaved completions: a number or auto
    ///
    /// Bounds the repeated calls after a crash; auto = max(10 × concurrency, 100,000, 5 × settled in the last second)
    unsaved_max: Auto<NonZeroU32> = "auto";
    /// Time that one slow call may block the window before its item is set aside
    straggler_after: Duration = "1s" above "0s" to "365d";
    /// Retry wait above which an item is parked, so that it doesn't hold the window
    park_after: Duration = "2s" above "0s" to "365d";
    /// Maximum parked items per shard
    parked_max: u32 = 10_000;
    /// Process one item at a time, in index order
    ordered: bool = false;
    /// Handler outputs: off (discard), or keep (read them with `windrow task results`, in index order)
    ///
    /// The `output` of a response, up to 64 KiB of JSON per item; fixed once the task was started
    results: Results = "off";
    /// Time that the handler may be down before the task stops; nothing is lost
    ///
    /// The default is a night and a day, so that somebody has seen it
    outage_patience: Duration = "24h" above "0s" to "365d";
    /// Time limit for reducing the results of a task before it stops; a start tries again
    ///
    /// A command of the node reads some 100,000 results a second
    reduce_timeout: Duration = "10m" above "0s" to "24h";
    /// Time to keep retrying when it is unclear whether the item or the handler is at fault: a span or auto
    ///
    /// auto = duration of the run so far, from 20s to 10m; 0s judges them at once, if you know that the items are at
    /// fault
    judge_after: Auto<Duration> = "auto";
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"rate":"500/s","burst":"100ms","concurrency":"auto","max_concurrency":1024,"window":4096,
"batch":1,"batch_linger":"5ms","timeout":"10s","max_attempts":5,"backoff":"1s..60s x2 jitter 20%",
"on_exhausted":"fail","error_budget":"10/s 1%","error_window":"30s","checkpoint_interval":"1s",
"unsaved_max":"auto","straggler_after":"1s","park_after":"2s","parked_max":10000,"ordered":false}"#;

    #[test]
    fn a_patch_changes_what_it_names_and_nothing_else() {
        let whole: Tuning = serde_json::from_str(WHOLE).expect("the text is sound");
        assert_eq!(TuningPatch::default().apply(&whole), whole);
        let text = r#"{"rate":"5/s","timeout":"3s","error_budget":"1%"}"#;
        let patch: TuningPatch = serde_json::from_str(text).expect("the text is sound");
        let changed = patch.apply(&whole);
        assert_eq!(changed.differences(&whole), ["rate", "timeout", "error_budget"]);
        assert_eq!(changed.timeout, Duration::from_secs(3));
        assert_eq!(
            serde_json::to_string(&patch).expect("a patch can be written"),
            text
        );
        assert!(serde_json::from_str::<TuningPatch>(r#"{"rats":1}"#).is_err());
    }

    #[test]
    fn every_setting_reads_its_own_default_as_text_and_has_bounds_that_allow_it() {
        for setting in SETTINGS {
            let text = setting.default.trim_matches('"').replace('_', "");
            let named = TuningPatch::parse(setting.name, &text).expect(setting.name);
            assert_eq!(
                named.apply(&Tuning::default()),
                Tuning::default(),
                "{}",
                setting.name
            );
            assert!(
                !setting.summary().is_empty() && !setting.summary().ends_with('.'),
                "{}",
                setting.name
            );
        }
        assert_eq!(Tuning::default().out_of_bounds(), []);
        assert!(TuningPatch::parse("rats", "1").is_err());
    }

    #[test]
    fn what_is_out_of_its_bounds_is_named_with_them() {
        let of = |name, text| {
            let patch = TuningPatch::parse(name, text).expect("it can be read");
            let faults = patch.apply(&Tuning::default()).out_of_bounds();
            faults.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            of("timeout", "0s"),
            ["timeout: it must be more than 0s and at most 365d; try \"10s\""]
        );
        assert_eq!(
            of("backoff", "1s..366d"),
            ["backoff: it must be at most 365d; try \"1s..60s x2 jitter 20%\""]
        );
        assert_eq!(
            of("window", "1048577"),
            ["window: it must be at most 1048576; try \"auto\""]
        );
        for (name, text) in [
            ("burst", "2_000_000 items"),
            ("window", "1048576"),
            ("timeout", "365d"),
            ("judge_after", "0s"),
        ] {
            assert_eq!(of(name, text), [""; 0], "{name} {text}");
        }
    }
}
