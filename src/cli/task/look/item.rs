//! `windrow task item`: what became of an item, attempt by attempt.

use serde_json::Value;

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::times::Times;
use crate::output::table::{Card, Cell, Keep, Listing, Side, Tone, human};
use crate::task::args::look::ItemArgs;
use crate::task::look::failures::{carried, column, number};
use windrow_client::segment;

/// An item, for scripts.
const ITEM: Listing = Listing {
    columns: &[
        column("INDEX", Side::Right, Keep::Always, 6, |item, _| {
            Cell::member(item, "index")
        }),
        column("STATE", Side::Left, Keep::Always, 6, |item, _| {
            Cell::member(item, "state")
        }),
        column("ATTEMPTS", Side::Right, Keep::Always, 3, |item, _| {
            number(item, "attempts")
        }),
        column("DUE", Side::Left, Keep::Always, 7, |item, times| {
            Cell::time(item, "due_at", times)
        }),
        column("CODE", Side::Left, Keep::Always, 6, |item, _| {
            Cell::member(&item["failure"], "code")
        }),
        column("MESSAGE", Side::Left, Keep::Always, 6, |item, _| {
            Cell::member(&item["failure"], "message")
        }),
        column("DATA", Side::Left, Keep::Always, 6, |item, _| {
            carried(&item["data"], &item["data_missing"])
        }),
    ],
    name: |item| item["index"].to_string(),
    none: "no item",
};

/// Shows an item.
///
/// # Errors
/// As [`Link::send`]; `NotFound` also for an item of which only the counters are kept.
pub(crate) async fn item(args: &ItemArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let answer = link
        .get(&format!("/v1/tasks/{}/items/{}", segment(&id), args.index))
        .await?;
    link.show_one(&ITEM, &answer, card)
}

fn card(item: &Value, times: &Times) -> Card {
    let state = item["state"].as_str().unwrap_or("unknown");
    let tone = match state {
        "abandoned" => Tone::Bad,
        "parked" => Tone::Warn,
        _ => Tone::Plain,
    };
    let index = human::count(item["index"].as_u64().unwrap_or(0));
    let mut card = Card::new()
        .title(format!("#{index}"), Tone::Strong)
        .title(state.replace('_', " "), tone);
    for attempt in item["timeline"].as_array().into_iter().flatten() {
        card = card.line(&format!("attempt {}", attempt["attempt"]), told(attempt, times));
    }
    let failure = &item["failure"];
    let text = |name: &str| failure[name].as_str();
    let origin = text("origin_task").map(|task| format!("#{} of {task}", failure["origin_index"]));
    let data = item
        .get("data")
        .filter(|data| !data.is_null())
        .map(Value::to_string);
    let missing = item["data_missing"]
        .as_str()
        .map(|why| format!("not shown: {why}"));
    card.maybe("data", data.or(missing))
        .maybe("next attempt", item["due_at"].as_str().map(|at| times.text(at)))
        .maybe("message", text("message"))
        .maybe(
            "output",
            failure
                .get("output")
                .filter(|output| !output.is_null())
                .map(Value::to_string),
        )
        .maybe("origin", origin)
}

/// `3m ago   run 3   3.000 s   TIMEOUT`
fn told(attempt: &Value, times: &Times) -> String {
    let at = attempt["at_ms"]
        .as_i64()
        .and_then(chrono::DateTime::from_timestamp_millis);
    let at = at.map(|at| times.text(&at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)));
    let run = attempt["run"].as_u64().map(|run| format!("run {run}"));
    let took = attempt["duration_ms"]
        .as_u64()
        .map(|took| format!("{}.{:03} s", took / 1000, took % 1000));
    let code = attempt["code"].as_str().map(str::to_owned);
    [at, run, took, code]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("   ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::table::Paper;
    use crate::output::table::times::TimeStyle;

    #[test]
    fn an_item_is_told_attempt_by_attempt() {
        let item = json!({"index": 3817, "state": "abandoned", "attempts": 2, "due_at": null,
            "failure": {"code": "HTTP_500", "message": "db gone", "output": null, "origin_task": null},
            "timeline": [{"attempt": 1, "at_ms": 1_795_194_000_000_i64, "duration_ms": 3000, "code": "TIMEOUT", "run": 3},
                {"attempt": 2, "at_ms": 1_795_194_004_000_i64, "duration_ms": 21, "code": "HTTP_500", "run": 3}]});
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let text = card(&item, &times).text(Paper {
            width: None,
            colours: false,
        });
        assert_eq!(
            text,
            "#3,817  abandoned\n  attempt 1  2026-11-20 17:00:00Z   run 3   3.000 s   TIMEOUT\n  \
             attempt 2  2026-11-20 17:00:04Z   run 3   0.021 s   HTTP_500\n  message    db gone\n"
        );
    }
}
