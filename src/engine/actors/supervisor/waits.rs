//! Reasons why tasks wait, written to the store once each, many at a time, never from the mailbox.

use std::collections::BTreeMap;
use windrow_words::engine as say;

use crate::actors::launcher::Unclaimable;
use crate::actors::runtime::context::Times;
use crate::actors::supervisor::{Msg, Supervisor};
use crate::ports::ownership::run_store::Candidate;
use crate::ports::tasks::store::{COORDINATOR_DOWN, WaitNote};
use windrow_core::capacity::{Obstacle, Refusal};
use windrow_core::ids::{TaskId, WallMs};

/// Returns the waiting reason of a task whose owner is silent while Redis is lost.
fn no_witness(times: &Times) -> String {
    let setting = "cluster.takeover_without_redis";
    let text = match times.takeover_without_leases {
        true => say::silent_owner_later(times.lease_ttl, setting),
        false => say::silent_owner(setting),
    };
    text.to_string()
}

/// Maximum number of reasons per write; the rest follow after the next scan.
const REASONS_PER_WRITE: usize = 1_000;

/// Reason why a task waits, and since when: a task that is stopped and started again lost its stored reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) why: Why,
    pub(crate) since: WallMs,
}

impl Wait {
    /// True if the reason is also stored for a running task, so that no start clears it.
    fn needs_witness(&self) -> bool {
        matches!(self.why, Why::Unclaimable(Unclaimable::NoWitness))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Why {
    Refused(Refusal),
    Unclaimable(Unclaimable),
}

/// Reasons that the store has.
#[derive(Default)]
pub(crate) struct Waits {
    /// Stored reasons, only of tasks that the last scan found waiting.
    told: BTreeMap<TaskId, Wait>,
    /// Number of tasks that the last scan found waiting.
    waiting: usize,
    telling: bool,
}

impl Waits {
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Forgets tasks that no longer wait. Returns notes that clear the reasons of running tasks.
    fn take_over(&mut self, refused: &BTreeMap<TaskId, Wait>) -> Vec<WaitNote> {
        let mut over = Vec::new();
        self.told.retain(|task, told| {
            let stays = refused.contains_key(task);
            if !stays && told.needs_witness() {
                over.push(WaitNote {
                    task: *task,
                    reason: String::new(),
                    text: String::new(),
                });
            }
            stays
        });
        over
    }
}

fn slug(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::TooBig => "too_big",
        Obstacle::Behind(_) => "behind",
        Obstacle::Full | Obstacle::Held | Obstacle::NotHeld => "capacity",
    }
}

fn note((task, Wait { why, .. }): &(TaskId, Wait), times: &Times) -> WaitNote {
    let (reason, text) = match why {
        Why::Refused(refusal) => (slug(refusal.obstacle), refusal.waiting_text().to_string()),
        Why::Unclaimable(Unclaimable::NoWitness) => (COORDINATOR_DOWN, no_witness(times)),
        Why::Unclaimable(Unclaimable::Newer(version)) => (
            "newer_version",
            say::newer_checkpoint(version.to_string()).to_string(),
        ),
    };
    WaitNote {
        task: *task,
        reason: reason.to_owned(),
        text,
    }
}

/// True if people would read the same text.
fn is_same(one: &Wait, other: &Wait) -> bool {
    one.since == other.since
        && match (one.why, other.why) {
            (Why::Refused(one), Why::Refused(other)) => {
                let read =
                    |refusal: Refusal| (refusal.obstacle, refusal.holder, refusal.need, refusal.capacity);
                read(one) == read(other)
            }
            (Why::Unclaimable(one), Why::Unclaimable(other)) => one == other,
            _ => false,
        }
}

impl Supervisor {
    /// Returns the tasks of candidates that can't be taken, with the reason.
    pub(crate) fn unclaimable(&self, line: &[Candidate]) -> BTreeMap<TaskId, Wait> {
        let waits = line.iter().filter_map(|candidate| {
            let why = Why::Unclaimable(self.backoff.why(candidate.rank.shard)?);
            Some((
                candidate.rank.shard.task,
                Wait {
                    why,
                    since: candidate.rank.since,
                },
            ))
        });
        waits.collect()
    }

    /// Stores why tasks wait, once per reason. `refused` is everything that waits now.
    pub(crate) fn explain(&mut self, refused: BTreeMap<TaskId, Wait>) {
        self.waits.waiting = refused.len();
        if self.waits.telling {
            return;
        }
        let over = self.waits.take_over(&refused);
        let is_new = |(task, wait): &(TaskId, Wait)| {
            !self.waits.told.get(task).is_some_and(|told| is_same(told, wait))
        };
        let news: Vec<_> = refused
            .into_iter()
            .filter(is_new)
            .take(REASONS_PER_WRITE)
            .collect();
        if news.is_empty() && over.is_empty() {
            return;
        }
        self.waits.telling = true;
        let (node, me) = (self.node.clone(), self.me.clone());
        tokio::spawn(self.me.guard(async move {
            let notes: Vec<WaitNote> = over
                .into_iter()
                .chain(news.iter().map(|news| note(news, &node.times)))
                .collect();
            let told = match node.tasks.explain_waits(&notes, node.clock.wall()).await {
                // A reason that wasn't taken, for instance of a task whose row still says that it runs, is sent
                // again.
                Ok(taken) => news
                    .into_iter()
                    .filter(|(task, _)| taken.contains(task))
                    .collect(),
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "reasons for waiting not stored; trying again after the next scan"
                    );
                    Vec::new()
                }
            };
            me.tell(Msg::Explained(told));
        }));
    }

    /// Records the stored reasons. A task that was started meanwhile lost its reason by that. The reason of a running
    /// task with a shard that waits for a witness must be cleared later, even if other shards of it run here.
    pub(crate) fn on_explained(&mut self, reasons: Vec<(TaskId, Wait)>) {
        self.waits.telling = false;
        let waiting = reasons
            .into_iter()
            .filter(|(task, wait)| wait.needs_witness() || !self.runs.holds_task(*task));
        self.waits.told.extend(waiting);
    }
}
