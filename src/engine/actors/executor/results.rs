//! Outputs of a run on their way to the store, committed with the checkpoint that settles their items.
//!
//! They enter the run's cell under the same lock as the reports of their replies, so a draft holds the outputs of
//! exactly the items it settles: a crash loses both, and the items are called again. Outputs are never dropped. If
//! too much waits, dispatch stops until a checkpoint is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ports::tasks::results::{ItemOutput, SEGMENT_BYTES, Segment};
use windrow_core::ids::ItemIndex;

/// Unsaved bytes that ask for an early checkpoint, so that its transaction is short.
const RUN_BYTES_DUE: u64 = 2 << 20;
/// Unsaved bytes of a run at which its dispatch stops.
const RUN_BYTES_MAX: u64 = 16 << 20;
/// Unsaved bytes of all runs of a node at which dispatch stops; calls in flight may add to them.
const NODE_BYTES_MAX: u64 = 64 << 20;
/// Bytes that an output costs in addition to its text.
const OUTPUT_OVERHEAD: usize = 24;

/// Bytes of unsaved outputs of all runs of a node.
#[derive(Debug, Default)]
pub(crate) struct ResultRoom(AtomicU64);

/// Segments of a draft, and the number of results of its shard including them.
#[derive(Debug, Default)]
pub(crate) struct DraftResults {
    pub(crate) segments: Vec<Segment>,
    pub(crate) kept: u64,
}

/// The segments of a run that are not stored yet.
pub(crate) struct Results {
    room: Arc<ResultRoom>,
    /// Full segments, each with the first draft that carried it, if any.
    sealed: Vec<(Segment, Option<u64>)>,
    /// Outputs of the growing segment. Those already stored stay in it until it is full.
    open: Vec<ItemOutput>,
    open_no: u32,
    open_bytes: usize,
    /// Lowest index that may join the open segment: the watermark of the last draft before the segment began.
    /// Everything that settles in the window lies above it.
    open_base: ItemIndex,
    /// Watermark of the last draft.
    drafted: ItemIndex,
    /// Bytes taken in since the last draft.
    fresh_bytes: u64,
    /// Drafts that are not stored, with the bytes that each was the first to carry.
    out: Vec<(u64, u64)>,
    next_no: u32,
    /// Results of the shard, including unstored ones.
    kept: u64,
    is_full: bool,
}

impl Results {
    pub(crate) fn new(room: Arc<ResultRoom>, kept: u64, watermark: ItemIndex) -> Results {
        Results {
            room,
            sealed: Vec::new(),
            open: Vec::new(),
            open_no: 0,
            open_bytes: 0,
            open_base: watermark,
            drafted: watermark,
            fresh_bytes: 0,
            out: Vec::new(),
            next_no: 0,
            kept,
            is_full: false,
        }
    }

    /// True if the next draft would carry no new outputs.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.fresh_bytes == 0
    }

    /// True if a checkpoint would make room and none is on its way.
    #[inline]
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        self.fresh_bytes >= RUN_BYTES_DUE && self.out.is_empty()
    }

    /// Returns true when too much waits to send more, false when there is room again, and `None` if nothing changed.
    pub(crate) fn fullness(&mut self) -> Option<bool> {
        let held = self.held();
        let is_full =
            held >= RUN_BYTES_MAX || held > 0 && self.room.0.load(Ordering::Relaxed) >= NODE_BYTES_MAX;
        (std::mem::replace(&mut self.is_full, is_full) != is_full).then_some(is_full)
    }

    fn held(&self) -> u64 {
        self.fresh_bytes + self.out.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }

    /// Moves outputs into the open segment and counts their bytes.
    pub(crate) fn take_in(&mut self, outputs: &mut Vec<ItemOutput>) {
        for output in outputs.drain(..) {
            let bytes = output.json.len() + OUTPUT_OVERHEAD;
            self.fresh_bytes += bytes as u64;
            self.room.0.fetch_add(bytes as u64, Ordering::Relaxed);
            self.add(output, bytes);
        }
    }

    fn add(&mut self, output: ItemOutput, bytes: usize) {
        self.kept += 1;
        if self.open.is_empty() {
            self.open_base = self.drafted;
        }
        if output.index < self.open_base {
            let no = self.take_no();
            return self.sealed.push((segment(no, vec![output]), None));
        }
        if self.open.is_empty() {
            self.open_no = self.take_no();
        }
        self.open.push(output);
        self.open_bytes += bytes;
        if self.open_bytes >= SEGMENT_BYTES {
            self.seal();
        }
    }

    fn take_no(&mut self) -> u32 {
        let no = self.next_no;
        self.next_no += 1;
        no
    }

    fn seal(&mut self) {
        let full = std::mem::take(&mut self.open);
        self.open_bytes = 0;
        self.sealed.push((segment(self.open_no, full), None));
    }

    /// Returns everything unstored, for the draft `draft_no`.
    pub(crate) fn take_for(&mut self, draft_no: u64, watermark: ItemIndex) -> DraftResults {
        self.drafted = watermark;
        let fresh = std::mem::take(&mut self.fresh_bytes);
        self.out.push((draft_no, fresh));
        for (_, carried_by) in &mut self.sealed {
            carried_by.get_or_insert(draft_no);
        }
        let mut all: Vec<Segment> = self.sealed.iter().map(|(segment, _)| segment.clone()).collect();
        let is_open_news = self.out.iter().any(|(_, bytes)| *bytes > 0);
        if !self.open.is_empty() && is_open_news {
            all.push(segment(self.open_no, self.open.clone()));
        }
        DraftResults {
            segments: all,
            kept: self.kept,
        }
    }

    /// Drops the segments and frees the bytes of this draft and all earlier ones, which are now stored.
    pub(crate) fn on_stored(&mut self, draft_no: u64) {
        self.sealed
            .retain(|(_, carried_by)| carried_by.is_none_or(|first| first > draft_no));
        let stored = self.out.extract_if(.., |(no, _)| *no <= draft_no);
        let bytes = stored.map(|(_, bytes)| bytes).sum();
        self.room.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        self.room.0.fetch_sub(self.held(), Ordering::Relaxed);
    }
}

fn segment(no: u32, mut outputs: Vec<ItemOutput>) -> Segment {
    outputs.sort_unstable_by_key(|output| output.index);
    Segment {
        no,
        outputs: outputs.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(indexes: impl IntoIterator<Item = u64>, bytes: usize) -> Vec<ItemOutput> {
        let output = |index| ItemOutput {
            index: ItemIndex(index),
            json: "7".repeat(bytes).into(),
        };
        indexes.into_iter().map(output).collect()
    }

    /// The numbers and indexes of segments.
    fn shape(segments: &[Segment]) -> Vec<(u32, Vec<u64>)> {
        let indexes = |segment: &Segment| segment.outputs.iter().map(|output| output.index.0).collect();
        segments
            .iter()
            .map(|segment| (segment.no, indexes(segment)))
            .collect()
    }

    fn results() -> Results {
        Results::new(Arc::default(), 0, ItemIndex(0))
    }

    #[test]
    fn the_open_segment_is_carried_again_with_what_came_to_it() {
        let mut results = Results::new(Arc::default(), 40, ItemIndex(0));
        results.take_in(&mut outputs([2, 0], 10));
        assert_eq!(
            shape(&results.take_for(1, ItemIndex(0)).segments),
            [(0, vec![0, 2])]
        );
        results.on_stored(1);
        results.take_in(&mut outputs([1, 3], 10));
        assert_eq!(
            shape(&results.take_for(2, ItemIndex(0)).segments),
            [(0, vec![0, 1, 2, 3])]
        );
        results.on_stored(2);
        let third = results.take_for(3, ItemIndex(0));
        assert_eq!(
            (shape(&third.segments), third.kept),
            (vec![], 44),
            "there is no news of it"
        );
    }

    #[test]
    fn a_full_segment_is_carried_until_it_is_stored_and_the_next_one_begins() {
        let mut results = results();
        results.take_in(&mut outputs(0..5, SEGMENT_BYTES / 4));
        let first = results.take_for(1, ItemIndex(0)).segments;
        assert_eq!(shape(&first), [(0, vec![0, 1, 2, 3]), (1, vec![4])]);
        results.take_in(&mut outputs([5], 10));
        assert_eq!(
            shape(&results.take_for(2, ItemIndex(0)).segments),
            [(0, vec![0, 1, 2, 3]), (1, vec![4, 5])]
        );
        results.on_stored(2);
        results.take_in(&mut outputs([6], 10));
        assert_eq!(
            shape(&results.take_for(3, ItemIndex(0)).segments),
            [(1, vec![4, 5, 6])]
        );
    }

    #[test]
    fn what_settles_far_behind_the_others_is_a_segment_of_its_own_also_where_it_comes_first() {
        let mut results = results();
        drop(results.take_for(1, ItemIndex(90)));
        results.take_in(&mut outputs([7, 100, 8, 95], 10));
        let second = results.take_for(2, ItemIndex(101));
        assert_eq!(
            shape(&second.segments),
            [(0, vec![7]), (2, vec![8]), (1, vec![95, 100])]
        );
    }

    #[test]
    fn what_waits_counts_against_the_node_until_it_is_stored_or_its_run_is_gone() {
        let room = Arc::<ResultRoom>::default();
        let mut results = Results::new(room.clone(), 0, ItemIndex(0));
        assert_eq!(results.fullness(), None);
        results.take_in(&mut outputs(0..300, 64 << 10));
        assert!(results.is_checkpoint_due());
        assert_eq!((results.fullness(), results.fullness()), (Some(true), None));
        drop(results.take_for(1, ItemIndex(0)));
        assert!(!results.is_checkpoint_due(), "one is on its way");
        results.on_stored(1);
        assert_eq!(results.fullness(), Some(false));
        results.take_in(&mut outputs([300], 10));
        assert!(room.0.load(Ordering::Relaxed) > 0);
        drop(results);
        assert_eq!(room.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_run_stands_still_where_the_others_of_its_node_hold_too_much() {
        let room = Arc::<ResultRoom>::default();
        let mut others: Vec<Results> = (0..5)
            .map(|_| Results::new(room.clone(), 0, ItemIndex(0)))
            .collect();
        for other in &mut others {
            other.take_in(&mut outputs(0..240, 64 << 10));
        }
        let mut late = Results::new(room, 0, ItemIndex(0));
        assert_eq!(
            late.fullness(),
            None,
            "it holds nothing: a checkpoint of it would help nobody"
        );
        late.take_in(&mut outputs([0], 10));
        assert_eq!(late.fullness(), Some(true));
    }
}
