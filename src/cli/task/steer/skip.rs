//! Implementation of `windrow task skip`.

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
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
/// Same as [`Draft::send`].
pub(in crate::task) async fn skip(args: &SkipArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let ids = [link.task(&args.task).await?];
    let mut draft = Draft::default();
    draft.put("indexes", &args.indexes)?;
    let send = async |id: &str| draft.send(&link, &args.write, post(id, "skips"), id).await;
    let became = async |_: &str, answer: Answer| Ok(Became::well(skipped(&answer.read()?), answer));
    each(&link, &ids, send, became).await
}

/// Formats the number of skipped items, those that stay as they are, and the time at which it takes effect.
fn skipped(api::SkippingTask { task, skipping }: &api::SkippingTask) -> String {
    let mut parts = vec![format!("{} skipped", human::counted(skipping.skipped, "item"))];
    let others = [
        (skipping.already_settled, "already settled, as last saved"),
        (skipping.excluded, "already excluded"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    parts.extend(others.map(|(count, what)| format!("{} {what}", human::count(count))));
    let next = match task.status.as_str() {
        "running" | "stopping" => "; items in flight succeed or are skipped".to_owned(),
        "stopped" | "created" => format!(", at the next run: windrow task start {}", task.id),
        _ => ", at the next run".to_owned(),
    };
    standing(task, &format!("{}{next}", parts.join(", ")))
}
