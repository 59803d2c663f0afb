//! `windrow task failures`, and `preview`: what the handler says of items.

use serde_json::{Value, json};

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::link::contexts::like;
use crate::output::table::times::Times;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone, clean, human};
use crate::task::args::look::{FailuresArgs, PreviewArgs};
use crate::task::make::draft::{Draft, Operation};
use windrow_client::{Request, segment};

/// Failures by code.
const GROUPS: Listing = Listing {
    columns: &[
        column("CODE", Side::Left, Keep::Always, 12, |group, _| {
            Cell::member(group, "code").tone(Tone::Bad)
        }),
        column("COUNT", Side::Right, Keep::Always, 5, |group, _| {
            number(group, "count")
        }),
        column("FIRST", Side::Left, Keep::Rank(20), 7, |group, times| {
            Cell::time(group, "first_at", times)
        }),
        column("LAST", Side::Left, Keep::Rank(30), 7, |group, times| {
            Cell::time(group, "last_at", times)
        }),
        column("EXAMPLE", Side::Left, Keep::Rank(50), 12, |group, _| {
            let text = group["example"].as_str().unwrap_or_default();
            let origin = origin(group, "example_origin");
            Cell::new(format!("#{}{origin} {text}", group["example_index"])).plain(text)
        }),
        column("EXAMPLE INDEX", Side::Right, Keep::Wide, 6, |group, _| {
            Cell::member(group, "example_index")
        }),
        column("DATA", Side::Left, Keep::Rank(40), 12, |group, _| {
            carried(&group["example_data"], &group["example_data_missing"])
        }),
    ],
    name: |group| group["code"].as_str().unwrap_or_default().to_owned(),
    none: "no failures",
};

/// Failures item by item.
const FAILURES: Listing = Listing {
    columns: &[
        column("INDEX", Side::Right, Keep::Always, 6, index),
        column("CODE", Side::Left, Keep::Always, 10, |item, _| {
            Cell::member(item, "code").tone(Tone::Bad)
        }),
        column("ATTEMPTS", Side::Right, Keep::Rank(30), 8, |item, _| {
            number(item, "attempts")
        }),
        column("DATA", Side::Left, Keep::Rank(15), 12, |item, _| {
            carried(&item["data"], &item["data_missing"])
        }),
        column("LAST", Side::Left, Keep::Rank(20), 7, |item, times| {
            Cell::time(item, "last_at", times)
        }),
        column("MESSAGE", Side::Left, Keep::Rank(60), 16, |item, _| {
            Cell::member(item, "message")
        }),
        column("FIRST", Side::Left, Keep::Wide, 7, |item, times| {
            Cell::time(item, "first_at", times)
        }),
        column("OUTPUT", Side::Left, Keep::Wide, 8, |item, _| {
            Cell::member(item, "output")
        }),
        column("ORIGIN", Side::Left, Keep::Wide, 8, |item, _| {
            Cell::member(item, "origin_task")
        }),
        column("ORIGIN INDEX", Side::Right, Keep::Wide, 6, |item, _| {
            Cell::member(item, "origin_index")
        }),
    ],
    name: |item| item["index"].to_string(),
    none: "no failures",
};

/// What the handler said of items.
const PREVIEWED: Listing = Listing {
    columns: &[
        column("INDEX", Side::Right, Keep::Always, 6, index),
        column("RESULT", Side::Left, Keep::Always, 9, |item, _| {
            let result = item["result"].as_str().unwrap_or_default();
            let tone = match result {
                "succeeded" | "skipped" => Tone::Good,
                "retry" => Tone::Warn,
                _ => Tone::Bad,
            };
            Cell::new(result).tone(tone)
        }),
        column("TOOK", Side::Right, Keep::Rank(20), 6, |item, _| {
            let took = item["latency_seconds"].as_f64().unwrap_or(0.0);
            Cell::new(format!("{:.0} ms", took * 1000.0)).plain(took.to_string())
        }),
        column("CODE", Side::Left, Keep::Rank(60), 8, |item, _| {
            Cell::member(item, "code")
        }),
        column("MESSAGE", Side::Left, Keep::Rank(50), 16, |item, _| {
            Cell::member(item, "message")
        }),
    ],
    name: |item| item["index"].to_string(),
    none: "no items",
};

pub(crate) const fn column(
    title: &'static str,
    side: Side,
    keep: Keep,
    least: usize,
    cell: fn(&Value, &Times) -> Cell,
) -> Column {
    Column::new(title, side, keep, least, cell)
}

pub(crate) fn number(thing: &Value, name: &str) -> Cell {
    match thing[name].as_u64() {
        Some(number) => Cell::new(human::count(number)).plain(number.to_string()),
        None => Cell::nothing(),
    }
}

fn index(item: &Value, _: &Times) -> Cell {
    match item["index"].as_u64() {
        Some(index) => Cell::new(format!("#{}{}", human::count(index), origin(item, "origin")))
            .plain(index.to_string())
            .tone(Tone::Strong),
        None => Cell::nothing(),
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

/// What an item carries; why it can't be told, in brackets.
pub(crate) fn carried(data: &Value, missing: &Value) -> Cell {
    match (data, missing.as_str()) {
        (Value::Null, Some(why)) => Cell::new(format!("({why})")),
        (Value::Null, None) => Cell::nothing(),
        (data, _) => Cell::new(data.to_string()),
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
        let request = Request::get(&format!("/v1/tasks/{}/failures", segment(&id)))
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
    let request = Request::get(&format!("/v1/tasks/{}/failures/groups", segment(&id))).query("data", "*");
    let listed = link.list(request, None).await?;
    let groups = listed.things()?;
    let exit = link.show_list(&GROUPS, &listed, &groups)?;
    if !groups.is_empty() {
        link.hint(&format!("windrow task item {id} INDEX shows attempts; windrow task redrive {id} --code CODE does them again"));
    }
    Ok(exit)
}

/// Which codes there are, where no failure has the one that was asked for.
async fn tell_codes(link: &Link<'_>, id: &str, code: &str) -> Result<(), Fault> {
    let request = Request::get(&format!("/v1/tasks/{}/failures/groups", segment(id)));
    let groups = link.list(request, None).await?.things()?;
    let codes: Vec<&str> = groups.iter().filter_map(|group| group["code"].as_str()).collect();
    if !codes.is_empty() && !codes.contains(&code) {
        let meant = like(code, &codes)
            .map(|like| format!("did you mean {like}? "))
            .unwrap_or_default();
        link.say(&clean(&format!(
            "no failure of {id} has the code {code}; {meant}those there are: {}",
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
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let mut draft = Draft::default();
    draft.put_option("indexes", args.items.as_ref().map(|items| json!(items)))?;
    let Some(answer) = draft.send(&link, &args.write, Operation::PREVIEW, &id).await? else {
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
        let text = GROUPS.csv(&[group], &times);
        assert!(text.contains("example_index") && text.contains(",0"), "{text}");
    }
}
