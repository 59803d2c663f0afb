//! Implementation of `windrow db backup`, for database files.

use std::fs;

use super::args::BackupArgs;
use super::{Target, configured, key};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::screen;
use crate::output::table::human;
use crate::shell::Shell;
use windrow_node::database::BackupError;
use windrow_node::{ServerAddress, ServerKind};

/// Copies a database to a new file.
///
/// # Errors
/// `NotFound` without a database; `Conflict` if the target exists; `Failed` if the copy can't be written or is
/// incomplete.
pub(super) async fn backup(args: &BackupArgs, shell: &Shell) -> Result<Exit, Fault> {
    let config = configured(&args.place, shell)?;
    let target = Target::of(&config)?;
    if let Target::Server(server) = &target {
        return Err(of_server(server, args));
    }
    let inspection = target.opened().await?;
    let done = inspection.backup(&args.file).await;
    inspection.close().await?;
    done.map_err(fault)?;
    let size = fs::metadata(&args.file).map_or(0, |found| found.len());
    shell
        .screen
        .must_say(&format!("{} from one moment, verified", human::bytes(size)));
    let key = key(&config);
    if key.exists() {
        shell.screen.must_say(&format!(
            "back up {} too: without it the stored secrets can't be read",
            key.display()
        ));
    }
    screen::put(&args.file.display().to_string()).map(|()| Exit::Ok)
}

/// Creates the fault for a database server, with the command of its own tool, which takes a consistent and restorable
/// copy.
fn of_server(server: &ServerAddress, args: &BackupArgs) -> Fault {
    let file = args.file.display();
    let url = &server.url;
    let command = match server.kind {
        ServerKind::Postgres => format!("pg_dump --format=custom --file={file} {url}"),
        ServerKind::MySql => {
            let (place, database) = url
                .split_once("://")
                .map_or(url.as_str(), |(_, rest)| rest)
                .rsplit_once('/')
                .unwrap_or((url, ""));
            let (user, host) = place.rsplit_once('@').unwrap_or(("windrow", place));
            let (host, port) = host.rsplit_once(':').unwrap_or((host, "3306"));
            let database = database.split('?').next().unwrap_or_default();
            format!(
                "mariadb-dump --single-transaction --host={host} --port={port} --user={user} --password --result-file={file} {database}"
            )
        }
    };
    Fault::new(
        Exit::Usage,
        "nothing was copied",
        "use the database server's own backup tools",
    )
    .hint(&command)
}

fn fault(error: BackupError) -> Fault {
    let because = error.to_string();
    match error {
        BackupError::Exists(_) => Fault::new(Exit::Conflict, "nothing was overwritten", because)
            .hint("name a new file, e.g. with the date in its name"),
        BackupError::Io { .. } => Fault::new(Exit::Failed, "can't write the copy", because)
            .hint("check the directory, its permissions and its free space"),
        BackupError::Store(error) => Fault::from(error),
    }
}
