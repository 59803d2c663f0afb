//! Implementation of `windrow ctx`, for saved addresses and tokens. This module never connects to a node.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::contexts::{Context, Contexts};
use crate::link::reach::one_token;
use crate::link::{Form, Look, View};
use crate::output::screen;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone};
use crate::shell::Shell;
use windrow_client::{Client, EnvironmentProxies, Options, Tap};
use windrow_core::text::{names, quoted};

/// Arguments of `windrow ctx`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CtxArgs {
    /// Verb to execute; without one the contexts are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the list, without a verb.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Verbs of `windrow ctx`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List all contexts and mark the current one
    List(ListArgs),
    /// Show a context, or the current one; tokens are masked
    Show(ShowArgs),
    /// Make a context the current one
    Use(NameArgs),
    /// Add a context or replace it
    Add(AddArgs),
    /// Remove a context by its name
    Remove(NameArgs),
}

/// Arguments of `windrow ctx list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Flags for the output format.
    #[command(flatten)]
    pub view: View,
}

/// Arguments of `windrow ctx show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Context to show; defaults to the current one
    pub name: Option<String>,
    /// Flags for the output format.
    #[command(flatten)]
    pub view: View,
}

/// Arguments of `windrow ctx use` and `windrow ctx remove`.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// Name of the context
    pub name: String,
}

/// Arguments of `windrow ctx add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// Name for the context
    pub name: String,
    /// Address of the node
    #[arg(long, value_name = "URL")]
    pub server: String,
    /// File with the token; it is read when the context is used
    #[arg(long, value_name = "FILE", conflicts_with = "token_stdin")]
    pub token_file: Option<PathBuf>,
    /// Read the token from standard input and store it in the context; on the command line others could see it
    #[arg(long)]
    pub token_stdin: bool,
    /// PEM file of authorities to trust, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Make this the current context; the first one always is
    #[arg(long = "use")]
    pub make_current: bool,
}

/// Context without its token, for people and scripts.
#[derive(Serialize)]
struct Masked {
    name: String,
    current: bool,
    server: String,
    token: Option<String>,
    ca_file: Option<PathBuf>,
}

/// Listing of contexts with masked tokens.
const CONTEXTS: Listing<Masked> = Listing {
    columns: &[
        Column::new("CURRENT", Side::Left, Keep::Rank(50), 7, |context, _| {
            let cell = Cell::new(if context.current { "*" } else { "" });
            cell.plain(context.current.to_string()).tone(Tone::Good)
        }),
        Column::text("NAME", Keep::Always, 8, |context: &Masked| &context.name).tone(Tone::Strong),
        Column::text("SERVER", Keep::Always, 12, |context| &context.server),
        Column::maybe("TOKEN", Keep::Rank(20), 5, |context| context.token.as_deref()),
        Column::maybe("CA FILE", Keep::Wide, 5, |context| {
            context.ca_file.as_ref()?.to_str()
        }),
    ],
    name: |context| context.name.clone(),
    none: "no contexts; `windrow ctx add NAME --server URL` adds one",
};

/// Executes the verb; lists the contexts without one.
///
/// # Errors
/// Same as the verb.
pub(crate) fn ctx(args: &CtxArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list(&args.list, shell),
        Some(Verb::List(args)) => list(args, shell),
        Some(Verb::Show(args)) => show(args, shell),
        Some(Verb::Use(args)) => use_(&args.name, shell),
        Some(Verb::Add(args)) => add(args, shell),
        Some(Verb::Remove(args)) => remove(&args.name, shell),
    }
}

fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let (contexts, look) = (Contexts::load(shell)?, Look::new(&args.view, shell));
    let all = contexts.all.iter();
    let all: Vec<Masked> = all
        .map(|(name, context)| masked(&contexts, name, context))
        .collect();
    look.list(&CONTEXTS, &all, shell)
}

fn show(args: &ShowArgs, shell: &Shell) -> Result<Exit, Fault> {
    let (contexts, look) = (Contexts::load(shell)?, Look::new(&args.view, shell));
    let Some(name) = args.name.as_ref().or(contexts.current.as_ref()) else {
        let fault = Fault::new(Exit::NotFound, "no such context", "no context is current");
        return Err(fault.hint("windrow ctx list, then windrow ctx use NAME"));
    };
    let context = masked(&contexts, name, contexts.get(name)?);
    let text = match look.form {
        Form::Json | Form::Ndjson => json!(context).to_string(),
        Form::Name => CONTEXTS.names(&[context]),
        Form::Csv => CONTEXTS.csv(&[context], &look.times(0), look.guard.into()),
        Form::Table | Form::Wide => card(&context).text(look.paper),
    };
    screen::put(&text).map(|()| Exit::Ok)
}

fn masked(contexts: &Contexts, name: &str, context: &Context) -> Masked {
    let token = match (&context.token, &context.token_file) {
        (Some(_), _) => Some("saved here (masked)".to_owned()),
        (None, Some(file)) => Some(format!("in {}", file.display())),
        (None, None) => None,
    };
    Masked {
        name: name.to_owned(),
        current: contexts.current.as_deref() == Some(name),
        server: context.server.clone(),
        token,
        ca_file: context.ca_file.clone(),
    }
}

fn card(context: &Masked) -> Card {
    Card::new()
        .title(&context.name, Tone::Strong)
        .title(if context.current { "(current)" } else { "" }, Tone::Dim)
        .line("server", &context.server)
        .line("token", context.token.as_deref().unwrap_or("none"))
        .maybe("ca file", context.ca_file.as_deref().and_then(Path::to_str))
}

/// Makes a context the current one.
fn use_(name: &str, shell: &Shell) -> Result<Exit, Fault> {
    let mut contexts = Contexts::load(shell)?;
    let server = contexts.get(name)?.server.clone();
    contexts.current = Some(name.to_owned());
    contexts.save(shell)?;
    shell.screen.say(&format!("{name} is now current: {server}"));
    Ok(Exit::Ok)
}

/// Adds a context or replaces it.
fn add(args: &AddArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut contexts = Contexts::load(shell)?;
    let fault = names::fault(&args.name).or_else(|| args.name.is_empty().then(|| "is empty".to_owned()));
    if let Some(why) = fault {
        let because = format!("{} {why}", quoted(&args.name));
        return Err(Fault::new(Exit::Usage, "invalid context name", because).hint("use a name such as prod"));
    }
    let context = Context {
        server: args.server.clone(),
        token_file: args.token_file.as_deref().map(absolute).transpose()?,
        token: args.token_stdin.then(read_token).transpose()?,
        ca_file: args.ca_file.as_deref().map(absolute).transpose()?,
    };
    check(&context)?;
    let missing = context.token_file.clone().filter(|file| !file.exists());
    contexts.all.insert(args.name.clone(), context);
    let is_current = args.make_current || contexts.current.is_none();
    if is_current {
        contexts.current = Some(args.name.clone());
    }
    let path = contexts.save(shell)?;
    let current = if is_current { "; it is now current" } else { "" };
    let screen = &shell.screen;
    screen.say(&format!("{} saved in {}{current}", args.name, path.display()));
    if let Some(file) = missing {
        screen.must_say(&format!(
            "warning: {} doesn't exist; it is read whenever the context is used",
            file.display()
        ));
    }
    Ok(Exit::Ok)
}

/// Removes a context, which may be the current one.
fn remove(name: &str, shell: &Shell) -> Result<Exit, Fault> {
    let mut contexts = Contexts::load(shell)?;
    contexts.get(name)?;
    contexts.all.remove(name);
    let was_current = contexts.current.take_if(|current| current == name).is_some();
    contexts.save(shell)?;
    let current = if was_current {
        "; no context is current now"
    } else {
        ""
    };
    shell.screen.say(&format!("{name} removed{current}"));
    Ok(Exit::Ok)
}

/// Checks address, token and file now rather than at first use.
fn check(context: &Context) -> Result<(), Fault> {
    let options = Options {
        server: context.server.clone(),
        token: context.token.clone(),
        timeout: std::time::Duration::from_secs(1),
        ca_file: context.ca_file.clone(),
        proxies: EnvironmentProxies::default(),
        tap: Tap::none(),
    };
    Client::new(options).map(|_| ()).map_err(Fault::from)
}

/// Makes a path absolute, since a context is used from any directory.
fn absolute(path: &Path) -> Result<PathBuf, Fault> {
    std::path::absolute(path).map_err(|error| {
        let because = format!("{}: {error}", path.display());
        Fault::new(Exit::Failed, "can't make the path absolute", because).hint("use an absolute path")
    })
}

fn read_token() -> Result<String, Fault> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    let read = read.map_err(|error| error.to_string());
    read.and_then(|_| one_token(&text)).map_err(|because| {
        Fault::new(Exit::Usage, "no token on standard input", because)
            .hint("windrow ctx add NAME --server URL --token-stdin < FILE")
    })
}
