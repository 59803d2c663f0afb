//! Implementation of `windrow task item`: the history of an item, attempt by attempt.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::judgement::judgement;
use crate::output::table::times::{Times, written};
use crate::output::table::{Card, Column, Keep, Listing, Side, Tone, human};
use crate::shell::Shell;
use crate::task::args::look::ItemArgs;
use crate::task::look::carried::carried;

/// Listing of a single item, for scripts.
const ITEM: Listing<api::Item> = Listing {
    columns: &[
        Column::plain("INDEX", Keep::Always, 6, |item| Some(item.index.to_string())),
        Column::text("KEY", Keep::Always, 6, |item| &item.key),
        Column::text("STATE", Keep::Always, 6, |item| &item.state),
        Column::count("ATTEMPTS", Keep::Always, 3, |item| Some(item.attempts.into())),
        Column::time("DUE", Keep::Always, |item| item.due_at.as_deref()),
        Column::maybe("CODE", Keep::Always, 6, |item| {
            item.failure.as_ref()?.code.as_deref()
        }),
        Column::maybe("MESSAGE", Keep::Always, 6, |item| {
            item.failure.as_ref()?.message.as_deref()
        }),
        Column::new("DATA", Side::Left, Keep::Always, 6, |item, _| {
            carried(item.data.as_deref(), item.data_missing.as_deref())
        }),
    ],
    name: |item| item.index.to_string(),
    none: "no item",
};

/// Note for the attempts of a succeeded item, even if some of them failed.
const UNTOLD: &str = "not kept: attempts are stored only for failed and retrying items";

/// Shows an item with its attempts.
///
/// # Errors
/// Same as [`Link::send`]; also `NotFound` for an item that is only included in the counters.
pub(crate) async fn item(args: &ItemArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let answer = link.get(&format!("/v1/tasks/{id}/items/{}", args.index)).await?;
    link.show_one(&ITEM, &answer, card)
}

fn card(item: &api::Item, times: &Times) -> Card {
    let state = item.state.as_str();
    let tone = match state {
        "failed" => Tone::Bad,
        "parked" => Tone::Warn,
        _ => Tone::Plain,
    };
    let mut card = Card::new()
        .title(format!("#{}", human::count(item.index)), Tone::Strong)
        .title(state.replace('_', " "), tone)
        .maybe(
            "skipped",
            item.skip
                .as_ref()
                .map(|code| format!("{code}: unless a call in flight succeeds")),
        );
    for attempt in &item.timeline {
        card = card.line(&format!("attempt {}", attempt.attempt), told(attempt, times));
    }
    let is_final = state == "failed";
    card = card.maybe("attempts", excused(item).filter(|_| !is_final));
    if state == "succeeded" {
        // The outcome is kept, the number of attempts isn't.
        card = card.line("attempts", UNTOLD.to_owned());
    }
    let failure = item.failure.as_ref();
    let as_written = |json: &RawValue| json.get().to_owned();
    let missing = item
        .data_missing
        .as_ref()
        .map(|why| format!("not available: {why}"));
    let output = item.output.as_deref().map(as_written);
    let origin = failure.and_then(|failure| Some((failure.origin_index?, failure.origin_task.as_ref()?)));
    card.line("key", &item.key)
        .line("trace", &item.trace_id)
        .maybe("data", item.data.as_deref().map(as_written).or(missing))
        .time("next attempt", item.due_at.as_deref(), times)
        .maybe("message", failure.and_then(|failure| failure.message.as_deref()))
        .maybe("evidence", failure.filter(|_| is_final).map(judgement))
        .maybe(
            "output",
            output.or_else(|| Some(failure?.output.as_ref()?.to_string())),
        )
        .maybe(
            "origin",
            origin.map(|(index, task)| format!("#{index} of {task}")),
        )
}

/// Returns the number of attempts that count against a retrying item, if some of them don't.
fn excused(item: &api::Item) -> Option<String> {
    let (made, charged) = (item.attempts, item.charged);
    let is_told = charged < made;
    is_told.then(|| {
        format!(
            "{made}, {charged} counted; the others don't count, for example because \
        the handler was down"
        )
    })
}

/// Formats an attempt as `3m ago   run 3   3s   TIMEOUT`.
fn told(attempt: &api::ItemAttempt, times: &Times) -> String {
    let parts = [
        written(attempt.at_ms).map(|at| times.text(&at)),
        attempt.run.map(|run| format!("run {run}")),
        attempt
            .duration_ms
            .map(|took| human::span(Duration::from_millis(took))),
        Some(attempt.code.clone()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("   ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::Paper;
    use crate::output::table::times::TimeStyle;

    #[test]
    fn an_item_that_succeeded_says_that_its_attempts_are_not_kept() {
        let item = api::Item {
            index: 7,
            state: "succeeded".into(),
            output: RawValue::from_string("{\"id\":1}".into()).ok(),
            ..Default::default()
        };
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
        let attempt = |attempt, at_ms, duration_ms, code: &str| api::ItemAttempt {
            attempt,
            at_ms,
            duration_ms: Some(duration_ms),
            code: code.into(),
            run: Some(3),
        };
        let failure = |others_answered| api::Failure {
            code: Some("HTTP_500".into()),
            message: Some("db gone".into()),
            attempts: 2,
            charged: 1,
            others_answered,
            ..Default::default()
        };
        let item = api::Item {
            index: 3817,
            key: "s-t1-3817".into(),
            trace_id: "0af7".into(),
            state: "parked".into(),
            attempts: 2,
            charged: 1,
            failure: Some(failure(None)),
            timeline: vec![
                attempt(1, 1_795_194_000_000, 3000, "TIMEOUT"),
                attempt(2, 1_795_194_004_000, 21, "HTTP_500"),
            ],
            ..Default::default()
        };
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let shown = |item: &api::Item| {
            card(item, &times).text(Paper {
                width: None,
                colours: false,
            })
        };
        let attempts = "  attempt 1  2026-11-20 17:00:00Z   run 3   3s   TIMEOUT\n  \
             attempt 2  2026-11-20 17:00:04Z   run 3   21ms   HTTP_500\n";
        assert_eq!(
            shown(&item),
            format!(
                "#3,817  parked\n{attempts}  attempts   2, 1 counted; the others don't count, for \
                    example because the handler was down\n  key        s-t1-3817\n  trace      0af7\n  \
                    message    db gone\n"
            )
        );
        let given_up = api::Item {
            state: "failed".into(),
            failure: Some(failure(Some(9))),
            ..item
        };
        assert_eq!(
            shown(&given_up),
            format!(
                "#3,817  failed\n{attempts}  key        s-t1-3817\n  trace      0af7\n  message    db gone\n  evidence   1 of 2 attempts counted: 9 other calls were \
                 answered meanwhile\n"
            )
        );
    }
}
