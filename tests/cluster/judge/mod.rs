//! The judge: keeps logs of its own and holds them against what users are promised.
//!
//! It hears of every write as the store takes effect (`books.rs`), of every departure and every answer at the handler
//! (`gate.rs`), and never asks the code under test what it believes. What it finds wrong it collects: a panic inside
//! an actor would only be supervised away.

mod books;
mod end;
mod gate;
mod leases;
mod pace;
mod results;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::ids::{ClaimId, Moment, SessionId, ShardId, TaskId};
use windrow_core::settings::Results;
use windrow_core::task::Tuning;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::ownership::run_store::Control;
use windrow_engine::ports::tasks::store::{TaskCommand, TaskView};

pub(crate) use books::{Item, Run, Shard};
pub(crate) use gate::{Departure, Heard};

/// A node and which life of it.
pub(crate) type Who = (usize, u32);

/// How often things were seen.
pub(crate) type Tally = BTreeMap<&'static str, u64>;

/// What the judge knows of a session.
pub(crate) struct Session {
    pub(crate) lease_duration: Duration,
    pub(crate) fenced: bool,
    /// What its owner may believe, on its own clock: from the moments at which heartbeats were sent.
    pub(crate) trusted_until: Moment,
    /// When its heartbeat last moved in the store. Unit: nanoseconds of the world.
    pub(crate) beaten_at: u64,
    /// Its node asked to remove its row: it may be gone.
    pub(crate) has_ended: bool,
    /// When it heard that it is fenced. Unit: nanoseconds of the world.
    pub(crate) over_at: Option<u64>,
}

/// What the judge knows of a task.
pub(crate) struct Task {
    pub(crate) total: u64,
    pub(crate) status: Status,
    pub(crate) concurrency_max: u64,
    pub(crate) unsaved_max: u64,
    pub(crate) attempts_max: u32,
    pub(crate) keeps_results: bool,
    /// Where an early finish cuts it, if it was finished early.
    pub(crate) finish_at: Option<u64>,
    /// Accepted commands.
    pub(crate) commands: u64,
    /// The last accepted command that says whether it is to run.
    pub(crate) wanted: Wanted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Nothing,
    ToRun,
    ToStop,
    ToEnd,
}

/// See the module.
pub(crate) struct Judge {
    world: Instant,
    pub(crate) failures: Vec<String>,
    pub(crate) tally: Tally,
    log: Option<Vec<String>>,
    pub(crate) shards: BTreeMap<ShardId, Shard>,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    /// What the holder of a lease may believe, on its own clock.
    pub(crate) leases: BTreeMap<ClaimId, Moment>,
    /// The same, by node and shard.
    pub(crate) held: BTreeMap<(Who, ShardId), Moment>,
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    /// Leases that the lease store lost with its data.
    pub(crate) wiped: BTreeSet<ClaimId>,
    /// How long a lease alone may carry its run, where shards are taken over without a look at leases.
    pub(crate) alone: Option<Duration>,
    /// Nodes that people want to stand by.
    pub(crate) standing_by: BTreeSet<Who>,
    /// Where people want a shard.
    pub(crate) moves: BTreeMap<ShardId, usize>,
}

impl Judge {
    pub(crate) fn new(world: Instant, alone: Option<Duration>, logs: bool) -> Judge {
        Judge {
            world,
            failures: Vec::new(),
            tally: Tally::new(),
            log: logs.then(Vec::new),
            shards: BTreeMap::new(),
            sessions: BTreeMap::new(),
            leases: BTreeMap::new(),
            held: BTreeMap::new(),
            tasks: BTreeMap::new(),
            wiped: BTreeSet::new(),
            alone,
            standing_by: BTreeSet::new(),
            moves: BTreeMap::new(),
        }
    }

    /// The world's time. Unit: nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.world.elapsed().as_nanos()).expect("a scenario is short")
    }

    /// Writes a line of the log, if there is one.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        let at = self.now();
        if let Some(log) = &mut self.log {
            log.push(format!("{:>9.3} {}", at as f64 / 1e9, line()));
        }
    }

    pub(crate) fn take_log(&mut self) -> Vec<String> {
        self.log.take().unwrap_or_default()
    }

    /// Something is wrong.
    pub(crate) fn fail(&mut self, text: String) {
        self.note(|| format!("WRONG: {text}"));
        self.failures
            .push(format!("{:.3} s: {text}", self.now() as f64 / 1e9));
    }

    pub(crate) fn check(&mut self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.fail(text());
        }
    }

    pub(crate) fn seen(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    pub(crate) fn count(&mut self, happened: bool, what: &'static str) {
        if happened {
            self.seen(what);
        }
    }

    pub(crate) fn tasks(&self) -> Vec<TaskId> {
        self.tasks.keys().copied().collect()
    }

    /// A task was made.
    pub(crate) fn on_made(&mut self, id: TaskId, tuning: &Tuning, total: u64) {
        let task = Task {
            total,
            status: Status::Created,
            concurrency_max: 0,
            unsaved_max: 0,
            attempts_max: 0,
            keeps_results: tuning.results == Results::Keep,
            finish_at: None,
            commands: 0,
            wanted: Wanted::Nothing,
        };
        self.tasks.insert(id, task);
        self.on_tuning(id, tuning);
    }

    fn on_tuning(&mut self, id: TaskId, tuning: &Tuning) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let unsaved = match tuning.unsaved_max {
            windrow_core::settings::Auto::Fixed(number) => u64::from(number.get()),
            windrow_core::settings::Auto::Auto => 100_000,
        };
        task.unsaved_max = task.unsaved_max.max(unsaved);
        let concurrency = u64::from(tuning.concurrency_at_start().max(tuning.max_concurrency.get()));
        task.concurrency_max = task.concurrency_max.max(concurrency);
        task.attempts_max = task.attempts_max.max(tuning.max_attempts.get());
    }

    /// A command took effect, or was refused.
    pub(crate) fn on_command(&mut self, id: TaskId, command: &TaskCommand, accepted: bool) {
        self.note(|| format!("{id} {} {accepted}", name(command)));
        let Some(task) = self.tasks.get_mut(&id).filter(|_| accepted) else {
            return;
        };
        task.commands += 1;
        match command {
            command if command.is_start() => task.wanted = Wanted::ToRun,
            TaskCommand::Stop { .. } | TaskCommand::StopNow => task.wanted = Wanted::ToStop,
            TaskCommand::Cancel => task.wanted = Wanted::ToEnd,
            TaskCommand::Finish { end } => {
                task.finish_at = Some(task.finish_at.map_or(end.0, |before| before.min(end.0)));
            }
            _ => {}
        }
        if matches!(command, TaskCommand::StopNow) {
            let runs = self.shards.iter_mut().filter(|(shard, _)| shard.task == id);
            runs.flat_map(|(_, shard)| shard.runs.values_mut())
                .for_each(|run| run.may_abort = true);
        }
        if let TaskCommand::Tune(tuning) = command {
            let tuning = tuning.clone();
            self.on_tuning(id, &tuning);
        }
    }

    /// What a task is now: the sums hold, ends are final, and nothing is called stopped that may run.
    pub(crate) fn on_status(&mut self, view: &TaskView) {
        let counters = &view.counters;
        self.check(counters.accounted() <= view.total.0, || {
            format!("{} counts too much: {counters:?}", view.id)
        });
        let Some(task) = self.tasks.get_mut(&view.id) else {
            return;
        };
        let before = std::mem::replace(&mut task.status, view.status);
        if before == view.status {
            return;
        }
        let id = view.id;
        self.note(|| format!("{id} is {} ({before})", view.status));
        self.check(!before.is_terminal(), || {
            format!("{id} was {before} for good and is {}", view.status)
        });
        let is_at_rest = matches!(
            view.status,
            Status::Stopped | Status::Cancelled | Status::Finished
        );
        let open = self
            .shards
            .iter()
            .any(|(shard, book)| shard.task == id && book.is_open);
        self.check(!is_at_rest || !open, || {
            format!("{id} is {} while a run owns a shard of it", view.status)
        });
        if view.status == Status::Finished {
            let whole = counters.settled() + counters.excluded == view.total.0 && counters.parked == 0;
            self.check(whole, || {
                format!("{id} is finished with {counters:?} of {}", view.total.0)
            });
        }
    }

    /// A node read what a task wants and how it is to run.
    pub(crate) fn on_control(&mut self, who: Who, shard: ShardId, control: &Control) {
        let at = self.now();
        let Some(book) = self.shards.get_mut(&shard) else {
            return;
        };
        let Some(run) = book.runs.values_mut().rev().find(|run| run.who == who) else {
            return;
        };
        run.on_control(at, control);
    }

    /// A node begins to drain: what it has in flight is aborted if that takes too long.
    pub(crate) fn on_drain(&mut self, who: Who) {
        self.seen("drain");
        self.may_abort(who);
    }

    /// A process is gone: what it had in flight is.
    pub(crate) fn on_crash(&mut self, who: Who) {
        self.seen("crash");
        self.may_abort(who);
    }

    /// A process is gone in the moment in which a request of it took effect.
    pub(crate) fn on_trap(&mut self, who: Who, what: &'static str) {
        self.note(|| format!("n{}.{} is killed as its {what} takes effect", who.0, who.1));
        self.seen(match what {
            "claim" => "killed during a claim",
            "close" => "killed during a close",
            "checkpoint" => "killed during a checkpoint",
            "fence" => "killed during a fence",
            "disown" => "killed during a release for a dead node",
            _ => "killed during another request",
        });
        self.on_crash(who);
    }

    /// The node that runs a shard of the task.
    pub(crate) fn owner_of(&self, task: TaskId) -> Option<usize> {
        let open = self
            .shards
            .iter()
            .filter(|(id, shard)| id.task == task && shard.is_open);
        open.filter_map(|(_, shard)| Some(shard.runs.get(&shard.epoch)?.who.0))
            .next()
    }

    /// People want a node to stand by, or to take work again; what it has in flight for too long is aborted.
    pub(crate) fn on_drain_request(&mut self, who: Who, drain: bool) {
        if drain {
            self.seen("drain wished");
            self.standing_by.insert(who);
            self.may_abort(who);
        } else {
            self.standing_by.remove(&who);
        }
    }

    /// People want shards on another node; what their runs have in flight for too long is aborted.
    pub(crate) fn on_move(&mut self, task: TaskId, no: Option<u32>, to: usize) {
        self.seen("move wished");
        self.note(|| format!("{task} {no:?} is to move to n{to}"));
        let moved = |id: &ShardId| id.task == task && no.is_none_or(|no| no == id.no);
        for (id, shard) in self
            .shards
            .iter_mut()
            .filter(|(id, shard)| moved(id) && shard.is_open)
        {
            shard
                .runs
                .values_mut()
                .next_back()
                .into_iter()
                .for_each(|run| run.may_abort = true);
            self.moves.insert(*id, to);
        }
    }

    fn may_abort(&mut self, who: Who) {
        for shard in self.shards.values_mut() {
            for run in shard.runs.values_mut().filter(|run| run.who == who) {
                run.may_abort = true;
            }
        }
    }
}

fn name(command: &TaskCommand) -> &'static str {
    match command {
        command if command.is_start() => "start",
        TaskCommand::Stop { .. } => "stop",
        TaskCommand::StopNow => "stop --now",
        TaskCommand::Cancel => "cancel",
        TaskCommand::Tune(_) => "tune",
        TaskCommand::Finish { .. } => "finish",
        _ => "other",
    }
}
