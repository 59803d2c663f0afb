//! `windrow config` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::link::View;

/// `windrow config`
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// What to do with a configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Check a file and the environment for `windrow serve`; lists every fault at once, or what the node will need
    Check(FileArgs),
    /// Print every key with its default, unit and reason
    Default,
    /// Print every key with the value that holds, from a file and the environment; secrets are masked
    Show(ShowArgs),
}

/// Which configuration is meant.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// The file; without it ./config.toml if there is one
    pub file: Option<PathBuf>,
    /// The same, as 'windrow serve' is given it
    #[arg(long = "config", value_name = "FILE", conflicts_with = "file")]
    pub named: Option<PathBuf>,
}

/// `windrow config show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Which configuration.
    #[command(flatten)]
    pub file: FileArgs,
    /// With where each value comes from: the default, the file, or a variable
    #[arg(long)]
    pub origin: bool,
    /// How it is shown.
    #[command(flatten)]
    pub view: View,
}
