//! `windrow token` on the command line.

use std::num::NonZeroU64;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::link::{Paging, Remote, Write};
use windrow_core::settings::text::parse_span;

/// How one is made.
pub(super) const CREATE_EXAMPLES: &str = "\
Examples:
  windrow token create --role viewer --name wall-display
  windrow token create --role business --business push --expires-in 90d
  windrow token create --role operator --name ci > operator.token

The token is printed once, alone on standard output; the node keeps a hash of it only.";

/// `windrow token`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TokenArgs {
    /// What to do; without it the tokens are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the list.
    #[command(flatten)]
    pub list: ListArgs,
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List tokens, revoked ones too
    List(ListArgs),
    /// Make a token
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// Take tokens' validity away, at once and for good
    Revoke(RevokeArgs),
}

/// `windrow token list`
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleWord {
    /// Looks
    Viewer,
    /// Looks, and steers tasks
    Operator,
    /// All of it: businesses, tokens, nodes
    Admin,
    /// Sees and steers the tasks of one business
    Business,
}

/// `windrow token create`
#[derive(Clone, Debug, Args)]
pub struct CreateArgs {
    /// What it allows
    #[arg(long, value_enum)]
    pub role: RoleWord,
    /// The business, for the role business
    #[arg(long, value_name = "NAME", required_if_eq("role", "business"))]
    pub business: Option<String>,
    /// Who will hold it, for the audit; without it the user who makes it
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// How long it is believed; without it until it is revoked
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub expires_in: Option<Duration>,
    /// Until when it is believed (22:00, tomorrow 06:00, 8h, 2027-01-31, RFC 3339)
    #[arg(long, value_name = "TIME", conflicts_with = "expires_in")]
    pub expires_at: Option<String>,
    /// Why.
    #[command(flatten)]
    pub write: Write,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow token revoke`
#[derive(Clone, Debug, Args)]
pub struct RevokeArgs {
    /// Their numbers (`windrow token list`)
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<NonZeroU64>,
    /// Why.
    #[command(flatten)]
    pub write: Write,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}
