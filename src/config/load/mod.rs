//! Loading of a checked configuration from file and environment. The only place that reads the environment.

use std::path::Path;

use super::check;
use super::fault::{Fault, Origin};
use super::layers::Layers;
use super::read::{self, Read};
use super::sections::Config;

/// Loads a configuration: defaults, overridden by the file (if given), overridden by the environment. Flags are the
/// caller's job: it changes the result and can check [`Config::faults`] again.
///
/// # Errors
/// Returns every fault, not only the first.
pub fn load(path: Option<&Path>, env: impl Iterator<Item = (String, String)>) -> Result<Config, Vec<Fault>> {
    let mut layers = Layers::default();
    if let Some(path) = path {
        let text = std::fs::read_to_string(path).map_err(|error| vec![unreadable(path, &error)])?;
        layers.add_file(path, &text).map_err(|fault| vec![fault])?;
    }
    layers.add_env(env);
    let Read {
        config,
        origins,
        mut faults,
    } = read::config(layers);
    // An unreadable value has been replaced with its default, and comparing that with other keys would only confuse.
    if faults.is_empty() {
        faults = check::faults(&config);
        for fault in &mut faults {
            fault.origin = origins.get(&fault.key).cloned().unwrap_or(Origin::Default);
        }
    }
    if faults.is_empty() {
        Ok(config)
    } else {
        Err(faults)
    }
}

/// Returns the environment of this process for [`load`]. Names and values that aren't Unicode are converted lossily,
/// so that a Windrow variable among them is reported and not skipped.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub fn process_env() -> impl Iterator<Item = (String, String)> {
    let text = |raw: std::ffi::OsString| raw.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

/// Returns the raw environment of this process, to pass on to workers.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub fn process_env_os() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    std::env::vars_os().collect()
}

/// Returns the fault of an unreadable file.
pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Fault {
    Fault {
        key: "config".to_owned(),
        origin: Origin::File(path.to_owned()),
        what: format!("can't read the file: {error}"),
        try_: "check the path and its permissions".to_owned(),
    }
}

#[cfg(test)]
mod tests;
