//! `windrow db` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::link::View;

/// How it is used.
pub(in crate) const EXAMPLES: &str = "\
Examples:
  windrow db status --config /etc/windrow/config.toml
  windrow db backup /backup/windrow-$(date +%F).db --data-dir /var/lib/windrow
  windrow db restore /backup/windrow.db --key /backup/key --data-dir data
  windrow db check --data-dir /var/lib/windrow
  windrow db migrate --dry-run

These commands work on the database itself, without a node: a file in the state directory of this machine, or the server
that store.url names. status, backup and check also while nodes run. A server is copied and restored by its own tools, which
backup and restore name; then all nodes stay stopped until `windrow db restored` was run. Without --data-dir and --config, ./config.toml is read if there is one; else defaults and the environment.";

/// `windrow db`
#[derive(Debug, Args)]
pub struct DbArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with a database.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show its size, its schema, and whether it is sound
    Status(StatusArgs),
    /// Bring its schema up to date: of a server once for all nodes, of a file while no node runs
    Migrate(MigrateArgs),
    /// Copy it to a new file, as it is at one moment; a node may be running
    Backup(BackupArgs),
    /// Put a backup in its place, checked, with numbers for new tasks that were never given
    Restore(RestoreArgs),
    /// After a restore by other tools: give new tasks numbers that were never given
    Restored(RestoredArgs),
    /// Check all of it: pages, indexes, and what must hold between its rows
    Check(StatusArgs),
}

/// Where the database is.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Database")]
pub struct Place {
    /// The node's configuration; without it ./config.toml if there is one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The state directory, instead of node.data_dir
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// `windrow db status`, `windrow db check`
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// Where it is.
    #[command(flatten)]
    pub place: Place,
    /// How it is shown.
    #[command(flatten)]
    pub view: View,
}

/// `windrow db migrate`
#[derive(Clone, Debug, Args)]
pub struct MigrateArgs {
    /// Change nothing; show the steps that are missing
    #[arg(long)]
    pub dry_run: bool,
    /// Where it is.
    #[command(flatten)]
    pub place: Place,
}

/// `windrow db backup`
#[derive(Clone, Debug, Args)]
pub struct BackupArgs {
    /// The copy; it is never overwritten
    pub file: PathBuf,
    /// Where it is.
    #[command(flatten)]
    pub place: Place,
}

/// `windrow db restore`
#[derive(Clone, Debug, Args)]
pub struct RestoreArgs {
    /// The backup; it is left as it is
    pub file: PathBuf,
    /// Replace the database that is there; it is kept beside, as windrow.db.before-TIME
    #[arg(long)]
    pub replace: bool,
    /// The key that was kept with the backup; it is copied to the node's
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// What is done to schedules.
    #[command(flatten)]
    pub schedules: SchedulesArgs,
    /// Where it is.
    #[command(flatten)]
    pub place: Place,
}

/// `windrow db restored`
#[derive(Clone, Debug, Args)]
pub struct RestoredArgs {
    /// What is done to schedules.
    #[command(flatten)]
    pub schedules: SchedulesArgs,
    /// Where it is.
    #[command(flatten)]
    pub place: Place,
}

/// What a restore does to schedules.
#[derive(Clone, Copy, Debug, Args)]
pub struct SchedulesArgs {
    /// Pause all schedules: else they fire again for times since the backup
    #[arg(long)]
    pub pause_schedules: bool,
}
