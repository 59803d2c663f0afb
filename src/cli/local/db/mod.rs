//! Implementation of `windrow db`, for the database of a node: a file in its state directory, or one on a server.

pub mod args;
mod copy;
mod migrate;
mod restore;
mod restored;
mod status;

use std::path::PathBuf;

use self::args::{DbArgs, Place, Verb};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::local::configuration;
use crate::shell::Shell;
use windrow_config::{Config, StoreUrl};
use windrow_node::database::{self, Inspection};
use windrow_node::{LockError, ServerAddress, StateDir};

/// Executes the verb.
///
/// # Errors
/// Same as the verb.
pub(crate) async fn db(args: &DbArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        Verb::Status(args) => status::status(args, shell).await,
        Verb::Migrate(args) => migrate::migrate(args, shell).await,
        Verb::Backup(args) => copy::backup(args, shell).await,
        Verb::Restore(args) => restore::restore(args, shell).await,
        Verb::Restored(args) => restored::restored(args, shell).await,
        Verb::Check(args) => status::check(args, shell).await,
    }
}

/// Loads the configuration that locates the database.
///
/// # Errors
/// `Config` with every error in it.
pub(crate) fn configured(place: &Place, shell: &Shell) -> Result<Config, Fault> {
    let mut config = shell.config(configuration(place.config.as_ref()).as_deref())?;
    if let Some(directory) = &place.data_dir {
        config.node.data_dir.clone_from(directory);
        // A directory given by flag means the database file in it.
        config.store.url = StoreUrl::Auto;
    }
    Ok(config)
}

/// Location of a database: a file or a server.
enum Target {
    File(PathBuf),
    Server(ServerAddress),
}

impl Target {
    /// Returns the database of a configuration.
    ///
    /// # Errors
    /// `NotFound` if the file doesn't exist; `Failed` if a server's password can't be read.
    fn of(config: &Config) -> Result<Target, Fault> {
        if let Some(server) = database::address(config)? {
            return Ok(Target::Server(server));
        }
        let path = database::path(config);
        if path.is_file() {
            return Ok(Target::File(path));
        }
        let fault = Fault::new(
            Exit::NotFound,
            "no database",
            format!("{} doesn't exist", path.display()),
        );
        Err(fault.hint("--data-dir DIR, or the node's --config FILE; `windrow serve` creates one"))
    }

    /// Opens the database for inspection.
    async fn opened(&self) -> Result<Inspection, Fault> {
        Ok(match self {
            Target::File(path) => Inspection::open(path).await?,
            Target::Server(server) => Inspection::connect(server).await?,
        })
    }

    /// Returns the path or the URL.
    fn shown(&self) -> String {
        match self {
            Target::File(path) => path.display().to_string(),
            Target::Server(server) => server.url.clone(),
        }
    }
}

/// Locks the state directory against nodes. If a node holds it, the fault has `hint`.
fn held(config: &Config, hint: &str) -> Result<StateDir, Fault> {
    StateDir::lock(&config.node.data_dir).map_err(|error| match error {
        LockError::LockedBy { .. } => Fault::from(error).hint(hint),
        other => other.into(),
    })
}

/// Returns the path of the key file that decrypts the sealed secrets of this database.
fn key(config: &Config) -> PathBuf {
    config
        .auth
        .key_file
        .clone()
        .unwrap_or_else(|| config.node.data_dir.join("key"))
}
