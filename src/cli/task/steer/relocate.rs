//! Implementation of `windrow task move`.

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::body::joined;
use crate::shell::Shell;
use crate::task::args::steer::MoveArgs;
use crate::task::make::draft::Draft;
use crate::task::steer::{post, tell};
use crate::task::wait::until::{self, TaskAnswer};
use crate::task::which::{Became, each};
use windrow_client::{Answer, Request, segment};

/// Moves a task to another node.
///
/// # Errors
/// Same as [`Draft::send`].
pub(crate) async fn relocate(args: &MoveArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let to = args
        .to
        .as_ref()
        .or(args.node.as_ref())
        .cloned()
        .unwrap_or_default();
    let ids = [link.task(&args.task).await?];
    warn_of(&to, &link).await;
    let mut draft = Draft::default();
    draft.put("to", &to)?;
    draft.put_option("shard", args.shard)?;
    let send = async |id: &str| draft.send(&link, &args.write, post(id, "move"), id).await;
    let became = async |id: &str, answer: Answer| {
        let part = args.shard.map(|shard| format!(".{shard}")).unwrap_or_default();
        let line = format!("{id}{part}  moves to {to}: calls in flight end first, and none is repeated");
        if !args.wait {
            return Ok(Became::well(line, answer));
        }
        tell(&link, &line)?;
        let part = args.shard.map(|shard| format!("{id}.{shard}"));
        let part = part.as_deref();
        let is_there = |task: &api::Task| nodes_of(task, part) == [to.as_str()] || !goes_on(task, part);
        let TaskAnswer { answer, task } = until::until(&link, id, is_there).await?;
        let what = part.unwrap_or(id);
        let line = match joined(&nodes_of(&task, part), ", ") {
            None => format!("{what}  {}", task.status),
            Some(nodes) => format!("{what}  runs on {nodes}"),
        };
        Ok(Became::well(line, answer))
    };
    each(&link, &ids, send, became).await
}

/// Warns of a node that can't be reached, for instance because it has another key. An unknown node is refused later.
async fn warn_of(node: &str, link: &Link<'_>) {
    let request = Request::get(&format!("/v1/nodes/{}", segment(node)));
    let found = link.send(request).await.ok();
    let found = found.and_then(|found| found.read::<api::Node>().ok());
    if let Some(why) = found.and_then(|found| found.live.why) {
        link.must_say(&format!(
            "warning: {node} is unreachable: {why}; if it can't run the task, another node takes it \
                back"
        ));
    }
}

/// Returns the nodes that run a task, or the one that has this shard.
fn nodes_of(task: &api::Task, part: Option<&str>) -> Vec<String> {
    match part {
        None => task.live.clone().unwrap_or_default().nodes,
        Some(part) => shard(task, part)
            .and_then(|shard| shard.node.clone())
            .into_iter()
            .collect(),
    }
}

/// True if the task, or this shard of it, may still run somewhere.
fn goes_on(task: &api::Task, part: Option<&str>) -> bool {
    let is_open = ["running", "queued", "recovering"].contains(&task.status.as_str());
    is_open
        && part
            .and_then(|part| shard(task, part))
            .is_none_or(|shard| shard.state != "done")
}

fn shard<'a>(task: &'a api::Task, part: &str) -> Option<&'a api::TaskShard> {
    task.shard_list.iter().find(|shard| shard.shard == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_where_its_own_line_says_whatever_else_the_node_runs() {
        let shard = |shard: &str, state: &str, node: Option<&str>| api::TaskShard {
            shard: shard.to_owned(),
            state: state.to_owned(),
            node: node.map(str::to_owned),
            ..Default::default()
        };
        let task = api::Task {
            status: "running".to_owned(),
            live: Some(api::TaskLive {
                nodes: vec!["n1".to_owned(), "n3".to_owned()],
                ..Default::default()
            }),
            shard_list: vec![
                shard("t1.0", "running", Some("n1")),
                shard("t1.1", "done", None),
                shard("t1.2", "running", Some("n3")),
            ],
            ..Default::default()
        };
        assert_eq!(nodes_of(&task, Some("t1.2")), ["n3"], "n1 runs another part");
        assert_eq!(nodes_of(&task, None), ["n1", "n3"]);
        assert!(goes_on(&task, Some("t1.2")) && goes_on(&task, None));
        assert!(!goes_on(&task, Some("t1.1")), "it is done and goes nowhere");
    }
}
