//! `windrow task move`.

use serde_json::Value;

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::task::args::steer::MoveArgs;
use crate::task::make::draft::{Draft, Operation};
use crate::task::steer::tell;
use crate::task::wait::until;
use crate::task::which::{Told, each};
use windrow_client::Answer;

/// Moves a task to another node.
///
/// # Errors
/// What the node refused.
pub(crate) async fn relocate(args: &MoveArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let to = args
        .to
        .as_ref()
        .or(args.node.as_ref())
        .cloned()
        .unwrap_or_default();
    let ids = [link.task(&args.task).await?];
    let mut draft = Draft::default();
    draft.put("to", &to)?;
    draft.put_option("shard", args.shard)?;
    let send = async |id: &str| draft.send(&link, &args.write, Operation::MOVE, id).await;
    let became = async |id: &str, answer: Answer| {
        let part = args.shard.map(|shard| format!(".{shard}")).unwrap_or_default();
        let line = format!("{id}{part}  moves to {to}: calls in flight end first, and nothing is done twice");
        if !args.wait {
            return Ok(Told::well(line, answer));
        }
        tell(&link, &line)?;
        // A part alone can't be told from the others; that the node has some of it can.
        let is_there = |task: &Value| {
            let nodes = task["live"]["nodes"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let runs =
                nodes.iter().any(|node| node == to.as_str()) && (args.shard.is_some() || nodes.len() == 1);
            runs || !["running", "queued", "recovering"]
                .contains(&task["status"].as_str().unwrap_or_default())
        };
        let seen = until::until(&link, id, is_there).await?;
        let nodes = seen.task["live"]["nodes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let nodes = nodes.collect::<Vec<_>>().join(", ");
        let line = match nodes.is_empty() {
            true => format!("{id}  {}", seen.task["status"].as_str().unwrap_or_default()),
            false => format!("{id}  runs on {nodes}"),
        };
        Ok(Told::well(line, seen.answer))
    };
    each(&link, &ids, send, became).await
}
