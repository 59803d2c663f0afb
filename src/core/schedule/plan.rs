//! Outcome of the fires that are due.
//!
//! The caller holds the schedule's row and applies all of a [`Plan`] in one transaction, or none of it: it stores a
//! row for each named fire, and sets the schedule's next fire after them. So each fire has one outcome, whoever plans
//! it.

use std::collections::VecDeque;

use super::{GRACE, Missed, Overlap, Spec};
use crate::ids::{ScheduleId, WallMs};

/// Maximum number of fires in one plan. A longer downtime takes several plans, each with a row for the missed fires.
pub const STEPS_MAX: usize = 10_000;
/// Maximum number of tasks of one schedule that are about to be made; further fires are skipped.
pub const PENDING_MAX: u32 = 100;

/// Present state of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Id of the schedule.
    pub id: ScheduleId,
    /// Time of the next fire.
    pub next: WallMs,
    /// True if a task of it has neither ended nor stopped.
    pub is_busy: bool,
    /// Number of fires whose task is about to be made.
    pub pending: u32,
    /// Number of fires that wait until no task of the schedule runs.
    pub queued: u32,
}

/// Decision about one fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Make a task now.
    Make,
    /// Wait until no task of the schedule runs.
    Queue,
    /// Cancel what runs, skip what waits, and wait.
    Supersede,
    /// Skip: a task of the schedule runs.
    SkipOverlap,
    /// Skip: too many tasks of the schedule are about to be made.
    SkipCrowded,
}

/// Fires that were missed because no node was there, and that are not made up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Time of the first missed fire.
    pub first: WallMs,
    /// Time of the last missed fire.
    pub last: WallMs,
    /// Number of missed fires, including both.
    pub count: u64,
}

/// Decisions about all fires that are due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Fires that were missed.
    pub missed: Option<Gap>,
    /// Decisions about the other fires, in their order.
    pub fires: Vec<(WallMs, Outcome)>,
    /// Next fire after these; `None` when the schedule is over.
    pub next: Option<WallMs>,
}

/// Decides about all fires that are due now.
pub fn plan(spec: &Spec, standing: &Standing, now: WallMs) -> Plan {
    let due = due(spec, standing, now);
    let mut plan = Plan {
        missed: due.missed,
        fires: Vec::with_capacity(due.kept.len()),
        next: due.next,
    };
    let mut place = Place::of(spec, standing);
    for fire in due.kept {
        plan.fires.push((fire, place.take()));
    }
    plan
}

/// Decides about a manual fire, in addition to the times of the schedule.
pub fn plan_one(spec: &Spec, standing: &Standing) -> Outcome {
    Place::of(spec, standing).take()
}

/// Returns the number of fires that may wait at once.
fn queue_max(missed: Missed) -> u32 {
    match missed {
        Missed::All(most) => most,
        Missed::Latest | Missed::None => 1,
    }
}

struct Due {
    missed: Option<Gap>,
    kept: VecDeque<WallMs>,
    next: Option<WallMs>,
}

/// Collects the fires that are due, without those that are not made up for.
fn due(spec: &Spec, standing: &Standing, now: WallMs) -> Due {
    let most = spec.missed.most();
    let (mut missed, mut kept) = (None, VecDeque::new());
    let (mut next, mut steps) = (Some(standing.next), 0);
    while let Some(fire) = next.filter(|fire| spec.due(standing.id, *fire) <= now) {
        if steps == STEPS_MAX {
            // There are more fires; the next plan determines which of them are the latest.
            return Due {
                missed,
                next: kept.front().copied().or(next),
                kept: VecDeque::new(),
            };
        }
        kept.push_back(fire);
        if kept.len() > most {
            miss(&mut missed, kept.pop_front());
        }
        next = spec.next_after(fire);
        steps += 1;
    }
    let is_late = |fire: &WallMs| now.since(spec.due(standing.id, *fire)) > GRACE;
    if spec.missed == Missed::None && kept.front().is_some_and(is_late) {
        miss(&mut missed, kept.pop_front());
    }
    Due { missed, kept, next }
}

fn miss(missed: &mut Option<Gap>, fire: Option<WallMs>) {
    let Some(fire) = fire else { return };
    let known = missed.get_or_insert(Gap {
        first: fire,
        last: fire,
        count: 0,
    });
    known.last = fire;
    known.count += 1;
}

/// Obstacles to a fire: the overlap rule, running tasks and waiting fires.
struct Place {
    overlap: Overlap,
    room: u32,
    is_busy: bool,
    pending: u32,
    queued: u32,
}

impl Place {
    fn of(spec: &Spec, standing: &Standing) -> Place {
        Place {
            overlap: spec.overlap,
            room: queue_max(spec.missed),
            is_busy: standing.is_busy || standing.pending > 0,
            pending: standing.pending,
            queued: standing.queued,
        }
    }

    fn take(&mut self) -> Outcome {
        let outcome = self.outcome();
        match outcome {
            Outcome::Make => (self.is_busy, self.pending) = (true, self.pending + 1),
            Outcome::Queue => self.queued += 1,
            Outcome::Supersede => self.queued = 1,
            Outcome::SkipOverlap | Outcome::SkipCrowded => {}
        }
        outcome
    }

    fn outcome(&self) -> Outcome {
        // Fires that already wait go first.
        let is_free = !self.is_busy && self.queued == 0;
        match self.overlap {
            _ if self.pending >= PENDING_MAX => Outcome::SkipCrowded,
            Overlap::Allow => Outcome::Make,
            _ if is_free => Outcome::Make,
            Overlap::Skip => Outcome::SkipOverlap,
            Overlap::Queue if self.queued < self.room => Outcome::Queue,
            Overlap::Queue => Outcome::SkipOverlap,
            Overlap::CancelRunning => Outcome::Supersede,
        }
    }
}
