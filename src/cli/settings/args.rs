//! `windrow config` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
    Check {
        /// The file
        file: PathBuf,
    },
    /// Print every key with its default, unit and reason
    Default,
    /// Print the live settings that tasks have by default, from a file and the environment
    Show {
        /// The file
        file: Option<PathBuf>,
    },
}
