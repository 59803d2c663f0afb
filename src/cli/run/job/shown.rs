//! Jobs as people and scripts see them.

use serde_json::Value;

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Look, View};
use crate::output::screen;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone, human};
use windrow_core::explain::rate_text;

/// Jobs that run.
const JOBS: Listing = Listing {
    columns: &[
        Column::new("NAME", Side::Left, Keep::Always, 8, |job, _| {
            Cell::member(job, "name").tone(Tone::Strong)
        }),
        Column::new("STATUS", Side::Left, Keep::Always, 8, |job, _| {
            Cell::member(job, "status")
        }),
        Column::new("DONE", Side::Right, Keep::Always, 6, |job, _| {
            let percent = job["percent"].as_f64().unwrap_or(0.0);
            Cell::new(format!("{percent:.1}%")).plain(percent.to_string())
        }),
        Column::new("ITEMS", Side::Right, Keep::Rank(30), 5, |job, _| {
            count(&job["total"])
        }),
        Column::new("RATE", Side::Right, Keep::Rank(20), 6, |job, _| {
            Cell::new(rate(job)).plain(job["actual_rate"].to_string())
        }),
        Column::new("LEFT", Side::Right, Keep::Rank(40), 5, |job, _| match eta(job) {
            Some(text) => Cell::new(text).plain(job["eta_seconds"].to_string()),
            None => Cell::nothing(),
        }),
        Column::new("ABANDONED", Side::Right, Keep::Rank(50), 9, |job, _| {
            count(&job["counts"]["abandoned"])
        }),
        Column::new("PROCESS", Side::Right, Keep::Wide, 7, |job, _| {
            Cell::member(job, "process")
        }),
    ],
    name: |job| job["name"].as_str().unwrap_or_default().to_owned(),
    none: "no job runs; `windrow run` begins one",
};

fn count(number: &Value) -> Cell {
    match number.as_u64() {
        Some(number) => Cell::new(human::count(number)).plain(number.to_string()),
        None => Cell::nothing(),
    }
}

/// `48.9/s of 50/s`
fn rate(job: &Value) -> String {
    let actual = rate_text(job["actual_rate"].as_f64().unwrap_or(0.0));
    match job["settings"]["rate"].as_str() {
        Some(asked) if asked != "unlimited" => format!("{actual} of {asked}"),
        _ => actual,
    }
}

fn eta(job: &Value) -> Option<String> {
    let seconds = job["eta_seconds"].as_u64()?;
    Some(humantime::format_duration(std::time::Duration::from_secs(seconds)).to_string())
}

/// Lists them.
pub(super) fn list(jobs: &[Value], view: &View, shell: &Shell) -> Result<Exit, Fault> {
    Look::new(view, shell).list(&JOBS, jobs, shell)
}

/// Shows one.
pub(super) fn one(job: &Value, view: &View, shell: &Shell) -> Result<Exit, Fault> {
    let look = Look::new(view, shell);
    let jobs = std::slice::from_ref(job);
    let text = match look.form {
        Form::Json | Form::Ndjson => job.to_string(),
        Form::Name => JOBS.names(jobs),
        Form::Csv => JOBS.csv(jobs, &look.times(0)),
        Form::Table | Form::Wide => card(job).text(look.paper),
    };
    screen::put(&text).map(|()| Exit::Ok)
}

fn card(job: &Value) -> Card {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let counts = job["counts"].as_object().into_iter().flatten();
    let counts: Vec<String> = counts
        .filter(|(_, number)| number.as_u64() != Some(0))
        .map(|(name, number)| {
            format!(
                "{} {}",
                human::count(number.as_u64().unwrap_or(0)),
                name.replace('_', " ")
            )
        })
        .collect();
    let settings = job["settings"].as_object().into_iter().flatten();
    let settings: Vec<String> = settings
        .map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{} {value}", name.replace('_', " "))
        })
        .collect();
    Card::new()
        .title(text(&job["name"]).unwrap_or_default(), Tone::Strong)
        .title(text(&job["status"]).unwrap_or_default(), Tone::Plain)
        .maybe("why", text(&job["why"]))
        .maybe("handler", text(&job["handler"]))
        .line(
            "items",
            format!(
                "{} of {}",
                counts.join(", "),
                human::count(job["total"].as_u64().unwrap_or(0))
            ),
        )
        .line("rate", rate(job))
        .maybe("waits for", text(&job["stall"]))
        .maybe("left", eta(job))
        .line("settings", settings.join(", "))
        .line(
            "process",
            format!("{} ({})", job["process"], text(&job["task"]).unwrap_or_default()),
        )
}
