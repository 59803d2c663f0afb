//! Items that were in flight when a stop didn't wait for them: they may have been processed.

use super::{Execution, Phase, RunEnd};
use crate::execution::items::Items;
use crate::ids::ItemIndex;
use crate::items::run::IndexRun;
use crate::items::waiting::Doing;
use crate::task::lifecycle::CutOff;

/// Maximum number of item runs that are listed; the rest are only counted.
const RUNS_MAX: usize = 8;

impl Execution {
    /// Records in a stop which items were in flight when the lanes ended.
    pub(super) fn tell_cut_off(&mut self) {
        let items = self.items.counters.in_flight;
        let runs = if items == 0 {
            Vec::new()
        } else {
            self.items.in_flight_runs()
        };
        if let Phase::Stopping(RunEnd::Stopped { cut_off, .. }) = &mut self.phase {
            *cut_off = CutOff { items, runs };
        }
    }
}

impl Items {
    /// Returns the first runs of items that are out with the handler: dispatched, and neither settled, waiting for a
    /// retry, nor returned unsent.
    pub(in crate::execution) fn in_flight_runs(&self) -> Vec<IndexRun> {
        let mut runs: Vec<IndexRun> = Vec::new();
        let mut at = self.window.watermark();
        while let Some(open) = self.window.unsettled(at, self.high, 1) {
            at = open.end();
            if self.is_here(open.first()) {
                continue;
            }
            let joined = runs.last_mut().is_some_and(|last| last.try_extend(open));
            if !joined {
                runs.push(open);
            }
            if runs.len() == RUNS_MAX {
                break;
            }
        }
        runs
    }

    /// True if an unsettled item is here and not out with the handler.
    pub(in crate::execution) fn is_here(&self, index: ItemIndex) -> bool {
        let waits = self
            .retrying_items
            .get(index)
            .is_some_and(|retrying| retrying.doing != Doing::InFlight);
        waits
            || self
                .again
                .iter()
                .any(|run| run.first() <= index && index < run.end())
    }
}
