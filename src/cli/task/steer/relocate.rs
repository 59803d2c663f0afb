//! `windrow task move`.

use serde_json::Value;

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::body::{joined, text, texts};
use crate::task::args::steer::MoveArgs;
use crate::task::make::draft::Draft;
use crate::task::steer::{post, tell};
use crate::task::wait::until::{self, TaskAnswer};
use crate::task::which::{Became, each};
use windrow_client::Answer;

/// Moves a task to another node.
///
/// # Errors
/// What the node refused.
pub(crate) async fn relocate(args: &MoveArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
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
    let send = async |id: &str| draft.send(&link, &args.write, post(id, "move"), id).await;
    let became = async |id: &str, answer: Answer| {
        let part = args.shard.map(|shard| format!(".{shard}")).unwrap_or_default();
        let line = format!("{id}{part}  moves to {to}: calls in flight end first, and nothing is done twice");
        if !args.wait {
            return Ok(Became::well(line, answer));
        }
        tell(&link, &line)?;
        // A part alone can't be told from the others; that the node has some of it can.
        let is_there = |task: &Value| {
            let nodes = texts(&task["live"]["nodes"]);
            let runs = nodes.contains(&to.as_str()) && (args.shard.is_some() || nodes.len() == 1);
            runs || !["running", "queued", "recovering"].contains(&text(&task["status"]))
        };
        let TaskAnswer { answer, task } = until::until(&link, id, is_there).await?;
        let line = match joined(&texts(&task["live"]["nodes"]), ", ") {
            None => format!("{id}  {}", text(&task["status"])),
            Some(nodes) => format!("{id}  runs on {nodes}"),
        };
        Ok(Became::well(line, answer))
    };
    each(&link, &ids, send, became).await
}
