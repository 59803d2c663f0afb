//! `windrow db`: the database of a state directory, on the machine where it is.

pub mod args;
mod copy;
mod migrate;
mod status;

use std::path::{Path, PathBuf};

use self::args::{DbArgs, Place, Verb};
use super::Shell;
use super::exit::Exit;
use super::fault::Fault;
use super::run::load;
use crate::config::{Config, StoreUrl};
use crate::node::database::{self, Inspection};

/// What is read when no file is named.
const FILE_DEFAULT: &str = "config.toml";

/// Does what the verb says.
///
/// # Errors
/// The verb's.
pub(super) async fn db(args: &DbArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        Verb::Status(args) => status::status(args, shell).await,
        Verb::Migrate(args) => migrate::migrate(args, shell).await,
        Verb::Backup(args) => copy::backup(args, shell).await,
        Verb::Check(args) => status::check(args, shell).await,
    }
}

/// The configuration that says where the database is.
///
/// # Errors
/// `Config` with every fault of it, and for a database that isn't a file.
pub(super) fn configured(place: &Place, shell: &Shell) -> Result<Config, Fault> {
    let here = Path::new(FILE_DEFAULT);
    let file = place.config.clone().or_else(|| here.exists().then(|| here.to_owned()));
    let mut config = load(file.as_deref(), shell)?;
    if let Some(directory) = &place.data_dir {
        config.node.data_dir.clone_from(directory);
        // Who names a directory means the database in it.
        config.store.url = StoreUrl::Auto;
    }
    if matches!(config.store.url, StoreUrl::Postgres(_) | StoreUrl::MySql(_)) {
        let fault = Fault::new(Exit::Config, "this database isn't a file", "store.url names a server");
        return Err(fault.hint("--data-dir DIR; a server has tools of its own"));
    }
    Ok(config)
}

/// The database's file.
fn file(config: &Config) -> Result<PathBuf, Fault> {
    let path = database::path(config);
    if path.is_file() {
        return Ok(path);
    }
    let fault = Fault::new(Exit::NotFound, "there is no database", format!("{} isn't there", path.display()));
    Err(fault.hint("--data-dir DIR, or --config FILE of the node; `windrow serve` makes one"))
}

/// The database, open to be looked at.
async fn opened(path: &Path) -> Result<Inspection, Fault> {
    Ok(Inspection::open(path).await?)
}

/// The file that the sealed secrets of this database need.
fn key(config: &Config) -> PathBuf {
    config.auth.key_file.clone().unwrap_or_else(|| config.node.data_dir.join("key"))
}
