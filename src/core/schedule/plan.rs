//! What becomes of the fires that are due.
//!
//! The caller holds the schedule's row and carries out all of a [`Plan`] in one transaction, or nothing of it: the fires that
//! it names are rows then, and the schedule's next fire lies behind them. So each fire has one outcome, whoever looks.

use std::collections::VecDeque;

use super::{GRACE, Missed, Overlap, Spec};
use crate::ids::{ScheduleId, WallMs};

/// Fires that one plan looks at. A longer outage takes several, each with a row of what was missed.
pub const STEPS_MAX: usize = 10_000;
/// Tasks of one schedule that are about to be made, at most: more fires are skipped.
pub const PENDING_MAX: u32 = 100;

/// How a schedule stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Which.
    pub id: ScheduleId,
    /// The fire that is next.
    pub next: WallMs,
    /// Whether a task of it has neither ended nor stopped.
    pub is_busy: bool,
    /// Fires whose task is about to be made.
    pub pending: u32,
    /// Fires that wait until nothing of it runs.
    pub queued: u32,
}

/// What becomes of one fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A task is made.
    Make,
    /// It waits until nothing runs.
    Queue,
    /// What runs is cancelled, what waits is skipped, and it waits.
    Supersede,
    /// A task of the schedule runs.
    SkipOverlap,
    /// Too many tasks of the schedule are about to be made.
    SkipCrowded,
}

/// Fires that nobody was there for and that are not made up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first.
    pub first: WallMs,
    /// The last.
    pub last: WallMs,
    /// How many, with both.
    pub count: u64,
}

/// What is to be done with the fires that are due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What was missed.
    pub missed: Option<Gap>,
    /// What becomes of the others, in their order.
    pub fires: Vec<(WallMs, Outcome)>,
    /// The fire that is next then; none when the schedule is over.
    pub next: Option<WallMs>,
}

/// Decides about everything that is due now.
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

/// What becomes of a fire that somebody orders now, beside the times of the schedule.
pub fn plan_one(spec: &Spec, standing: &Standing) -> Outcome {
    Place::of(spec, standing).take()
}

/// Fires that may wait at once.
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

/// The fires that are due, without those that are not made up for.
fn due(spec: &Spec, standing: &Standing, now: WallMs) -> Due {
    let most = spec.missed.most();
    let (mut missed, mut kept) = (None, VecDeque::new());
    let (mut next, mut steps) = (Some(standing.next), 0);
    while let Some(fire) = next.filter(|fire| spec.due(standing.id, *fire) <= now) {
        if steps == STEPS_MAX {
            // There are more: which of them are the newest is seen from the next plan.
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

/// What stands in the way of a fire.
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
        // Whoever waits goes first.
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
