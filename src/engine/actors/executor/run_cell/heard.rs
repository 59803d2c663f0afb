//! Log lines and outputs of replies on their way into the run.

use super::Guarded;
use crate::actors::executor::lane_reply::Said;
use windrow_core::execution::{Effects, Event, Now};

impl Guarded {
    /// Takes in the log lines and outputs of the replies whose reports the core has just taken in.
    #[inline]
    pub(super) fn hear(&mut self, said: &mut Said, now: Now, fx: &mut Effects) {
        if !said.lines.is_empty() {
            self.lines.take_in(&mut said.lines);
            fx.checkpoint_due |= self.lines.is_checkpoint_due();
        }
        if !said.outputs.is_empty() {
            self.results.take_in(&mut said.outputs);
            fx.checkpoint_due |= self.results.is_checkpoint_due();
            self.tell_fullness(now, fx);
        }
    }

    pub(super) fn tell_fullness(&mut self, now: Now, fx: &mut Effects) {
        if let Some(is_full) = self.results.fullness() {
            self.execution.step(Event::ResultsFull(is_full), now, fx);
        }
    }
}
