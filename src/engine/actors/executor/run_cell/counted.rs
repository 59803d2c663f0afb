//! Calls of a run whose use is counted, and what its autopilot has found.

use super::{RunCell, Superseded};
use windrow_core::execution::{Departure, Execution, Found, Usage};
use windrow_core::ids::Generation;
use windrow_core::pilot::News;

impl RunCell {
    /// Charges a granted call that is about to be sent.
    pub(crate) fn charge(
        &self,
        generation: Generation,
        ticket: u64,
        usage: Usage,
        items: u32,
    ) -> Result<Departure, Superseded> {
        let now = self.now();
        let mut core = self.core.lock().map_err(|_| Superseded)?;
        if core.generation != generation {
            return Err(Superseded);
        }
        let departure = core.execution.charge(ticket, usage, items, now);
        if departure != Departure::Go || !self.limits.is_counted() {
            return Ok(departure);
        }
        let mut purse = self.limits.purse(now.moment);
        Ok(core.execution.charge_shared(ticket, &mut purse, now))
    }

    /// Returns what its autopilot tells other runs, if it steers.
    pub(crate) fn news(&self) -> Option<News> {
        self.peek(Execution::news)
    }

    /// Returns the limits that the autopilot has found.
    pub(crate) fn found(&self) -> Option<Found> {
        let now = self.now();
        self.peek(|execution| execution.found(now))
    }
}
