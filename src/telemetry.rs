//! The process's own log: which lines, and where they go. The only place that knows `tracing-subscriber`.

use std::io::Write;

use tracing_subscriber::EnvFilter;

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
        EnvFilter::try_new(text).map(Filter).map_err(|error| BadFilter(error.to_string()))
    }
}

/// Starts the log of this process; a second call changes nothing.
pub fn start_log<W: Write + 'static>(
    filter: Filter,
    is_terminal: bool,
    writer: impl Fn() -> W + Send + Sync + 'static,
) {
    let log = tracing_subscriber::fmt().with_env_filter(filter.0).with_ansi(is_terminal).with_writer(writer);
    if log.try_init().is_err() {
        tracing::debug!("the log was started before");
    }
}
