//! Items whose calls were cut off by a stop.

use windrow_core::task::lifecycle::CutOff;

/// Returns the cut-off items, `None` if there aren't any.
pub(crate) fn show_cut_off(cut_off: &CutOff) -> Option<api::CutOff> {
    let runs = cut_off.runs.iter().map(|run| api::ItemRun {
        first: run.first().0,
        items: run.len(),
    });
    (!cut_off.is_empty()).then(|| api::CutOff {
        items: cut_off.items,
        runs: runs.collect(),
    })
}
