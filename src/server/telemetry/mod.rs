//! Log of the process: filter, style and destination. The only module that uses `tracing-subscriber`.

mod lines;

use std::io::Write;

use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use self::lines::Lines;

/// Filter that selects the lines to log.
#[derive(Debug)]
pub struct Filter(EnvFilter);

/// Error for an invalid log filter.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadFilter(String);

impl std::str::FromStr for Filter {
    type Err = BadFilter;

    fn from_str(text: &str) -> Result<Filter, BadFilter> {
        // Quieten three crates by default. Otherwise each start logs a dozen migrations, each line of an actor starts
        // with its number in ractor, and sqlx warns about slow connections on a busy machine. Naming a crate in the
        // filter overrides this.
        EnvFilter::try_new(format!("sea_orm_migration=warn,ractor=warn,sqlx=error,{text}"))
            .map(Filter)
            .map_err(|error| BadFilter(error.to_string()))
    }
}

/// Output style of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Readable text, coloured on a terminal.
    Pretty {
        /// True if the output is a terminal.
        colours: bool,
    },
    /// Readable text without time and code location, for people waiting for a command.
    Plain {
        /// True if the output is a terminal.
        colours: bool,
    },
    /// One JSON object per line.
    Json,
    /// Pairs such as `key=value`.
    Logfmt,
}

/// Control for the filter of a running log.
pub struct LogControl(reload::Handle<EnvFilter, Registry>);

impl LogControl {
    /// Replaces the log filter; returns false if the log no longer exists.
    pub fn change(&self, filter: Filter) -> bool {
        self.0.reload(filter.0).is_ok()
    }
}

/// Starts the log of this process; returns `None` if it was started before.
pub fn start_log<W: Write + 'static>(
    filter: Filter,
    style: Style,
    writer: impl Fn() -> W + Send + Sync + 'static,
) -> Option<LogControl> {
    let (filter, handle) = reload::Layer::new(filter.0);
    // Drop lines that can't be written, as reporting the error on a closed standard error would panic.
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

/// Formats a message that the program prints besides its log in the style of the log, so that a reader of JSON finds
/// nothing else.
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
