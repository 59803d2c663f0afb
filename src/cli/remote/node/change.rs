//! `windrow node drain`, `undrain` and `set`.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::list::{NODES, card};
use super::{DrainArgs, SetArgs, path};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::change::Difference;
use crate::link::{Link, NamedWrite};
use crate::output::body::{list, text};
use crate::output::screen;
use crate::output::shell_word;
use crate::shell::Shell;
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
    let link = Link::open(&args.write.remote, shell)?;
    let request = Request::post(&format!("{}/drain", path(&args.node)));
    let Some(mut answer) = link.change(&args.write, request, Map::new()).await? else {
        return Ok(Exit::Ok);
    };
    let is_for_people = link.look.form.is_for_people();
    let has_heir = others_take(&link, &args.node).await?;
    if args.wait {
        if is_for_people && runs_on(&answer.json()?) > 0 {
            screen::put(&drained(&args.node, &answer.json()?, has_heir))?;
        }
        while is_busy(&answer.json()?) {
            tokio::time::sleep(LOOK_EVERY).await;
            answer = link.get(&path(&args.node)).await?;
        }
    }
    if !is_for_people {
        return link.show_one(&NODES, &answer, card);
    }
    link.hint(&format!(
        "windrow node undrain {} lets it take tasks again",
        shell_word(&args.node)
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
    let mut others = list(&nodes["items"]).iter().filter(|node| node["id"] != name);
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
    list(&node["runs"]).len()
}

fn drained(name: &str, node: &Value, has_heir: bool) -> String {
    let state = text(&node["state"]);
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
pub(super) async fn undrain(args: &NamedWrite, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let request = Request::post(&format!("{}/undrain", path(&args.name)));
    let Some(mut answer) = link.change(&args.write, request, Map::new()).await? else {
        return Ok(Exit::Ok);
    };
    // It hears of it with its next heartbeat; nothing can be moved to it before.
    for _ in 0..LOOKS_MAX {
        if !is_drained(&answer.json()?) {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        answer = link.get(&path(&args.name)).await?;
    }
    let state = answer.json()?;
    let done = format!("{}: {}", args.name, text(&state["state"]));
    link.show_done(&NODES, &answer, &done)
}

/// Changes a node until its next restart.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let mut patch = Map::new();
    if let Some(rate) = args.capacity {
        patch.insert("capacity_rate".to_owned(), json!(rate.to_string()));
    }
    if let Some(filter) = &args.log_filter {
        patch.insert("log_filter".to_owned(), json!(filter));
    }
    let names: Vec<String> = patch.keys().cloned().collect();
    let Some((before, answer)) = link.patch(&args.write, &path(&args.node), patch).await? else {
        return Ok(Exit::Ok);
    };
    let after = answer.json()?;
    let mut done = format!("{}, until its next restart", args.node);
    for name in names {
        let (from, to) = (before[&name].clone(), after[&name].clone());
        let member = name;
        done += &format!("\n  {}", Difference { member, from, to }.line());
    }
    link.show_done(&NODES, &answer, &done)
}
