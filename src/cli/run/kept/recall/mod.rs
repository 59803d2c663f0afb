//! Record of the handler that a job was started with, and of the files for its results and failures, so that
//! `--resume NAME` alone resumes it. It is stored with the job as the words that were typed. Possible secrets are
//! never stored; the user then gets the command to type again.

mod typed;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{beside, resume};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::shell_word;
use crate::run::JobRun;
use crate::run::args::{IfFinished, RunArgs};
use crate::run::handler::{HANDLER, identity};
use crate::shell::Shell;
use windrow_core::task::lifecycle::Status;
use windrow_core::task::spec::SpecPatch;
use windrow_engine::ports::tasks::store::{TaskCommand, TaskEdit, TaskStore, TaskView};
use windrow_node::StateDir;
use windrow_server::service::{Job, JobError};

/// Label in which a job records the words of its handler.
const COMMAND: &str = "command";

/// Flag of a handler, without a value, that may also be typed next to `--resume`.
const ALLOW_DASHES: &str = "--allow-dashes";

/// Recorded words of a handler.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    /// Directory in which they were typed, to which their paths are relative.
    place: PathBuf,
    /// Words, split as a shell would.
    words: Vec<String>,
    /// Parts that aren't stored because they may be secret; … stands in their place.
    #[serde(default)]
    left_out: Vec<String>,
}

/// Returns the record of the command's handler, or `None` if its words aren't text.
fn label(args: &RunArgs) -> Option<String> {
    let place = std::env::current_dir().ok()?;
    let words::Words { words, left_out } = words::of(args)?;
    serde_json::to_string(&Kept {
        place,
        words,
        left_out,
    })
    .ok()
}

impl JobRun<'_> {
    /// Returns the labels that record the command's handler.
    pub(in crate::run) fn labels(&self) -> BTreeMap<String, String> {
        let command = label(self.args).map(|words| (COMMAND.to_owned(), words));
        let handler = (HANDLER.to_owned(), identity::of(self.args));
        command.into_iter().chain([handler]).collect()
    }

    /// Records the handler of a resumed job if it is a new one, so that the next resume uses it.
    pub(in crate::run) async fn remember(&self, task: &TaskView, job: &Job) -> Result<(), Fault> {
        let command = job.labels.get(COMMAND);
        if task.spec.labels.get(COMMAND) == command {
            return Ok(());
        }
        let mut labels = task.spec.labels.clone();
        labels.remove(COMMAND);
        labels.extend(command.map(|words| (COMMAND.to_owned(), words.clone())));
        let edit = TaskEdit {
            spec: SpecPatch {
                labels: Some(labels),
                ..SpecPatch::default()
            },
            ..TaskEdit::default()
        };
        let edit = TaskCommand::Edit(Box::new(edit));
        let now = self.clock.wall();
        let kept = TaskStore::command(&*self.store, task.id, &edit, &self.write, now).await;
        kept.map(drop).map_err(|error| JobError::from(error).into())
    }
}

/// Adds the recorded handler to a command that names a job to resume, but no handler.
///
/// # Errors
/// `NotFound` if there is no such job; `Usage`, with the command to type, if its handler isn't stored completely.
pub(in crate::run) async fn completed(mut args: Box<RunArgs>, shell: &Shell) -> Result<Box<RunArgs>, Fault> {
    let Some(name) = args.resume.clone().filter(|_| !identity::has_handler(&args)) else {
        return Ok(args);
    };
    let place = resume::place(&name, args.state.as_deref(), &shell.env)?;
    // A directory given by flag has only its own jobs.
    let elsewhere = match args.state {
        None => shell.env.as_slice(),
        Some(_) => &[],
    };
    let database = StateDir::database_in(&place);
    let found = beside::looked_at(&database, async |store| {
        resume::find(store, &name, elsewhere).await
    });
    let task = match found.await {
        Some(found) => Some(found?),
        None => None,
    };
    let begun = Begun {
        name: &name,
        state: args.state.as_deref(),
    };
    match begun.kept(task.as_ref(), &args) {
        Ok(mut kept) => {
            if task.is_some_and(|task| is_only_told(&task, &args)) {
                (kept.results.out, kept.failures_out) = (None, None);
            }
            take(&mut args, kept);
        }
        // No handler is called: the command only reports the end and writes results.
        Err(_) if task.is_some_and(|task| is_only_told(&task, &args)) => {}
        Err(fault) => return Err(fault),
    }
    Ok(args)
}

/// True if the command only reports how the job ended.
fn is_only_told(task: &TaskView, args: &RunArgs) -> bool {
    let restarts = task.status == Status::Finished && args.if_finished == Some(IfFinished::Restart);
    let starts_over = args.restart || restarts;
    task.status.is_terminal() && !args.only_failed && !starts_over
}

/// True if a job's items went to the handler of this command, or to the same URL with other flags.
pub(in crate::run) fn is_kin(task: &TaskView, args: &RunArgs) -> bool {
    let kept = task.spec.labels.get(COMMAND);
    let kept = kept.and_then(|text| read(&serde_json::from_str::<Kept>(text).ok()?));
    let is_same = |kept: RunArgs| {
        let calls = kept.url.is_some() || kept.request.request.is_some();
        calls && kept.url == args.url && kept.request.request == args.request.request
    };
    task.spec.labels.get(HANDLER) == Some(&identity::of(args)) || kept.is_some_and(is_same)
}

/// Moves the recorded handler, with the command's changes to it, into the command.
fn take(args: &mut RunArgs, kept: RunArgs) {
    args.worker = kept.worker;
    args.url = kept.url;
    args.each = kept.each;
    args.http = kept.http;
    args.request = kept.request;
    args.workers = kept.workers;
    args.config = kept.config;
    if kept.results.out.is_some() {
        args.results = kept.results;
    }
    if kept.failures_out.is_some() {
        args.failures_out = kept.failures_out;
    }
}

/// Parses the words of a handler with clap.
fn read(kept: &Kept) -> Option<RunArgs> {
    let own = ["run", "--total", "1"];
    RunArgs::read(own.into_iter().chain(kept.words.iter().map(String::as_str))).ok()
}

/// Job that is to be resumed.
struct Begun<'a> {
    name: &'a str,
    state: Option<&'a Path>,
}

impl Begun<'_> {
    /// Returns its recorded handler, as parsed from the command line.
    fn kept(&self, task: Option<&TaskView>, given: &RunArgs) -> Result<RunArgs, Fault> {
        let label = |label: &str| task.and_then(|task| task.spec.labels.get(label));
        let kept = label(COMMAND).and_then(|text| serde_json::from_str::<Kept>(text).ok());
        let Some(kept) = kept else {
            return Err(self.unknown(label(HANDLER)));
        };
        let mut read = read(&kept).ok_or_else(|| self.unknown(None))?;
        typed::over(&mut read, given)?;
        let lacks = words::lacking(&read);
        if !kept.left_out.is_empty() && !lacks.is_empty() {
            return Err(self.incomplete(&read, &lacks));
        }
        let is_here = std::env::current_dir().is_ok_and(|here| here == kept.place);
        if !is_here && words::has_paths(&read) {
            return Err(self.elsewhere(&kept));
        }
        Ok(read)
    }

    /// Returns `windrow run --resume push --state /d`, usable in any directory.
    fn command(&self) -> String {
        let rest: Vec<String> = typed::rest(std::env::args().skip(1));
        let rest: String = rest.iter().map(|word| format!(" {}", shell_word(word))).collect();
        resume::command_in(self.name, self.state) + &rest
    }

    fn unknown(&self, handler: Option<&String>) -> Fault {
        let flag = handler.and_then(|text| text.split(' ').next());
        let words = match flag {
            Some("--url") => "--url URL",
            Some("--request") => "--request REQUEST, with its other flags",
            Some("--each") => "--each COMMAND",
            Some(_) => "-- COMMAND…",
            None => "-- COMMAND… (or --url, --request or --each)",
        };
        self.fault("its handler was not stored")
            .hint(format!("{} {words}, as at its start", self.command()))
    }

    fn incomplete(&self, whole: &RunArgs, lacks: &[String]) -> Fault {
        let because = format!("{} may be secret, so it was not stored", lacks.join(" and "));
        let words = words::of(whole).unwrap_or_default().words;
        let command = self.command();
        // A switch typed now would appear twice.
        let is_said = |word: &String| command.split(' ').any(|said| said == word);
        let words = words
            .iter()
            .filter(|word| *word != ALLOW_DASHES || !is_said(word));
        let words: Vec<String> = words.map(|word| shell_word(word)).collect();
        self.fault(&because)
            .hint(format!("{command} {}", words.join(" ")))
    }

    fn elsewhere(&self, kept: &Kept) -> Fault {
        let place = shell_word(&kept.place.display().to_string());
        self.fault("it was started in another directory, and its handler has relative paths")
            .hint(format!("cd {place} && {}", self.command()))
    }

    fn fault(&self, because: &str) -> Fault {
        let what = format!("can't reuse the handler of {}", self.name);
        Fault::new(Exit::Usage, what, because)
    }
}
