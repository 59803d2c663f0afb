//! Calls cut from granted items.

use std::num::NonZeroU32;

use crate::ports::handling::handler::CallItems;
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::Dispatch;

/// Iterator that cuts granted runs into calls of at most `batch` items.
pub(super) struct Calls<'a> {
    dispatches: &'a [Dispatch],
    at: usize,
    /// Part of the dispatch at `at` that is not in a call yet.
    rest: Option<IndexRun>,
    batch: u32,
}

impl<'a> Calls<'a> {
    pub(super) fn new(dispatches: &'a [Dispatch], batch: u32) -> Calls<'a> {
        Calls {
            dispatches,
            at: 0,
            rest: dispatches.first().map(|d| d.run),
            batch: batch.max(1),
        }
    }

    /// Returns the next call if it is one contiguous run of items on the same attempt.
    #[inline]
    pub(super) fn next_of_neighbours(&mut self) -> Option<Dispatch> {
        let run = self.rest?;
        let is_last = self.at + 1 == self.dispatches.len();
        if run.len() < self.batch && !is_last {
            return None;
        }
        self.piece(self.batch)
    }

    /// Takes up to `most` contiguous items on the same attempt.
    #[inline]
    fn piece(&mut self, most: u32) -> Option<Dispatch> {
        let run = self.rest?;
        let attempt = self.dispatches[self.at].attempt;
        let most = NonZeroU32::new(most)?;
        let (piece, rest) = run.split(most);
        self.rest = rest;
        if rest.is_none() {
            self.at += 1;
            self.rest = self.dispatches.get(self.at).map(|d| d.run);
        }
        Some(Dispatch { run: piece, attempt })
    }
}

impl Iterator for Calls<'_> {
    type Item = CallItems;

    #[inline]
    fn next(&mut self) -> Option<CallItems> {
        let first = self.piece(self.batch)?;
        if first.run.len() == self.batch || self.rest.is_none() {
            return Some(CallItems::One(first));
        }
        let mut pieces = vec![first];
        let mut count = first.run.len();
        while count < self.batch {
            let Some(piece) = self.piece(self.batch - count) else {
                break;
            };
            count += piece.run.len();
            pieces.push(piece);
        }
        Some(CallItems::Many(pieces))
    }
}
