//! Implementation of `windrow node drain`, `undrain` and `set`.

use std::time::Duration;

use api::{Node, Page};
use serde_json::{Map, json};

use super::list::{NODES, card};
use super::{DrainArgs, SetArgs, path};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, NamedWrite};
use crate::output::difference::Difference;
use crate::output::screen;
use crate::output::shell_word;
use crate::shell::Shell;
use windrow_client::Request;

/// Interval between two checks of a draining node.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Largest number of checks after an undrain, which spans some heartbeats. A node that stays silent is shown as it
/// is.
const LOOKS_MAX: u32 = 15;

/// Drains a node: moves its tasks away, accepts no new ones.
///
/// # Errors
/// Same as [`Link::send`].
pub(super) async fn drain(args: &DrainArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let request = Request::post(&format!("{}/drain", path(&args.node)));
    let Some(mut answer) = link.change(&args.write, request, Map::new()).await? else {
        return Ok(Exit::Ok);
    };
    let is_for_people = link.look.form.is_for_people();
    let has_heir = others_take(&link, &args.node).await?;
    if args.wait {
        let node: Node = answer.read()?;
        if is_for_people && !node.runs.is_empty() {
            screen::put(&drained(&args.node, &node, has_heir))?;
        }
        while is_busy(&answer.read()?) {
            tokio::time::sleep(LOOK_EVERY).await;
            answer = link.get(&path(&args.node)).await?;
        }
    }
    if !is_for_people {
        return link.show_one(&NODES, &answer, card);
    }
    link.hint(&format!(
        "windrow node undrain {} makes it accept tasks again",
        shell_word(&args.node)
    ));
    screen::put(&drained(&args.node, &answer.read()?, has_heir))?;
    if !has_heir {
        link.must_say("warning: no other node accepts tasks; they wait until a node is undrained");
    }
    Ok(Exit::Ok)
}

/// True if another node accepts tasks. Pools are ignored: a task that no node serves reports that itself.
async fn others_take(link: &Link<'_>, name: &str) -> Result<bool, Fault> {
    let nodes: Page<Node> = link.get("/v1/nodes").await?.read()?;
    let mut others = nodes.items.iter().filter(|node| node.id != name);
    Ok(others.any(Node::takes_tasks))
}

/// True if tasks are still running on the node. A silent or fenced node runs nothing worth waiting for.
fn is_busy(node: &Node) -> bool {
    match node.state.as_str() {
        "silent" | "fenced" => false,
        "drained" => !node.runs.is_empty(),
        _ => true,
    }
}

fn drained(name: &str, node: &Node, has_heir: bool) -> String {
    let state = node.state.as_str();
    let what = match (state, node.runs.len()) {
        ("silent" | "fenced", _) => "not responding; other nodes take over its runs".to_owned(),
        (_, 0) => "no runs".to_owned(),
        // A node with its own database hands nothing over and counts as drained at once.
        ("drained", 1) => "1 run continues to its end".to_owned(),
        ("drained", runs) => format!("{runs} runs continue to their end"),
        (_, 1) if has_heir => "1 run is handed over".to_owned(),
        (_, runs) if has_heir => format!("{runs} runs are handed over"),
        (_, 1) => "1 run stops and waits".to_owned(),
        (_, runs) => format!("{runs} runs stop and wait"),
    };
    format!("{name}: {state}; {what}")
}

/// Makes a node accept tasks again.
///
/// # Errors
/// Same as [`Link::send`].
pub(super) async fn undrain(args: &NamedWrite, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let request = Request::post(&format!("{}/undrain", path(&args.name)));
    let Some(mut answer) = link.change(&args.write, request, Map::new()).await? else {
        return Ok(Exit::Ok);
    };
    // The node learns of it with its next heartbeat, and no task can move there earlier.
    for _ in 0..LOOKS_MAX {
        let node: Node = answer.read()?;
        if !matches!(node.state.as_str(), "drained" | "draining") {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        answer = link.get(&path(&args.name)).await?;
    }
    let node: Node = answer.read()?;
    let done = format!("{}: {}", args.name, node.state);
    link.show_done(&NODES, &answer, &done)
}

/// Changes the settings of a node until its next restart.
///
/// # Errors
/// Same as [`Link::send`].
pub(super) async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let mut patch = Map::new();
    if let Some(rate) = args.capacity {
        patch.insert("capacity_rate".to_owned(), json!(rate.to_string()));
    }
    if let Some(filter) = &args.log_filter {
        patch.insert("log_filter".to_owned(), json!(filter));
    }
    let Some((before, answer)) = link.patch(&args.write, &path(&args.node), patch).await? else {
        return Ok(Exit::Ok);
    };
    let (before, after): (Option<Node>, Node) = (serde_json::from_value(before).ok(), answer.read()?);
    let mut done = format!("{} until its next restart", args.node);
    let mut tell = |member: &str, of: fn(&Node) -> Option<&str>| {
        let difference = Difference {
            member: member.to_owned(),
            from: json!(before.as_ref().and_then(of)),
            to: json!(of(&after)),
        };
        done += &format!("\n  {}", difference.line());
    };
    if args.capacity.is_some() {
        tell("capacity_rate", |node| Some(&node.capacity_rate));
    }
    if args.log_filter.is_some() {
        tell("log_filter", |node| node.log_filter.as_deref());
    }
    link.show_done(&NODES, &answer, &done)
}
