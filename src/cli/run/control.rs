//! A run is steered from another terminal through a socket in its state directory: one line of JSON each way, see
//! [`Command`]. Whoever may read the directory may steer: nobody but its owner.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::json::{Job, JobChange, JobLive, settings};
use super::picture::Picture;
use windrow_core::ids::TaskId;
use windrow_core::settings::check;
use windrow_core::settings::table::TuningPatch;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::tasks::store::{TaskCommand, TaskStore, TaskView, Write};
use windrow_server::service;

/// The socket's name in the state directory.
const SOCKET: &str = "control.sock";
/// The longest address that every system takes. (Linux has 107, others 103.) Unit: bytes.
const ADDRESS_BYTES_MAX: usize = 100;
/// The longest question. Unit: bytes.
const ASK_BYTES_MAX: u64 = 16 << 10;
/// For so long a question may take to come.
const ASK_PATIENCE: Duration = Duration::from_secs(2);
/// Questions at once; one more waits until another is answered.
const ASKED_AT_ONCE: usize = 256;

/// What another terminal asks of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Command {
    /// How it stands.
    Show,
    /// Other settings; answered with those before and after.
    Set {
        /// Those that change.
        settings: Box<TuningPatch>,
    },
    /// To stop; calls in flight end first.
    Stop {
        /// Without waiting for them: they are repeated.
        #[serde(default)]
        now: bool,
    },
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply<T> {
    /// What was asked for.
    Done(T),
    /// Why it can't be.
    Refused(Refusal),
}

/// Why something that was asked for can't be.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// Each a line.
    pub(crate) because: Vec<String>,
    /// What a person may try.
    pub(crate) hint: Option<String>,
}

impl<T: ToString> From<T> for Refusal {
    fn from(why: T) -> Refusal {
        Refusal {
            because: vec![why.to_string()],
            hint: None,
        }
    }
}

/// Where the run of a state directory is asked.
#[derive(Debug)]
pub(crate) struct Address {
    path: PathBuf,
    /// Held open for as long as the address is used.
    _directory: Option<File>,
}

impl Address {
    /// The socket's own path; where that is longer than an address may be, a short one through the open directory.
    ///
    /// # Errors
    /// When the directory can't be opened.
    pub(crate) fn of(state: &Path) -> io::Result<Address> {
        let path = state.join(SOCKET);
        if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
            return Ok(Address {
                path,
                _directory: None,
            });
        }
        let directory = File::open(state)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()));
        Ok(Address {
            path,
            _directory: Some(directory),
        })
    }

    /// Asks the run, if there is one.
    ///
    /// # Errors
    /// As the kernel has it.
    pub(crate) async fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(&self.path).await
    }
}

/// What answers know of.
pub(super) struct ControlTarget {
    pub(super) name: String,
    pub(super) task: TaskId,
    pub(super) tasks: Arc<dyn TaskStore>,
    /// Has the run look at its wish and settings at once.
    pub(super) nudge: Box<dyn Fn() + Send + Sync>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) write: Write,
    pub(super) shown: watch::Receiver<Option<Picture>>,
}

/// The socket, until it is dropped.
pub(super) struct Control {
    path: PathBuf,
    answering: JoinHandle<()>,
}

impl Control {
    /// Begins to answer. One that a `kill -9` left makes way: the directory is held.
    ///
    /// # Errors
    /// When there can be no socket, such as on a file system that has none.
    pub(super) fn open(state: &Path, steered: ControlTarget) -> io::Result<Control> {
        let path = state.join(SOCKET);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(Address::of(state)?.path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let answering = tokio::spawn(steered.answer_all(listener));
        Ok(Control { path, answering })
    }

    /// Ends the answers: afterwards nothing of the run is held here.
    pub(super) async fn close(mut self) {
        self.answering.abort();
        match (&mut self.answering).await {
            Err(error) if error.is_panic() => {
                tracing::error!(%error, "the answers to other terminals ended by a panic");
            }
            _ => {}
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.answering.abort();
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "the control socket is left");
        }
    }
}

impl ControlTarget {
    /// Answers questions side by side: who says nothing keeps nobody waiting. They end with this future.
    async fn answer_all(self, listener: UnixListener) {
        let mut answers = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = listener.accept(), if answers.len() < ASKED_AT_ONCE => match accepted {
                    Ok((stream, _)) => answers.push(self.answer(stream)),
                    Err(_) => return,
                },
                Some(answered) = answers.next() => {
                    if let Err(error) = answered {
                        tracing::debug!(%error, "a question from another terminal broke off");
                    }
                }
            }
        }
    }

    async fn answer(&self, mut stream: UnixStream) -> io::Result<()> {
        let (reading, mut writing) = stream.split();
        let mut line = String::new();
        let mut reading = BufReader::new(reading.take(ASK_BYTES_MAX));
        tokio::time::timeout(ASK_PATIENCE, reading.read_line(&mut line)).await??;
        let told = match serde_json::from_str(&line) {
            Ok(ask) => self.obey(ask).await.map_or_else(Reply::Refused, Reply::Done),
            Err(error) => Reply::Refused(format!("the question can't be understood: {error}").into()),
        };
        let mut text = serde_json::to_string(&told)?;
        text.push('\n');
        tokio::time::timeout(ASK_PATIENCE, writing.write_all(text.as_bytes())).await?
    }

    async fn obey(&self, ask: Command) -> Result<Value, Refusal> {
        let task = self.tasks.get(self.task).await?;
        let task = task.ok_or_else(|| format!("{} is gone", self.task))?;
        match ask {
            Command::Show => Ok(json!(self.show(&task))),
            Command::Set { settings } => Ok(json!(self.set(&task, &settings).await?)),
            Command::Stop { now } => {
                let done = service::stop(&*self.tasks, self.task, now, &self.write, self.clock.wall()).await;
                (self.nudge)();
                Ok(done.map(|()| json!(self.show(&task)))?)
            }
        }
    }

    async fn set(&self, task: &TaskView, patch: &TuningPatch) -> Result<JobChange, Refusal> {
        if task.status.is_terminal() {
            return Err(format!("{} is {}", self.name, task.status).into());
        }
        let tuning = patch.apply(&task.tuning);
        let faults = check::faults(&tuning);
        if let Some(first) = faults.first() {
            let because = faults
                .iter()
                .map(|fault| format!("{}: {}", fault.key, fault.what))
                .collect();
            return Err(Refusal {
                because,
                hint: Some(first.advice.clone()),
            });
        }
        let tune = TaskCommand::Tune(Box::new(tuning));
        let changed = self
            .tasks
            .command(self.task, &tune, &self.write, self.clock.wall())
            .await?;
        (self.nudge)();
        Ok(JobChange {
            before: settings(&task.tuning),
            after: settings(&changed.tuning),
        })
    }

    fn show(&self, task: &TaskView) -> Job {
        let kept = Picture::of(task, &[], self.clock.wall());
        let picture = current(self.shown.borrow().clone(), kept);
        let is_moving = matches!(picture.status, Status::Running | Status::Stopping);
        let handler = picture
            .trouble
            .as_ref()
            .map(|handler| format!("{handler}{}", picture.who));
        Job {
            name: self.name.clone(),
            task: Some(self.task.to_string()),
            process: Some(std::process::id()),
            status: Some(picture.status.as_str().to_owned()),
            why: picture.stands_why(),
            total: Some(picture.total),
            percent: Some(picture.completion().percent()),
            counts: Some(api::TaskCounts::new(&picture.counts, picture.pending)),
            actual_rate: picture.speed.filter(|_| is_moving).map(|speed| speed.sent),
            eta_seconds: picture.eta().map(|eta| eta.as_secs()),
            settings: Some(settings(&task.tuning)),
            live: Some(JobLive {
                latency_p95_seconds: picture
                    .latency_p95
                    .map(|p95| (p95.as_secs_f64() * 1e6).round() / 1e6),
                stall: picture.stall.map(|stall| stall.as_str().to_owned()),
                handler,
            }),
            ..Job::default()
        }
    }
}

/// The picture that was seen last, as far as it holds: once a task has ended, what is kept of it is final, and the picture
/// is older.
fn current(seen: Option<Picture>, kept: Picture) -> Picture {
    match seen {
        Some(seen) if kept.status == Status::Running => seen,
        // What it was doing when it was seen last is over.
        Some(seen) if !kept.status.is_terminal() => Picture {
            status: kept.status,
            ..seen
        },
        _ => kept,
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::ids::ItemCount;
    use windrow_core::items::counters::Counters;
    use windrow_core::settings::RateLimit;

    use super::*;

    fn picture(status: Status, succeeded: u64) -> Picture {
        let counts = Counters {
            succeeded,
            ..Counters::default()
        };
        Picture {
            status,
            why: None,
            next_try: None,
            total: 20,
            counts,
            pending: counts.pending(ItemCount(20)),
            rate: RateLimit::Unlimited,
            speed: None,
            latency_p95: None,
            stall: None,
            next_retry: None,
            trouble: None,
            subject: None,
            who: String::new(),
        }
    }

    #[test]
    fn a_job_that_has_finished_is_shown_with_its_final_counts() {
        let seen = || Some(picture(Status::Running, 19));
        for (kept, shown) in [
            ((Status::Running, 10), (Status::Running, 19)),
            ((Status::Stopping, 10), (Status::Stopping, 19)),
            ((Status::Finished, 20), (Status::Finished, 20)),
        ] {
            assert_eq!(
                current(seen(), picture(kept.0, kept.1)),
                picture(shown.0, shown.1)
            );
        }
    }
}
