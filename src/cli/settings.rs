//! `windrow config`: checks and prints configurations.

use super::Shell;
use super::args::{ConfigArgs, ConfigVerb};
use super::exit::Exit;
use super::fault::Fault;
use super::run::load;
use super::screen;

/// Every key with its default, as it stands in the repository.
const DOCUMENTED: &str = include_str!("../../config.toml");

/// Obeys.
///
/// # Errors
/// `Config` with every fault of the configuration.
pub(super) fn settings(args: &ConfigArgs, shell: &Shell) -> Result<Exit, Fault> {
    let text = match &args.verb {
        ConfigVerb::Check { file } => {
            load(Some(file), shell)?;
            format!("{} is sound", file.display())
        }
        ConfigVerb::Default => DOCUMENTED.to_owned(),
        ConfigVerb::Show { file } => {
            let config = load(file.as_deref(), shell)?;
            let shown = serde_json::to_string_pretty(&config.task_defaults.tuning);
            shown.map_err(|error| Fault::bug(error.to_string()))?
        }
    };
    screen::print(&text).map(|()| Exit::Ok)
}
