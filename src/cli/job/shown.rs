//! Output of jobs for people and for scripts.

use serde_json::json;

use super::args::ListArgs;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::job::json::Job;
use crate::link::{Form, Look, View};
use crate::output::body::shown;
use crate::output::judgement::with_recovered;
use crate::output::screen;
use crate::output::table::times::Times;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone, human};
use crate::output::used::used_of;
use crate::output::{found, limits};
use crate::run::items::introduction::long_period;
use crate::shell::Shell;
use windrow_core::explain::rate_text;
use windrow_core::settings::RateLimit;
use windrow_engine::ports::clock::Clock;
use windrow_node::SystemClock;

/// Listing of all jobs, running or not.
const JOBS: Listing<Job> = Listing {
    columns: COLUMNS,
    name: |job| job.name.clone(),
    none: "no jobs yet; `windrow run` starts one",
};

/// Listing of running jobs only.
const RUNNING: Listing<Job> = Listing {
    columns: COLUMNS,
    name: JOBS.name,
    none: "no job is running; `windrow job list` lists past jobs",
};

const COLUMNS: &[Column<Job>] = &[
    Column::text("NAME", Keep::Always, 8, |job: &Job| &job.name).tone(Tone::Strong),
    Column::new("STATUS", Side::Left, Keep::Always, 8, |job, _| {
        Cell::new(status(job)).plain(job.status())
    }),
    Column::new("DONE", Side::Right, Keep::Always, 6, |job, _| {
        job.percent.map_or_else(Cell::nothing, |percent| {
            Cell::new(format!("{percent:.1}%")).plain(percent.to_string())
        })
    }),
    Column::count("ITEMS", Keep::Rank(30), 5, |job| job.total),
    Column::new("RATE", Side::Right, Keep::Rank(20), 6, |job, _| match rate(job) {
        Some(rate) => {
            Cell::new(rate).plain(job.actual_rate.map_or_else(String::new, |rate| rate.to_string()))
        }
        None => Cell::nothing(),
    }),
    Column::new("ETA", Side::Right, Keep::Rank(40), 5, |job, _| match eta(job) {
        Some(text) => Cell::new(text).plain(json!(job.eta_seconds).to_string()),
        None => Cell::nothing(),
    })
    .named("left"),
    Column::new("FAILED", Side::Right, Keep::Rank(50), 9, |job, _| {
        let failed = Cell::count(job.counts.as_ref().map(|counts| counts.failed));
        match recovered(job) {
            None | Some(0) => failed,
            Some(good) => with_recovered(failed, good),
        }
    }),
    Column::new("LAST RUN", Side::Left, Keep::Rank(60), 7, |job: &Job, times| {
        let ran_at = Cell::time(job.ran_at(), times);
        match (job.process, is_cut_off(job)) {
            (None, false) => ran_at,
            (None, true) => Cell {
                text: format!("started {}", ran_at.text),
                ..ran_at
            },
            (Some(_), _) => Cell::new("now").plain(job.ran_at().unwrap_or_default()),
        }
    })
    .named("ran_at"),
    Column::maybe("RESUME WITH", Keep::Rank(55), 20, |job: &Job| {
        job.go_on.as_ref()?.as_deref()
    })
    .named("go_on"),
    Column::plain("PROCESS", Keep::Wide, 7, |job| {
        job.process.map(|process| process.to_string())
    }),
    Column::maybe("PLACE", Keep::Wide, 7, |job| job.kept.as_ref()?.place.to_str()),
    Column::count("RECOVERED", Keep::Csv, 5, recovered),
    Column::count("STILL FAILED", Keep::Csv, 5, still_failed),
    Column::count("MAY REPEAT", Keep::Csv, 5, |job| job.kept.as_ref()?.may_repeat),
];

/// True if the last run has no recorded end.
fn is_cut_off(job: &Job) -> bool {
    job.status() == "cut_off"
}

fn recovered(job: &Job) -> Option<u64> {
    job.kept.as_ref()?.recovered
}

fn still_failed(job: &Job) -> Option<u64> {
    job.kept.as_ref()?.still_failed
}

/// Returns the status in words, such as `cut off` or `finished (with failures)`.
fn status(job: &Job) -> String {
    let word = job.status().replace('_', " ");
    let is_recovered = recovered(job) > Some(0) && still_failed(job) == Some(0);
    if is_recovered && job.status() == "finished" {
        return format!("{word} (all recovered)");
    }
    let kept = job.kept.as_ref();
    match kept.and_then(|kept| kept.result.as_ref()?.as_deref()) {
        Some(result) if result != "succeeded" => format!("{word} ({})", result.replace('_', " ")),
        _ => word,
    }
}

/// Returns the numbers of recovered and of still failed items, or `None` if none was recovered.
fn redone(job: &Job) -> Option<String> {
    let good = recovered(job).filter(|good| *good > 0)?;
    let left = human::count(still_failed(job).unwrap_or(0));
    Some(format!(
        "{} recovered by --only-failed, {left} still failed",
        human::count(good)
    ))
}

/// Returns the rate, such as `48.9/s of 50/s`, or `None` if the job isn't running.
fn rate(job: &Job) -> Option<String> {
    if !matches!(job.status(), "running" | "stopping") {
        return None;
    }
    // No measurement yet, because too little is known.
    let actual = job.actual_rate.map_or_else(|| "–".to_owned(), rate_text);
    let asked = asked_rate(job).map(human::of_limit);
    Some(actual + &asked.unwrap_or_default())
}

fn asked_rate(job: &Job) -> Option<RateLimit> {
    job.settings.as_ref()?.rate
}

/// Returns the rate and, if it is low, the interval between items, since the next one may take a while.
fn rate_and_period(job: &Job) -> Option<String> {
    let period = asked_rate(job).and_then(long_period);
    let period = period.map_or_else(String::new, |period| format!(", one item every {period}"));
    Some(rate(job)? + &period)
}

fn eta(job: &Job) -> Option<String> {
    let span = std::time::Duration::from_secs(job.eta_seconds?);
    let parked = job.counts.as_ref().map_or(0, |counts| counts.parked);
    Some(human::eta_text(human::span(span), parked))
}

/// Prints the list of jobs.
pub(super) fn list(jobs: &[Job], args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let listing = if args.running { &RUNNING } else { &JOBS };
    Look::new(&args.view, shell).list_at(now_ms(), listing, jobs, shell)
}

fn now_ms() -> i64 {
    SystemClock::new().wall().0
}

/// Prints one job in the requested format.
pub(super) fn one(job: &Job, view: &View, shell: &Shell) -> Result<Exit, Fault> {
    let look = Look::new(view, shell);
    let (jobs, times) = (std::slice::from_ref(job), look.times(now_ms()));
    let text = match look.form {
        Form::Json | Form::Ndjson => json!(job).to_string(),
        Form::Name => JOBS.names(jobs),
        Form::Csv => JOBS.csv(jobs, &times, look.guard.into()),
        Form::Table | Form::Wide => card(job, &times).text(look.paper),
    };
    screen::put(&text).map(|()| Exit::Ok)
}

/// Returns the counts above 0 with their names.
fn counted(job: &Job) -> String {
    let counts = json!(job.counts);
    let counts = counts.as_object().into_iter().flatten();
    let counts = counts.filter_map(|(name, number)| {
        let number = number.as_u64().filter(|number| *number > 0)?;
        Some(format!("{} {}", human::count(number), name.replace('_', " ")))
    });
    counts.collect::<Vec<_>>().join(", ")
}

/// Removes the word that the label says already.
fn without_label(handler: String) -> String {
    match handler.strip_prefix("handler ") {
        Some(rest) => rest.to_owned(),
        None => handler,
    }
}

fn card(job: &Job, times: &Times) -> Card {
    let settings = json!(job.settings);
    let settings = settings.as_object().into_iter().flatten();
    let settings: Vec<String> = settings
        .map(|(name, value)| format!("{} {}", name.replace('_', " "), shown(value)))
        .collect();
    let task = job.task.as_deref().unwrap_or_default();
    let live = job.live.clone().unwrap_or_default();
    Card::new()
        .title(&job.name, Tone::Strong)
        .title(status(job), Tone::Plain)
        .maybe("why", job.why.as_deref())
        .maybe("handler", live.handler.map(without_label))
        .line(
            "items",
            format!("{} of {}", counted(job), human::count(job.total.unwrap_or(0))),
        )
        .maybe("failures", redone(job))
        .maybe("rate", rate_and_period(job))
        .maybe("autopilot", live.autopilot.as_ref().map(found::whole))
        .maybe("used", used_of(job.costs.as_ref()))
        .maybe("limited by", live.stall.map(|stall| stall.replace('_', " ")))
        .maybe("ETA", eta(job))
        .line("settings", settings.join(", "))
        .maybe("metering", job.metering.as_ref().and_then(limits::metering))
        .maybe(
            "process",
            job.process.map(|process| format!("{process} ({task})")),
        )
        .time(
            if is_cut_off(job) { "started" } else { "last run" },
            job.ran_at(),
            times,
        )
        .maybe("resume", job.go_on.clone().flatten())
        .maybe(
            "directory",
            job.kept.as_ref().map(|kept| kept.place.display().to_string()),
        )
}
