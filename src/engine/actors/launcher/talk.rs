//! Talk of autopilots: a run tells what it found, to the other runs of its task each second, and to later tasks of its
//! business now and then.

use std::time::Duration;

use crate::actors::launcher::run::Run;
use crate::actors::launcher::{Launcher, Msg};
use crate::actors::runtime::context::NodeContext;
use crate::ports::ownership::found_store::FoundRow;
use crate::ports::ownership::run_store::Control;
use windrow_core::execution::{Command, Restored};
use windrow_core::ids::Moment;
use windrow_core::pilot::{KEPT_FOR, Neighbours};

/// Interval at which a run tells what it found, for later tasks.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// Time after which a store that gives no answer is told again.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// News of the other runs of a task, as one of them knows it.
#[derive(Debug)]
pub(crate) struct Talk {
    neighbours: Neighbours,
    /// Time at which it last told something, or at which the run began.
    told_at: Moment,
    is_asking: bool,
}

impl Talk {
    pub(crate) fn new(now: Moment) -> Talk {
        Talk {
            neighbours: Neighbours::default(),
            told_at: now,
            is_asking: false,
        }
    }
}

/// Adds the limits for a run to begin with: those that the shard's last run found, or those that a later run of the
/// business found at the service.
pub(crate) async fn with_last_found(
    node: &NodeContext,
    (business, service): (&str, Option<String>),
    control: &Control,
    restored: Restored,
) -> Restored {
    let Some(service) = service.filter(|_| control.tuning.rate.is_auto()) else {
        return restored;
    };
    let since = node.clock.wall().minus(KEPT_FOR);
    let last = node.found.last_found(business, &service, since).await;
    let last = last.unwrap_or_else(|error| {
        tracing::warn!(%error, "limits found by earlier runs not read; the run begins without them");
        None
    });
    let found = last
        .into_iter()
        .chain(restored.found)
        .max_by_key(|found| found.at);
    Restored { found, ..restored }
}

impl Launcher {
    /// Takes in the news of the task's other runs.
    pub(crate) fn on_neighbours(&mut self, others: &[FoundRow]) {
        self.with_run(|run, state| run.on_neighbours(others, state.arguments.node.clock.now()));
    }
}

impl Run {
    /// Tells what the autopilot found if that is long ago, or if the run is over.
    pub(crate) fn tell_now_and_then(&mut self, is_over: bool, state: &Launcher) {
        let now = state.arguments.node.clock.now();
        if is_over || now.since(self.talk.told_at) >= TELL_EVERY {
            self.tell_found(state);
        }
    }

    /// Tells what the autopilot found, and asks for what the other runs of the task found.
    pub(crate) fn tell_found(&mut self, state: &Launcher) {
        let node = state.arguments.node.clone();
        let now = node.clock.now();
        let waits = self.talk.is_asking && now.since(self.talk.told_at) < ANSWER_PATIENCE;
        let told = self.cell.about.service.clone().zip(self.cell.news());
        let Some((service, news)) = told.filter(|_| !waits) else {
            return;
        };
        (self.talk.told_at, self.talk.is_asking) = (now, true);
        let row = FoundRow {
            shard: self.cell.shard,
            business: self.cell.about.business.clone(),
            service,
            news,
            at: node.clock.wall(),
        };
        let me = state.me.clone();
        state.arguments.node.work.spawn(async move {
            match node.found.tell_found(&row).await {
                Ok(others) => {
                    me.tell(Msg::Neighbours(others));
                }
                // The run goes on with what it knows, and tells it again.
                Err(error) => tracing::debug!(shard = %row.shard, %error, "limits found weren't told"),
            }
        });
    }

    /// Takes in what the other runs of the task told.
    fn on_neighbours(&mut self, others: &[FoundRow], now: Moment) {
        self.talk.is_asking = false;
        let said = others.iter().map(|row| (row.shard.no, row.at.0, row.news));
        self.talk.neighbours.hear(said, now);
        if self.has_neighbours() {
            let heard = self.talk.neighbours.of(self.cell.shard.no);
            self.steer(Command::Neighbours(heard));
        }
    }

    /// True if other runs share the task.
    pub(crate) fn has_neighbours(&self) -> bool {
        !self.control.shared.share.is_all()
    }
}
