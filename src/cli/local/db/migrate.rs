//! Implementation of `windrow db migrate`.

use super::args::MigrateArgs;
use super::{Target, configured, held};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::screen;
use crate::shell::Shell;
use windrow_engine::ports::StoreError;
use windrow_node::database;

/// Hint while a node holds the directory.
const STOP_FIRST: &str = "stop the node first; its next start migrates the schema";

/// Brings the schema up to date.
///
/// # Errors
/// `NotFound` without a database; `Conflict` while a node holds the directory; `Config` for a database of a newer
/// program.
pub(super) async fn migrate(args: &MigrateArgs, shell: &Shell) -> Result<Exit, Fault> {
    let config = configured(&args.place, shell)?;
    let target = Target::of(&config)?;
    let inspection = target.opened().await?;
    let schema = inspection.schema().await?;
    inspection.close().await?;
    if let Some(newer) = schema.unknown.first() {
        return Err(StoreError::NewerSchema(newer.clone()).into());
    }
    let steps = schema.pending.join("\n");
    if steps.is_empty() {
        shell.screen.must_say("nothing to do: the schema is current");
        return Ok(Exit::Ok);
    }
    if args.dry_run {
        shell
            .screen
            .must_say("dry run: nothing was changed; pending steps:");
        return screen::put(&steps).map(|()| Exit::Ok);
    }
    match &target {
        Target::Server(server) => database::migrate_server(server).await?,
        Target::File(path) => database::migrate(path, &held(&config, STOP_FIRST)?).await?,
    }
    screen::put(&steps).map(|()| Exit::Ok)
}
