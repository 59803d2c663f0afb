//! Commands that need no node.

pub mod db;
pub(crate) mod dev;
pub mod doctor;
pub(crate) mod init;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod trial;
pub mod version;

use std::path::{Path, PathBuf};

/// The configuration that is meant: the one that is named, else `config.toml` where the program runs, if it is there.
fn configuration(named: Option<&PathBuf>) -> Option<PathBuf> {
    let here = Path::new("config.toml");
    named.cloned().or_else(|| here.exists().then(|| here.to_owned()))
}
