//! Run among the other shards of its task: its share of the rate, booked before it grows, and signals from one shard
//! to all.

use std::time::Duration;
use windrow_words::engine as say;

use crate::actors::executor;
use crate::actors::launcher::idle::Idleness;
use crate::actors::launcher::run::Run;
use crate::actors::launcher::{Launcher, Msg};
use crate::actors::runtime::tree::Activity;
use crate::ports::ownership::run_store::Control;
use windrow_core::capacity::Refusal;
use windrow_core::execution::{Command, RunEnd, Shared};
use windrow_core::ids::WallMs;
use windrow_core::settings::RateLimit;
use windrow_core::shards::{Pause, PauseReason, Share};
use windrow_core::task::Tuning;
use windrow_core::task::lifecycle::TASK_RECOVERS;

/// Delay before a share that doesn't fit the node is requested again.
const BOOK_AGAIN: Duration = Duration::from_secs(5);
/// Interval at which a run asks for the failed items of the other shards: together they may stop the task.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Callback with the result of a booking request.
pub(crate) type Booked = Box<dyn FnOnce(Result<(), Refusal>) + Send>;
/// Callback that books another share, or the share of another rate, for the launcher's shard.
pub(crate) type BookSink = std::sync::Arc<dyn Fn(Part, Booked) + Send + Sync>;

/// Share of a task's rate, with the rate itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) share: Share,
    pub(crate) rate: RateLimit,
}

impl Part {
    pub(crate) fn of(control: &Control) -> Part {
        Part {
            share: control.shared.share,
            rate: control.tuning.rate,
        }
    }

    /// Returns the rate limit of the shard.
    pub(crate) fn limit(self) -> RateLimit {
        self.share.of_limit(self.rate)
    }
}

/// Share and settings that the core currently has.
#[derive(Clone, Debug)]
pub(crate) struct InForce {
    /// Share booked on this node.
    part: Part,
    tuning: Tuning,
    shared: Shared,
}

impl InForce {
    /// Starts with the share booked for the run, which may be less than its share by now.
    pub(crate) fn new(control: &Control, booked: Share) -> InForce {
        let part = Part {
            share: booked,
            rate: control.tuning.rate,
        };
        let shared = Shared {
            share: booked,
            ..control.shared
        };
        InForce {
            part,
            tuning: control.tuning.clone(),
            shared,
        }
    }
}

impl Run {
    /// Applies the control from the task's row. A lower rate holds at once, a higher one once it is booked.
    pub(crate) fn on_control(&mut self, control: Control, state: &Launcher) {
        if control.canary != self.control.canary {
            self.steer(Command::Canary(control.canary));
        }
        if control.failed_codes != self.control.failed_codes {
            self.steer(Command::MarkFailed(control.failed_codes.clone()));
        }
        if control.skips != self.control.skips {
            self.steer(Command::Skip(control.skips.clone()));
        }
        if let Some(end) = control
            .finish_at
            .filter(|_| control.finish_at != self.control.finish_at)
        {
            self.steer(Command::Finish(end));
        }
        if let Some(supply) = control.supply.filter(|_| control.supply != self.control.supply) {
            self.steer(Command::Supply(supply));
            self.idleness = Idleness::default();
        }
        let is_news = control.pause != self.control.pause || control.slow != self.control.slow;
        self.control = control;
        self.book(state);
        self.apply(state);
        if is_news {
            self.hear(state.arguments.node.clock.wall());
        }
        self.on_desired(self.control.desired);
    }

    /// Returns the share wanted from the node: next to nothing while the run waits for items.
    fn wanted_part(&self) -> Part {
        let part = Part::of(&self.control);
        Part {
            rate: self.idleness.rate(part.rate),
            ..part
        }
    }

    pub(crate) fn book(&mut self, state: &Launcher) {
        let wanted = self.wanted_part();
        if wanted == self.in_force.part {
            self.cell.let_grow();
            return;
        }
        let me = state.me.clone();
        let is_raise = wanted.limit().is_faster_than(self.in_force.part.limit());
        if !is_raise {
            self.in_force.part = wanted;
            self.cell.let_grow();
        }
        let booked: Booked = Box::new(move |outcome| {
            me.tell(Msg::Booked(wanted, outcome));
        });
        (state.arguments.book)(wanted, booked);
    }

    /// Handles the result of a booking. A share that doesn't fit is requested again; until then the old one holds.
    pub(crate) fn on_booked(&mut self, part: Part, outcome: Result<(), Refusal>, state: &Launcher) {
        if part != self.wanted_part() {
            return;
        }
        match outcome {
            Ok(()) => {
                self.in_force.part = part;
                self.cell.let_grow();
                self.apply(state);
            }
            Err(refusal) => {
                self.cell
                    .hold_back(self.in_force.part.limit(), part.limit(), refusal.to_string());
                let text = say::old_share(refusal.to_string());
                tracing::info!(actor = state.me.leaf.path(), %refusal, "no room for a larger share of the rate");
                state.me.leaf.say(Activity::Ok, text);
                state.me.tell_after(BOOK_AGAIN, Msg::BookAgain);
            }
        }
    }

    /// Requests the share that didn't fit again.
    pub(crate) fn book_again(&mut self, state: &Launcher) {
        self.book(state);
    }

    /// Passes changes of share and settings to the core and the executor.
    pub(crate) fn apply(&mut self, state: &Launcher) {
        let part = self.in_force.part;
        let shared = Shared {
            share: part.share,
            ..self.control.shared
        };
        let tuning = Tuning {
            rate: part.rate,
            ..self.control.tuning.clone()
        };
        if shared != self.in_force.shared {
            self.in_force.shared = shared;
            self.steer(Command::Shared(shared));
        }
        self.cell.limits.tune(part.limit(), tuning.batch.get());
        if tuning == self.in_force.tuning {
            return;
        }
        self.cell.tune(&tuning);
        let interval = tuning.checkpoint_interval;
        self.in_force.tuning = tuning.clone();
        self.steer(Command::Tune(Box::new(tuning)));
        let lanes = self.lanes(&state.arguments.node);
        self.executor.tell(executor::Msg::Paced(interval, lanes));
    }

    /// Applies a recovery, pause or slowdown that another shard received, if it isn't over.
    pub(crate) fn hear(&self, now: WallMs) {
        if let Some(pause) = self.task_recovers(now) {
            let text = say::task_recovers(pause.until.to_rfc3339()).to_string();
            self.steer(Command::Stop(RunEnd::Recovering {
                reason: TASK_RECOVERS,
                text,
            }));
            return;
        }
        let pause = self.control.pause.filter(|pause| pause.until > now);
        let pause = pause.filter(|pause| pause.reason != PauseReason::ErrorBudget);
        let slow = self.control.slow.filter(|slow| slow.until > now);
        if pause.is_some() || slow.is_some() {
            self.steer(Command::Heard(pause, slow));
        }
    }

    /// Returns the recovery of the whole task that another shard has begun.
    pub(crate) fn task_recovers(&self, now: WallMs) -> Option<Pause> {
        let pause = self.control.pause.filter(|pause| pause.until > now);
        pause.filter(|pause| pause.reason == PauseReason::ErrorBudget)
    }

    /// True if failed items of the other shards count against a limit of this task.
    pub(crate) fn counts_with_others(&self) -> bool {
        !self.control.shared.share.is_all() && self.control.tuning.error_budget.failed.is_some()
    }
}

impl Launcher {
    /// Checks the other shards, if the run has any, and whether a run of an open task waits for items.
    pub(crate) fn look_again(&mut self) {
        self.with_run(|run, state| {
            run.watch_idleness(state);
            if run.has_neighbours() {
                run.tell_found(state);
            }
        });
        let Some(run) = &self.run else { return };
        let is_alone = run.control().shared.share.is_all() && run.control().supply.is_none();
        let counts = run.counts_with_others();
        if counts {
            self.look();
        }
        if !is_alone {
            self.me.tell_after(LOOK_AGAIN, Msg::LookAgain);
        }
    }
}
