//! Node of a job's directory: the process that works there or, if there is none, a node in this process.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::args::Remote;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::shell_word;
use windrow_client::{Client, Dial, Duplex, Tap};
use windrow_config::Config;
use windrow_core::ids::TaskId;
use windrow_node::job_node::{Address, Door, JobNode, JobNodeOptions};
use windrow_node::jobs::BUSINESS;
use windrow_node::{LockError, Runtimes, StartError, StateDir, Store};

/// Longest wait for a directory whose process is just ending.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// Interval between two attempts to get the directory.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Job of this machine, addressed by the verbs of tasks.
#[derive(Clone)]
pub(crate) struct Here {
    /// Name of the job, as the user typed it.
    pub(crate) job: String,
    /// Number of the job's task.
    pub(crate) task: TaskId,
    pub(crate) directory: Arc<Directory>,
}

impl Here {
    /// Replaces commands for tasks in a text by those for this job.
    pub(crate) fn said(&self, text: &str) -> String {
        let (task, name) = (self.task, shell_word(&self.job));
        let run = |flag: &str| format!("windrow run --resume {name}{flag}");
        // For a job at rest, these task commands become `windrow run`.
        let by_run = [
            ("start", "", ""),
            ("recover", "", ""),
            ("clone", "", " --restart"),
            ("redrive", " --all", " --only-failed"),
            ("redrive", " --code CODE", " --only-failed"),
            ("redrive", "", " --only-failed"),
        ];
        let said = by_run.iter().fold(text.to_owned(), |text, (verb, more, flag)| {
            replaced(&text, &format!("windrow task {verb} {task}{more}"), &run(flag))
        });
        let said = VERBS.iter().fold(said, |text, verb| {
            let job = format!("windrow job {verb} {name}");
            replaced(&text, &format!("windrow task {verb} {task}"), &job)
        });
        let said = said
            .replace("windrow biz edit", &run(" --url URL"))
            .replace("windrow task list", "windrow job list");
        without_flags_of_tasks(&said, &format!("windrow job set {name}"))
    }

    pub(super) fn client(&self, remote: &Remote, tap: Tap) -> Result<Client, Fault> {
        let elsewhere = [
            ("--server", remote.server.is_some()),
            ("--context", remote.context.is_some()),
            ("--token-file", remote.token_file.is_some()),
            ("--ca-file", remote.ca_file.is_some()),
        ];
        if let Some((flag, _)) = elsewhere.iter().find(|(_, is_given)| *is_given) {
            let because = format!("{flag} applies to tasks of a node; a job runs on this machine");
            return Err(Fault::new(Exit::Usage, "jobs have no server", because)
                .hint("omit it; or use `windrow task` for tasks of a node"));
        }
        Ok(self.directory.client(remote.request_timeout, tap))
    }
}

/// Replaces a command that ends with a task number, unless more digits follow.
fn replaced(text: &str, command: &str, by: &str) -> String {
    let mut parts = text.split(command);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        let is_other = rest.starts_with(|c: char| c.is_ascii_digit());
        whole += if is_other { command } else { by };
        whole += rest;
    }
    whole
}

/// Replaces a command whose flags jobs don't have. An upper bound of an automatic concurrency can be given as a fixed
/// concurrency; the other settings are only in the configuration.
fn without_flags_of_tasks(text: &str, set: &str) -> String {
    let text = text.replace(" --max-concurrency ", " --concurrency ");
    [
        "straggler-after",
        "unsaved-max",
        "checkpoint-interval",
        "parked-max",
    ]
    .iter()
    .fold(text, |text, flag| {
        let setting = format!("in the configuration: {} = ", flag.replace('-', "_"));
        text.replace(&format!("{set} --{flag} "), &setting)
    })
}

/// Verbs that jobs and tasks have in common.
const VERBS: [&str; 15] = [
    "show",
    "stop",
    "explain",
    "skip",
    "fail",
    "report",
    "failures",
    "item",
    "results",
    "log",
    "runs",
    "revisions",
    "wait",
    "watch",
    "set",
];

/// Directory of a job, with the node that serves it.
pub(crate) struct Directory {
    path: PathBuf,
    /// Name of the user, for the audit log.
    user: String,
    runtimes: Arc<Runtimes>,
    own: Mutex<Option<Own>>,
}

/// Node started in this process.
struct Own {
    node: JobNode,
    store: Arc<Store>,
}

impl Directory {
    pub(crate) fn new(path: &Path, user: String, runtimes: Arc<Runtimes>) -> Arc<Directory> {
        Arc::new(Directory {
            path: path.to_owned(),
            user,
            runtimes,
            own: Mutex::default(),
        })
    }

    fn client(self: &Arc<Directory>, timeout: Duration, tap: Tap) -> Client {
        let directory = self.clone();
        let dial: Dial = Arc::new(move || {
            let directory = directory.clone();
            Box::pin(async move { directory.dial().await })
        });
        Client::here(dial, timeout, tap)
    }

    async fn dial(&self) -> io::Result<Box<dyn Duplex>> {
        let mut own = self.own.lock().await;
        let until = Instant::now() + LOCK_PATIENCE;
        loop {
            if let Some(own) = &*own {
                return connect(&own.node.door()).await;
            }
            if let Some(stream) = held(&self.path).await? {
                return Ok(Box::new(stream));
            }
            match StateDir::lock(&self.path) {
                Ok(state) => *own = Some(self.start(state).await.map_err(io::Error::other)?),
                Err(LockError::LockedBy { .. }) if Instant::now() < until => sleep(LOOK_EVERY).await,
                Err(error) => return Err(io::Error::other(error.to_string())),
            }
        }
    }

    async fn start(&self, state: StateDir) -> Result<Own, StartError> {
        let store = Arc::new(Store::open(&state.database()).await?);
        let node = JobNode::start(JobNodeOptions {
            name: BUSINESS.to_owned(),
            config: Config::default(),
            state: Arc::new(state),
            store: store.clone(),
            runtimes: self.runtimes.clone(),
            user: self.user.clone(),
            first_contact: None,
        });
        let node = node.await?;
        Ok(Own { node, store })
    }

    /// Shuts down the node of this process, if there is one.
    pub(crate) async fn close(&self) {
        let Some(Own { node, store }) = self.own.lock().await.take() else {
            return;
        };
        if !node.drain().await {
            tracing::warn!("the job directory's node didn't end in time");
        }
        if let Err(error) = store.close().await {
            tracing::warn!(%error, "database not closed; no saved data is lost");
        }
    }
}

async fn connect(door: &Door) -> io::Result<Box<dyn Duplex>> {
    Ok(Box::new(door.connect().await?))
}

/// Connects to the process that holds a directory. `None` if none answers.
///
/// # Errors
/// Fails if the directory or its socket can't be used.
pub(crate) async fn held(directory: &Path) -> io::Result<Option<tokio::net::UnixStream>> {
    use ErrorKind::{ConnectionRefused, NotADirectory, NotFound};
    let reached = match Address::of(directory) {
        Ok(address) => address.connect().await,
        Err(error) => Err(error),
    };
    match reached {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if [NotFound, ConnectionRefused, NotADirectory].contains(&error.kind()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates a client of the process that holds a directory.
pub(crate) fn client_of(directory: &Path, timeout: Duration) -> Client {
    let directory = directory.to_owned();
    let dial: Dial = Arc::new(move || {
        let directory = directory.clone();
        Box::pin(async move {
            match held(&directory).await? {
                Some(stream) => Ok(Box::new(stream) as Box<dyn Duplex>),
                None => Err(ErrorKind::ConnectionRefused.into()),
            }
        })
    });
    Client::here(dial, timeout, Tap::new(windrow_client::Depth::Nothing, |_| {}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_task_are_told_as_those_of_its_job() {
        let runtimes = Arc::new(Runtimes::new().expect("threads"));
        let here = Here {
            job: "a b".to_owned(),
            task: TaskId(7),
            directory: Directory::new(Path::new("nowhere"), String::new(), runtimes.clone()),
        };
        for (text, said) in [
            (
                "windrow task set t7 --rate 1/s",
                "windrow job set 'a b' --rate 1/s",
            ),
            (
                "resume: windrow task start t7",
                "resume: windrow run --resume 'a b'",
            ),
            (
                "`windrow task redrive t7 --all`",
                "`windrow run --resume 'a b' --only-failed`",
            ),
            ("windrow task set t70", "windrow task set t70"),
            ("`windrow task show t7`", "`windrow job show 'a b'`"),
            ("windrow task list", "windrow job list"),
            (
                "windrow task set t7 --max-concurrency 750   allow 750",
                "windrow job set 'a b' --concurrency 750   allow 750",
            ),
            (
                "windrow task set t7 --straggler-after 100ms",
                "in the configuration: straggler_after = 100ms",
            ),
            ("windrow biz edit", "windrow run --resume 'a b' --url URL"),
        ] {
            assert_eq!(here.said(text), said);
        }
        drop(here);
        Arc::into_inner(runtimes)
            .expect("no other")
            .shut_down(Duration::from_secs(1));
    }
}
