//! Implementation of `windrow task report`.

use std::time::Duration;

use api::{Report, ReportCounts, ReportNet, Task};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link};
use crate::output::screen;
use crate::output::table::human::span;
use crate::output::table::times::Times;
use crate::output::table::{Card, Tone, human};
use crate::shell::Shell;
use crate::task::args::look::{ReportArgs, ReportForm};
use crate::task::look::failures;
use crate::task::make::redrive::at_least;
use crate::task::words;
use windrow_client::Request;
use windrow_core::task::spec::TaskSpec;

/// Counts that add up to the total.
const TERMS: [&str; 7] = [
    "succeeded",
    "skipped",
    "failed",
    "parked",
    "in_flight",
    "pending",
    "excluded",
];
/// Counts that are shown only if they aren't 0.
const RARE: [&str; 5] = ["skipped", "parked", "in_flight", "pending", "excluded"];

/// Prints the full history of a task.
///
/// # Errors
/// Same as [`Link::send`].
pub(crate) async fn report(args: &ReportArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let by_output = match link.look.form {
        Form::Json | Form::Ndjson => ReportForm::Json,
        Form::Table | Form::Wide => ReportForm::Text,
        Form::Name | Form::Csv => {
            let hint = "use -o table, -o json or --format markdown; `windrow task failures -o csv` lists \
                    failures";
            return Err(Fault::no_form("a report isn't a list", hint));
        }
    };
    let id = link.task(&args.task).await?;
    let form = args.format.unwrap_or(by_output);
    let format = if form == ReportForm::Markdown {
        "markdown"
    } else {
        "json"
    };
    let request = Request::get(&format!("/v1/tasks/{id}/report")).query("format", format);
    let answer = link.send(request).await?;
    screen::put(&match form {
        ReportForm::Json | ReportForm::Markdown => answer.text(),
        ReportForm::Text => card(&answer.read()?, &link.times(&answer)).text(link.look.paper),
    })?;
    Ok(Exit::Ok)
}

/// Returns the effect of redrives on a task's failures, with the redrives. `None` if there are no redrives.
///
/// # Errors
/// Same as [`Link::send`].
pub(crate) async fn redriven(link: &Link<'_>, id: &str) -> Result<Option<String>, Fault> {
    let one = Request::get("/v1/tasks").query("parent", id).query("limit", 1);
    if link.list(one, None).await?.things::<Task>()?.is_empty() {
        return Ok(None);
    }
    let story: Report = link.get(&format!("/v1/tasks/{id}/report")).await?.read()?;
    let ids: Vec<&str> = story.redrives.iter().map(|task| task.id.as_str()).collect();
    Ok((!ids.is_empty()).then(|| format!("{}   ({})", net(&story.net), ids.join(", "))))
}

fn card(story: &Report, times: &Times) -> Card {
    let (task, judged) = (&story.task, judged(story));
    let (status, tone) = words::status(&judged);
    let because = task.status_text.as_ref().map(|text| times.style.within(text));
    let took = task.took_seconds;
    let took = took.and_then(|took| Duration::try_from_secs_f64(took).ok());
    let mut card = Card::new()
        .title(words::address(&judged), Tone::Strong)
        .title(&task.id, Tone::Plain)
        .title(status, tone)
        .maybe("because", because)
        .line("items", counts(&story.counts))
        .maybe("took", took.map(span))
        .time("created", Some(&task.created_at), times)
        .time("started", task.started_at.as_deref(), times)
        .time("finished", task.finished_at.as_deref(), times);
    for group in &story.failures {
        card = card.toned("failure", failures::group(group), Tone::Bad);
    }
    for redrive in &story.redrives {
        let status = words::status(&Task {
            status: redrive.status.clone(),
            result: redrive.result.clone(),
            stop_reason: redrive.stop_reason.clone(),
            ..Default::default()
        });
        let (id, status, counts) = (&redrive.id, status.0, counts(&redrive.counts));
        card = card.line("redrive", format!("{id}  {status}   {counts}"));
    }
    card = card
        .line("net", net(&story.net))
        .line("runs", story.runs.len().to_string());
    for entry in &story.timeline {
        let reason = entry.reason.as_ref().map(|reason| format!("   {reason}"));
        let who = format!("{}  {}", entry.actor, entry.action);
        card = card.line(&times.text(&entry.at), who + &reason.unwrap_or_default());
    }
    proof(card, story)
}

/// Returns the report's task as other commands have it: with its counts, and with the items that redrives recovered.
fn judged(story: &Report) -> Task {
    let (task, net) = (story.task.clone(), &story.net);
    let mut judged = Task {
        id: task.id,
        business: task.business,
        spec: TaskSpec {
            name: task.name,
            ..TaskSpec::default()
        },
        status: task.status,
        result: task.result,
        stop_reason: task.stop_reason,
        counts: story.counts.terms.clone(),
        ..Default::default()
    };
    judged.beside.redriven = (!story.redrives.is_empty()).then_some(api::TaskRedriven {
        recovered: net.recovered,
        still_failed: net.still_failed,
        exact: net.exact,
    });
    judged
}

fn counts(counts: &ReportCounts) -> String {
    let total = human::count(counts.total);
    format!("total {total}  {}", words::counts(&counts.terms, &TERMS, &RARE))
}

fn net(net: &ReportNet) -> String {
    let [failed, recovered, still_failed] = [net.failed, net.recovered, net.still_failed].map(human::count);
    let at_least = at_least(net);
    format!("failed {failed}  recovered {recovered}  still failed {still_failed}{at_least}")
}

fn proof(card: Card, story: &Report) -> Card {
    let proof = &story.proof;
    // Until the task ends, its items are still being settled.
    let has_ended = ["finished", "cancelled"].contains(&story.task.status.as_str());
    let not_so = if has_ended { '✗' } else { '–' };
    let (word, tone) = match (proof.holds, has_ended) {
        (true, _) => ("✓ every item is accounted for", Tone::Good),
        (false, true) => ("✗ not all items are accounted for", Tone::Warn),
        (false, false) => ("– checked when the task ends", Tone::Plain),
    };
    let mut card = card.toned("proof", word, tone);
    for check in &proof.checks {
        let sign = if check.holds { '✓' } else { not_so };
        card = card.line("", format!("{sign} {}: {}", check.claim, check.evidence));
    }
    card.line("caveat", &proof.limit)
}
