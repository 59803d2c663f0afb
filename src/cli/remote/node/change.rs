//! `windrow node drain`, `undrain` and `set`.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::args::{ChangeArgs, DrainArgs, SetArgs};
use super::list::NODES;
use super::path;
use super::show::card;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::change::Difference;
use crate::link::{Form, Link};
use crate::output::screen;
use windrow_client::Request;

/// Between two looks at a node that drains.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// So many for one that is wanted again: some heartbeats. One that is silent is shown as it is.
const LOOKS_MAX: u32 = 15;

/// Lets a node hand its tasks over and take none.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn drain(args: &DrainArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = args
        .write
        .request(Request::post(&format!("{}/drain", path(&args.node))), Map::new());
    let Some(mut answer) = link.change(&args.write, request).await? else {
        return Ok(Exit::Ok);
    };
    let is_table = matches!(link.look.form, Form::Table | Form::Wide);
    let has_heir = others_take(&link, &args.node).await?;
    if args.wait {
        if is_table && runs_on(&answer.json()?) > 0 {
            screen::put(&drained(&args.node, &answer.json()?, has_heir))?;
        }
        while is_busy(&answer.json()?) {
            tokio::time::sleep(LOOK_EVERY).await;
            answer = link.get(&path(&args.node)).await?;
        }
    }
    if !is_table {
        return link.show_one(&NODES, &answer, card);
    }
    link.hint(&format!(
        "windrow node undrain {} lets it take tasks again",
        args.node
    ));
    screen::put(&drained(&args.node, &answer.json()?, has_heir))?;
    if !has_heir {
        link.must_say("warning: no other node takes tasks; they wait until a node is undrained");
    }
    Ok(Exit::Ok)
}

/// Whether another node takes tasks. Which pools it serves isn't asked: a task that none serves says so itself.
async fn others_take(link: &Link<'_>, name: &str) -> Result<bool, Fault> {
    let nodes = link.get("/v1/nodes").await?.json()?;
    let mut others = nodes["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|node| node["id"] != name);
    Ok(others.any(|node| node["state"] == "serving" && node["run_tasks"] == true))
}

/// Whether something still runs there. A node that is silent or fenced runs nothing that anybody could wait for.
fn is_busy(node: &Value) -> bool {
    match node["state"].as_str() {
        Some("silent" | "fenced") => false,
        Some("drained") => runs_on(node) > 0,
        _ => true,
    }
}

fn runs_on(node: &Value) -> usize {
    node["runs"].as_array().map_or(0, Vec::len)
}

fn drained(name: &str, node: &Value, has_heir: bool) -> String {
    let state = node["state"].as_str().unwrap_or_default();
    let what = match (state, runs_on(node)) {
        ("silent" | "fenced", _) => "it gives no sign; others take over what it has".to_owned(),
        (_, 0) => "nothing runs on it".to_owned(),
        // A node with a database of its own hands nothing over, and is drained at once.
        ("drained", 1) => "1 run goes on to its end".to_owned(),
        ("drained", runs) => format!("{runs} runs go on to their end"),
        (_, 1) if has_heir => "1 run is handed over".to_owned(),
        (_, runs) if has_heir => format!("{runs} runs are handed over"),
        (_, 1) => "1 run stops, and waits".to_owned(),
        (_, runs) => format!("{runs} runs stop, and wait"),
    };
    format!("{name}: {state}; {what}")
}

fn is_drained(node: &Value) -> bool {
    matches!(node["state"].as_str(), Some("drained" | "draining"))
}

/// Lets a node take tasks again.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn undrain(args: &ChangeArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = args.write.request(
        Request::post(&format!("{}/undrain", path(&args.node))),
        Map::new(),
    );
    let Some(mut answer) = link.change(&args.write, request).await? else {
        return Ok(Exit::Ok);
    };
    // It hears of it with its next heartbeat; nothing can be moved to it before.
    for _ in 0..LOOKS_MAX {
        if !is_drained(&answer.json()?) {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        answer = link.get(&path(&args.node)).await?;
    }
    if !matches!(link.look.form, Form::Table | Form::Wide) {
        return link.show_one(&NODES, &answer, card);
    }
    let state = answer.json()?["state"].as_str().unwrap_or_default().to_owned();
    screen::put(&format!("{}: {state}", args.node)).map(|()| Exit::Ok)
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
    let Some(answer) = link.change(&args.write, request).await? else {
        return Ok(Exit::Ok);
    };
    if !matches!(link.look.form, Form::Table | Form::Wide) {
        return link.show_one(&NODES, &answer, card);
    }
    let after = answer.json()?;
    let of = |node: &Value, name: &String| node[name].clone();
    let lines = names.iter().map(|name| {
        let one = Difference {
            member: name.clone(),
            from: of(&before, name),
            to: of(&after, name),
        };
        format!("  {}\n", one.line())
    });
    let text = format!(
        "{}, until its next restart\n{}",
        args.node,
        lines.collect::<String>()
    );
    screen::put(&text).map(|()| Exit::Ok)
}
