//! `windrow node drain`, `undrain` and `set`.

use serde_json::{Map, Value, json};

use super::args::{ChangeArgs, SetArgs};
use super::list::NODES;
use super::path;
use super::show::card;
use crate::cli::exit::Exit;
use crate::cli::fault::Fault;
use crate::cli::remote::change::Difference;
use crate::cli::remote::{Form, Link};
use crate::cli::{Shell, screen};
use crate::client::Request;

/// Lets a node take no new tasks, or take tasks again.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn drain(args: &ChangeArgs, shell: &Shell, verb: &str) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = args.write.request(Request::post(&format!("{}/{verb}", path(&args.node))), Map::new());
    let Some(answer) = link.change(&args.write, request).await? else { return Ok(Exit::Ok) };
    if !matches!(link.look.form, Form::Table | Form::Wide) {
        return link.show_one(&NODES, &answer, card);
    }
    let node = answer.json()?;
    let runs = node["runs"].as_array().map_or(0, Vec::len);
    let state = node["state"].as_str().unwrap_or_default();
    let text = match (verb, runs) {
        ("undrain", _) => format!("{}: {state}", args.node),
        (_, 0) => format!("{}: {state}; nothing runs on it", args.node),
        (_, 1) => format!("{}: {state}; 1 run goes on to its end", args.node),
        (_, runs) => format!("{}: {state}; {runs} runs go on to their end", args.node),
    };
    if verb == "drain" {
        link.hint(&format!("windrow node undrain {} lets it take tasks again", args.node));
    }
    screen::put(&text).map(|()| Exit::Ok)
}

/// Changes a node until its next restart.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let before = link.get(&path(&args.node)).await?.json()?;
    let mut patch = Map::new();
    if let Some(rate) = args.capacity {
        patch.insert("capacity_rate".to_owned(), json!(rate.to_string()));
    }
    if let Some(filter) = &args.log_filter {
        patch.insert("log_filter".to_owned(), json!(filter));
    }
    let names: Vec<String> = patch.keys().cloned().collect();
    let request = args.write.request(Request::patch(&path(&args.node)), patch);
    let Some(answer) = link.change(&args.write, request).await? else { return Ok(Exit::Ok) };
    if !matches!(link.look.form, Form::Table | Form::Wide) {
        return link.show_one(&NODES, &answer, card);
    }
    let after = answer.json()?;
    let of = |node: &Value, name: &String| node[name].clone();
    let lines = names.iter().map(|name| {
        let one = Difference { member: name.clone(), from: of(&before, name), to: of(&after, name) };
        format!("  {}\n", one.line())
    });
    let text = format!("{}, until its next restart\n{}", args.node, lines.collect::<String>());
    screen::put(&text).map(|()| Exit::Ok)
}
