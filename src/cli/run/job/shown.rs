//! Jobs as people and scripts see them.

use serde_json::Value;

use super::args::ListArgs;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Look, View};
use crate::output::body::{number, text};
use crate::output::judgement::with_made_good;
use crate::output::screen;
use crate::output::table::times::Times;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone, human};
use crate::run::items::introduction::long_period;
use crate::shell::Shell;
use windrow_core::explain::rate_text;
use windrow_core::settings::RateLimit;
use windrow_engine::ports::clock::Clock;
use windrow_node::SystemClock;

/// Jobs that run, and jobs that have run.
const JOBS: Listing = Listing {
    columns: COLUMNS,
    name: |job| job["name"].as_str().unwrap_or_default().to_owned(),
    none: "no job has run here; `windrow run` begins one",
};

/// Jobs that run.
const RUNNING: Listing = Listing {
    columns: COLUMNS,
    name: JOBS.name,
    none: "no job runs; `windrow job list` has those that have run",
};

const COLUMNS: &[Column] = &[
    Column::new("NAME", Side::Left, Keep::Always, 8, |job, _| {
        Cell::member(job, "name").tone(Tone::Strong)
    }),
    Column::new("STATUS", Side::Left, Keep::Always, 8, |job, _| {
        Cell::new(status(job)).plain(text(&job["status"]))
    }),
    Column::new("DONE", Side::Right, Keep::Always, 6, |job, _| {
        let done = job["percent"].as_f64();
        done.map_or_else(Cell::nothing, |percent| {
            Cell::new(format!("{percent:.1}%")).plain(percent.to_string())
        })
    }),
    Column::count("ITEMS", Keep::Rank(30), 5, "total"),
    Column::new("RATE", Side::Right, Keep::Rank(20), 6, |job, _| match rate(job) {
        Some(rate) => Cell::new(rate).plain(measured(job).map_or_else(String::new, |rate| rate.to_string())),
        None => Cell::nothing(),
    }),
    Column::new("LEFT", Side::Right, Keep::Rank(40), 5, |job, _| match eta(job) {
        Some(text) => Cell::new(text).plain(job["eta_seconds"].to_string()),
        None => Cell::nothing(),
    }),
    Column::new("ABANDONED", Side::Right, Keep::Rank(50), 9, |job, _| {
        let abandoned = Cell::count(job["counts"]["abandoned"].as_u64());
        match job["made_good"].as_u64() {
            None | Some(0) => abandoned,
            Some(good) => with_made_good(abandoned, good),
        }
    }),
    Column::new("RAN", Side::Left, Keep::Rank(60), 7, |job, times| {
        match (job["process"].is_null(), is_cut_off(job)) {
            (true, false) => Cell::time(job, "ran_at", times),
            (true, true) => Cell {
                text: format!("began {}", times.text(text(&job["ran_at"]))),
                ..Cell::time(job, "ran_at", times)
            },
            (false, _) => Cell::new("now").plain(text(&job["ran_at"])),
        }
    })
    .named("ran_at"),
    Column::text("GOES ON WITH", Keep::Rank(55), 20, "go_on").named("go_on"),
    Column::plain("PROCESS", Keep::Wide, 7, "process"),
    Column::text("PLACE", Keep::Wide, 7, "place"),
    Column::count("MADE GOOD", Keep::Csv, 5, "made_good"),
    Column::count("STILL FAILED", Keep::Csv, 5, "still_failed"),
    Column::count("MAY REPEAT", Keep::Csv, 5, "may_repeat"),
];

/// Whether its last run has no end that is known.
fn is_cut_off(job: &Value) -> bool {
    job["status"] == "cut_off"
}

/// `stopped`, `cut off`, `finished (with failures)`, `finished (all made good)`.
fn status(job: &Value) -> String {
    let word = text(&job["status"]).replace('_', " ");
    let is_made_good = job["made_good"].as_u64() > Some(0) && job["still_failed"] == 0;
    if is_made_good && job["status"] == "finished" {
        return format!("{word} (all made good)");
    }
    match job["result"].as_str().filter(|result| *result != "succeeded") {
        Some(result) => format!("{word} ({})", result.replace('_', " ")),
        None => word,
    }
}

/// `2 made good by --only-failed, 1 failed still`; none where nothing was made good.
fn redone(job: &Value) -> Option<String> {
    let good = job["made_good"].as_u64().filter(|good| *good > 0)?;
    let left = human::count(number(&job["still_failed"]));
    Some(format!(
        "{} made good by --only-failed, {left} failed still",
        human::count(good)
    ))
}

/// None while too little is known of it.
fn measured(job: &Value) -> Option<f64> {
    job["actual_rate"].as_f64()
}

/// `48.9/s of 50/s`; none where it doesn't run.
fn rate(job: &Value) -> Option<String> {
    if !matches!(text(&job["status"]), "running" | "stopping") {
        return None;
    }
    let actual = measured(job).map_or_else(|| "–".to_owned(), rate_text);
    Some(match job["settings"]["rate"].as_str() {
        Some(asked) if asked != "unlimited" => format!("{actual} of {asked}"),
        _ => actual,
    })
}

/// The same with what a low rate means for the next item, which may be a while in coming.
fn rate_and_period(job: &Value) -> Option<String> {
    let asked: Option<RateLimit> = job["settings"]["rate"]
        .as_str()
        .and_then(|rate| rate.parse().ok());
    let period = asked.and_then(long_period);
    let period = period.map_or_else(String::new, |period| format!(", one item every {period}"));
    Some(rate(job)? + &period)
}

fn eta(job: &Value) -> Option<String> {
    let seconds = job["eta_seconds"].as_u64()?;
    let span = humantime::format_duration(std::time::Duration::from_secs(seconds)).to_string();
    Some(human::eta_text(span, number(&job["counts"]["parked"])))
}

/// Lists them.
pub(super) fn list(jobs: &[Value], args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let listing = if args.running { &RUNNING } else { &JOBS };
    Look::new(&args.view, shell).list_at(now_ms(), listing, jobs, shell)
}

fn now_ms() -> i64 {
    SystemClock::new().wall().0
}

/// Shows one.
pub(super) fn one(job: &Value, view: &View, shell: &Shell) -> Result<Exit, Fault> {
    let look = Look::new(view, shell);
    let (jobs, times) = (std::slice::from_ref(job), look.times(now_ms()));
    let text = match look.form {
        Form::Json | Form::Ndjson => job.to_string(),
        Form::Name => JOBS.names(jobs),
        Form::Csv => JOBS.csv(jobs, &times, look.guard.into()),
        Form::Table | Form::Wide => card(job, &times).text(look.paper),
    };
    screen::put(&text).map(|()| Exit::Ok)
}

fn card(job: &Value, times: &Times) -> Card {
    let some = |value: &Value| value.as_str().map(str::to_owned);
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
    let process = (!job["process"].is_null()).then(|| format!("{} ({})", job["process"], text(&job["task"])));
    Card::new()
        .title(text(&job["name"]), Tone::Strong)
        .title(status(job), Tone::Plain)
        .maybe("why", some(&job["why"]))
        .maybe("handler", some(&job["handler"]))
        .line(
            "items",
            format!("{} of {}", counts.join(", "), human::count(number(&job["total"]))),
        )
        .maybe("failures", redone(job))
        .maybe("rate", rate_and_period(job))
        .maybe("waits for", some(&job["stall"]))
        .maybe("left", eta(job))
        .line("settings", settings.join(", "))
        .maybe("process", process)
        .time(
            if is_cut_off(job) { "began" } else { "ran" },
            &job["ran_at"],
            times,
        )
        .maybe("goes on", some(&job["go_on"]))
        .maybe("kept in", some(&job["place"]))
}
