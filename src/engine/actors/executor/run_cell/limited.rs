//! Exchange of a run under shared limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::{Exchanged, Guarded, RunCell, Superseded};
use crate::actors::executor::lane_reply::Said;
use crate::actors::membership::local_buckets::{Asks, LimitSlot, LocalBuckets};
use crate::actors::membership::session::Life;
use crate::ports::clock::Clock;
use crate::ports::sources::provision::LimitOf;
use windrow_core::execution::{Effects, Event, Now, Reports};
use windrow_core::ids::{Generation, Moment};
use windrow_core::limit::joint::Joint;
use windrow_core::limit::key::JOINED_MAX;
use windrow_core::limit::local_bucket::Used;
use windrow_core::settings::RateLimit;

/// Value of `held_by` before any limit has held the run back.
const NOBODY: usize = usize::MAX;

/// Slots of a run under its limits. All runs visit theirs in the order of the limits' keys, and hold the mutex of one
/// local bucket at a time.
pub(crate) struct LimitSlots {
    slots: Vec<LimitSlot>,
    /// Position in `slots` of the limit that last held the run back, or [`NOBODY`].
    held_by: AtomicUsize,
    /// Positions in `slots` of the limits in units, in the order of the run's meterings.
    pub(super) metered: Vec<usize>,
}

impl LimitSlots {
    /// Takes a slot under each of the limits.
    pub(crate) fn join(
        local_buckets: &LocalBuckets,
        (life, limits): (&Life, &[LimitOf]),
        settings: Asks,
        clock: &Arc<dyn Clock>,
        wake: &Arc<Notify>,
    ) -> LimitSlots {
        assert!(
            limits.len() <= JOINED_MAX,
            "a run is under {} limits",
            limits.len()
        );
        let join = |limit: &LimitOf| local_buckets.join((life, limit), settings, clock, wake.clone());
        let limits = in_order(limits);
        let slots: Vec<LimitSlot> = limits.iter().copied().map(join).collect();
        let metered = (0..slots.len()).filter(|at| limits[*at].metering.is_some());
        LimitSlots {
            metered: metered.collect(),
            slots,
            held_by: AtomicUsize::new(NOBODY),
        }
    }

    /// Returns the slot at a position.
    pub(super) fn slot(&self, at: usize) -> &LimitSlot {
        &self.slots[at]
    }

    /// True if any of the limits is in force now.
    #[inline]
    pub(super) fn is_limited(&self) -> bool {
        self.slots.iter().any(LimitSlot::is_limited)
    }

    /// Applies the run's changed settings to every slot.
    pub(crate) fn tune(&self, rate: RateLimit, batch: u32) {
        self.slots.iter().for_each(|slot| slot.tune(rate, batch));
    }

    /// Returns the key of the limit that last held the run back. A space and its limit in units follow, if one of these
    /// did.
    pub(crate) fn held_by(&self) -> Option<String> {
        let slot = self.slots.get(self.held_by.load(Ordering::Relaxed))?;
        Some(match slot.held_by() {
            Some(limit) => format!("{} {limit}", slot.key()),
            None => slot.key().to_owned(),
        })
    }

    /// Reserves up to `want` items from each limit. The caller must settle the reservation.
    fn reserve(&self, want: u32, now: Moment) -> Joint<JOINED_MAX> {
        let mut joint = Joint::new(want);
        for (at, slot) in self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.is_limited())
        {
            joint.take(at, slot.reserve(joint.asks(), now));
        }
        joint
    }

    /// Settles a reservation with each limit.
    fn settle(&self, joint: &Joint<JOINED_MAX>, used: Used, now: Moment) {
        if let Some(at) = joint.cut_by().filter(|_| used.wants_more) {
            self.held_by.store(at, Ordering::Relaxed);
        }
        for (at, slot) in self.slots.iter().enumerate() {
            if let Some((reserved, used)) = joint.settled(at, used) {
                slot.settle(reserved, used, now);
            }
        }
    }
}

impl RunCell {
    /// Exchanges under shared limits: reserves as many items as all limits allow, asks the core for at most those,
    /// and gives the unused ones back.
    pub(super) fn exchange_limited(
        &self,
        (generation, gate_open): (Generation, bool),
        (reports, said): (&mut Reports, &mut Said),
        want: u32,
        now: Now,
        fx: &mut Effects,
    ) -> Result<Exchanged, Superseded> {
        let limits = &self.limits;
        let joint = limits.reserve(want, now.moment);
        let Ok(mut core) = self.core.lock() else {
            limits.settle(&joint, Used::default(), now.moment);
            return Err(Superseded);
        };
        if core.generation != generation {
            limits.settle(&joint, Used::only(core.execution.in_flight()), now.moment);
            return Err(Superseded);
        }
        let is_held = joint.cut_by().is_some();
        if core.is_held != is_held {
            core.hold(is_held, now, fx);
        }
        if let Some(limit) = self.limits.used_up(&joint) {
            core.execution.reach_limit(&limit);
        }
        let want = joint.items();
        core.execution.step(Event::Exchange { reports, want }, now, fx);
        let left = fx.dispatch.iter().map(|dispatch| dispatch.run.len()).sum();
        let used = Used {
            left,
            wants_more: fx.held_by_limit,
            in_flight: core.execution.in_flight(),
        };
        // Under the core's lock, so that the last number of items in flight to arrive is the newest.
        limits.settle(&joint, used, now.moment);
        fx.paced |= left > 0;
        let ask_at = joint.ask_at().filter(|_| fx.held_by_limit);
        Ok(Exchanged {
            ask_at,
            ..self.exchanged(core, said, (now, gate_open), fx)
        })
    }
}

/// Returns the limits in the order in which runs visit them.
pub(crate) fn in_order(limits: &[LimitOf]) -> Vec<&LimitOf> {
    let mut limits: Vec<&LimitOf> = limits.iter().collect();
    limits.sort_by(|one, other| one.name.cmp(&other.name));
    limits
}

impl Guarded {
    pub(super) fn hold(&mut self, is_held: bool, now: Now, fx: &mut Effects) {
        self.is_held = is_held;
        self.execution.step(Event::Held(is_held), now, fx);
    }
}
