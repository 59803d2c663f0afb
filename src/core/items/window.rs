//! Sliding window over item indexes: records which of `[watermark, watermark + size)` are settled.
//!
//! A ring of 64-bit words addressed by absolute index, so that setting a run and moving the watermark work a word at
//! a time. Knows nothing of attempts, outcomes or time. Invariants: the bit of the watermark is clear; every bit that
//! belongs to no index of the window is clear; the watermark never falls.

use crate::ids::ItemIndex;
use crate::items::run::IndexRun;

/// The run is not entirely inside the window; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run is outside the window")]
pub struct OutsideWindow;

/// Sliding window of settled indexes, stored as a ring of bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    low: u64,
    size: u64,
    /// Ring of bits, a power of two of words; bit `i` is index `i` modulo the ring's length.
    words: Vec<u64>,
}

impl Window {
    /// Creates an empty window of `size` items (at least 1) from `watermark` on.
    pub fn new(watermark: ItemIndex, size: u32) -> Window {
        let size = u64::from(size.max(1));
        Window {
            low: watermark.0,
            size,
            words: vec![0; words_for(size)],
        }
    }

    /// Restores a window from its saved settled set: bit `j` of `above` is index `watermark + 1 + j`.
    pub fn restore(watermark: ItemIndex, size: u32, above: &[u64]) -> Window {
        let span = 1 + 64 * above.len() as u64;
        let mut window = Window::new(watermark, size);
        window.ensure_capacity(span);
        for (at, word) in above.iter().enumerate() {
            let first = watermark.0 + 1 + 64 * at as u64;
            window.put(first, *word);
        }
        window
    }

    /// Returns the watermark: the lowest index that is not settled.
    #[inline]
    pub fn watermark(&self) -> ItemIndex {
        ItemIndex(self.low)
    }

    /// Returns one past the highest index that may be dispatched.
    #[inline]
    pub fn limit(&self) -> ItemIndex {
        ItemIndex(self.low + self.size)
    }

    /// Returns the width of the window in items.
    pub fn size(&self) -> u32 {
        u32::try_from(self.size).unwrap_or(u32::MAX)
    }

    /// Returns true if `index` is settled: below the watermark, or its bit is set.
    #[inline]
    pub fn is_settled(&self, index: ItemIndex) -> bool {
        index.0 < self.low
            || (index.0 < self.end() && self.words[self.slot(index.0)] >> (index.0 & 63) & 1 == 1)
    }

    /// Settles a run and moves the watermark. Returns the number of indexes that were not settled before.
    ///
    /// # Errors
    /// Fails if the run reaches below the watermark or beyond the capacity of the ring.
    #[inline]
    pub fn settle(&mut self, run: IndexRun) -> Result<u32, OutsideWindow> {
        if run.first().0 < self.low || run.end().0 > self.end() {
            return Err(OutsideWindow);
        }
        let mut newly = 0;
        let (mut at, end) = (run.first().0, run.end().0);
        while at < end {
            let (bit, len) = (at & 63, (64 - (at & 63)).min(end - at));
            let mask = (u64::MAX >> (64 - len)) << bit;
            let slot = self.slot(at);
            newly += (mask & !self.words[slot]).count_ones();
            self.words[slot] |= mask;
            at += len;
        }
        self.advance();
        Ok(newly)
    }

    /// Moves the watermark to `to`, over indexes that were never settled or dispatched.
    ///
    /// # Errors
    /// Fails if an index above the watermark is settled, or if `to` is below it; nothing was changed.
    pub fn jump(&mut self, to: ItemIndex) -> Result<(), OutsideWindow> {
        if to.0 < self.low || self.words.iter().any(|word| *word != 0) {
            return Err(OutsideWindow);
        }
        self.low = to.0;
        Ok(())
    }

    /// Returns the first run of unsettled indexes in `[from, to)`, at most `max` long.
    #[inline]
    pub fn unsettled(&self, from: ItemIndex, to: ItemIndex, max: u32) -> Option<IndexRun> {
        let to = to.0.min(self.end());
        let mut start = from.0.max(self.low);
        while start < to {
            let ones = (self.words[self.slot(start)] >> (start & 63)).trailing_ones();
            if ones == 0 {
                break;
            }
            start += u64::from(ones).min(64 - (start & 63));
        }
        if start >= to {
            return None;
        }
        let bound = to.min(start + u64::from(max));
        let mut end = start;
        while end < bound {
            let left = 64 - (end & 63);
            let zeros = u64::from((self.words[self.slot(end)] >> (end & 63)).trailing_zeros()).min(left);
            end += zeros;
            if zeros < left {
                break;
            }
        }
        IndexRun::new(
            ItemIndex(start),
            u32::try_from(end.min(bound) - start).unwrap_or(max),
        )
    }

    /// Changes the size. A smaller one takes effect as the watermark moves; no settled index is lost.
    pub fn resize(&mut self, size: u32) {
        self.size = u64::from(size.max(1));
        self.ensure_capacity(self.size);
    }

    /// Extends the ring up to `end`, whatever the size, for items dispatched while the window was wider.
    pub fn cover(&mut self, end: ItemIndex) {
        self.ensure_capacity(end.0.saturating_sub(self.low));
    }

    /// Copies the settled set above the watermark into `above` (bit `j` is index `watermark + 1 + j`), up to `high`,
    /// and returns the number of bits that count: the distance from the watermark to the highest settled index.
    pub fn copy_above(&self, high: ItemIndex, above: &mut Vec<u64>) -> u32 {
        above.clear();
        let first = self.low + 1;
        let mut at = first;
        while at < high.0.min(self.end()) {
            above.push(self.read(at));
            at += 64;
        }
        while above.last() == Some(&0) {
            above.pop();
        }
        above
            .last()
            .map_or(0, |last| (above.len() as u32) * 64 - last.leading_zeros())
    }

    /// Counts the settled indexes above the watermark. Walks the window: for checks only.
    pub fn settled_above(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns one past the highest index that the ring can hold.
    #[inline]
    fn end(&self) -> u64 {
        self.low + 64 * self.words.len() as u64
    }

    #[inline]
    fn slot(&self, index: u64) -> usize {
        (index >> 6) as usize & (self.words.len() - 1)
    }

    #[inline]
    fn advance(&mut self) {
        loop {
            let (slot, bit) = (self.slot(self.low), self.low & 63);
            let ones = u64::from((self.words[slot] >> bit).trailing_ones()).min(64 - bit);
            if ones == 0 {
                return;
            }
            self.words[slot] &= !((u64::MAX >> (64 - ones)) << bit);
            self.low += ones;
        }
    }

    /// Returns the 64 bits from index `at` on; bits past the ring's end read as clear.
    fn read(&self, at: u64) -> u64 {
        let bit = at & 63;
        let lower = self.words[self.slot(at)] >> bit;
        if bit == 0 {
            return lower;
        }
        let next = (at | 63) + 1;
        if next >= self.end() {
            return lower & (u64::MAX >> (64 - (self.end() - at).min(64)));
        }
        let value = lower | self.words[self.slot(next)] << (64 - bit);
        let left = self.end() - at;
        if left < 64 {
            value & (u64::MAX >> (64 - left))
        } else {
            value
        }
    }

    /// Sets the bits of `word` from index `at` on; they must lie inside the ring.
    fn put(&mut self, at: u64, word: u64) {
        let bit = at & 63;
        let slot = self.slot(at);
        self.words[slot] |= word << bit;
        if bit > 0 && word >> (64 - bit) != 0 {
            let slot = self.slot((at | 63) + 1);
            self.words[slot] |= word >> (64 - bit);
        }
    }

    fn ensure_capacity(&mut self, items: u64) {
        let wanted = words_for(items);
        if wanted <= self.words.len() {
            return;
        }
        let old_end = self.end();
        let mut grown = Window {
            low: self.low,
            size: self.size,
            words: vec![0; wanted],
        };
        let mut at = self.low;
        while at < old_end {
            let len = 64.min(old_end - at);
            grown.put(at, self.read(at) & (u64::MAX >> (64 - len)));
            at += len;
        }
        self.words = grown.words;
    }
}

/// Returns the number of words for `items`, plus one so that the first and the last word of a window never share a
/// slot.
fn words_for(items: u64) -> usize {
    usize::try_from(items.div_ceil(64) + 1)
        .unwrap_or(usize::MAX / 2)
        .next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u64, len: u32) -> IndexRun {
        IndexRun::new(ItemIndex(first), len).expect("not empty")
    }

    #[test]
    fn watermark_stops_at_first_unsettled_item() {
        let mut window = Window::new(ItemIndex(0), 128);
        assert_eq!(window.settle(run(1, 70)), Ok(70));
        assert_eq!(window.watermark(), ItemIndex(0));
        assert_eq!(window.settle(run(0, 1)), Ok(1));
        assert_eq!(window.watermark(), ItemIndex(71));
    }

    #[test]
    fn settling_below_watermark_or_beyond_the_ring_is_refused_and_changes_nothing() {
        let mut window = Window::new(ItemIndex(100), 64);
        let before = window.clone();
        assert_eq!(window.settle(run(99, 2)), Err(OutsideWindow));
        assert_eq!(window.settle(run(100 + 128, 1)), Err(OutsideWindow));
        assert_eq!(window, before);
    }

    #[test]
    fn watermark_jumps_over_what_nobody_touched_only() {
        let mut window = Window::new(ItemIndex(5), 64);
        assert_eq!(window.jump(ItemIndex(4)), Err(OutsideWindow));
        assert_eq!(window.jump(ItemIndex(1_000_003)), Ok(()));
        assert_eq!(window.settle(run(1_000_004, 2)), Ok(2));
        assert_eq!(window.jump(ItemIndex(2_000_000)), Err(OutsideWindow));
        assert_eq!(window.settle(run(1_000_003, 1)), Ok(1));
        assert_eq!(window.watermark(), ItemIndex(1_000_006));
    }

    #[test]
    fn a_smaller_size_forgets_nothing() {
        let mut window = Window::new(ItemIndex(0), 256);
        assert_eq!(window.settle(run(200, 1)), Ok(1));
        window.resize(10);
        assert_eq!(window.limit(), ItemIndex(10));
        assert!(window.is_settled(ItemIndex(200)));
    }
}
