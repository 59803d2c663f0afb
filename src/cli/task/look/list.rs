//! `windrow task list`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link};
use crate::task::args::ListArgs;
use crate::task::look::columns::TASKS;
use windrow_client::Request;

/// Lists tasks.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let parent = match &args.parent {
        Some(parent) => Some(link.task(parent).await?),
        None => None,
    };
    let request = Request::get("/v1/tasks")
        .query_option("business", args.business.as_deref())
        .query_option("status", args.status.as_deref())
        .query_option("label", args.label.as_deref())
        .query_option("q", args.search.as_deref())
        .query_option("parent", parent)
        .query_option("sort", args.oldest.then_some("id"));
    let listed = link.list(request, Some(&args.paging)).await?;
    let mut tasks = listed.things()?;
    if tasks.is_empty() {
        link.is_business(args.business.as_deref()).await?;
    }
    if matches!(link.look.form, Form::Table | Form::Wide | Form::Csv) {
        add_nodes(&link, &mut tasks).await;
    }
    let exit = link.show_list(&TASKS, &listed, &tasks)?;
    if let Some(hint) = tasks.iter().find_map(waiting) {
        link.hint(&link.look.style.within(&hint));
    }
    Ok(exit)
}

/// Adds `node` to tasks that run. A caller who may not see nodes sees none.
async fn add_nodes(link: &Link<'_>, tasks: &mut [Value]) {
    if !tasks.iter().any(|task| task["status"] == "running") {
        return;
    }
    let Ok(answer) = link.get("/v1/nodes").await else {
        return;
    };
    let Ok(nodes) = answer.json() else { return };
    let mut of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for node in nodes["items"].as_array().into_iter().flatten() {
        for run in node["runs"].as_array().into_iter().flatten() {
            if let (Some(task), Some(node)) = (run["task"].as_str(), node["id"].as_str()) {
                of.entry(task).or_default().insert(node);
            }
        }
    }
    for task in tasks {
        let node = task["id"]
            .as_str()
            .and_then(|id| of.get(id))
            .map(|nodes| json!(joined(nodes)));
        if let (Some(node), Some(members)) = (node, task.as_object_mut()) {
            members.insert("node".to_owned(), node);
        }
    }
}

/// `n1 n2`.
fn joined(nodes: &BTreeSet<&str>) -> String {
    nodes.iter().copied().collect::<Vec<_>>().join(" ")
}

/// Why a task waits, if it isn't its own turn that it waits for; or what goes wrong with its handler.
fn waiting(task: &Value) -> Option<String> {
    let stuck = ["queued", "awaiting_business", "recovering", "running"];
    let is_stuck = task["status"]
        .as_str()
        .is_some_and(|status| stuck.contains(&status));
    let text = task["status_text"]
        .as_str()
        .filter(|_| is_stuck && task["status_reason"] != "start_at")?;
    Some(format!("{}: {text}", task["id"].as_str().unwrap_or_default()))
}
