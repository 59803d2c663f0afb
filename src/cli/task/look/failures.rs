//! Implementation of `windrow task failures`, and of `preview`, which shows the handler's replies for items.

use serde_json::json;

use api::{Failure, FailureGroup, PreviewedItem};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::contexts::like;
use crate::link::{Link, Listed};
use crate::output::body::shown;
use crate::output::judgement::{judgement, of_them_unconfirmed};
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone, clean, human};
use crate::shell::Shell;
use crate::task::args::look::{FailuresArgs, PreviewArgs};
use crate::task::look::carried::{carried, who};
use crate::task::look::report;
use crate::task::make::draft::Draft;
use windrow_client::Request;

/// Listing of failures by code.
const GROUPS: Listing<FailureGroup> = Listing {
    columns: &[
        Column::text("CODE", Keep::Always, 12, |group: &FailureGroup| &group.code).tone(Tone::Bad),
        Column::new("COUNT", Side::Right, Keep::Always, 5, |group, _| {
            let cell = Cell::count(Some(group.count));
            let text = cell.text.clone() + &of_them_unconfirmed(group.unconfirmed);
            Cell { text, ..cell }
        }),
        Column::time("FIRST", Keep::Rank(20), |group| Some(&group.first_at)),
        Column::time("LAST", Keep::Rank(30), |group| Some(&group.last_at)),
        Column::new("EXAMPLE", Side::Left, Keep::Rank(50), 12, |group, _| {
            Cell::new(example(group)).plain(&group.example)
        }),
        Column::plain("EXAMPLE INDEX", Keep::Wide, 6, |group| {
            Some(group.example_index.to_string())
        }),
        Column::new("DATA", Side::Left, Keep::Rank(40), 12, |group, _| {
            carried(
                group.example_data.as_deref(),
                group.example_data_missing.as_deref(),
            )
        }),
        Column::plain("UNCONFIRMED", Keep::Csv, 6, |group| {
            Some(group.unconfirmed.to_string())
        }),
    ],
    name: |group| group.code.clone(),
    none: "no failures",
};

/// Listing of failures, item by item.
const FAILURES: Listing<Failure> = Listing {
    columns: &[
        Column::new("INDEX", Side::Right, Keep::Always, 6, |item, _| {
            index(
                item.index,
                &origin(item.origin_task.as_deref(), item.origin_index),
            )
        }),
        Column::maybe("CODE", Keep::Always, 10, |item: &Failure| item.code.as_deref()).tone(Tone::Bad),
        Column::count("ATTEMPTS", Keep::Rank(30), 8, |item| Some(item.attempts.into())),
        Column::new("DATA", Side::Left, Keep::Rank(15), 12, |item, _| {
            carried(item.data.as_deref(), item.data_missing.as_deref())
        }),
        Column::time("LAST", Keep::Rank(20), |item| Some(&item.last_at)),
        Column::maybe("MESSAGE", Keep::Rank(60), 16, |item| item.message.as_deref()),
        Column::time("FIRST", Keep::Wide, |item| Some(&item.first_at)),
        Column::new("OUTPUT", Side::Left, Keep::Wide, 8, |item, _| {
            Cell::text(item.output.as_ref().map(shown))
        }),
        Column::text("KEY", Keep::Wide, 8, |item| &item.key),
        Column::maybe("ORIGIN", Keep::Wide, 8, |item| item.origin_task.as_deref()),
        Column::plain("ORIGIN INDEX", Keep::Wide, 6, |item| {
            Some(item.origin_index?.to_string())
        }),
        Column::plain("CHARGED", Keep::Csv, 3, |item| Some(item.charged.to_string())),
        Column::new("JUDGED", Side::Left, Keep::Wide, 16, |item: &Failure, _| {
            Cell::new(judgement(item)).plain(item.unconfirmed.to_string())
        })
        .named("unconfirmed"),
        Column::plain("OTHERS ANSWERED", Keep::Csv, 6, |item| {
            Some(item.others_answered?.to_string())
        }),
    ],
    name: |item| item.index.to_string(),
    none: "no failures",
};

/// Listing of the handler's replies in a preview.
const PREVIEWED: Listing<PreviewedItem> = Listing {
    columns: &[
        Column::new("INDEX", Side::Right, Keep::Always, 6, |item, _| {
            index(item.index, "")
        }),
        Column::new("RESULT", Side::Left, Keep::Always, 9, |item, _| {
            Cell::new(&item.result).tone(match item.result.as_str() {
                "succeeded" | "skipped" => Tone::Good,
                "retry" => Tone::Warn,
                _ => Tone::Bad,
            })
        }),
        Column::new("TOOK", Side::Right, Keep::Rank(20), 6, |item, _| {
            let took = item.latency_seconds;
            Cell::new(human::seconds(took)).plain(took.to_string())
        }),
        Column::maybe("CODE", Keep::Rank(60), 8, |item| item.code.as_deref()),
        Column::maybe("MESSAGE", Keep::Rank(50), 16, |item| item.message.as_deref()),
    ],
    name: |item| item.index.to_string(),
    none: "no items",
};

fn index(index: u64, origin: &str) -> Cell {
    let cell = Cell::count(Some(index));
    Cell {
        text: format!("#{}{origin}", cell.text),
        ..cell.tone(Tone::Strong)
    }
}

/// Returns the suffix ` (t12 #5)` with the original item of a redrive, as its handler sees it.
fn origin(task: Option<&str>, index: Option<u64>) -> String {
    match (task, index) {
        (Some(task), Some(index)) => format!(" ({task} #{})", human::count(index)),
        _ => String::new(),
    }
}

/// Lists failures by code or by item.
///
/// # Errors
/// Same as [`Link::send`].
pub(crate) async fn failures(args: &FailuresArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    if args.items || args.code.is_some() || args.key_column.is_some() {
        let request = Request::get(&format!("/v1/tasks/{id}/failures"))
            .query_option("code", args.code.as_deref())
            .query("data", args.key_column.as_deref().unwrap_or("*"));
        let listed = link.list(request, Some(&args.paging)).await?;
        let items: Vec<Failure> = listed.things()?;
        let exit = link.show_list(&FAILURES, &listed, &items)?;
        if let (true, Some(code)) = (items.is_empty(), &args.code) {
            tell_codes(&link, &id, code).await?;
        }
        return Ok(exit);
    }
    let listed = groups(&link, &id).await?;
    let groups: Vec<FailureGroup> = listed.things()?;
    let exit = link.show_list(&GROUPS, &listed, &groups)?;
    if !groups.is_empty() {
        if let Some(net) = redriven_for_people(&link, &id).await? {
            link.say(&format!("after redrives: {net}"));
            if net.contains("still failed 0   (") {
                return Ok(exit);
            }
        }
        let unconfirmed = groups.iter().any(|group| group.unconfirmed > 0);
        let or_those = match (unconfirmed, link.is_of_job()) {
            (true, false) => ", --unconfirmed those of which the handler may be at fault, not the item",
            (true, true) => "; unconfirmed: the handler may be at fault, not the item",
            (false, _) => "",
        };
        link.hint(&format!(
            "windrow task item {id} INDEX shows attempts; windrow task redrive {id} --code CODE \
                retries the items{or_those}"
        ));
    }
    Ok(exit)
}

/// Returns the effect of redrives on a task's failures, for people only.
///
/// # Errors
/// Same as [`Link::send`].
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

/// Returns the failures of a task by code, one per line, with the data of an example.
///
/// # Errors
/// Same as [`Link::send`].
pub(crate) async fn told(link: &Link<'_>, id: &str) -> Result<Vec<String>, Fault> {
    let groups = groups(link, id).await?.things()?;
    Ok(groups.iter().map(group).collect())
}

/// Formats a group of failures as `BAD ×41 (2 unconfirmed)   #63 token expired  {"user_id":"u_0064"}`.
pub(crate) fn group(group: &FailureGroup) -> String {
    format!(
        "{} ×{}{}   {}{}",
        group.code,
        human::count(group.count),
        of_them_unconfirmed(group.unconfirmed),
        example(group),
        who(group.example_data.as_deref())
    )
}

/// Formats the example of a group as `#63 token expired`.
fn example(group: &FailureGroup) -> String {
    let origin = origin(group.example_origin_task.as_deref(), group.example_origin_index);
    format!("#{}{origin} {}", group.example_index, group.example)
}

/// Prints the existing codes if no failure has the requested one.
async fn tell_codes(link: &Link<'_>, id: &str, code: &str) -> Result<(), Fault> {
    let groups: Vec<FailureGroup> = groups(link, id).await?.things()?;
    let codes: Vec<&str> = groups.iter().map(|group| group.code.as_str()).collect();
    if !codes.is_empty() && !codes.contains(&code) {
        let meant = like(code, &codes).map(|like| format!("did you mean {like}? "));
        link.say(&clean(&format!(
            "no failure of {id} has the code {code}; {}existing codes: {}",
            meant.unwrap_or_default(),
            codes.join(", ")
        )));
    }
    Ok(())
}

/// Calls the handler with some items.
///
/// # Errors
/// Same as [`Draft::send`].
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
    let items: Vec<PreviewedItem> = listed.things()?;
    let exit = link.show_list(&PREVIEWED, &listed, &items)?;
    let is_broken = items.iter().any(|item| item.result == "broken");
    Ok(if is_broken { Exit::BadHandler } else { exit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_a_redrive_is_named_as_its_handler_knows_it() {
        let item = Failure {
            origin_task: Some("t12".into()),
            origin_index: Some(5),
            ..Default::default()
        };
        let times = crate::output::table::times::Times {
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
        let group = FailureGroup {
            example_origin_task: Some("t12".into()),
            example_origin_index: Some(5),
            ..Default::default()
        };
        let text = GROUPS.csv(&[group], &times, windrow_core::text::csv::Guard::On);
        assert!(text.contains("example_index") && text.contains(",0"), "{text}");
    }
}
