//! Sinks: other places where readers find the current generation. A sink follows the pointer and never leads it: its
//! content was published and is complete.

use super::Pointer;
use crate::ids::{StoreId, WallMs};

crate::slugs! {
    /// Destination to which the current generation of a dataset is copied.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Sink {
        /// No copy is made.
        None = "none",
        /// Redis instance of the readers.
        Redis = "redis",
    }
}

/// Returns a Redis key of a dataset. All keys of one dataset share a hash tag, so a cluster keeps them together.
pub fn sink_key(prefix: &str, store: &StoreId, dataset: &str, rest: &str) -> String {
    format!("{prefix}:{{{}:{dataset}}}:{rest}", store.0)
}

/// Returns the key that readers start with: a hash that names all others.
pub fn sink_pointer(prefix: &str, store: &StoreId, dataset: &str) -> String {
    sink_key(prefix, store, dataset, "current")
}

/// Returns the time since which readers of a sink don't find the current generation: since its publication, or since
/// the copy was lost. `None` if they find it, or if no generation is current.
pub fn behind_since(
    pointer: Pointer,
    published_at: Option<WallMs>,
    (copied, since): (Option<u64>, WallMs),
) -> Option<WallMs> {
    let is_there = pointer.current.is_none() || copied == Some(pointer.publication);
    let at = published_at.unwrap_or(since).max(since);
    (!is_there).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::GenerationNo;

    #[test]
    fn a_sink_is_behind_since_the_publication_that_it_lacks_or_since_it_lost_it() {
        let at = |current: Option<u64>, publication| Pointer {
            current: current.map(GenerationNo),
            publication,
            ..Pointer::default()
        };
        let behind = |pointer, copied| behind_since(pointer, Some(WallMs(70)), copied);
        assert_eq!(
            behind(at(None, 0), (None, WallMs(9))),
            None,
            "nothing was published"
        );
        assert_eq!(behind(at(Some(3), 7), (Some(7), WallMs(9))), None);
        assert_eq!(behind(at(Some(3), 7), (Some(6), WallMs(9))), Some(WallMs(70)));
        assert_eq!(
            behind(at(Some(3), 7), (None, WallMs(90))),
            Some(WallMs(90)),
            "lost"
        );
    }
}
