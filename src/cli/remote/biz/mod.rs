//! `windrow biz`: businesses, who do the work.

mod apply;
mod edit;
mod list;
mod register;
mod request;
mod settings;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use self::settings::Settings;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Named, NamedWrite, Paging, Remote, Write};
use crate::shell::Shell;
use windrow_client::segment;

/// How it is registered.
const REGISTER_EXAMPLES: &str = "\
Examples:
  windrow biz register push --url https://push.internal/windrow --batch 16
  windrow biz register report --command report --pool batch --force
  windrow biz register push --url https://push.internal/windrow \\
    --secret-header-file headers.txt --hook prepare
  windrow biz register ship --request 'POST https://api.example/v1/{id}' \\
    --header 'authorization: Bearer {secret.api}' --secret api=@api.token

The handler is called with pings first; one that breaks the contract isn't registered (exit 11), unless with --force.
The secret that signs calls is printed once, on standard output; a --request and a --command without hooks have none.";

/// How it is applied.
const APPLY_EXAMPLES: &str = "\
Examples:
  windrow biz apply -f push.toml --reason \"more room\"
  windrow biz show push -o json | jq '{name, url, defaults}' |
    windrow biz apply -f -

The file holds what `windrow biz show -o json` shows of a business: one as an object (TOML: the file), several as a list
(TOML: [[business]]). What the file names becomes as it says, a table as a whole; what it doesn't name stays.
Nothing to change is no change, and no error.";

/// `windrow biz`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BizArgs {
    /// What to do; without it the businesses are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the list.
    #[command(flatten)]
    pub list: ListArgs,
}

/// What to do with businesses.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List businesses
    List(ListArgs),
    /// Show a business
    Show(Named),
    /// Register a business: its name, and the URL or the command that does the work
    #[command(after_help = REGISTER_EXAMPLES)]
    Register(Box<RegisterArgs>),
    /// Change a business
    #[command(visible_alias = "set")]
    Edit(Box<EditArgs>),
    /// Check whether its handler keeps to the contract (exit 11 if it doesn't)
    Check(Named),
    /// Hide a business: no new tasks, those it has go on
    Archive(NamedWrite),
    /// Show an archived business again
    Unarchive(NamedWrite),
    /// Give it a new signing secret; the old one stays valid for 24 hours
    RotateSecret(NamedWrite),
    /// Who changed what of it, and why
    Revisions(RevisionsArgs),
    /// Make businesses as a file says: register what isn't there, change what differs
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(ApplyArgs),
}

/// `windrow biz list`
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Those that are archived
    #[arg(long, help_heading = "Which")]
    pub archived: bool,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow biz register`
#[derive(Clone, Debug, Args)]
pub struct RegisterArgs {
    /// Its name in URLs: a-z, 0-9 and -; it never changes
    pub name: String,
    /// What it is.
    #[command(flatten)]
    pub settings: Settings,
    /// Register it without calling its handler
    #[arg(long)]
    pub force: bool,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// `windrow biz edit`
#[derive(Clone, Debug, Args)]
pub struct EditArgs {
    /// The business
    pub name: String,
    /// What it becomes.
    #[command(flatten)]
    pub settings: Settings,
    /// A member that becomes what it is without being set: display_name, defaults.rate, hooks.prepare …; may be repeated
    #[arg(long, value_name = "MEMBER")]
    pub unset: Vec<String>,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// `windrow biz revisions`
#[derive(Clone, Debug, Args)]
pub struct RevisionsArgs {
    /// The business
    pub name: String,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow biz apply`
#[derive(Clone, Debug, Args)]
pub struct ApplyArgs {
    /// The file: TOML if its name ends in .toml, else JSON; - is JSON from standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Register what isn't there without calling its handler
    #[arg(long)]
    pub force: bool,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
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

/// Where a business is in the API.
fn path(name: &str) -> String {
    format!("/v1/businesses/{}", segment(name))
}
