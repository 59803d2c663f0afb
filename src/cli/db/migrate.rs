//! `windrow db migrate`.

use super::args::MigrateArgs;
use super::{configured, file, opened};
use crate::cli::exit::Exit;
use crate::cli::fault::Fault;
use crate::cli::{Shell, screen};
use crate::node::{LockError, StateDir, database};
use crate::ports::StoreError;

/// Brings the schema up to date.
///
/// # Errors
/// `NotFound`; `Conflict` while a node holds the directory; `Config` for a database of a newer program.
pub(super) async fn migrate(args: &MigrateArgs, shell: &Shell) -> Result<Exit, Fault> {
    let config = configured(&args.place, shell)?;
    let path = file(&config)?;
    let inspection = opened(&path).await?;
    let schema = inspection.schema().await?;
    inspection.close().await?;
    if let Some(newer) = schema.unknown.first() {
        return Err(StoreError::NewerSchema(newer.clone()).into());
    }
    let steps = schema.pending.join("\n");
    if steps.is_empty() {
        shell.screen.must_say("nothing to do: the schema is this program's");
        return Ok(Exit::Ok);
    }
    if args.dry_run {
        shell.screen.must_say("dry run: nothing was changed; these steps are missing:");
        return screen::put(&steps).map(|()| Exit::Ok);
    }
    let held = StateDir::lock(&config.node.data_dir).map_err(|error| match error {
        LockError::LockedBy { .. } => {
            Fault::from(error).hint("stop it first; its next start brings the schema up to date by itself")
        }
        other => other.into(),
    })?;
    database::migrate(&path, &held).await?;
    screen::put(&steps).map(|()| Exit::Ok)
}
