//! Items whose calls a stop cut off.

use serde::Serialize;
use utoipa::ToSchema;
use windrow_core::task::lifecycle::CutOff;

/// Items that were in flight when a stop didn't wait for them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CutOffJson {
    /// How many.
    items: u64,
    /// The first of them.
    runs: Vec<ItemRunJson>,
}

/// Neighbouring items.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ItemRunJson {
    /// The first index.
    first: u64,
    /// How many.
    items: u32,
}

impl CutOffJson {
    /// None where nothing was cut off.
    pub(crate) fn of(cut_off: &CutOff) -> Option<CutOffJson> {
        let runs = cut_off.runs.iter().map(|run| ItemRunJson {
            first: run.first().0,
            items: run.len(),
        });
        (!cut_off.is_empty()).then(|| CutOffJson {
            items: cut_off.items,
            runs: runs.collect(),
        })
    }
}
