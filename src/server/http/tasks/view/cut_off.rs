//! Items whose calls a stop cut off.

use windrow_core::task::lifecycle::CutOff;

/// None where nothing was cut off.
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
