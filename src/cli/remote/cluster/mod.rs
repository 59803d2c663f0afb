//! `windrow cluster`: all nodes together.

pub mod args;
mod status;

use self::args::{ClusterArgs, Verb};
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;

/// Does what the verb says; without one it shows the status.
///
/// # Errors
/// The verb's.
pub(crate) async fn cluster(args: &ClusterArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => status::status(&args.status, shell).await,
        Some(Verb::Status(args)) => status::status(args, shell).await,
    }
}
