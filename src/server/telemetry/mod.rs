//! The process's own log: which lines, how they look, and where they go. The only place that knows
//! `tracing-subscriber`.

mod lines;

use std::io::Write;

use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use self::lines::Lines;

/// Which lines are logged.
#[derive(Debug)]
pub struct Filter(EnvFilter);

/// A filter can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadFilter(String);

impl std::str::FromStr for Filter {
    type Err = BadFilter;

    fn from_str(text: &str) -> Result<Filter, BadFilter> {
        // Each start would tell of a dozen migrations, each line of an actor would begin with its number in ractor, and
        // sqlx warns of connections that a busy machine was slow to give; whoever wants to hear of them names them.
        EnvFilter::try_new(format!("sea_orm_migration=warn,ractor=warn,sqlx=error,{text}"))
            .map(Filter)
            .map_err(|error| BadFilter(error.to_string()))
    }
}

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For people; in colours on a terminal.
    Pretty {
        /// Whether it is one.
        colours: bool,
    },
    /// For whoever waits for a command: without the time and the place in the code.
    Plain {
        /// Whether it is a terminal.
        colours: bool,
    },
    /// One object a line.
    Json,
    /// `key=value`.
    Logfmt,
}

/// Changes which lines a started log has.
pub struct LogControl(reload::Handle<EnvFilter, Registry>);

impl LogControl {
    /// Changes which lines are logged from now on; says whether the log is still there.
    pub fn change(&self, filter: Filter) -> bool {
        self.0.reload(filter.0).is_ok()
    }
}

/// Starts the log of this process; none when it was started before.
pub fn start_log<W: Write + 'static>(
    filter: Filter,
    style: Style,
    writer: impl Fn() -> W + Send + Sync + 'static,
) -> Option<LogControl> {
    let (filter, handle) = reload::Layer::new(filter.0);
    // A line that nobody can read any more is dropped: to complain of it on a closed standard error would be a panic.
    let lines = fmt::layer().log_internal_errors(false).with_writer(writer);
    let lines = match style {
        Style::Pretty { colours } => lines.with_ansi(colours).boxed(),
        Style::Plain { colours } => {
            let plain = fmt::format().without_time().with_target(false);
            lines.event_format(plain).with_ansi(colours).boxed()
        }
        Style::Json => lines.event_format(Lines::Json).boxed(),
        Style::Logfmt => lines.event_format(Lines::Logfmt).boxed(),
    };
    let log = tracing_subscriber::registry().with(filter).with(lines);
    log.try_init().ok().map(|()| LogControl(handle))
}

/// What a program says beside its log, as a line of a log of this style: whoever reads objects finds nothing else.
pub fn said(style: Style, level: tracing::Level, text: &str) -> String {
    lines::said(style, level, text).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_actors_have_no_span_unless_somebody_asks_for_it() {
        let filter = |text: &str| text.parse::<Filter>().expect("a filter").0.to_string();
        assert!(filter("debug").contains("ractor=warn"), "{}", filter("debug"));
        let asked = filter("info,ractor=debug");
        assert!(
            asked.contains("ractor=debug") && !asked.contains("ractor=warn"),
            "{asked}"
        );
    }

    #[test]
    fn a_slow_pool_of_connections_is_told_to_who_asks_for_it_only() {
        let is_told = |text: &str| {
            let filter = text.parse::<Filter>().expect("a filter").0;
            let log = tracing_subscriber::fmt()
                .with_env_filter(filter)
                .with_writer(std::io::sink)
                .finish();
            tracing::subscriber::with_default(
                log,
                || tracing::enabled!(target: "sqlx::pool::acquire", tracing::Level::WARN),
            )
        };
        assert!(!is_told("warn") && !is_told("info,windrow=debug"));
        assert!(is_told("warn,sqlx=warn") && is_told("info,sqlx::pool=warn"));
    }
}
