//! Implementation of `windrow biz`, for businesses: the handlers that do the work.

mod apply;
mod edit;
mod list;
mod register;
mod request;
mod settings;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) use self::register::not_registered;
pub use self::settings::Settings;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Named, NamedWrite, Paging, Remote, Write};
use crate::shell::Shell;
use windrow_client::segment;

/// Examples of registration, for the help.
const REGISTER_EXAMPLES: &str = "Examples:
  windrow biz register push --url https://push.internal/windrow --batch 16
  windrow biz register report --command report --pool batch --force
  windrow biz register push --url https://push.internal/windrow \\
    --secret-header-file headers.txt --hook prepare
  windrow biz register ship --request 'POST https://api.example/v1/{id}' \\
    --header 'authorization: Bearer {secret.api}' --secret api=@api.token

The handler is checked with pings first; if it violates the contract, it is not registered (exit 11) unless with --force.
The secret that signs calls is printed once on standard output; --request, and --command without hooks, have none.";

/// Examples of `apply`, for the help.
const APPLY_EXAMPLES: &str = "Examples:
  windrow biz apply -f push.toml --reason \"more room\"
  windrow biz show push -o json | jq '{name, url, defaults}' |
    windrow biz apply -f -

The file has the members of `windrow biz show -o json`: one business as an object (TOML: the file), several as a list
(TOML: [[business]]). Members in the file are set, tables as a whole; other members keep their values.
Applying an unchanged file does nothing.";

/// Arguments of `windrow biz`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BizArgs {
    /// Verb to execute; without one the businesses are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the list, without a verb.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Verbs of `windrow biz`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the registered businesses
    List(ListArgs),
    /// Show a business with its settings
    Show(Named),
    /// Register a business with a name, and the URL or the command that does the work
    #[command(after_help = REGISTER_EXAMPLES)]
    Register(Box<RegisterArgs>),
    /// Change the settings of a business
    #[command(visible_alias = "set")]
    Edit(Box<EditArgs>),
    /// Check that the handler fulfils the contract; exit 11 if it doesn't
    Check(Named),
    /// Archive a business: hide it, accept no new tasks; existing ones continue
    Archive(NamedWrite),
    /// Restore an archived business
    Unarchive(NamedWrite),
    /// Create a new signing secret; the old one stays valid for 24 hours
    RotateSecret(NamedWrite),
    /// List changes to a business with author and reason
    Revisions(RevisionsArgs),
    /// Create or update businesses from a file: register missing ones, change those that differ
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(ApplyArgs),
}

/// Arguments of `windrow biz list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// List archived businesses instead
    #[arg(long, help_heading = "Filters")]
    pub archived: bool,
    /// Flags for the number of entries.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow biz register`.
#[derive(Clone, Debug, Args)]
pub struct RegisterArgs {
    /// Name used in URLs: a-z, 0-9 and -; can't be changed later
    pub name: String,
    /// Flags for the settings of the business.
    #[command(flatten)]
    pub settings: Settings,
    /// Register without calling the handler
    #[arg(long)]
    pub force: bool,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow biz edit`.
#[derive(Clone, Debug, Args)]
pub struct EditArgs {
    /// Name of the business
    pub name: String,
    /// Flags for the settings to change.
    #[command(flatten)]
    pub settings: Settings,
    /// Member to reset to its default: display_name, defaults.rate, hooks.prepare …; may be repeated
    #[arg(long, value_name = "MEMBER")]
    pub unset: Vec<String>,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow biz revisions`.
#[derive(Clone, Debug, Args)]
pub struct RevisionsArgs {
    /// Name of the business
    pub name: String,
    /// Flags for the number of entries.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow biz apply`.
#[derive(Clone, Debug, Args)]
pub struct ApplyArgs {
    /// File with businesses: TOML if its name ends in .toml, otherwise JSON; - is JSON from standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Register missing businesses without calling handlers
    #[arg(long)]
    pub force: bool,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Executes the verb; lists the businesses without one.
///
/// # Errors
/// Same as the verb.
pub(crate) async fn biz(args: &BizArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list::list(&args.list, shell).await,
        Some(Verb::List(args)) => list::list(args, shell).await,
        Some(Verb::Show(args)) => list::show(args, shell).await,
        Some(Verb::Register(args)) => register::register(args, shell).await,
        Some(Verb::Edit(args)) => edit::edit(args, shell).await,
        Some(Verb::Check(args)) => register::check(args, shell).await,
        Some(Verb::Archive(args)) => edit::archive(args, shell, "archive").await,
        Some(Verb::Unarchive(args)) => edit::archive(args, shell, "unarchive").await,
        Some(Verb::RotateSecret(args)) => register::rotate_secret(args, shell).await,
        Some(Verb::Revisions(args)) => list::revisions(args, shell).await,
        Some(Verb::Apply(args)) => apply::apply(args, shell).await,
    }
}

/// Returns the API path of a business.
fn path(name: &str) -> String {
    format!("/v1/businesses/{}", segment(name))
}
