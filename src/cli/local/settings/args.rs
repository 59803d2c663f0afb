//! Arguments of `windrow config` and its verbs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::link::View;

/// Arguments of `windrow config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Verb to execute on the configuration.
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// Verbs of `windrow config`.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Check a file and the environment for `windrow serve`; lists every error at once, or the needs of the node
    Check(FileArgs),
    /// Print every key with its default, unit and reason
    Default,
    /// Print every key with its effective value, from a file and the environment; secrets are masked
    Show(ShowArgs),
}

/// Flags that select the configuration.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// Configuration file; defaults to ./config.toml if it exists
    pub file: Option<PathBuf>,
    /// Configuration file, given as for 'windrow serve'
    #[arg(long = "config", value_name = "FILE", conflicts_with = "file")]
    pub named: Option<PathBuf>,
}

/// Arguments of `windrow config show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Flags that select the configuration.
    #[command(flatten)]
    pub file: FileArgs,
    /// Also print the origin of each value: the default, the file, or a variable
    #[arg(long)]
    pub origin: bool,
    /// Flags for the output format.
    #[command(flatten)]
    pub view: View,
}
