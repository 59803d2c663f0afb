//! Implementation of `windrow task list`.

use std::collections::{BTreeMap, BTreeSet};

use api::Task;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link};
use crate::output::body::joined;
use crate::shell::Shell;
use crate::task::args::ListArgs;
use crate::task::look::columns::TASKS;
use crate::task::words;
use windrow_client::Request;

/// Lists tasks with their nodes.
///
/// # Errors
/// Same as [`Link::send`].
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
    let mut tasks: Vec<Task> = listed.things()?;
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

/// Adds the nodes of running tasks. Leaves them out for a caller who may not see nodes.
async fn add_nodes(link: &Link<'_>, tasks: &mut [Task]) {
    if !tasks.iter().any(|task| task.status == "running") {
        return;
    }
    let Ok(answer) = link.get("/v1/nodes").await else {
        return;
    };
    let Ok(nodes) = answer.read::<api::Page<api::Node>>() else {
        return;
    };
    let mut of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for node in &nodes.items {
        for run in &node.runs {
            of.entry(&run.task).or_default().insert(&node.id);
        }
    }
    for task in tasks {
        let nodes = of.get(task.id.as_str());
        task.beside.nodes = nodes.map(|nodes| nodes.iter().copied().collect::<Vec<_>>().join(" "));
    }
}

/// Returns the reason why a task waits, unless it waits for its start time; or the problem with its handler.
fn waiting(task: &Task) -> Option<String> {
    let id = &task.id;
    if let Some(nodes) = joined(&words::silent(task), ", ") {
        return Some(format!(
            "{id}: rate unknown because {nodes} can't be reached: windrow task explain {id}"
        ));
    }
    let stuck = ["queued", "awaiting_business", "recovering", "running"];
    let is_stuck = stuck.contains(&task.status.as_str()) && task.status_reason.as_deref() != Some("start_at");
    let said = task.status_text.as_deref().filter(|_| is_stuck)?;
    Some(format!("{id}: {said}"))
}
