//! Why tasks wait: told to the store once for each reason, many at a time, never from the mailbox.

use std::collections::BTreeMap;

use crate::actors::launcher::Unclaimable;
use crate::actors::runtime::context::Times;
use crate::actors::supervisor::{Msg, Supervisor};
use crate::ports::ownership::run_store::Candidate;
use crate::ports::tasks::store::{COORDINATOR_DOWN, WaitNote};
use windrow_core::capacity::{Obstacle, Refusal};
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::settings::text::span_text;

/// What a task waits for whose owner is silent while Redis is lost.
fn no_witness(times: &Times) -> String {
    let until = if times.takeover_without_leases {
        let later = span_text(times.lease_ttl);
        format!(
            "it goes on {later} later than usual (cluster.takeover_without_redis), or as soon as Redis answers"
        )
    } else {
        "it goes on as soon as Redis answers (or set cluster.takeover_without_redis)".to_owned()
    };
    format!(
        "the node that ran it is silent, but may still work under its lease in Redis, which this node can't reach; {until}"
    )
}

/// Reasons of one write; what is left is told after the next scan.
const REASONS_PER_WRITE: usize = 1_000;

/// Why a task waits, and since when: one that is stopped and started again lost the reason that was stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) why: Why,
    pub(crate) since: WallMs,
}

impl Wait {
    /// Whether it is said of a running task too, so that no start takes it back.
    fn needs_witness(&self) -> bool {
        matches!(self.why, Why::Unclaimable(Unclaimable::NoWitness))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Why {
    Refused(Refusal),
    Unclaimable(Unclaimable),
}

/// What the store was told.
#[derive(Default)]
pub(crate) struct Waits {
    /// Only of tasks that the last scan found waiting.
    told: BTreeMap<TaskId, Wait>,
    /// How many the last scan found waiting.
    waiting: usize,
    telling: bool,
}

impl Waits {
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Forgets what waits no more; what was told of running tasks has to be taken back.
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
            format!(
                "its checkpoint has version {version}, which this node's program does not read; a node of the version \
                 that wrote it goes on with it"
            ),
        ),
    };
    WaitNote {
        task: *task,
        reason: reason.to_owned(),
        text,
    }
}

/// Whether people would read the same.
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
    /// The tasks of candidates that may not be had, with the reason.
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

    /// Says why tasks wait, once per reason. `refused` is everything that waits now.
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
                // What wasn't taken, for instance of a task whose row still says that it runs, is said again.
                Ok(taken) => news
                    .into_iter()
                    .filter(|(task, _)| taken.contains(task))
                    .collect(),
                Err(error) => {
                    tracing::warn!(%error, "reasons for waiting were not stored; again after the next scan");
                    Vec::new()
                }
            };
            me.tell(Msg::Explained(told));
        }));
    }

    /// A task that was started meanwhile lost its reason with that. One that runs, of which a shard waits for a witness, is
    /// told again that it doesn't, also where other shards of it run here.
    pub(crate) fn on_explained(&mut self, reasons: Vec<(TaskId, Wait)>) {
        self.waits.telling = false;
        let waiting = reasons
            .into_iter()
            .filter(|(task, wait)| wait.needs_witness() || !self.runs.holds_task(*task));
        self.waits.told.extend(waiting);
    }
}
