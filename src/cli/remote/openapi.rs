//! Implementation of `windrow openapi`: the description of a node's API.

use clap::Args;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, Remote};
use crate::shell::Shell;

/// Arguments of `windrow openapi`.
#[derive(Debug, Args)]
pub struct OpenapiArgs {
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Prints the description unchanged.
///
/// # Errors
/// Same as [`Link::send`].
pub(crate) async fn openapi(args: &OpenapiArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.get("/openapi.json").await?;
    link.put(&answer.body)
}
