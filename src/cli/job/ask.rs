//! Client for the runs of this machine.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::Which;
use super::{list, shelf};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::job::json::{Job, JobLive, metering, settings};
use crate::link::here;
use crate::output::table::human;
use crate::output::table::times::parsed;
use crate::run::kept::resume::{command_in, meant};
use crate::run::kept::{only_failed, place};
use crate::shell::Shell;
use windrow_client::{Client, ClientError, Request};
use windrow_core::ids::TaskId;
use windrow_core::task::lifecycle::StopReason;
use windrow_server::http::jobs::{self, BegunJob};

/// Longest time a run may take to answer, since its store may be busy.
const PATIENCE: Duration = Duration::from_secs(15);

/// Process that runs a job.
pub(super) struct There {
    /// Client connected to the process.
    client: Client,
    process: Option<u32>,
    /// Directory that the process holds.
    place: PathBuf,
    pub(super) job: BegunJob,
}

impl There {
    /// Fetches the job's task.
    ///
    /// # Errors
    /// Fails if the process doesn't answer.
    pub(super) async fn look(self) -> Result<Live, Fault> {
        let answer = self.client.get(&format!("/v1/tasks/{}", self.job.task)).await;
        let answer = answer.map_err(|error| fault(error, &self.place))?;
        let (task, at_ms) = (answer.read()?, answer.date_ms().unwrap_or_default());
        Ok(Live {
            there: self,
            task,
            at_ms,
        })
    }
}

/// Running job as reported by its process.
pub(super) struct Live {
    there: There,
    /// Task at the time of the answer.
    pub(super) task: api::Task,
    /// Node's time at the answer. Unit: milliseconds since 1970.
    at_ms: i64,
}

impl Live {
    /// Returns the directory that its process holds.
    pub(super) fn place(&self) -> &Path {
        &self.there.place
    }

    /// Returns the API path of its task, followed by `rest`.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/v1/tasks/{}{rest}", self.task.id)
    }

    /// Sends a change of its task.
    ///
    /// # Errors
    /// Fails if the process refuses the change.
    pub(super) async fn send(&self, request: Request) -> Result<api::Task, Fault> {
        let answer = self.there.client.send(request).await;
        let answer = answer.map_err(|error| fault(error, &self.there.place))?;
        Ok(answer.read()?)
    }

    /// Converts it to the form that `windrow job` shows.
    pub(super) async fn job(&self) -> Job {
        let task = &self.task;
        let is_moving = matches!(task.status.as_str(), "running" | "stopping");
        let live = task.live.as_ref();
        let handler = task.status_text.clone().filter(|_| task.status == "running");
        let who = match &handler {
            Some(_) => self.who().await,
            None => String::new(),
        };
        Job {
            name: self.there.job.name.clone(),
            task: Some(task.id.clone()),
            process: self.there.process,
            status: Some(task.status.clone()),
            why: self.why(),
            total: Some(task.total),
            percent: Some(task.pace.progress.percent),
            counts: Some(task.counts.clone()),
            actual_rate: task.pace.actual_rate.filter(|_| is_moving),
            eta_seconds: task.pace.eta_seconds,
            settings: Some(settings(&task.settings.tuning)),
            metering: metering(&task.spec),
            costs: task.costs.clone(),
            live: Some(JobLive {
                latency_p95_seconds: live.and_then(|live| live.latency_p95_seconds),
                stall: live.and_then(|live| live.stall.clone()),
                autopilot: live.and_then(|live| live.autopilot.clone()),
                handler: handler.map(|handler| handler + &who),
            }),
            ..Job::default()
        }
    }

    /// Returns the data of the item whose call failed last. Empty while the handler is down, which concerns no single
    /// item.
    async fn who(&self) -> String {
        let error = self
            .task
            .last_error
            .as_ref()
            .filter(|_| self.task.handler_down.is_none());
        let Some(error) = error else { return String::new() };
        let path = self.path(&format!("/items/{}", error.index));
        let item: Option<api::Item> = match self.there.client.get(&path).await {
            Ok(answer) => answer.read().ok(),
            Err(_) => None,
        };
        let data = item.and_then(|item| item.data);
        data.map(|data| human::who(data.get())).unwrap_or_default()
    }

    /// Returns the reason why the job makes no progress, and the time until its next attempt.
    fn why(&self) -> Option<String> {
        let task = &self.task;
        let reason = match task.status.as_str() {
            "running" | "finished" => return None,
            "stopping" | "stopped" => task.stop_reason.as_deref(),
            _ => task.status_reason.as_deref(),
        };
        let reason = reason.map(|slug| StopReason::parse(slug).map_or(slug, |reason| reason.text()));
        let text = task.status_text.as_deref();
        // The text of a command says more than `operator`.
        let reason = reason.map(|reason| reason.replace('_', " "));
        let reason = reason
            .as_deref()
            .filter(|reason| *reason != StopReason::Operator.as_str() || text.is_none());
        let told: Vec<&str> = reason.into_iter().chain(text).collect();
        let next = task.next.as_ref().and_then(|next| parsed(&next.at));
        let next =
            next.map(|at| Duration::from_millis((at.timestamp_millis() - self.at_ms).max(0).unsigned_abs()));
        let next = next.map(|span| format!("next attempt in {}", human::span(human::whole(span))));
        let parts: Vec<String> = [told.join(", ")]
            .into_iter()
            .chain(next)
            .filter(|part| !part.is_empty())
            .collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Finds a running job. If the job itself isn't running but its failures are being redone, returns that run.
///
/// # Errors
/// `NotFound` if there is no such job; `Conflict` if it isn't running.
pub(super) async fn live(which: &Which, shell: &Shell) -> Result<Live, Fault> {
    if let Some(live) = live_in(&places_of(which, shell)?, &which.name).await? {
        return Ok(live);
    }
    let running = all(shell).await?;
    let running: Vec<&str> = running.iter().map(|there| there.job.name.as_str()).collect();
    let names = place::names(&shell.env);
    Err(match list::kept(which, shell).await? {
        Some(_) => not_running(which, &running),
        None if which.state.is_none() && names.contains(&which.name) => never_began(&which.name),
        None => unknown(which, &running, &names),
    })
}

/// Returns the directories that may hold a job.
fn places_of(which: &Which, shell: &Shell) -> Result<Vec<PathBuf>, Fault> {
    let state = which.state.as_deref();
    let mut places = place::candidates(&which.name, state, &shell.env)?;
    if let Some(job) = only_failed::over(&which.name) {
        // A run over failures is kept in the directory of its job.
        places.extend(place::candidates(job, state, &shell.env)?);
    }
    Ok(places)
}

async fn live_in(places: &[PathBuf], name: &str) -> Result<Option<Live>, Fault> {
    for place in places {
        let Some(there) = Box::pin(in_place(place)).await.transpose()? else {
            continue;
        };
        if there.job.name == name || only_failed::over(&there.job.name) == Some(name) {
            return Box::pin(there.look()).await.map(Some);
        }
    }
    Ok(None)
}

/// Directory and task of a job.
pub(super) struct Found {
    pub(super) place: PathBuf,
    pub(super) task: TaskId,
    /// True while a process runs the job, or if nothing is left to do.
    pub(super) goes_on: bool,
}

/// Finds a job, running or not.
///
/// # Errors
/// Same as [`live`], except that a job may be idle.
pub(super) async fn find(which: &Which, shell: &Shell) -> Result<Found, Fault> {
    let fault = match live(which, shell).await {
        Ok(live) => {
            return Ok(Found {
                task: live
                    .task
                    .id
                    .parse()
                    .map_err(|_| Fault::bug("a task without a number"))?,
                place: live.there.place,
                goes_on: true,
            });
        }
        Err(fault) if fault.exit == Exit::Conflict => fault,
        Err(fault) => return Err(fault),
    };
    for place in places_of(which, shell)? {
        if let Some(kept) = shelf::named(&place, &which.name).await {
            return Ok(Found {
                task: kept.task.id,
                goes_on: !kept.claims_to_run(),
                place,
            });
        }
    }
    Err(fault)
}

/// Returns all running jobs of this user.
///
/// # Errors
/// Fails if the directory of jobs can't be read.
async fn all(shell: &Shell) -> Result<Vec<There>, Fault> {
    let mut found = Vec::new();
    for there in each(shell).await? {
        match there {
            Ok(there) => found.push(there),
            // It has just ended, or doesn't answer; the others may.
            Err(fault) => shell.screen.say(&fault.what),
        }
    }
    Ok(found)
}

/// Returns each running job, or the fault of the one that doesn't answer.
///
/// # Errors
/// Same as [`all`].
pub(super) async fn each(shell: &Shell) -> Result<Vec<Result<There, Fault>>, Fault> {
    let mut found = Vec::new();
    for place in places(shell)? {
        found.extend(Box::pin(in_place(&place)).await);
    }
    Ok(found)
}

/// Returns the job that is running in a directory.
pub(super) async fn in_place(place: &Path) -> Option<Result<There, Fault>> {
    let stream = match here::held(place).await {
        Ok(stream) => stream?,
        Err(error) => return Some(Err(unread(place, &error))),
    };
    let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
    drop(stream);
    let client = here::client_of(place, PATIENCE);
    match begun(&client).await {
        Ok(job) => job.map(|job| {
            Ok(There {
                client,
                process: process.and_then(|process| process.try_into().ok()),
                place: place.to_owned(),
                job,
            })
        }),
        Err(error) => Some(Err(fault(error, place))),
    }
}

/// Returns the job of a process, or `None` if it runs none.
async fn begun(client: &Client) -> Result<Option<BegunJob>, ClientError> {
    let begun: Vec<BegunJob> = client.get(jobs::PATH).await?.read()?;
    Ok(begun.into_iter().next())
}

/// Returns the directories of jobs that run without `--state`.
///
/// # Errors
/// Fails if the directory of jobs can't be read.
pub(super) fn places(shell: &Shell) -> Result<Vec<PathBuf>, Fault> {
    let base = place::of_jobs(&shell.env)?;
    let listed = match std::fs::read_dir(&base) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unread(&base, &error)),
    };
    let mut places: Vec<PathBuf> = listed
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    places.sort_unstable();
    Ok(places)
}

fn fault(error: ClientError, place: &Path) -> Fault {
    match error {
        ClientError::Problem(_) => {
            let fault = Fault {
                what: "the run refused the command".to_owned(),
                ..error.into()
            };
            fault.or_hint("windrow job show NAME shows its current state")
        }
        error => {
            let what = format!("the run in {} didn't respond", place.display());
            Fault::new(Exit::Unreachable, what, error.to_string())
                .hint("it may have just ended: windrow job list --running lists the running ones")
        }
    }
}

/// Creates the fault for a job that exists but isn't running.
pub(super) fn not_running(which: &Which, running: &[&str]) -> Fault {
    let because = match &which.state {
        Some(place) => format!("no run is active in {}", place.display()),
        None => "no `windrow run` of this user is running it".to_owned(),
    };
    let what = format!("the job {} isn't running", which.name);
    let go_on = format!(
        "{} resumes it, or shows its result",
        command_in(&which.name, which.state.as_deref())
    );
    // Conflict, as a node answers for a task: the job exists, but in the wrong state.
    let fault = Fault::new(Exit::Conflict, what, because);
    match running {
        [] => fault.hint(go_on),
        names => fault.hint(format!("{go_on}; running: {}", names.join(", "))),
    }
}

/// Creates the fault for a job whose items were never read to the end.
fn never_began(name: &str) -> Fault {
    let because = "the run ended before all items were read, so nothing was kept";
    Fault::new(Exit::NotFound, format!("the job {name} never started"), because)
        .hint("run it again with its source")
}

fn unknown(which: &Which, running: &[&str], kept: &[String]) -> Fault {
    let because = match &which.state {
        Some(place) => format!("none is running or kept in {}", place.display()),
        None => "none is running or kept on this machine".to_owned(),
    };
    let fault = Fault::new(Exit::NotFound, format!("no job named {}", which.name), because);
    let mut known: Vec<String> = running.iter().map(|name| (*name).to_owned()).collect();
    known.extend(
        kept.iter()
            .filter(|name| !running.contains(&name.as_str()))
            .cloned(),
    );
    fault.hint(match known.as_slice() {
        [] => "`windrow run` starts one; add --state DIR if it ran with it".to_owned(),
        known => {
            let meant = meant(&which.name, known);
            let running = match running {
                [] => String::new(),
                names => format!("; running: {}", names.join(", ")),
            };
            format!("{meant}{running}; --state DIR if it ran with one")
        }
    })
}

fn unread(path: &Path, error: &io::Error) -> Fault {
    Fault::new(
        Exit::Failed,
        format!("can't read {}", path.display()),
        error.to_string(),
    )
}
