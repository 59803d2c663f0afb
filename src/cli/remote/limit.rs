//! Implementation of `windrow limit`, for limits shared by businesses and tasks.

use std::error::Error;
use std::num::NonZeroU32;
use std::str::FromStr;

use api::{Limit, LimitInUse, LimitPart, LimitUse};
use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Map, json};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::metering::UnitLimits;
use crate::link::{Danger, Link, Named, NamedWrite, Pages, Write};
use crate::output::body::joined;
use crate::output::difference::differences;
use crate::output::limits;
use crate::output::shell_word;
use crate::output::table::times::Times;
use crate::output::table::{Card, Column, Keep, Listing, Tone, human};
use crate::output::used::rounded;
use crate::shell::Shell;
use windrow_client::{Request, segment};
use windrow_core::explain::rate_text;
use windrow_core::meter::metering::Metering;
use windrow_core::settings::Rate;

/// Examples of creating and using a limit, for the help.
const CREATE_EXAMPLES: &str = "Examples:
  windrow limit create vendor-x --rate 300/s --concurrency 50
  windrow limit create openai --limit 300/min --limit '50k calls'
  windrow biz edit push --limit vendor-x
  windrow task create mail --csv users.csv --limit vendor-x

All tasks that name a limit, or whose business does, share it across all nodes.";

/// Arguments of `windrow limit`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct LimitArgs {
    /// Verb to execute; without one the limits are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the list, without a verb.
    #[command(flatten)]
    pub list: Pages,
}

/// Verbs of `windrow limit`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List limits with their bounds
    List(Pages),
    /// Show a limit with its bounds, its users, and the share of each node
    Show(Named),
    /// Create a limit for businesses and tasks to share
    #[command(after_help = CREATE_EXAMPLES, override_usage = "windrow limit create [OPTIONS] <NAME>")]
    Create(CreateArgs),
    /// Change the bounds of a limit; running tasks follow within seconds
    #[command(visible_alias = "edit", override_usage = "windrow limit set [OPTIONS] <NAME>")]
    Set(SetArgs),
    /// Delete a limit that nothing refers to
    Delete(NamedWrite),
}

/// Arguments of `windrow limit create`.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("bound").required(true).multiple(true).args(["limits"]))]
pub struct CreateArgs {
    /// Name used in URLs: a-z, 0-9 and -; can't be changed later
    pub name: String,
    /// Rate of attempts of all users together: 300/s, 30/m
    #[arg(long, group = "bound")]
    pub rate: Option<Rate>,
    /// Maximum items in flight of all users together
    #[arg(long, value_name = "N", group = "bound")]
    pub concurrency: Option<NonZeroU32>,
    /// Flags for limits in units that all users share.
    #[command(flatten)]
    pub units: UnitLimits,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Bound of a limit: a value, or none to remove it.
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

/// Arguments of `windrow limit set`.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("bound").required(true).multiple(true).args(["limits", "cost", "cost_from", "price"]))]
pub struct SetArgs {
    /// Name of the limit
    pub name: String,
    /// Rate of attempts of all users together: 300/s, 30/m, or none
    #[arg(long, group = "bound")]
    pub rate: Option<Bound<Rate>>,
    /// Maximum items in flight of all users together, or none
    #[arg(long, value_name = "N", group = "bound")]
    pub concurrency: Option<Bound<NonZeroU32>>,
    /// Flags for limits in units; a list that is given replaces the one before.
    #[command(flatten)]
    pub units: UnitLimits,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Listing of limits with their bounds.
const LIMITS: Listing<Limit> = Listing {
    columns: &[
        Column::text("NAME", Keep::Always, 8, |limit: &Limit| &limit.name).tone(Tone::Strong),
        Column::plain("RATE", Keep::Always, 5, |limit| limit.rate.clone()),
        Column::plain("CONCURRENCY", Keep::Always, 5, |limit| {
            Some(limit.concurrency?.to_string())
        }),
        Column::plain("LIMITS", Keep::Rank(10), 5, |limit| {
            limits::limits(limit.metering.as_ref()?)
        }),
        Column::plain("REVISION", Keep::Rank(20), 3, |limit| {
            Some(limit.revision.to_string())
        }),
        Column::time("UPDATED", Keep::Rank(30), |limit| Some(&limit.updated_at)),
    ],
    name: |limit| limit.name.clone(),
    none: "no limits",
};

/// Executes the verb; lists the limits without one.
///
/// # Errors
/// Same as the verb.
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

/// Returns the API path of a limit.
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
    let limit: LimitInUse = answer.read()?;
    link.show_one(&LIMITS, &answer, |_, times| card(&limit, times))
}

/// Formats a limit as a card.
fn card(used: &LimitInUse, times: &Times) -> Card {
    let limit = &used.limit;
    let mut card = Card::new()
        .title(&limit.name, Tone::Strong)
        .maybe("rate", limit.rate.as_deref())
        .maybe("concurrency", limit.concurrency.map(|many| many.to_string()))
        .maybe("limits", limit.metering.as_ref().and_then(limits::metering))
        .maybe("businesses", joined(&used.businesses, "  "))
        .maybe("tasks", tasks(used));
    for used in &used.uses {
        card = card.line("used", of_total(used, times));
    }
    for part in &used.parts {
        card = card.line("node", of_node(part));
    }
    card.line("revision", limit.revision.to_string())
        .time("updated", Some(&limit.updated_at), times)
}

/// Formats the tasks that use a limit: `t4 (running)  t7 (created)  and 3 more`.
fn tasks(used: &LimitInUse) -> Option<String> {
    let tasks = used.tasks.iter();
    let shown: Vec<String> = tasks
        .map(|task| format!("{} ({})", task.id, task.status))
        .collect();
    let shown = joined(&shown, "  ")?;
    match used.tasks_total.saturating_sub(used.tasks.len() as u64) {
        0 => Some(shown),
        more => Some(format!("{shown}  and {more} more")),
    }
}

/// Formats the use of a total: `12.5 of 500 eur  (0.3 unsure, 1.2 in hand)`, or of an allowance in its period.
fn of_total(used: &LimitUse, times: &Times) -> String {
    let rest = [(&used.unsure, "unsure"), (&used.held, "in hand")];
    let rest = rest.into_iter().filter(|(amount, _)| *amount != "0");
    let rest = rest.map(|(amount, word)| format!("{} {word}", rounded(amount)));
    let next = used
        .next
        .as_deref()
        .map(|next| format!("next period {}", times.text(next)));
    let rest: Vec<String> = rest.chain(next).collect();
    let rest = joined(&rest, ", ").map(|rest| format!("  ({rest})"));
    format!(
        "{} of {}{}",
        rounded(&used.spent),
        used.limit,
        rest.unwrap_or_default()
    )
}

/// Formats a node's share of a limit, of which less may be in use: `n1  2 runs  at most 150.0/s and 25 in flight`.
fn of_node(part: &LimitPart) -> String {
    let runs = human::counted(part.runs, "run");
    let rate = part.rate.map(rate_text);
    let most = [rate, part.concurrency.map(|slots| format!("{slots} in flight"))];
    let most = joined(&most.into_iter().flatten().collect::<Vec<_>>(), " and ");
    let most = most.map(|most| format!("  at most {most}")).unwrap_or_default();
    format!("{}  {runs}{most}", part.node)
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
    if !args.units.is_empty() {
        let metering = args.units.over(&Metering::default())?;
        body.insert("metering".to_owned(), json!(metering));
    }
    let link = Link::open(&args.write.remote, shell)?;
    let request = Request::post("/v1/limits");
    let Some(answer) = link.change(&args.write, request, body).await? else {
        return Ok(Exit::Ok);
    };
    link.hint(&format!(
        "not used yet: windrow biz edit NAME --limit {}",
        shell_word(&args.name)
    ));
    link.show_done(&LIMITS, &answer, &format!("created {}", args.name))
}

/// Changes the bounds of a limit.
async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut body = Map::new();
    if let Some(rate) = args.rate {
        body.insert("rate".to_owned(), json!(rate.0.map(|rate| rate.to_string())));
    }
    if let Some(concurrency) = args.concurrency {
        body.insert("concurrency".to_owned(), json!(concurrency.0));
    }
    let link = Link::open(&args.write.remote, shell)?;
    if !args.units.is_empty() {
        let before: Limit = link.get(&path(&args.name)).await?.read()?;
        let metering = args.units.over(&before.metering.unwrap_or_default())?;
        body.insert("metering".to_owned(), json!(metering));
    }
    let Some((before, answer)) = link.patch(&args.write, &path(&args.name), body).await? else {
        return Ok(Exit::Ok);
    };
    // Leave out the users of the limit: only one of the two answers has them, and they weren't changed.
    let (before, after): (Option<Limit>, Limit) = (serde_json::from_value(before).ok(), answer.read()?);
    let changed = differences(&json!(before), &json!(after));
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
    use api::LimitedTask;

    use super::*;
    use crate::output::table::times::TimeStyle;

    #[test]
    fn users_and_nodes_are_told_in_a_line_each() {
        let task = |id: &str| LimitedTask {
            id: id.to_owned(),
            business: "push".to_owned(),
            status: "running".to_owned(),
        };
        let used = LimitInUse {
            tasks: vec![task("t1"), task("t2")],
            tasks_total: 5,
            ..LimitInUse::default()
        };
        assert_eq!(
            tasks(&used).as_deref(),
            Some("t1 (running)  t2 (running)  and 3 more")
        );
        assert_eq!(tasks(&LimitInUse::default()), None);
        let part = |runs, rate, concurrency| LimitPart {
            node: "n1".to_owned(),
            runs,
            rate,
            concurrency,
        };
        let both = part(2, Some(150.0), Some(25));
        assert_eq!(of_node(&both), "n1  2 runs  at most 150.0/s and 25 in flight");
        assert_eq!(of_node(&part(0, None, None)), "n1  0 runs");
        let used = |unsure: &str| LimitUse {
            limit: "500 eur".to_owned(),
            spent: "12.5".to_owned(),
            unsure: unsure.to_owned(),
            held: "0".to_owned(),
            nearly_used: false,
            next: None,
        };
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let shown = |used: &LimitUse| of_total(used, &times);
        assert_eq!(shown(&used("0")), "12.5 of 500 eur");
        assert_eq!(
            shown(&used("378.800000001")),
            "12.5 of 500 eur  (378 unsure)",
            "as a task's use is shown"
        );
        let allowance = LimitUse {
            limit: "2k/day".to_owned(),
            next: Some("2026-11-30T00:00:00.000Z".to_owned()),
            ..used("0.3")
        };
        assert_eq!(
            shown(&allowance),
            "12.5 of 2k/day  (0.3 unsure, next period 2026-11-30 00:00:00Z)"
        );
    }
}
