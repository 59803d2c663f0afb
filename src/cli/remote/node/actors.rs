//! Implementation of `windrow node actors`: the actor tree of a node, once or repeatedly.

use console::Term;

use super::{ActorsArgs, named, path};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link};
use crate::output::screen;
use crate::shell::Shell;
use windrow_client::Request;

/// Prints the tree.
///
/// # Errors
/// `Usage` for an output format that a tree doesn't have; otherwise same as [`Link::send`].
pub(super) async fn actors(args: &ActorsArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let (format, kind) = match link.look.form {
        Form::Table | Form::Wide => ("text", "text/plain"),
        Form::Json | Form::Ndjson => ("json", "application/json"),
        Form::Name | Form::Csv => {
            return Err(Fault::no_form("a tree isn't a list", "use -o table or -o json"));
        }
    };
    let name = named(&link, args.node.as_deref()).await?;
    let task = match &args.task {
        Some(task) => Some(link.task(task).await?),
        None => None,
    };
    let request = Request::get(&format!("{}/actors", path(&name)))
        .accept(kind)
        .query("format", format);
    let request = request
        .query_option("task", task)
        .query_option("depth", args.depth);
    let terminal = Term::stdout();
    loop {
        let text = link.send(request.clone()).await?.text();
        if text.is_empty() {
            link.say("no actors");
        }
        if !args.watch {
            return screen::put(&text).map(|()| Exit::Ok);
        }
        if terminal.is_term() {
            terminal.clear_screen().map_err(|error| {
                Fault::new(Exit::Failed, "can't clear the terminal", error.to_string()).hint("omit --watch")
            })?;
        }
        // Separate snapshots that aren't drawn over one another.
        let end = if terminal.is_term() || link.look.form == Form::Ndjson {
            "\n"
        } else {
            "\n\n"
        };
        let text = format!("{}{end}", text.trim_end_matches('\n'));
        if !screen::put_piece(text.as_bytes())? {
            return Ok(Exit::Ok);
        }
        tokio::time::sleep(args.every).await;
    }
}
