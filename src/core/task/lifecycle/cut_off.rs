//! Items that were in flight when a stop didn't wait for them: they may have been processed all the same, and may be
//! called again.

use std::fmt;
use windrow_words::task as say;

use serde::{Deserialize, Serialize};

use crate::items::run::IndexRun;

/// Maximum number of runs that are kept individually; for the rest only the number of items is known.
const KEPT_MAX: usize = 64;
/// Maximum number of runs named in a sentence.
const NAMED_MAX: usize = 8;

/// Items whose calls were cut off by a stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutOff {
    /// Total number of these items.
    pub items: u64,
    /// First runs of them, ascending within each shard.
    pub runs: Vec<IndexRun>,
}

impl CutOff {
    /// Returns true if nothing was cut off.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Adds the items of another shard.
    pub fn add(&mut self, other: &CutOff) {
        self.items += other.items;
        let room = KEPT_MAX.saturating_sub(self.runs.len());
        self.runs.extend(other.runs.iter().take(room));
    }

    /// Returns the sentence, with the cut-off items appended if there are any.
    pub fn told_after(&self, sentence: &str) -> String {
        if self.is_empty() {
            sentence.to_owned()
        } else {
            format!("{sentence}; {self}")
        }
    }
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.runs.iter().take(NAMED_MAX);
        let named: u64 = shown.clone().map(|run| u64::from(run.len())).sum();
        let mut which: Vec<String> = shown
            .map(|run| match run.len() {
                1 => format!("#{}", run.first().0),
                _ => format!("#{}–#{}", run.first().0, run.end().0 - 1),
            })
            .collect();
        which.extend((named < self.items).then(|| "…".to_owned()));
        say::cut_off(self.items, which.join(", ")).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ItemIndex;

    fn cut(first: u64, len: u32) -> CutOff {
        CutOff {
            items: u64::from(len),
            runs: IndexRun::new(ItemIndex(first), len).into_iter().collect(),
        }
    }

    #[test]
    fn a_few_are_named_and_many_are_counted() {
        assert_eq!(CutOff::default().told_after("stopped"), "stopped");
        assert_eq!(
            cut(7, 1).told_after("stopped"),
            "stopped; 1 item was in flight and may repeat: #7"
        );
        let mut both = cut(0, 3);
        both.add(&cut(50, 1));
        assert_eq!(
            both.to_string(),
            "4 items were in flight and may repeat: #0–#2, #50"
        );
        (0..100).for_each(|at| both.add(&cut(100 + 2 * at, 1)));
        assert_eq!((both.items, both.runs.len()), (104, KEPT_MAX));
        assert!(both.to_string().ends_with("#108, #110, …"), "{both}");
    }
}
