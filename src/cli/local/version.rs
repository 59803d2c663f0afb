//! Implementation of `windrow version`, for this program and for a node if one is named.

use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link, Remote};
use crate::output::screen;
use crate::shell::Shell;

/// Version of this program with its commit and its target.
pub(crate) const FULL: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("WINDROW_COMMIT"),
    ", ",
    env!("WINDROW_TARGET"),
    ")"
);

/// Arguments of `windrow version`.
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Prints the version. Asks a node only if the command line names one, since the program's version needs no network.
///
/// # Errors
/// Same as [`Link::send`].
pub(crate) async fn version(args: &VersionArgs, shell: &Shell) -> Result<Exit, Fault> {
    if matches!(args.remote.view.output, Form::Name | Form::Csv) {
        return Err(Fault::no_form(
            "a version isn't a list",
            "use -o table or -o json",
        ));
    }
    let own = env!("CARGO_PKG_VERSION");
    let node = if args.remote.is_named() {
        Some(node(args, shell).await?)
    } else {
        None
    };
    let text = match (args.remote.view.output, &node) {
        (Form::Json | Form::Ndjson, node) => json!({"client": own, "build": FULL, "node": node}).to_string(),
        (_, Some(node)) => format!(
            "windrow {FULL}\nnode {}: {} {}, API {}",
            node.node, node.name, node.version, node.api
        ),
        (_, None) => format!("windrow {FULL}"),
    };
    screen::put(&text).map(|()| Exit::Ok)
}

async fn node(args: &VersionArgs, shell: &Shell) -> Result<api::Version, Fault> {
    let link = Link::open(&args.remote, shell)?;
    Ok(link.get("/version").await?.read()?)
}
