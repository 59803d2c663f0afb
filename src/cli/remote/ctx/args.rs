//! `windrow ctx` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::link::View;

/// `windrow ctx`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CtxArgs {
    /// What to do; without it the contexts are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the list.
    #[command(flatten)]
    pub list: ListArgs,
}

/// What to do with contexts.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List contexts
    List(ListArgs),
    /// Show a context, or the current one; tokens are masked
    Show(ShowArgs),
    /// Make a context the current one
    Use(NameArgs),
    /// Add a context, or replace it
    Add(AddArgs),
    /// Remove a context
    Remove(NameArgs),
}

/// `windrow ctx list`
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// How they are shown.
    #[command(flatten)]
    pub view: View,
}

/// `windrow ctx show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The context; without it the current one
    pub name: Option<String>,
    /// How it is shown.
    #[command(flatten)]
    pub view: View,
}

/// `windrow ctx use`, `windrow ctx remove`
#[derive(Debug, Args)]
pub struct NameArgs {
    /// The context
    pub name: String,
}

/// `windrow ctx add`
#[derive(Debug, Args)]
pub struct AddArgs {
    /// What it is called
    pub name: String,
    /// The node's address
    #[arg(long, value_name = "URL")]
    pub server: String,
    /// The file with the token; it is read when the context is used
    #[arg(long, value_name = "FILE", conflicts_with = "token_stdin")]
    pub token_file: Option<PathBuf>,
    /// Read the token from standard input and keep it with the context; on the command line others would see it
    #[arg(long)]
    pub token_stdin: bool,
    /// Authorities to trust instead of the system's, as PEM
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Make it the current one; the first one is anyway
    #[arg(long = "use")]
    pub make_current: bool,
}
