//! `Window` beside a set of settled indexes.

use std::collections::BTreeSet;

use proptest::prelude::*;
use windrow_core::ids::ItemIndex;
use windrow_core::items::run::IndexRun;
use windrow_core::items::window::Window;

#[derive(Clone, Debug)]
enum Op {
    /// Settles a run that begins this far from watermark (below it when negative).
    Settle(i64, u32),
    /// Settles everything that is open below this distance, so that watermark moves far.
    SettleAllBelow(u64),
    Resize(u32),
    /// Asks for the first open run in a part of the window.
    Ask(u64, u64, u32),
    /// Saves and restores, perhaps with another size.
    Restore(u32),
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (-3i64..400, 1u32..150).prop_map(|(at, len)| Op::Settle(at, len)),
        4 => (0i64..70, 1u32..3).prop_map(|(at, len)| Op::Settle(at, len)),
        2 => (0u64..300).prop_map(Op::SettleAllBelow),
        2 => (1u32..400).prop_map(Op::Resize),
        6 => (0u64..400, 0u64..400, 0u32..200).prop_map(|(from, to, max)| Op::Ask(from, to, max)),
        2 => (1u32..400).prop_map(Op::Restore),
    ]
}

/// Watermark, size, and what is settled above watermark.
struct Twin {
    low: u64,
    size: u64,
    settled: BTreeSet<u64>,
}

impl Twin {
    fn settle(&mut self, run: IndexRun) -> u32 {
        let newly = run.iter().filter(|index| self.settled.insert(index.0)).count();
        while self.settled.remove(&self.low) {
            self.low += 1;
        }
        newly as u32
    }

    fn open_run(&self, from: u64, to: u64, max: u32) -> Option<IndexRun> {
        let open = |index: &u64| !self.settled.contains(index);
        let first = (from.max(self.low)..to).find(open)?;
        let len = (first..to).take_while(open).take(max as usize).count();
        IndexRun::new(ItemIndex(first), len as u32)
    }

    fn restore(&self, size: u32) -> Window {
        let bits = self.settled.last().map_or(0, |last| last - self.low);
        let mut above = vec![0u64; bits.div_ceil(64) as usize];
        for index in &self.settled {
            let bit = index - self.low - 1;
            above[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        Window::restore(ItemIndex(self.low), size, &above)
    }

    fn agrees(&self, window: &Window) -> Result<(), TestCaseError> {
        prop_assert_eq!(window.watermark(), ItemIndex(self.low));
        prop_assert_eq!(window.limit(), ItemIndex(self.low + self.size));
        prop_assert_eq!(u64::from(window.size()), self.size);
        prop_assert_eq!(window.settled_above(), self.settled.len() as u64);
        for index in self.low.saturating_sub(2)..self.low + 700 {
            let settled = index < self.low || self.settled.contains(&index);
            prop_assert_eq!(window.is_settled(ItemIndex(index)), settled, "index {}", index);
        }
        Ok(())
    }
}

fn apply(op: &Op, window: &mut Window, twin: &mut Twin) -> Result<(), TestCaseError> {
    match *op {
        Op::Settle(at, len) => {
            let first = twin.low.saturating_add_signed(at);
            let run = IndexRun::new(ItemIndex(first), len).expect("not empty");
            let before = window.clone();
            match window.settle(run) {
                Ok(newly) => prop_assert_eq!(newly, twin.settle(run)),
                Err(_) => {
                    let inside = first >= twin.low && run.end().0 <= twin.low + twin.size;
                    prop_assert!(!inside, "{:?} lies inside and was refused", run);
                    prop_assert_eq!(&*window, &before);
                }
            }
        }
        Op::SettleAllBelow(distance) => {
            let to = ItemIndex(twin.low + distance.min(twin.size));
            while let Some(run) = window.unsettled(window.watermark(), to, u32::MAX) {
                prop_assert_eq!(window.settle(run), Ok(run.len()));
                prop_assert_eq!(twin.settle(run), run.len());
            }
        }
        Op::Resize(size) => {
            window.resize(size);
            twin.size = u64::from(size);
        }
        Op::Ask(from, to, max) => {
            // Beyond the limit a ring may know less than the twin: the core never asks there.
            let (from, to) = (twin.low + from, (twin.low + to).min(twin.low + twin.size));
            let found = window.unsettled(ItemIndex(from), ItemIndex(to), max);
            prop_assert_eq!(
                found,
                twin.open_run(from, to, max),
                "[{}, {}) at most {}",
                from,
                to,
                max
            );
        }
        Op::Restore(size) => {
            let mut above = Vec::new();
            let high = twin.settled.last().map_or(twin.low, |last| last + 1);
            let span = window.copy_above(ItemIndex(high), &mut above);
            prop_assert_eq!(u64::from(span), high.saturating_sub(twin.low + 1));
            *window = Window::restore(ItemIndex(twin.low), size, &above);
            prop_assert_eq!(&*window, &twin.restore(size));
            twin.size = u64::from(size);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_window_does_what_a_set_does(
        low in prop_oneof![Just(0u64), 0u64..200, Just(i64::MAX as u64 - 5000)],
        size in prop_oneof![Just(1u32), Just(64), Just(128), 1u32..300],
        ops in prop::collection::vec(ops(), 1..60),
    ) {
        let mut window = Window::new(ItemIndex(low), size);
        let mut twin = Twin { low, size: u64::from(size), settled: BTreeSet::new() };
        for op in &ops {
            let low_before = twin.low;
            apply(op, &mut window, &mut twin)?;
            twin.agrees(&window)?;
            prop_assert!(window.watermark().0 >= low_before, "watermark fell");
        }
    }

    #[test]
    fn a_saved_set_comes_back_bit_for_bit(
        low in 0u64..130,
        bits in prop::collection::btree_set(1u64..1000, 0..300),
        size in 1u32..2000,
    ) {
        let twin = Twin { low, size: u64::from(size), settled: bits.iter().map(|bit| low + bit).collect() };
        let window = twin.restore(size);
        twin.agrees(&window)?;
        let mut above = Vec::new();
        let high = ItemIndex(bits.last().map_or(low, |last| low + last + 1));
        let span = window.copy_above(high, &mut above);
        prop_assert_eq!(u64::from(span), bits.last().copied().unwrap_or(0));
        for bit in 1..1000u64 {
            let word = above.get((bit - 1) as usize / 64).copied().unwrap_or(0);
            prop_assert_eq!(word >> ((bit - 1) % 64) & 1 == 1, bits.contains(&bit), "bit {}", bit);
        }
    }
}
