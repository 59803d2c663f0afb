//! `windrow db backup`.

use std::fs;

use super::args::BackupArgs;
use super::{configured, file, key, opened};
use crate::cli::exit::Exit;
use crate::cli::fault::Fault;
use crate::cli::table::human;
use crate::cli::{Shell, screen};
use crate::node::database::BackupError;

/// Copies a database.
///
/// # Errors
/// `NotFound`; `Conflict` when the copy's name is taken; `Failed` when it can't be written or isn't whole.
pub(super) async fn backup(args: &BackupArgs, shell: &Shell) -> Result<Exit, Fault> {
    let config = configured(&args.place, shell)?;
    let inspection = opened(&file(&config)?).await?;
    let done = inspection.backup(&args.file).await;
    inspection.close().await?;
    done.map_err(fault)?;
    let size = fs::metadata(&args.file).map_or(0, |found| found.len());
    shell.screen.must_say(&format!("{} of one moment, read back and sound", human::bytes(size)));
    let key = key(&config);
    if key.exists() {
        shell
            .screen
            .must_say(&format!("keep {} too: without it the stored secrets can't be read", key.display()));
    }
    screen::put(&args.file.display().to_string()).map(|()| Exit::Ok)
}

fn fault(error: BackupError) -> Fault {
    let because = error.to_string();
    match error {
        BackupError::Exists(_) => Fault::new(Exit::Conflict, "nothing is overwritten", because)
            .hint("name a file that isn't there, e.g. with the date in its name"),
        BackupError::Io { .. } => Fault::new(Exit::Failed, "the copy can't be written", because)
            .hint("check the folder, its permissions and its free space"),
        BackupError::Store(error) => Fault::from(error),
    }
}
