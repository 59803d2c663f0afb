//! The live settings of a task, declared once: name, type, default, bounds and what it means.
//!
//! From this table come [`Tuning`] and [`TuningPatch`], their stored form, the keys of `[task_defaults]` in a
//! configuration, requests and answers of the API with their description, the flags of the command line, `config.toml`
//! and the reference in `docs/`.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::settings::check::TuningFault;
use crate::settings::value::{Kind, Value, Written, default, written, written_option};
use crate::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, RateLimit, Results};

/// What the table says of a live setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in a configuration, in JSON and (with dashes) as a flag.
    pub name: &'static str,
    /// What it is written as.
    pub kind: Kind,
    /// Its default, as TOML.
    pub default: &'static str,
    /// What it means: a sentence, and paragraphs with more.
    pub about: &'static str,
    /// It must be more than this, as TOML; none where its type says enough.
    pub above: Option<&'static str>,
    /// It is at most this, as TOML.
    pub most: Option<&'static str>,
}

impl Setting {
    /// What it means, in a sentence without its point.
    pub fn summary(&self) -> String {
        paragraphs(self.about).next().unwrap_or_default()
    }

    /// What is wrong with a value of this size, if anything is.
    fn fault(&self, value: Measured) -> Option<TuningFault> {
        let (size, [floor, most]) = (value.size?, value.bounds);
        let is_out = floor.is_some_and(|floor| size <= floor) || most.is_some_and(|most| size > most);
        let bounds = [("more than", self.above), ("at most", self.most)];
        let bounds = bounds
            .into_iter()
            .filter_map(|(word, bound)| Some(format!("{word} {}", bound?.trim_matches('"'))));
        is_out.then(|| TuningFault {
            key: self.name,
            what: format!("it must be {}", bounds.collect::<Vec<_>>().join(" and ")),
            advice: self.default.to_owned(),
        })
    }
}

/// The paragraphs of a documentation comment, each in one line.
pub fn paragraphs(about: &str) -> impl Iterator<Item = String> {
    let lines = |paragraph: &str| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    about
        .split("\n\n")
        .map(move |paragraph| lines(paragraph).trim().to_owned())
        .filter(|text| !text.is_empty())
}

/// How large a value is, and between what it must lie; each in the unit of its type.
struct Measured {
    size: Option<u128>,
    bounds: [Option<u128>; 2],
}

/// What a bound allows of values of a type.
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
        /// Every live setting, in the order in which they are shown.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            kind: <$type as Value>::KIND,
            default: stringify!($default),
            about: concat!($($about, "\n"),+),
            above: optional!($($floor)?),
            most: optional!($($most)?),
        }),+];

        /// The live settings of a task.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        // A task that was saved before a setting came has the default of it.
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
            /// The names of the settings that differ.
            pub fn differences(&self, other: &Tuning) -> Vec<&'static str> {
                let all = [$((stringify!($name), self.$name != other.$name)),+];
                all.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
            }

            /// The settings that are out of their bounds.
            pub(super) fn out_of_bounds(&self) -> Vec<TuningFault> {
                let all = [$(Measured {
                    size: self.$name.size(),
                    bounds: [bound::<$type>(optional!($($floor)?)), bound::<$type>(optional!($($most)?))],
                }),+];
                SETTINGS.iter().zip(all).filter_map(|(setting, value)| setting.fault(value)).collect()
            }
        }

        /// Some of the live settings, as a business's defaults and a request name them: what isn't named stays.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct TuningPatch {
            $($(#[doc = $about])+
            #[serde(skip_serializing_if = "Option::is_none", with = "written_option")]
            pub $name: Option<$type>,)+
        }

        impl TuningPatch {
            /// The settings with what is named here in place of what they say. Whether they are sound together is for
            /// [`faults`](crate::settings::check::faults) to say.
            pub fn apply(&self, to: &Tuning) -> Tuning {
                Tuning { $($name: self.$name.unwrap_or(to.$name),)+ }
            }

            /// What either names; where both do, the other.
            pub fn and(&self, other: &TuningPatch) -> TuningPatch {
                TuningPatch { $($name: other.$name.or(self.$name),)+ }
            }

            /// One setting, from its text.
            ///
            /// # Errors
            /// What was expected, or that there is no such setting.
            pub fn parse(name: &str, text: &str) -> Result<TuningPatch, String> {
                let mut patch = TuningPatch::default();
                match name {
                    $(stringify!($name) => patch.$name = Some(<$type>::parse(text)?),)+
                    _ => return Err(format!("there is no setting {name}")),
                }
                Ok(patch)
            }

            /// Takes in the value of one setting; `null` names it not.
            ///
            /// # Errors
            /// When the value can't be read, the setting was named before, or there is none of this name.
            pub fn read<'de, D: Deserializer<'de>>(&mut self, name: &str, from: D) -> Result<(), D::Error> {
                use serde::de::Error;
                match name {
                    $(stringify!($name) if self.$name.is_some() => {
                        return Err(D::Error::duplicate_field(stringify!($name)));
                    }
                    stringify!($name) => {
                        self.$name = Option::<Written<$type>>::deserialize(from)?.map(|Written(value)| value);
                    })+
                    _ => return Err(D::Error::custom(format!("there is no setting {name}"))),
                }
                Ok(())
            }
        }
    };
}

live_settings! {
    /// Item attempts in a time, retries included: 500/s, 30/m, 1/2s, or unlimited
    ///
    /// "unlimited" is unpaced (`windrow run` without --rate is)
    rate: RateLimit = "100/s";
    /// How much may leave at once above the steady rate: 100ms (of the rate) or '50 items'
    ///
    /// 100ms at 500/s are 50 items; as a span never below max(2 × batch, 4)
    burst: Burst = "100ms" to "365d";
    /// Items in flight at the same time: a number or auto
    ///
    /// auto = 64, once a p95 is known max(64, rate × p95 × 1.5)
    concurrency: Auto<NonZeroU32> = "auto";
    /// The most that concurrency = auto may become
    max_concurrency: NonZeroU32 = 1024;
    /// Items between watermark and the highest that may leave: a number or auto
    ///
    /// auto = max(2 × concurrency, 4096)
    window: Auto<NonZeroU32> = "auto" to 1048576;
    /// Items of one call
    batch: NonZeroU32 = 1 to 1048576;
    /// How long an item may wait for its batch to fill
    batch_linger: Duration = "5ms";
    /// How long one call of the handler may take
    timeout: Duration = "10s" above "0s" to "365d";
    /// Attempts of one item before it is given up; calls in an outage don't count
    ///
    /// They are counted across restarts
    max_attempts: NonZeroU32 = 5;
    /// The wait between attempts: '1s..60s x2 jitter 20%'
    ///
    /// The first wait..the longest, the factor, the spread
    backoff: Backoff = "1s..60s x2 jitter 20%" to "365d";
    /// What an item without attempts left means: fail (it, and go on) or stop (the task)
    on_exhausted: OnExhausted = "fail";
    /// Errors that are tolerated: auto (it pauses while most attempts fail), 10/s failed attempts (more: it pauses), 1% or 500 given up (more: it stops), none
    ///
    /// auto: more fail than succeed, and more than 10/s. Both: "auto 1%", "10/s 1%"
    error_budget: ErrorBudget = "auto";
    /// The span over which failed attempts are counted for the error budget
    error_window: Duration = "10s" above "0s" to "365d";
    /// How often progress is saved
    checkpoint_interval: Duration = "1s" above "0s" to "365d";
    /// Completions that may be unsaved: a number or auto
    ///
    /// The bound on repeats after a crash; auto = max(10 × concurrency, 100,000, 5 × settled in the last second)
    unsaved_max: Auto<NonZeroU32> = "auto";
    /// How long an item may hold a full window before it is parked although in flight
    straggler_after: Duration = "1s" above "0s" to "365d";
    /// A longer retry wait parks the item, so that it doesn't hold the window
    park_after: Duration = "2s" above "0s" to "365d";
    /// Parked items per shard
    parked_max: u32 = 10_000;
    /// One item at a time, in index order
    ordered: bool = false;
    /// What items came to: off, or keep (it is read with `windrow task results`, in index order)
    ///
    /// What a handler answers as `output`, up to 64 KiB of JSON an item; fixed once the task was started
    results: Results = "off";
    /// How long the handler may be down before the task stops; nothing is lost by it
    ///
    /// A night and a day: somebody has seen it by then
    outage_patience: Duration = "24h" above "0s" to "365d";
    /// How long the results of a task may take to be reduced before it stops; a start tries it again
    ///
    /// A command of the node reads some 100,000 results a second
    reduce_timeout: Duration = "10m" above "0s" to "24h";
    /// How long the last items are tried without a verdict before they are given up: a span or auto
    ///
    /// auto = the time that the run took so far, from 20s to 10m; 0s judges them at once: people know that it is the items
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
