//! Pointer to the current generation, and the generations that are kept.

use super::GenerationNo;
use windrow_words::business as say;

/// Pointer to the generation of a dataset that readers get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pointer {
    /// Current generation; `None` before the first publication.
    pub current: Option<GenerationNo>,
    /// Highest generation ever published; 0 before the first.
    pub highest: GenerationNo,
    /// Publication number, which grows by one with each move.
    pub publication: u64,
}

/// Error for a generation that came too late: this higher one was published before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::superseded(.0.0))]
pub struct Superseded(pub GenerationNo);

impl Pointer {
    /// Returns the pointer after a generation was published.
    ///
    /// # Errors
    /// [`Superseded`]: nothing moves.
    pub fn publish(self, generation: GenerationNo) -> Result<Pointer, Superseded> {
        if generation <= self.highest {
            return Err(Superseded(self.highest));
        }
        Ok(Pointer {
            highest: generation,
            ..self.move_to(generation)
        })
    }

    /// Returns the pointer after a manual move to a generation that is kept.
    #[must_use]
    pub fn move_to(self, generation: GenerationNo) -> Pointer {
        Pointer {
            current: Some(generation),
            publication: self.publication + 1,
            ..self
        }
    }
}

/// Returns the published generations that are no longer kept, lowest first: all but the newest `keep`, the pinned
/// ones and the current one. Each generation comes with a flag that is true if it is pinned, in any order.
pub fn outdated(published: &[(GenerationNo, bool)], pointer: Pointer, keep: u32) -> Vec<GenerationNo> {
    let mut newest: Vec<(GenerationNo, bool)> = published.to_vec();
    newest.sort_unstable_by_key(|(no, _)| std::cmp::Reverse(*no));
    let beyond = newest.into_iter().skip(keep as usize);
    let mut gone: Vec<GenerationNo> = beyond
        .filter(|(no, is_pinned)| !is_pinned && pointer.current != Some(*no))
        .map(|(no, _)| no)
        .collect();
    gone.reverse();
    gone
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Publish(u64),
        RollBack(u64),
        Pin(u64, bool),
    }

    fn steps() -> impl Strategy<Value = (Vec<Step>, u32)> {
        let step = prop_oneof![
            3 => (1..20_u64).prop_map(Step::Publish),
            1 => (1..20_u64).prop_map(Step::RollBack),
            1 => (1..20_u64, any::<bool>()).prop_map(|(no, on)| Step::Pin(no, on)),
        ];
        (proptest::collection::vec(step, 1..40), 1..5_u32)
    }

    proptest! {
        #[test]
        fn the_pointer_goes_back_by_a_rollback_alone_and_names_what_is_kept((steps, keep) in steps()) {
            let (mut pointer, mut kept) = (Pointer::default(), BTreeMap::<u64, bool>::new());
            for step in steps {
                let before = pointer;
                match step {
                    Step::Publish(no) => match pointer.publish(GenerationNo(no)) {
                        Ok(moved) => {
                            prop_assert!(no > before.highest.0, "D2");
                            kept.insert(no, false);
                            pointer = moved;
                        }
                        Err(superseded) => prop_assert!(no <= superseded.0.0),
                    },
                    Step::RollBack(no) if kept.contains_key(&no) => pointer = pointer.move_to(GenerationNo(no)),
                    Step::Pin(no, on) => drop(kept.get_mut(&no).map(|pinned| *pinned = on)),
                    Step::RollBack(_) => {}
                }
                let published: Vec<_> = kept.iter().map(|(no, pinned)| (GenerationNo(*no), *pinned)).collect();
                for gone in outdated(&published, pointer, keep) {
                    prop_assert_eq!(kept.remove(&gone.0), Some(false), "what is pinned stays");
                }
                let (is_moved, grew) = (before.current != pointer.current, pointer.publication - before.publication);
                prop_assert!(grew <= 1 && (grew == 1 || !is_moved), "D3");
                if let Some(current) = pointer.current {
                    prop_assert!(kept.contains_key(&current.0), "D1");
                }
                let unpinned = kept.values().filter(|pinned| !**pinned).count();
                prop_assert!(unpinned <= keep as usize + 1, "the newest, and the current one");
            }
        }
    }
}
