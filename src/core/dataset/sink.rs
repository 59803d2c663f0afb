//! Where else readers find what is current. A sink follows the pointer and never leads it: what it holds was published, and
//! is whole.

use super::Pointer;
use crate::ids::{StoreId, WallMs};

crate::slugs! {
    /// Where a dataset's current generation is copied to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Sink {
        /// Nowhere.
        None = "none",
        /// The Redis of readers.
        Redis = "redis",
    }
}

/// A key of a dataset in Redis: all of one dataset have one hash tag, so that a cluster keeps them together.
pub fn sink_key(prefix: &str, store: &StoreId, dataset: &str, rest: &str) -> String {
    format!("{prefix}:{{{}:{dataset}}}:{rest}", store.0)
}

/// The key that readers begin with: a hash that names all others.
pub fn sink_pointer(prefix: &str, store: &StoreId, dataset: &str) -> String {
    sink_key(prefix, store, dataset, "current")
}

/// Since when readers of a sink find something else than what is current: since that was published, or since what was
/// there was lost. None where they find it, and where nothing is current.
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
