//! `windrow task skip`.

use serde_json::Value;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::body::{number, text};
use crate::output::table::human;
use crate::shell::Shell;
use crate::task::args::steer::SkipArgs;
use crate::task::make::draft::Draft;
use crate::task::steer::{post, standing};
use crate::task::which::{Became, each};
use windrow_client::Answer;

/// Skips items of a task.
///
/// # Errors
/// What the node refused.
pub(in crate::task) async fn skip(args: &SkipArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let ids = [link.task(&args.task).await?];
    let mut draft = Draft::default();
    draft.put("indexes", &args.indexes)?;
    let send = async |id: &str| draft.send(&link, &args.write, post(id, "skips"), id).await;
    let became = async |_: &str, answer: Answer| Ok(Became::well(skipped(&answer.json()?), answer));
    each(&link, &ids, send, became).await
}

/// How many, what stays as it is, and when.
fn skipped(task: &Value) -> String {
    let skipping = &task["skipping"];
    let count = |name: &str| number(&skipping[name]);
    let mut parts = vec![format!("{} skipped", human::counted(count("skipped"), "item"))];
    let others = [
        ("already_settled", "settled already, as last saved"),
        ("excluded", "left out anyway"),
    ];
    let others = others.into_iter().filter(|(name, _)| count(name) > 0);
    parts.extend(others.map(|(name, what)| format!("{} {what}", human::count(count(name)))));
    let next = match task["status"].as_str() {
        Some("running" | "stopping") => "; what a call is out for succeeds or is skipped".to_owned(),
        Some("stopped" | "created") => {
            format!(", as soon as it runs: windrow task start {}", text(&task["id"]))
        }
        _ => ", as soon as it runs".to_owned(),
    };
    standing(task, &format!("{}{next}", parts.join(", ")))
}
