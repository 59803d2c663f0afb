//! What a stop that didn't wait says of the calls that it cut off: which items may have been done all the same.

use super::{Execution, Phase, RunEnd};
use crate::ids::ItemIndex;
use crate::run::IndexRun;
use crate::waiting::Doing;

/// Runs of items that are named one by one; of the rest the number is said.
const NAMED_MAX: usize = 8;

impl Execution {
    /// Adds to the sentence of a stop which items were in flight when the lanes went.
    pub(super) fn tell_cut_off(&mut self) {
        let in_flight = self.counters.in_flight;
        if in_flight == 0 {
            return;
        }
        let runs = self.in_flight_runs();
        if let Phase::Stopping(RunEnd::Stopped { text, .. }) = &mut self.phase {
            *text = format!("{text}; {in_flight} items were in flight and may repeat: {}", named(&runs));
        }
    }

    /// The first runs of what was dispatched and isn't settled, waiting for a retry, or back without having left.
    fn in_flight_runs(&self) -> Vec<IndexRun> {
        let mut runs: Vec<IndexRun> = Vec::new();
        let mut at = self.window.low_water();
        while let Some(open) = self.window.unsettled(at, self.high, 1) {
            at = open.end();
            if self.is_here(open.first()) {
                continue;
            }
            let joined = runs.last_mut().is_some_and(|last| last.try_extend(open));
            if !joined {
                runs.push(open);
            }
            if runs.len() > NAMED_MAX {
                break;
            }
        }
        runs
    }

    /// Whether an unsettled item is with us and not with the handler.
    fn is_here(&self, index: ItemIndex) -> bool {
        let waits = self.troubles.get(index).is_some_and(|trouble| trouble.doing != Doing::InFlight);
        waits || self.again.iter().any(|run| run.first() <= index && index < run.end())
    }
}

fn named(runs: &[IndexRun]) -> String {
    let name = |run: &IndexRun| match run.len() {
        1 => format!("#{}", run.first().0),
        _ => format!("#{}–#{}", run.first().0, run.end().0 - 1),
    };
    let mut names: Vec<String> = runs.iter().take(NAMED_MAX).map(name).collect();
    if runs.len() > NAMED_MAX {
        names.push("…".to_owned());
    }
    names.join(", ")
}
