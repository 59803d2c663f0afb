//! The exchange of a run that shares a limit with others.

use super::super::pots::LimitSeat;
use super::{Exchanged, Guarded, RunCell, Superseded};
use crate::domain::execution::{Effects, Event, Now, Reports};
use crate::domain::ids::Generation;
use crate::domain::limit::pot::Used;
use crate::ports::data_log::DataLogLine;

impl RunCell {
    /// The same under a shared limit: first so many items are reserved, then the core is asked for no more than those,
    /// and what it didn't use goes back.
    pub(super) fn exchange_limited(
        &self,
        limit: &LimitSeat,
        (generation, gate_open): (Generation, bool),
        (reports, lines): (&mut Reports, &mut Vec<DataLogLine>),
        want: u32,
        now: Now,
        fx: &mut Effects,
    ) -> Result<Exchanged, Superseded> {
        let reserved = limit.reserve(want, now.moment);
        let Ok(mut core) = self.core.lock() else {
            limit.settle(reserved, Used::default(), now.moment);
            return Err(Superseded);
        };
        if core.generation != generation {
            let in_flight = core.execution.in_flight();
            limit.settle(reserved, Used { in_flight, ..Used::default() }, now.moment);
            return Err(Superseded);
        }
        let is_held = reserved.items < want;
        if core.is_held != is_held {
            core.hold(is_held, now, fx);
        }
        core.execution.step(Event::Exchange { reports, want: reserved.items }, now, fx);
        let left = fx.dispatch.iter().map(|dispatch| dispatch.run.len()).sum();
        let used = Used { left, wants_more: fx.held_by_limit, in_flight: core.execution.in_flight() };
        // Under the core's lock: the last one to say what is in flight knows best.
        limit.settle(reserved, used, now.moment);
        fx.paced |= left > 0;
        let ask_at = reserved.ask_at.filter(|_| fx.held_by_limit);
        Ok(Exchanged { ask_at, ..self.exchanged(core, lines, (now, gate_open), fx) })
    }
}

impl Guarded {
    pub(super) fn hold(&mut self, is_held: bool, now: Now, fx: &mut Effects) {
        self.is_held = is_held;
        self.execution.step(Event::Held(is_held), now, fx);
    }
}
