//! Implementation of `windrow openapi`: the description of the API, as this program serves it or as a node does.

use clap::Args;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, Remote};
use crate::output::screen;
use crate::shell::Shell;

/// Arguments of `windrow openapi`.
#[derive(Debug, Args)]
pub struct OpenapiArgs {
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Prints the description unchanged. Asks a node only if the command line names one, as `windrow version` does.
///
/// # Errors
/// Same as [`Link::send`].
pub(crate) async fn openapi(args: &OpenapiArgs, shell: &Shell) -> Result<Exit, Fault> {
    let document = if args.remote.is_named() {
        let link = Link::open(&args.remote, shell)?;
        link.get("/openapi.json").await?.body
    } else {
        windrow_server::http::description()
    };
    screen::put_bytes(&document).map(|()| Exit::Ok)
}
