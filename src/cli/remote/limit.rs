//! `windrow limit`: what several businesses and tasks may have together.

use std::error::Error;
use std::num::NonZeroU32;
use std::str::FromStr;

use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::change::differences;
use crate::link::{Danger, Link, Named, NamedWrite, Pages, Write};
use crate::output::body::{joined, number, text, texts};
use crate::output::shell_word;
use crate::output::table::times::Times;
use crate::output::table::{Card, Column, Keep, Listing, Tone, human};
use crate::shell::Shell;
use windrow_client::{Request, segment};
use windrow_core::explain::rate_text;
use windrow_core::settings::Rate;

/// How one is made and used.
const CREATE_EXAMPLES: &str = "\
Examples:
  windrow limit create vendor-x --rate 300/s --concurrency 50
  windrow biz edit push --limit vendor-x
  windrow task create mail --csv users.csv --limit vendor-x

All tasks that name a limit, or whose business does, share it, on all nodes.";

/// `windrow limit`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct LimitArgs {
    /// What to do; without it the limits are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the list.
    #[command(flatten)]
    pub list: Pages,
}

/// What to do with limits.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List limits
    List(Pages),
    /// Show a limit: what it allows, who uses it, and what each node has of it
    Show(Named),
    /// Make a limit
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// Change what a limit allows; tasks under way obey within seconds
    #[command(visible_alias = "edit")]
    Set(SetArgs),
    /// Delete a limit that nobody names any more
    Delete(NamedWrite),
}

/// `windrow limit create`
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("bound").required(true).multiple(true))]
pub struct CreateArgs {
    /// Its name in URLs: a-z, 0-9 and -; it never changes
    pub name: String,
    /// Attempts in a time of all that use it together: 300/s, 30/m
    #[arg(long, group = "bound")]
    pub rate: Option<Rate>,
    /// Items in flight of all that use it together
    #[arg(long, value_name = "N", group = "bound")]
    pub concurrency: Option<NonZeroU32>,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// A bound as it is set: a value, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound<T>(pub Option<T>);

impl<T: FromStr<Err: Error + Send + Sync + 'static>> FromStr for Bound<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Bound<T>, T::Err> {
        if matches!(text, "none" | "unlimited") {
            return Ok(Bound(None));
        }
        text.parse().map(|value| Bound(Some(value)))
    }
}

/// `windrow limit set`
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("bound").required(true).multiple(true))]
pub struct SetArgs {
    /// Its name
    pub name: String,
    /// Attempts in a time of all that use it together: 300/s, 30/m; or none
    #[arg(long, group = "bound")]
    pub rate: Option<Bound<Rate>>,
    /// Items in flight of all that use it together; or none
    #[arg(long, value_name = "N", group = "bound")]
    pub concurrency: Option<Bound<NonZeroU32>>,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// Limits.
const LIMITS: Listing = Listing {
    columns: &[
        Column::text("NAME", Keep::Always, 8, "name").tone(Tone::Strong),
        Column::plain("RATE", Keep::Always, 5, "rate"),
        Column::plain("CONCURRENCY", Keep::Always, 5, "concurrency"),
        Column::plain("REVISION", Keep::Rank(20), 3, "revision"),
        Column::time("UPDATED", Keep::Rank(30), "updated_at"),
    ],
    name: |limit| text(&limit["name"]).to_owned(),
    none: "no limits",
};

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
pub(crate) async fn limit(args: &LimitArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list(&args.list, shell).await,
        Some(Verb::List(args)) => list(args, shell).await,
        Some(Verb::Show(args)) => show(args, shell).await,
        Some(Verb::Create(args)) => create(args, shell).await,
        Some(Verb::Set(args)) => set(args, shell).await,
        Some(Verb::Delete(args)) => delete(args, shell).await,
    }
}

/// Where a limit is in the API.
fn path(name: &str) -> String {
    format!("/v1/limits/{}", segment(name))
}

async fn list(args: &Pages, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let listed = link.list(Request::get("/v1/limits"), Some(&args.paging)).await?;
    link.show_list(&LIMITS, &listed, &listed.things()?)
}

async fn show(args: &Named, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.get(&path(&args.name)).await?;
    link.show_one(&LIMITS, &answer, card)
}

/// A limit for people.
fn card(limit: &Value, times: &Times) -> Card {
    let many = limit["concurrency"].as_u64().map(|many| many.to_string());
    let mut card = Card::new()
        .title(text(&limit["name"]), Tone::Strong)
        .maybe("rate", limit["rate"].as_str())
        .maybe("concurrency", many)
        .maybe("businesses", joined(&texts(&limit["businesses"]), "  "))
        .maybe("tasks", tasks(limit));
    for part in crate::output::body::list(&limit["parts"]) {
        card = card.line("node", of_node(part));
    }
    card.line("revision", limit["revision"].to_string())
        .time("updated", &limit["updated_at"], times)
}

/// `t4 (running)  t7 (created)  and 3 more`.
fn tasks(limit: &Value) -> Option<String> {
    let all = crate::output::body::list(&limit["tasks"]);
    let shown: Vec<String> = all
        .iter()
        .map(|task| format!("{} ({})", text(&task["id"]), text(&task["status"])))
        .collect();
    let shown = joined(&shown, "  ")?;
    match number(&limit["tasks_total"]).saturating_sub(all.len() as u64) {
        0 => Some(shown),
        more => Some(format!("{shown}  and {more} more")),
    }
}

/// `n1  2 runs  at most 150.0/s and 25 in flight`: its part of the limit, of which less may be in use.
fn of_node(part: &Value) -> String {
    let runs = human::counted(number(&part["runs"]), "run");
    let rate = part["rate"].as_f64().map(rate_text);
    let slots = part["concurrency"].as_u64();
    let most = [rate, slots.map(|slots| format!("{slots} in flight"))];
    let most = joined(&most.into_iter().flatten().collect::<Vec<_>>(), " and ");
    let most = most.map(|most| format!("  at most {most}")).unwrap_or_default();
    format!("{}  {runs}{most}", text(&part["node"]))
}

async fn create(args: &CreateArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(args.name));
    if let Some(rate) = args.rate {
        body.insert("rate".to_owned(), json!(rate.to_string()));
    }
    if let Some(concurrency) = args.concurrency {
        body.insert("concurrency".to_owned(), json!(concurrency));
    }
    let link = Link::open(&args.write.remote, shell)?;
    let request = Request::post("/v1/limits");
    let Some(answer) = link.change(&args.write, request, body).await? else {
        return Ok(Exit::Ok);
    };
    link.hint(&format!(
        "nobody uses it yet: windrow biz edit NAME --limit {}",
        shell_word(&args.name)
    ));
    link.show_done(&LIMITS, &answer, &format!("created {}", args.name))
}

/// Changes what a limit allows.
async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut body = Map::new();
    if let Some(rate) = args.rate {
        body.insert("rate".to_owned(), json!(rate.0.map(|rate| rate.to_string())));
    }
    if let Some(concurrency) = args.concurrency {
        body.insert("concurrency".to_owned(), json!(concurrency.0));
    }
    let link = Link::open(&args.write.remote, shell)?;
    let Some((mut before, answer)) = link.patch(&args.write, &path(&args.name), body).await? else {
        return Ok(Exit::Ok);
    };
    let after = answer.json()?;
    // Who uses it is in the one answer only, and isn't what was changed.
    if let (Some(members), Some(kept)) = (before.as_object_mut(), after.as_object()) {
        members.retain(|name, _| kept.contains_key(name));
    }
    let changed = differences(&before, &after);
    let changed: Vec<String> = changed.iter().map(|one| one.line()).collect();
    let what = joined(&changed, "  ").unwrap_or_else(|| "unchanged".to_owned());
    link.show_done(&LIMITS, &answer, &format!("{}  {what}", args.name))
}

async fn delete(args: &NamedWrite, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    if !args.write.dry_run {
        link.confirm(Danger::Final, &format!("Delete the limit {}?", args.name))?;
    }
    let request = Request::delete(&path(&args.name));
    match link.change(&args.write, request, Map::new()).await? {
        Some(_) => link.show_gone(&args.name, &format!("deleted the limit {}", args.name)),
        None => Ok(Exit::Ok),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn users_and_nodes_are_told_in_a_line_each() {
        let task = |id: &str| json!({"id": id, "business": "push", "status": "running"});
        let limit = json!({"tasks": [task("t1"), task("t2")], "tasks_total": 5});
        assert_eq!(
            tasks(&limit).as_deref(),
            Some("t1 (running)  t2 (running)  and 3 more")
        );
        assert_eq!(tasks(&json!({"tasks": [], "tasks_total": 0})), None);
        let part = json!({"node": "n1", "runs": 2, "rate": 150.0, "concurrency": 25});
        assert_eq!(of_node(&part), "n1  2 runs  at most 150.0/s and 25 in flight");
        assert_eq!(
            of_node(&json!({"node": "n1", "runs": 0, "rate": null, "concurrency": null})),
            "n1  0 runs"
        );
    }
}
