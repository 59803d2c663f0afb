//! Calls of a run that count against named limits in units.

use super::limited::LimitSlots;
use super::{Guarded, RunCell};
use windrow_core::execution::{Purse, SharedEnd};
use windrow_core::ids::Moment;
use windrow_core::limit::joint::Joint;
use windrow_core::limit::key::JOINED_MAX;
use windrow_core::limit::units::call::{Departing, Estimates, Taken};

/// Limits in units of a run at a moment.
pub(super) struct RunPurse<'a> {
    limits: &'a LimitSlots,
    now: Moment,
}

impl LimitSlots {
    /// True if calls count against a named limit in units.
    #[inline]
    pub(super) fn is_counted(&self) -> bool {
        !self.metered.is_empty()
    }

    /// Returns the limits in units, for a call that is about to be sent.
    pub(super) fn purse(&self, now: Moment) -> RunPurse<'_> {
        RunPurse { limits: self, now }
    }

    /// Returns the total that keeps a run from ever sending more, if it is what cut its reservation.
    pub(super) fn used_up(&self, joint: &Joint<JOINED_MAX>) -> Option<String> {
        let at = joint
            .cut_by()
            .filter(|at| joint.items() == 0 && self.metered.contains(at))?;
        self.slot(at).used_up()
    }

    /// Settles a call that ended.
    fn end(&self, end: &SharedEnd, now: Moment) {
        if let Some(at) = self.metered.get(end.limit) {
            self.slot(*at).end(end, now);
        }
    }
}

impl Purse for RunPurse<'_> {
    fn take(&mut self, limit: usize, call: Departing<'_>) -> Taken {
        match self.limits.metered.get(limit) {
            Some(at) => self.limits.slot(*at).take(call, self.now),
            None => Taken::No(false),
        }
    }

    fn give(&mut self, limit: usize, estimates: Estimates<'_>) {
        if let Some(at) = self.limits.metered.get(limit) {
            self.limits.slot(*at).give(estimates, self.now);
        }
    }
}

impl RunCell {
    /// Tells the named limits of the calls that ended in the last step.
    #[inline]
    pub(super) fn tell_limits(&self, core: &mut Guarded, now: Moment) {
        if self.limits.is_counted() {
            let ends = core.execution.take_shared_ends();
            ends.iter().for_each(|end| self.limits.end(end, now));
        }
    }
}
