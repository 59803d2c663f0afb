//! Arguments of `windrow db` and its verbs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::link::View;

/// Examples of `windrow db`, for the help.
pub(in crate) const EXAMPLES: &str = "Examples:
  windrow db status --config /etc/windrow/config.toml
  windrow db backup /backup/windrow-$(date +%F).db --data-dir /var/lib/windrow
  windrow db restore /backup/windrow.db --key /backup/key --data-dir data
  windrow db check --data-dir /var/lib/windrow
  windrow db migrate --dry-run

These commands open the database without a node: a file in this machine's state directory, or the server in store.url.
status, backup and check also work while nodes run. backup and restore name the tools that copy and restore a server; after
such a restore, keep all nodes stopped until `windrow db restored` has run. Without --data-dir and --config, ./config.toml is read if it exists; otherwise defaults and the environment apply.";

/// Arguments of `windrow db`.
#[derive(Debug, Args)]
pub struct DbArgs {
    /// Verb to execute on the database.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Verbs of `windrow db`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show size, schema and integrity of the database
    Status(StatusArgs),
    /// Bring the schema up to date; for a server once for all nodes, for a file while no node runs
    Migrate(MigrateArgs),
    /// Copy the database to a new file, as of one moment; a node may be running
    Backup(BackupArgs),
    /// Restore a backup: check it, put it in place, and number new tasks above all numbers used before
    Restore(RestoreArgs),
    /// Mark a database restored by other tools: new tasks get numbers that were never used
    Restored(RestoredArgs),
    /// Check the whole database: pages, indexes, and consistency between rows
    Check(StatusArgs),
}

/// Flags for the location of the database.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Database")]
pub struct Place {
    /// Configuration of the node; defaults to ./config.toml if it exists
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// State directory, instead of node.data_dir
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// Arguments of `windrow db status` and `windrow db check`.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// Location of the database to inspect.
    #[command(flatten)]
    pub place: Place,
    /// Flags for the output format.
    #[command(flatten)]
    pub view: View,
}

/// Arguments of `windrow db migrate`.
#[derive(Clone, Debug, Args)]
pub struct MigrateArgs {
    /// Show the pending steps, without changing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Location of the database to migrate.
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of `windrow db backup`.
#[derive(Clone, Debug, Args)]
pub struct BackupArgs {
    /// File for the copy; an existing one is never overwritten
    pub file: PathBuf,
    /// Location of the database to copy.
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of `windrow db restore`.
#[derive(Clone, Debug, Args)]
pub struct RestoreArgs {
    /// Backup to restore; it is not changed
    pub file: PathBuf,
    /// Replace an existing database; the old one is kept as windrow.db.before-TIME
    #[arg(long)]
    pub replace: bool,
    /// Key file kept with the backup; it is copied to the node's key
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Flags for the treatment of schedules.
    #[command(flatten)]
    pub schedules: SchedulesArgs,
    /// Location of the database to replace.
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of `windrow db restored`.
#[derive(Clone, Debug, Args)]
pub struct RestoredArgs {
    /// Flags for the treatment of schedules.
    #[command(flatten)]
    pub schedules: SchedulesArgs,
    /// Location of the restored database.
    #[command(flatten)]
    pub place: Place,
}

/// Flags for schedules after a restore.
#[derive(Clone, Copy, Debug, Args)]
pub struct SchedulesArgs {
    /// Pause all schedules; otherwise they fire again for times since the backup
    #[arg(long)]
    pub pause_schedules: bool,
}
