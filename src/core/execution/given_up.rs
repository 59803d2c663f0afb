//! Items that wait and that people have given up by their code (`domain::abandonment`).
//!
//! It is a rule over what waits, not a message that is heard once: it holds for a run that begins from what was saved
//! before the decision as for one that is under way. What is with the handler isn't touched.

use super::Execution;
use super::types::{Effects, Phase};
use crate::ids::ItemIndex;
use crate::items::waiting::{Doing, Trouble};
use crate::task::abandonment::Abandonments;

/// What people have decided.
#[derive(Debug, Default)]
pub(super) struct GivenUp {
    decided: Abandonments,
    /// Whether something may wait that is to be given up.
    pub(super) is_due: bool,
}

impl Execution {
    /// What people have decided by now.
    pub(super) fn set_given_up(&mut self, decided: Abandonments) {
        self.judge.given_up.decided = decided;
        self.look_for_given_up();
    }

    /// Items may wait that didn't before.
    #[inline]
    pub(super) fn look_for_given_up(&mut self) {
        let given_up = &mut self.judge.given_up;
        given_up.is_due = !given_up.decided.is_empty();
    }

    /// Gives up what people have decided on. The error budget isn't asked: it watches over what nobody has looked at.
    pub(super) fn give_up_decided(&mut self, fx: &mut Effects) {
        self.judge.given_up.is_due = false;
        if matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        let found = self
            .troubles
            .iter()
            .filter(|(_, trouble)| self.is_given_up(trouble));
        let found: Vec<ItemIndex> = found.map(|(index, _)| index).collect();
        for index in found {
            if let Some(trouble) = self.troubles.take(index) {
                self.settle_abandoned(index, &trouble, fx);
                self.on_suspect_answered(index);
            }
        }
    }

    fn is_given_up(&self, trouble: &Trouble) -> bool {
        let waits = trouble.doing != Doing::InFlight;
        let failure = trouble.failure.as_ref().filter(|_| waits);
        failure.is_some_and(|failure| self.judge.given_up.decided.covers(&failure.code, trouble.at))
    }
}
