//! `windrow openapi`: the description of a node's API.

use clap::Args;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, Remote};
use crate::shell::Shell;

/// `windrow openapi`
#[derive(Debug, Args)]
pub struct OpenapiArgs {
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// Prints it as it is.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn openapi(args: &OpenapiArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.get("/openapi.json").await?;
    link.put(&answer.body)
}
