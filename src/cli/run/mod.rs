//! Implementation of `windrow run`, one job in this process. Checks everything that can be checked, starts or resumes
//! the job's task, starts a node for this task only, follows it, and reports the outcome.

pub(super) mod args;
mod begin;
mod end;
pub(crate) mod handler;
pub(crate) mod items;
pub(crate) mod kept;
pub(super) mod lines;
pub(super) mod picture;
mod prepare;
mod watch;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use self::end::outcome::Outcome;
use self::end::results_out::ResultsOut;
use self::kept::resume::Before;
use self::kept::{apart, beside, only_failed, recall, refused, resume};
use self::prepare::Prepared;
use self::watch::{End, Watch};
use super::exit::Exit;
use super::fault::Fault;
use super::signals::Signals;
use crate::output::table::clean;
use crate::output::table::human::counted;
use crate::run::args::{IfFinished, RunArgs, Switch};
use crate::shell::Shell;

use crate::run::items::source::{Opened, open_shown};
use windrow_core::ids::{ItemIndex, ShardId};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::sources::provision::Provision;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::store::{Actor, TaskStore, TaskView, Write};
use windrow_node::handler_log::{self, HandlerLog};
use windrow_node::job_node::{JobNode, JobNodeOptions};
use windrow_node::jobs::BUSINESS;
use windrow_node::sources::{OpenedSource, stored_sources};
use windrow_node::{LockError, Runtimes, StateDir, Store, SystemClock};
use windrow_server::service::{self, Job, JobError, JobStart};

/// Largest number of this machine's jobs examined for one that a pipe or a mistyped name meant.
const OTHERS_MAX: usize = 10;

/// State of a run once its directory is locked.
struct JobRun<'a> {
    args: &'a RunArgs,
    shell: &'a Shell,
    prepared: Prepared,
    state: Arc<StateDir>,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    runtimes: Arc<Runtimes>,
    write: Write,
}

/// Creates the fault for a directory that can't be locked. A job's own directory is locked by that job.
fn in_use(args: &RunArgs, error: LockError) -> Fault {
    let fault = Fault::from(error);
    match &args.name {
        Some(name) if args.state.is_none() && fault.exit == Exit::Conflict => Fault {
            what: format!("job `{name}` is already running"),
            ..fault
        },
        _ => fault,
    }
}

/// Runs the job to its end.
///
/// # Errors
/// The reason why it can't, with its exit code.
pub(super) async fn run(args: Box<RunArgs>, shell: &Shell, runtimes: Arc<Runtimes>) -> Result<Exit, Fault> {
    let args = recall::completed(args, shell).await?;
    let args = &*apart::named(args, shell).await?;
    let mut signals = Signals::catch().map_err(|error| Fault::bug(error.to_string()))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let prepared = prepare::prepare(args, shell, &runtimes, &clock)?;
    handler::of_run::behind(args)
        .iter()
        .for_each(|line| shell.screen.say(line));
    if args.only_failed && !StateDir::database_in(&prepared.place).is_file() {
        // Check this before a directory is created for a job that never existed.
        return Err(only_failed::never_ran());
    }
    let is_new = !StateDir::database_in(&prepared.place).is_file();
    let state = Arc::new(StateDir::lock(&prepared.place).map_err(|error| in_use(args, error))?);
    let store = Arc::new(Store::open(&state.database()).await?);
    let write = Actor {
        name: shell.user(),
        source: "cli",
        ..Actor::windrow(None)
    }
    .writes();
    let mut job = JobRun {
        args,
        shell,
        prepared,
        state,
        store,
        clock,
        runtimes,
        write,
    };
    let exit = match job.keep_settings().await {
        Ok(()) => Box::pin(job.work(&mut signals)).await,
        Err(fault) => Err(fault),
    };
    let is_left_empty = is_new && job.has_begun_nothing().await;
    let held = job.state.clone();
    job.close().await;
    if is_left_empty {
        refused::remove(&held);
    }
    exit
}

impl JobRun<'_> {
    async fn keep_settings(&mut self) -> Result<(), Fault> {
        let Some(name) = &self.args.resume else {
            return Ok(());
        };
        match self.store.find(BUSINESS, name).await? {
            Some(task) => self.prepared.resume(self.args, &task),
            None => Ok(()),
        }
    }

    async fn work(&self, signals: &mut Signals) -> Result<Exit, Fault> {
        let spec = match (&self.prepared.spec, &self.args.resume) {
            (Some(spec), _) => self.listed(spec).await?.unwrap_or_else(|| spec.clone()),
            (None, name) => {
                // A directory given by flag has only its own jobs.
                let elsewhere = if self.args.state.is_none() {
                    self.shell.env.as_slice()
                } else {
                    &[]
                };
                let task = resume::find(&*self.store, name.as_deref().unwrap_or_default(), elsewhere).await?;
                if task.status.is_terminal() && !self.starts_over(&task) && !self.args.only_failed {
                    return Box::pin(self.tell_ended(task)).await;
                }
                resume::spec(&task, &self.state)?
            }
        };
        let opened = open_shown(
            &spec,
            &*self.store,
            &self.state.spool(),
            self.clock.wall(),
            &self.shell.screen,
            signals,
        )
        .await?;
        let opened = match opened {
            Opened::Items(opened) => *opened,
            Opened::Nothing(why) => return self.do_nothing(&spec, why).await,
        };
        if let Some(skipped) = &opened.skipped {
            self.shell.screen.must_say(&clean(&skipped.to_string()));
        }
        Box::pin(self.go(opened, signals)).await
    }

    /// Redoes the failed items of a job.
    async fn go_over_failed(&self, job: Job, signals: &mut Signals) -> Result<Exit, Fault> {
        let of = job.name.clone();
        let next = match only_failed::next(&*self.store, job).await? {
            only_failed::Next::Job(next) => next,
            only_failed::Next::Nothing(last) => {
                self.shell
                    .screen
                    .must_say(&format!("{of} has no failed items left; nothing to do"));
                return self.tell(Outcome::gather(&*self.store, *last, None).await?).await;
            }
        };
        let before = Before::of(&*self.store, &next.business, &next.name).await?;
        let (JobStart::New(task) | JobStart::Resumed(task) | JobStart::Ended(task)) =
            self.begin(&next).await?;
        self.say(&format!(
            "{}: retrying the {} that failed in \"{of}\", as job \"{}\"{}",
            task.id,
            counted(task.total.0, "item"),
            next.name,
            before.repeats()
        ));
        let source = self.source_of(&task).await?;
        Box::pin(self.drive(task, source, signals)).await
    }

    /// Opens the items of a job as stored with it.
    async fn source_of(&self, task: &TaskView) -> Result<Arc<dyn Source>, Fault> {
        let sources = stored_sources(&self.store, &self.state, &self.clock);
        sources.open(task).await.map_err(|error| {
            Fault::new(
                Exit::Rejected,
                format!("can't read the items of {}", task.id),
                error.to_string(),
            )
        })
    }

    /// Creates the job's task or finds it. A finished one is started anew if the flags say so.
    async fn begin(&self, job: &Job) -> Result<JobStart, Fault> {
        let begin =
            async |restart| service::begin(&*self.store, job, restart, &self.write, self.clock.wall()).await;
        let begun = begin(self.args.restart).await;
        let there = match &begun {
            Ok(JobStart::Ended(task)) => Some(task),
            Err(JobError::OtherMeaning { task }) => Some(&**task),
            _ => None,
        };
        let begun = if there.is_some_and(|task| self.starts_over(task)) {
            begin(true).await
        } else {
            begun
        };
        if let Err(JobError::OtherMeaning { .. }) = &begun {
            // The input belongs to no job: it was stored before it could be compared.
            resume::forget_piped(&*self.store, &job.source, &self.state).await?;
        }
        begun.map_err(|error| {
            if self.args.resume.is_some() {
                resume::refused(error)
            } else {
                error.into()
            }
        })
    }

    /// True if a task that has ended is replaced by a new one.
    fn starts_over(&self, task: &TaskView) -> bool {
        let restarts = task.status == Status::Finished && self.args.if_finished == Some(IfFinished::Restart);
        self.args.restart || restarts
    }

    /// Mentions other unfinished jobs. An unnamed pipe is identified by its content, so one with other items may wait
    /// to be resumed; and a name may be mistyped.
    async fn tell_of_others(&self, begun: &TaskView) -> Result<(), Fault> {
        if self.args.state.is_none() && !self.args.restart {
            let mut kept = crate::run::kept::place::kept_in(&self.shell.env);
            kept.truncate(OTHERS_MAX);
            beside::lines(begun, self.state.path(), kept)
                .await
                .iter()
                .for_each(|line| self.say(line));
        }
        if self.args.name.is_none() && resume::is_piped(begun) {
            for line in resume::others(&*self.store, begun).await? {
                self.say(&line);
            }
        }
        Ok(())
    }

    fn job(&self, opened: &OpenedSource) -> Job {
        let name = self.name_of(opened);
        Job {
            business: BUSINESS.to_owned(),
            name,
            source: opened.spec.to_text(),
            meaning: opened.meaning,
            total: opened.source.total(),
            skip_first: ItemIndex(0),
            tuning: self.prepared.tuning.clone(),
            metering: self.prepared.metering.clone(),
            labels: self.labels(),
            parent: None,
        }
    }

    async fn drive(
        &self,
        task: TaskView,
        source: Arc<dyn Source>,
        signals: &mut Signals,
    ) -> Result<Exit, Fault> {
        let how = resume::how(&task);
        self.tell_of_rate(&task);
        self.tell_of_limits();
        let (node, log) = self.start(&task, source.clone()).await?;
        let (begun, settled_before) = (self.clock.now(), task.counters.settled());
        let watch = Watch {
            stops_for: OnceLock::new(),
            is_interrupted: AtomicBool::new(false),
            node: node.node(),
            service: node.service(),
            screen: &self.shell.screen,
            write: &self.write,
            drain_timeout: self.drain_timeout(&task),
            source: &*source,
            metering: &self.prepared.metering,
            members: self.members(),
            meters: self.store.meters(),
        };
        let mut results = ResultsOut::begin(self.args, &self.store, &task, &source).await?;
        let end = Box::pin(self.follow(&watch, task, signals, &mut results)).await;
        // Measure before anything is closed: the speed of a job is that of its calls.
        let took = self.clock.now().since(begun);
        let calmly = matches!(end, Ok(End::Stopped(..)));
        // After the task has ended, a signal only cuts short the wait for its handler's end.
        let is_closed = watch::close(node, signals, calmly).await;
        if is_closed {
            log.close().await;
        }
        let cut = matches!(end, Ok(End::Cut));
        if let Some(results) = results.filter(|_| !cut) {
            self.tell_results(results.finish().await?);
        }
        match end? {
            End::Stopped(task, seen) => {
                let settled = task.counters.settled().saturating_sub(settled_before);
                let outcome = Outcome::gather(&*self.store, *task, Some((took, settled))).await?;
                Box::pin(self.tell(outcome.seeing(seen))).await
            }
            End::Cut => self.tell_cut(&how),
        }
    }

    /// Starts the node of this task, and the log of its handler's output.
    async fn start(&self, task: &TaskView, source: Arc<dyn Source>) -> Result<(JobNode, HandlerLog), Fault> {
        let shard = ShardId { task: task.id, no: 0 };
        let work = self.runtimes.work();
        let (sink, log) = handler_log::open(self.store.clone(), shard, self.clock.clone(), work);
        let provision = Provision {
            handler: self.handler(task, sink).await?,
            source,
            limits: Vec::new(),
        };
        let options = JobNodeOptions {
            name: BUSINESS.to_owned(),
            config: self.prepared.config.clone(),
            state: self.state.clone(),
            store: self.store.clone(),
            runtimes: self.runtimes.clone(),
            user: self.shell.user(),
            first_contact: self.prepared.first_contact,
        };
        let mut node = JobNode::start(options).await?;
        node.jobs().add(task, provision);
        self.open(task, &mut node).await;
        node.node().wake();
        Ok((node, log))
    }

    /// Opens the run to other terminals and to a browser. If that fails, the run goes on and says so.
    async fn open(&self, task: &TaskView, node: &mut JobNode) {
        if self.args.control == Switch::On
            && let Err(error) = node.listen()
        {
            let place = self.state.path().display();
            self.say(&format!(
                "windrow job can't reach this run: no socket in {place}: {error}"
            ));
        }
        if self.args.page {
            self.shell.screen.must_say(&match node.page().await {
                Ok((address, query)) => format!("page: {address}/tasks/{}?{query}", task.id),
                Err(error) => format!("warning: the job has no page: {error}"),
            });
        }
    }

    /// Returns the time for calls in flight to end. They may use their whole timeout; only a handler that hangs is
    /// cut off.
    fn drain_timeout(&self, task: &TaskView) -> Duration {
        self.prepared
            .config
            .node
            .drain_timeout
            .max(task.tuning.timeout + Duration::from_secs(5))
    }

    fn say(&self, line: &str) {
        self.shell.screen.say(line);
    }

    /// Closes the database. If that fails, the next start reads its journal.
    async fn close(self) {
        if let Err(error) = self.store.close().await {
            tracing::warn!(%error, "the database was not closed; nothing saved is lost");
        }
    }
}
