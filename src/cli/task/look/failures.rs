//! `windrow task failures`, and `preview`: what the handler says of items.

use serde_json::{Value, json};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::contexts::like;
use crate::link::{Link, Listed};
use crate::output::body::{number, text};
use crate::output::judgement::{judgement, of_them_unconfirmed};
use crate::output::table::times::Times;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone, clean, human};
use crate::shell::Shell;
use crate::task::args::look::{FailuresArgs, PreviewArgs};
use crate::task::look::carried::{carried, who};
use crate::task::look::report;
use crate::task::make::draft::Draft;
use windrow_client::Request;

/// Failures by code.
const GROUPS: Listing = Listing {
    columns: &[
        Column::text("CODE", Keep::Always, 12, "code").tone(Tone::Bad),
        Column::new("COUNT", Side::Right, Keep::Always, 5, |group, _| {
            let cell = Cell::count(group["count"].as_u64());
            let text = cell.text.clone() + &of_them_unconfirmed(number(&group["unconfirmed"]));
            Cell { text, ..cell }
        }),
        Column::time("FIRST", Keep::Rank(20), "first_at"),
        Column::time("LAST", Keep::Rank(30), "last_at"),
        Column::new("EXAMPLE", Side::Left, Keep::Rank(50), 12, |group, _| {
            let (example, origin) = (text(&group["example"]), origin(group, "example_origin"));
            Cell::new(format!("#{}{origin} {example}", group["example_index"])).plain(example)
        }),
        Column::plain("EXAMPLE INDEX", Keep::Wide, 6, "example_index"),
        Column::new("DATA", Side::Left, Keep::Rank(40), 12, |group, _| {
            carried(group, "example_data")
        }),
        Column::plain("UNCONFIRMED", Keep::Csv, 6, "unconfirmed"),
    ],
    name: |group| text(&group["code"]).to_owned(),
    none: "no failures",
};

/// Failures item by item.
const FAILURES: Listing = Listing {
    columns: &[
        Column::new("INDEX", Side::Right, Keep::Always, 6, index),
        Column::text("CODE", Keep::Always, 10, "code").tone(Tone::Bad),
        Column::count("ATTEMPTS", Keep::Rank(30), 8, "attempts"),
        Column::new("DATA", Side::Left, Keep::Rank(15), 12, |item, _| {
            carried(item, "data")
        }),
        Column::time("LAST", Keep::Rank(20), "last_at"),
        Column::text("MESSAGE", Keep::Rank(60), 16, "message"),
        Column::time("FIRST", Keep::Wide, "first_at"),
        Column::text("OUTPUT", Keep::Wide, 8, "output"),
        Column::text("KEY", Keep::Wide, 8, "key"),
        Column::text("ORIGIN", Keep::Wide, 8, "origin_task"),
        Column::plain("ORIGIN INDEX", Keep::Wide, 6, "origin_index"),
        Column::plain("CHARGED", Keep::Csv, 3, "charged"),
        Column::new("JUDGED", Side::Left, Keep::Wide, 16, |item, _| {
            Cell::new(judgement(item)).plain(item["unconfirmed"].to_string())
        })
        .named("unconfirmed"),
        Column::plain("OTHERS ANSWERED", Keep::Csv, 6, "others_answered"),
    ],
    name: |item| item["index"].to_string(),
    none: "no failures",
};

/// What the handler said of items.
const PREVIEWED: Listing = Listing {
    columns: &[
        Column::new("INDEX", Side::Right, Keep::Always, 6, index),
        Column::new("RESULT", Side::Left, Keep::Always, 9, |item, _| {
            let result = text(&item["result"]);
            Cell::new(result).tone(match result {
                "succeeded" | "skipped" => Tone::Good,
                "retry" => Tone::Warn,
                _ => Tone::Bad,
            })
        }),
        Column::new("TOOK", Side::Right, Keep::Rank(20), 6, |item, _| {
            let took = item["latency_seconds"].as_f64().unwrap_or(0.0);
            Cell::new(format!("{:.0} ms", took * 1000.0)).plain(took.to_string())
        }),
        Column::text("CODE", Keep::Rank(60), 8, "code"),
        Column::text("MESSAGE", Keep::Rank(50), 16, "message"),
    ],
    name: |item| item["index"].to_string(),
    none: "no items",
};

fn index(item: &Value, _: &Times) -> Cell {
    let cell = Cell::count(item["index"].as_u64());
    Cell {
        text: format!("#{}{}", cell.text, origin(item, "origin")),
        ..cell.tone(Tone::Strong)
    }
}

/// ` (t12 #5)`: the item that a redrive does again, as its handler sees it.
pub(crate) fn origin(thing: &Value, member: &str) -> String {
    let (task, index) = (
        &thing[format!("{member}_task")],
        &thing[format!("{member}_index")],
    );
    match (task.as_str(), index.as_u64()) {
        (Some(task), Some(index)) => format!(" ({task} #{})", human::count(index)),
        _ => String::new(),
    }
}

/// Shows failures.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn failures(args: &FailuresArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    if args.items || args.code.is_some() || args.key_column.is_some() {
        let request = Request::get(&format!("/v1/tasks/{id}/failures"))
            .query_option("code", args.code.as_deref())
            .query("data", args.key_column.as_deref().unwrap_or("*"));
        let listed = link.list(request, Some(&args.paging)).await?;
        let items = listed.things()?;
        let exit = link.show_list(&FAILURES, &listed, &items)?;
        if let (true, Some(code)) = (items.is_empty(), &args.code) {
            tell_codes(&link, &id, code).await?;
        }
        return Ok(exit);
    }
    let listed = groups(&link, &id).await?;
    let groups = listed.things()?;
    let exit = link.show_list(&GROUPS, &listed, &groups)?;
    if !groups.is_empty() {
        if let Some(net) = redriven_for_people(&link, &id).await? {
            link.say(&format!("after redrives: {net}"));
        }
        let unconfirmed = groups.iter().any(|group| number(&group["unconfirmed"]) > 0);
        let or_those = match unconfirmed {
            true => ", --unconfirmed those that are unconfirmed",
            false => "",
        };
        link.hint(&format!(
            "windrow task item {id} INDEX shows attempts; windrow task redrive {id} --code CODE does them again{or_those}"
        ));
    }
    Ok(exit)
}

/// What redrives made of a task's failures, where a person reads it.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn redriven_for_people(link: &Link<'_>, id: &str) -> Result<Option<String>, Fault> {
    match link.look.form.is_for_people() {
        true => report::redriven(link, id).await,
        false => Ok(None),
    }
}

async fn groups(link: &Link<'_>, id: &str) -> Result<Listed, Fault> {
    let request = Request::get(&format!("/v1/tasks/{id}/failures/groups"));
    link.list(request.query("data", "*"), None).await
}

/// The failures of a task by code, a line each, with who they are about.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn told(link: &Link<'_>, id: &str) -> Result<Vec<String>, Fault> {
    let groups = groups(link, id).await?.things()?;
    Ok(groups.iter().map(group).collect())
}

/// `BAD ×41 (2 unconfirmed)   #63 token expired  {"user_id":"u_0064"}`
pub(crate) fn group(group: &Value) -> String {
    format!(
        "{} ×{}{}   #{}{} {}{}",
        text(&group["code"]),
        human::count(number(&group["count"])),
        of_them_unconfirmed(number(&group["unconfirmed"])),
        group["example_index"],
        origin(group, "example_origin"),
        text(&group["example"]),
        who(group, "example_data")
    )
}

/// Which codes there are, where no failure has the one that was asked for.
async fn tell_codes(link: &Link<'_>, id: &str, code: &str) -> Result<(), Fault> {
    let groups = groups(link, id).await?.things()?;
    let codes: Vec<&str> = groups.iter().map(|group| text(&group["code"])).collect();
    if !codes.is_empty() && !codes.contains(&code) {
        let meant = like(code, &codes).map(|like| format!("did you mean {like}? "));
        link.say(&clean(&format!(
            "no failure of {id} has the code {code}; {}those there are: {}",
            meant.unwrap_or_default(),
            codes.join(", ")
        )));
    }
    Ok(())
}

/// Calls the handler with some items.
///
/// # Errors
/// What the node refused.
pub(crate) async fn preview(args: &PreviewArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let id = link.task(&args.task).await?;
    let mut draft = Draft::default();
    draft.put_option("indexes", args.items.as_ref().map(|items| json!(items)))?;
    let request = Request::post(&format!("/v1/tasks/{id}/preview"));
    let Some(answer) = draft.send(&link, &args.write, request, &id).await? else {
        return Ok(Exit::Ok);
    };
    let listed = link.page(&answer)?;
    let items = listed.things()?;
    let exit = link.show_list(&PREVIEWED, &listed, &items)?;
    let is_broken = items.iter().any(|item| item["result"] == "failed");
    Ok(if is_broken { Exit::BadHandler } else { exit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_a_redrive_is_named_as_its_handler_knows_it() {
        let item = json!({"index": 0, "origin_task": "t12", "origin_index": 5});
        let times = Times {
            style: crate::output::table::times::TimeStyle::Utc,
            now_ms: 0,
        };
        let text = FAILURES.table(
            &[item],
            &times,
            crate::output::table::Paper {
                width: None,
                colours: false,
            },
            false,
        );
        assert!(text.contains("#0 (t12 #5)"), "{text}");
        let group = json!({"code": "BAD", "count": 1, "example_index": 0, "example": "no",
            "example_origin_task": "t12", "example_origin_index": 5});
        let text = GROUPS.csv(&[group], &times, windrow_core::text::csv::Guard::On);
        assert!(text.contains("example_index") && text.contains(",0"), "{text}");
    }
}
