//! Changes of the contexts.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::args::AddArgs;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::contexts::{Context, Contexts};
use windrow_client::{Client, Options, Tap};

/// Makes a context the current one.
pub(super) fn use_(name: &str, shell: &Shell) -> Result<Exit, Fault> {
    let mut contexts = Contexts::load(shell)?;
    let server = contexts.get(name)?.server.clone();
    contexts.current = Some(name.to_owned());
    contexts.save(shell)?;
    shell.screen.say(&format!("{name} is current: {server}"));
    Ok(Exit::Ok)
}

/// Adds a context, or replaces it.
pub(super) fn add(args: &AddArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut contexts = Contexts::load(shell)?;
    if args.name.is_empty() || args.name.chars().any(char::is_control) {
        return Err(Fault::new(
            Exit::Usage,
            "a context can't be called that",
            format!("it was {:?}", args.name),
        )
        .hint("a name such as prod"));
    }
    let token = if args.token_stdin {
        Some(read_token()?)
    } else {
        None
    };
    let context = Context {
        server: args.server.clone(),
        token_file: args.token_file.as_deref().map(absolute).transpose()?,
        token,
        ca_file: args.ca_file.as_deref().map(absolute).transpose()?,
    };
    check(&context)?;
    contexts.all.insert(args.name.clone(), context);
    let is_current = args.make_current || contexts.current.is_none();
    if is_current {
        contexts.current = Some(args.name.clone());
    }
    let path = contexts.save(shell)?;
    let current = if is_current { "; it is current" } else { "" };
    shell
        .screen
        .say(&format!("{} is in {}{current}", args.name, path.display()));
    if let Some(file) = contexts.all[&args.name]
        .token_file
        .as_ref()
        .filter(|file| !file.exists())
    {
        shell.screen.must_say(&format!(
            "warning: {} isn't there; it is read whenever the context is used",
            file.display()
        ));
    }
    Ok(Exit::Ok)
}

/// Removes a context.
pub(super) fn remove(name: &str, shell: &Shell) -> Result<Exit, Fault> {
    let mut contexts = Contexts::load(shell)?;
    contexts.get(name)?;
    contexts.all.remove(name);
    let was_current = contexts.current.as_deref() == Some(name);
    if was_current {
        contexts.current = None;
    }
    contexts.save(shell)?;
    let current = if was_current {
        "; no context is current now"
    } else {
        ""
    };
    shell.screen.say(&format!("{name} is removed{current}"));
    Ok(Exit::Ok)
}

/// What is wrong with an address, a token or a file is told now, not when it is used.
fn check(context: &Context) -> Result<(), Fault> {
    let options = Options {
        server: context.server.clone(),
        token: context.token.clone(),
        timeout: std::time::Duration::from_secs(1),
        ca_file: context.ca_file.clone(),
        tap: Tap::none(),
    };
    Client::new(options).map(|_| ()).map_err(Fault::from)
}

/// A context is used from any directory.
fn absolute(path: &Path) -> Result<PathBuf, Fault> {
    std::path::absolute(path).map_err(|error| {
        Fault::new(
            Exit::Failed,
            "the path can't be kept",
            format!("{}: {error}", path.display()),
        )
        .hint("an absolute path")
    })
}

fn read_token() -> Result<String, Fault> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    let unusable = |because: String| {
        Fault::new(Exit::Usage, "there is no token on standard input", because)
            .hint("windrow ctx add NAME --server URL --token-stdin < FILE")
    };
    read.map_err(|error| unusable(error.to_string()))?;
    match text.trim() {
        "" => Err(unusable("it was empty".to_owned())),
        token if token.contains(char::is_whitespace) => Err(unusable("it held more than a token".to_owned())),
        token => Ok(token.to_owned()),
    }
}
