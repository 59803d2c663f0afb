//! A small generator (splitmix64).

use std::time::Duration;

pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A span from `low` to `high` milliseconds.
    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros(low * 1000 + self.next() % ((high - low) * 1000 + 1))
    }

    /// Lets a random span pass: what comes next comes at a random moment.
    pub(crate) async fn moment(&mut self, low: u64, high: u64) {
        tokio::time::sleep(self.millis(low, high)).await;
    }
}
