//! The contexts as people and scripts see them: with tokens masked.

use serde_json::{Value, json};

use super::args::{ListArgs, ShowArgs};
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::contexts::{Context, Contexts};
use crate::link::{Form, Look};
use crate::output::screen;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone};

/// Contexts.
const CONTEXTS: Listing = Listing {
    columns: &[
        Column::new("CURRENT", Side::Left, Keep::Rank(50), 7, |context, _| {
            let is_current = context["current"] == true;
            Cell::new(if is_current { "*" } else { "" })
                .plain(is_current.to_string())
                .tone(Tone::Good)
        }),
        Column::new("NAME", Side::Left, Keep::Always, 8, |context, _| {
            Cell::member(context, "name").tone(Tone::Strong)
        }),
        Column::new("SERVER", Side::Left, Keep::Always, 12, |context, _| {
            Cell::member(context, "server")
        }),
        Column::new("TOKEN", Side::Left, Keep::Rank(20), 5, |context, _| {
            Cell::member(context, "token")
        }),
        Column::new("CA FILE", Side::Left, Keep::Wide, 5, |context, _| {
            Cell::member(context, "ca_file")
        }),
    ],
    name: |context| context["name"].as_str().unwrap_or_default().to_owned(),
    none: "no contexts; `windrow ctx add NAME --server URL` makes one",
};

/// Lists contexts.
pub(super) fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let (contexts, look) = (Contexts::load(shell)?, Look::new(&args.view, shell));
    let all: Vec<Value> = contexts
        .all
        .iter()
        .map(|(name, context)| shown(&contexts, name, context))
        .collect();
    look.list(&CONTEXTS, &all, shell)
}

/// Shows one.
pub(super) fn show(args: &ShowArgs, shell: &Shell) -> Result<Exit, Fault> {
    let (contexts, look) = (Contexts::load(shell)?, Look::new(&args.view, shell));
    let Some(name) = args.name.as_ref().or(contexts.current.as_ref()) else {
        return Err(
            Fault::new(Exit::NotFound, "there is no such context", "none is current")
                .hint("windrow ctx list, then windrow ctx use NAME"),
        );
    };
    let context = shown(&contexts, name, contexts.get(name)?);
    let all = [context];
    let text = match look.form {
        Form::Json | Form::Ndjson => all[0].to_string(),
        Form::Name => CONTEXTS.names(&all),
        Form::Csv => CONTEXTS.csv(&all, &look.times(0)),
        Form::Table | Form::Wide => card(&all[0]).text(look.paper),
    };
    screen::put(&text).map(|()| Exit::Ok)
}

fn shown(contexts: &Contexts, name: &str, context: &Context) -> Value {
    let token = match (&context.token, &context.token_file) {
        (Some(_), _) => Some("kept here (masked)".to_owned()),
        (None, Some(file)) => Some(format!("in {}", file.display())),
        (None, None) => None,
    };
    json!({
        "name": name,
        "current": contexts.current.as_deref() == Some(name),
        "server": context.server,
        "token": token,
        "ca_file": context.ca_file,
    })
}

fn card(context: &Value) -> Card {
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    let current = if context["current"] == true {
        "(current)"
    } else {
        ""
    };
    Card::new()
        .title(text("name").unwrap_or_default(), Tone::Strong)
        .title(current, Tone::Dim)
        .line("server", text("server").unwrap_or_default())
        .line("token", text("token").unwrap_or_else(|| "none".to_owned()))
        .maybe("ca file", text("ca_file"))
}
