//! `windrow task item`: what became of an item, attempt by attempt.

use serde_json::Value;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::body::{list, member, number};
use crate::output::judgement::judgement;
use crate::output::table::times::{Times, written};
use crate::output::table::{Card, Column, Keep, Listing, Side, Tone, human};
use crate::shell::Shell;
use crate::task::args::look::ItemArgs;
use crate::task::look::carried::carried;

/// An item, for scripts.
const ITEM: Listing = Listing {
    columns: &[
        Column::plain("INDEX", Keep::Always, 6, "index"),
        Column::text("KEY", Keep::Always, 6, "key"),
        Column::text("STATE", Keep::Always, 6, "state"),
        Column::count("ATTEMPTS", Keep::Always, 3, "attempts"),
        Column::time("DUE", Keep::Always, "due_at"),
        Column::text("CODE", Keep::Always, 6, "failure.code"),
        Column::text("MESSAGE", Keep::Always, 6, "failure.message"),
        Column::new("DATA", Side::Left, Keep::Always, 6, |item, _| {
            carried(item, "data")
        }),
    ],
    name: |item| item["index"].to_string(),
    none: "no item",
};

/// What is said of the attempts of an item that succeeded, also where some of them failed.
const UNTOLD: &str = "not kept: the history is that of items which failed for good, or still wait";

/// Shows an item.
///
/// # Errors
/// As [`Link::send`]; `NotFound` also for an item of which only the counters are kept.
pub(crate) async fn item(args: &ItemArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let answer = link.get(&format!("/v1/tasks/{id}/items/{}", args.index)).await?;
    link.show_one(&ITEM, &answer, card)
}

fn card(item: &Value, times: &Times) -> Card {
    let state = item["state"].as_str().unwrap_or("unknown");
    let tone = match state {
        "abandoned" => Tone::Bad,
        "parked" => Tone::Warn,
        _ => Tone::Plain,
    };
    let mut card = Card::new()
        .title(format!("#{}", human::count(number(&item["index"]))), Tone::Strong)
        .title(state.replace('_', " "), tone)
        .maybe(
            "skipped",
            item["skip"]
                .as_str()
                .map(|code| format!("{code}: unless a call that is out succeeds")),
        );
    for attempt in list(&item["timeline"]) {
        card = card.line(&format!("attempt {}", attempt["attempt"]), told(attempt, times));
    }
    let is_final = state == "abandoned";
    card = card.maybe("attempts", excused(item).filter(|_| !is_final));
    if state == "succeeded" {
        // What it came to is kept; how often it was tried is not.
        card = card.line("attempts", UNTOLD.to_owned());
    }
    let failure = &item["failure"];
    let json = |value: &Value| (!value.is_null()).then(|| value.to_string());
    let missing = item["data_missing"]
        .as_str()
        .map(|why| format!("not shown: {why}"));
    let origin = failure["origin_task"].as_str();
    card.maybe("key", item["key"].as_str())
        .maybe("trace", item["trace_id"].as_str())
        .maybe("data", member(item, "data").or(missing))
        .time("next attempt", &item["due_at"], times)
        .maybe("message", failure["message"].as_str())
        .maybe("judged", is_final.then(|| judgement(failure)))
        .maybe(
            "output",
            json(&item["output"]).or_else(|| json(&failure["output"])),
        )
        .maybe(
            "origin",
            origin.map(|task| format!("#{} of {task}", failure["origin_index"])),
        )
}

/// Count of the attempts that are held against an item which is tried again, where not all of them are.
fn excused(item: &Value) -> Option<String> {
    let (made, charged) = (number(&item["attempts"]), item["charged"].as_u64()?);
    let is_told = charged < made;
    is_told.then(|| format!("{made}, {charged} counted; the others are excused, by an outage for instance"))
}

/// `3m ago   run 3   3.000 s   TIMEOUT`
fn told(attempt: &Value, times: &Times) -> String {
    let at = attempt["at_ms"].as_i64().and_then(written);
    let took = attempt["duration_ms"].as_u64();
    let parts = [
        at.map(|at| times.text(&at)),
        attempt["run"].as_u64().map(|run| format!("run {run}")),
        took.map(|took| format!("{}.{:03} s", took / 1000, took % 1000)),
        attempt["code"].as_str().map(str::to_owned),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("   ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::table::Paper;
    use crate::output::table::times::TimeStyle;

    #[test]
    fn an_item_that_succeeded_says_that_its_attempts_are_not_kept() {
        let item =
            json!({"index": 7, "state": "succeeded", "attempts": 0, "timeline": [], "output": {"id": 1}});
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let text = card(&item, &times).text(Paper {
            width: None,
            colours: false,
        });
        assert!(
            text.contains("attempts  not kept: ") && text.contains("{\"id\":1}"),
            "{text}"
        );
    }

    #[test]
    fn an_item_is_told_attempt_by_attempt_and_judged_once_it_is_given_up() {
        let item = json!({"index": 3817, "state": "parked", "attempts": 2, "charged": 1, "due_at": null,
            "failure": {"code": "HTTP_500", "message": "db gone", "output": null, "origin_task": null,
                "attempts": 2, "charged": 1, "unconfirmed": false, "others_answered": null},
            "timeline": [{"attempt": 1, "at_ms": 1_795_194_000_000_i64, "duration_ms": 3000, "code": "TIMEOUT", "run": 3},
                {"attempt": 2, "at_ms": 1_795_194_004_000_i64, "duration_ms": 21, "code": "HTTP_500", "run": 3}]});
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let shown = |item: &Value| {
            card(item, &times).text(Paper {
                width: None,
                colours: false,
            })
        };
        let attempts = "  attempt 1  2026-11-20 17:00:00Z   run 3   3.000 s   TIMEOUT\n  \
             attempt 2  2026-11-20 17:00:04Z   run 3   0.021 s   HTTP_500\n";
        assert_eq!(
            shown(&item),
            format!(
                "#3,817  parked\n{attempts}  attempts   2, 1 counted; the others are excused, by an outage for instance\n  \
                 message    db gone\n"
            )
        );
        let mut given_up = item;
        given_up["state"] = json!("abandoned");
        given_up["failure"]["others_answered"] = json!(9);
        assert_eq!(
            shown(&given_up),
            format!(
                "#3,817  abandoned\n{attempts}  message    db gone\n  judged     1 of 2 attempts counts: 9 other calls were \
                 answered meanwhile\n"
            )
        );
    }
}
