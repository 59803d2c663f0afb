//! Commands that work without a node.

pub mod db;
pub(crate) mod dev;
pub mod doctor;
pub(crate) mod init;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod trial;
pub mod version;

use std::path::{Path, PathBuf};

/// Returns the named configuration file, or else `config.toml` in the working directory if it exists.
fn configuration(named: Option<&PathBuf>) -> Option<PathBuf> {
    let here = Path::new("config.toml");
    named.cloned().or_else(|| here.exists().then(|| here.to_owned()))
}
