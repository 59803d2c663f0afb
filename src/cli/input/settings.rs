//! Flags for the live settings of a task, generated from the settings table: the same flags for create, change,
//! clone, redrive and `windrow run`.

use std::num::NonZeroU32;
use std::sync::LazyLock;

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

use windrow_core::settings::table::{SETTINGS, Setting, TuningPatch};
use windrow_core::settings::value::Kind;

/// Heading of these flags in the help.
const HEADING: &str = "Pace and limits";
/// Setting whose flag has another name, since `--timeout` belongs to commands that wait.
const TIMEOUT: &str = "timeout";
/// Flag name of the `timeout` setting.
const CALL_TIMEOUT: &str = "call-timeout";
/// Setting whose flag mentions its default, so that users who omit it understand a slow task.
const RATE: &str = "rate";
/// Settings with a flag in `windrow run` and `windrow job`. The configuration file has all of them.
const OF_A_RUN: [&str; 13] = [
    "rate",
    "burst",
    "concurrency",
    "window",
    "batch",
    "timeout",
    "max_attempts",
    "backoff",
    "on_exhausted",
    "error_budget",
    "ordered",
    "outage_patience",
    "judge_after",
];

/// Settings given as flags. An omitted one keeps its value, or comes from the business or the configuration.
#[derive(Clone, Debug, Default)]
pub struct Settings<const OF_RUN: bool = false>(pub TuningPatch);

/// Flag of each setting: its name with hyphens.
static FLAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    SETTINGS
        .iter()
        .map(|setting| setting.name.replace('_', "-"))
        .collect()
});

impl<const OF_RUN: bool> Settings<OF_RUN> {
    /// Returns the settings that have a flag, each with its flag.
    fn flags() -> impl Iterator<Item = (&'static Setting, &'static str)> {
        let all = SETTINGS.iter().zip(FLAGS.iter().map(String::as_str));
        let all = all.filter(|(setting, _)| !OF_RUN || OF_A_RUN.contains(&setting.name));
        all.map(|(setting, flag)| match flag {
            TIMEOUT => (setting, CALL_TIMEOUT),
            flag => (setting, flag),
        })
    }

    fn arg((setting, flag): (&'static Setting, &'static str)) -> Arg {
        let mut help = setting.summary();
        if !OF_RUN && setting.name == RATE {
            help.push_str(&format!(
                "; a new task without it has the rate of its business, else of the node's configuration, else {}",
                setting.default.trim_matches('"')
            ));
        }
        // `misread` explains a bad number from the kind of this error.
        let read = |text: &str| -> Result<TuningPatch, Box<dyn std::error::Error + Send + Sync>> {
            match setting.kind {
                Kind::Positive => text.parse::<NonZeroU32>().map(drop)?,
                Kind::Number => text.parse::<u32>().map(drop)?,
                _ => {}
            }
            Ok(TuningPatch::parse(setting.name, text)?)
        };
        let arg = Arg::new(flag)
            .long(flag)
            .help(help)
            .help_heading(HEADING)
            .value_name(value_name(setting.kind))
            .value_parser(read);
        match setting.kind {
            Kind::Switch => arg
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
            _ => arg,
        }
    }
}

fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::RateLimit => "RATE",
        Kind::Burst => "BURST",
        Kind::NumberOrAuto | Kind::Positive | Kind::Number => "N",
        Kind::Span | Kind::SpanOrAuto => "SPAN",
        Kind::Backoff => "BACKOFF",
        Kind::OnExhausted | Kind::Results => "WHAT",
        Kind::ErrorBudget => "BUDGET",
        Kind::Switch => "BOOL",
    }
}

impl<const OF_RUN: bool> Args for Settings<OF_RUN> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::flags().map(Self::arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const OF_RUN: bool> FromArgMatches for Settings<OF_RUN> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Settings<OF_RUN>, Error> {
        let mut settings = Settings::default();
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for (_, flag) in Self::flags() {
            if let Some(named) = matches.get_one::<TuningPatch>(flag) {
                self.0 = self.0.and(named);
            }
        }
        Ok(())
    }
}
