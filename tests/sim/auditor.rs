//! Judges a scenario by what comes out alone: what was dispatched, what was drafted, what progress says.

use std::collections::{BTreeMap, BTreeSet};

use windrow_core::execution::{CheckpointDraft, Effects, Progress};
use windrow_core::pace::burst_items;
use windrow_core::settings::{Auto, Rate};
use windrow_core::stats::permits::{MICRO, Permits};
use windrow_core::task::Tuning;

use crate::store::{Row, Store};

/// How an item ended for good, as the core was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Final {
    Succeeded,
    Skipped,
    Failed,
}

/// How each item ended, by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finals(Vec<Option<Final>>);

impl Finals {
    pub(crate) fn get(&self, index: u64) -> Option<Final> {
        self.0.get(index as usize).copied().flatten()
    }

    fn insert(&mut self, index: u64, how: Final) -> Option<Final> {
        let at = index as usize;
        self.0.resize(self.0.len().max(at + 1), None);
        self.0[at].replace(how)
    }

    fn forget(&mut self, index: u64) {
        if let Some(slot) = self.0.get_mut(index as usize) {
            *slot = None;
        }
    }

    /// The indexes of all that ended.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = u64> {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, how)| how.is_some())
            .map(|(index, _)| index as u64)
    }
}

const UNIT: i128 = 1 << 60;
/// What the terms of `Permits` may lack together, each being rounded down.
const ROUNDING: u64 = 20;

#[derive(Debug, Default)]
pub(crate) struct Auditor {
    /// What the present run knows: a crash takes it back to what was stored.
    pub(crate) finals: Finals,
    counts: [u64; 3],
    pub(crate) in_flight: BTreeMap<u64, u32>,
    /// Finished attempts of unsettled items, as the present run knows them.
    pub(crate) attempts: BTreeMap<u64, u32>,
    /// Those of them that count.
    pub(crate) charged: BTreeMap<u64, u32>,
    pub(crate) delivered: BTreeSet<u64>,
    /// Attempts that crashes and resumed stops may add to an item's most.
    pub(crate) allowance: u32,
    pub(crate) max_attempts_ever: u32,
    departures: Vec<(u64, u32)>,
    rates: Vec<(u64, Option<Rate>)>,
    burst_max: u64,
    unsaved_max: u64,
    concurrency_max: u64,
    /// Calls of this run that were answered.
    answered: u64,
    low: u64,
    /// The first index without an end: what an ordered task sends next.
    low_now: u64,
}

impl Auditor {
    /// A run begins from what is stored.
    pub(crate) fn on_run(&mut self, store: &Store, start: u64, end: u64) {
        self.check_pace();
        self.departures.clear();
        self.rates.clear();
        (self.burst_max, self.unsaved_max, self.concurrency_max) = (0, 0, 0);
        self.in_flight.clear();
        self.answered = 0;
        self.counts = [0; 3];
        for index in start..end {
            match self.finals.get(index) {
                Some(how) if store.is_settled(index) => self.counts[how as usize] += 1,
                _ => self.finals.forget(index),
            }
        }
        self.attempts.clear();
        self.charged.clear();
        for (index, row) in store
            .rows
            .iter()
            .filter(|(_, row)| !matches!(row, Row::Failed(_)))
        {
            assert!(
                (start..end).contains(index) && !store.is_settled(*index),
                "row of {index} is left over"
            );
            self.attempts.insert(*index, row.retrying().attempts);
            self.charged.insert(*index, row.retrying().charged);
        }
        self.low = store.low;
        self.begin_at(start);
    }

    pub(crate) fn begin_at(&mut self, start: u64) {
        self.low_now = start;
        while self.finals.get(self.low_now).is_some() {
            self.low_now += 1;
        }
    }

    pub(crate) fn on_tuning(&mut self, tuning: &Tuning, at: u64) {
        let rate = tuning.rate.most();
        self.rates.push((at, rate));
        let burst = rate.map_or(0, |rate| burst_items(tuning.burst, rate, tuning.batch.get()));
        self.burst_max = self.burst_max.max(burst);
        self.max_attempts_ever = self.max_attempts_ever.max(tuning.max_attempts.get());
        let unsaved = match tuning.unsaved_max {
            Auto::Fixed(number) => u64::from(number.get()),
            Auto::Auto => u64::MAX / 2,
        };
        self.unsaved_max = self.unsaved_max.max(unsaved);
    }

    pub(crate) fn on_dispatch(&mut self, index: u64, attempt: u32, ordered: bool, end: u64) {
        assert!(index < end, "item {index} is excluded");
        assert_eq!(
            self.finals.get(index),
            None,
            "item {index} is settled and leaves again"
        );
        let before = self.in_flight.insert(index, attempt);
        assert_eq!(before, None, "item {index} is in flight twice");
        let done = self.attempts.get(&index).copied().unwrap_or(0);
        assert_eq!(attempt, done + 1, "attempt of item {index}");
        let most = self.max_attempts_ever + self.allowance;
        let charged = self.charged.get(&index).copied().unwrap_or(0);
        assert!(
            charged < most,
            "item {index} leaves after {charged} charged attempts, at most {most}"
        );
        if ordered {
            assert_eq!(self.in_flight.len(), 1, "an ordered task sends one at a time");
            assert_eq!(index, self.low_now, "an ordered task sends in order");
        }
    }

    /// While the stored task has a canary, only its items leave.
    pub(crate) fn on_canary(&self, index: u64, start: u64, store: &Store) {
        let Some(canary) = store.canary else { return };
        assert!(
            index < start + canary.items.get(),
            "item {index} leaves although the canary holds it"
        );
    }

    /// A canary that is done has no item that isn't settled.
    pub(crate) fn check_canary_done(&self, start: u64, store: &Store) {
        let Some(canary) = store.canary else {
            panic!("a canary ended twice")
        };
        for index in start..start + canary.items.get() {
            assert!(
                self.finals.get(index).is_some(),
                "item {index} of the canary is not settled"
            );
        }
    }

    pub(crate) fn on_departure(&mut self, at: u64) {
        self.departures.push((at, 1));
    }

    pub(crate) fn on_answer(&mut self, index: u64) {
        self.in_flight
            .remove(&index)
            .expect("only what is in flight answers");
        self.answered += 1;
        self.delivered.insert(index);
    }

    pub(crate) fn on_final(&mut self, index: u64, how: Final) {
        assert_eq!(self.finals.insert(index, how), None, "item {index} settles twice");
        self.counts[how as usize] += 1;
        self.begin_at(self.low_now);
        self.attempts.remove(&index);
        self.charged.remove(&index);
    }

    pub(crate) fn count(&self, how: Final) -> u64 {
        self.counts[how as usize]
    }

    /// After each step.
    pub(crate) fn on_step(&mut self, fx: &Effects, progress: &Progress) {
        assert!(fx.violations.is_empty(), "violations {:?}", fx.violations);
        let counters = progress.counters;
        assert_eq!(
            counters.accounted() + progress.pending,
            progress.total.0,
            "the terms: {progress:?}"
        );
        assert_eq!(counters.succeeded, self.count(Final::Succeeded), "succeeded");
        assert_eq!(counters.skipped, self.count(Final::Skipped), "skipped");
        assert_eq!(counters.failed, self.count(Final::Failed), "failed");
        assert_eq!(counters.in_flight, self.in_flight.len() as u64, "in flight");
        assert!(
            progress.watermark.0 >= self.low,
            "watermark fell to {}",
            progress.watermark.0
        );
        self.low = progress.watermark.0;
        let concurrency = u64::from(progress.concurrency);
        self.concurrency_max = self.concurrency_max.max(concurrency);
        if !fx.dispatch.is_empty() {
            assert!(
                counters.in_flight <= concurrency,
                "{} in flight of {concurrency}",
                counters.in_flight
            );
        }
        // An evicted item is unsaved as such, and again once it is settled.
        let most = self.unsaved_max + 2 * self.concurrency_max + 2;
        assert!(progress.unsaved <= most, "{} unsaved of {most}", progress.unsaved);
        self.check_permits(&progress.permits);
    }

    /// Every permit that was due is accounted for, but for what the bucket holds.
    fn check_permits(&self, permits: &Permits) {
        let sent = self.answered + self.in_flight.len() as u64;
        assert_eq!(permits.first + permits.repeats, sent * MICRO, "what left");
        let (due, spent) = (permits.due + ROUNDING, permits.spent());
        let held = due
            .checked_sub(spent)
            .unwrap_or_else(|| panic!("more than was due: {permits:?}"));
        // A slow-down of an unpaced task has a burst of its own.
        let is_paced = self.rates.iter().all(|(_, rate)| rate.is_some());
        let most = (self.burst_max + 1) * MICRO + ROUNDING;
        assert!(
            held <= most || !is_paced,
            "{held} of {most} are held: {permits:?}"
        );
    }

    /// Before a draft is stored: what it says must be true of what the run has been told until then.
    pub(crate) fn on_draft(&self, draft: &CheckpointDraft, start: u64) {
        let bits: u64 = draft.above.iter().map(|word| u64::from(word.count_ones())).sum();
        let passed = draft.watermark.0 - start + bits;
        assert_eq!(
            draft.counters.settled() + draft.counters.parked,
            passed,
            "counters against bits"
        );
        assert_eq!(draft.counters.in_flight, 0);
    }

    /// After it was stored: `told` is what the run knew when it drafted.
    pub(crate) fn on_stored(&self, old: &Store, new: &Store, told: &Told, range: (u64, u64)) {
        assert!(
            new.low >= old.low && new.high >= old.high,
            "stored low or high water fell"
        );
        for index in range.0..range.1 {
            let (how, row) = (told.finals.get(index), new.rows.get(&index));
            let (parked, passed) = (matches!(row, Some(Row::Parked(..))), new.is_passed(index));
            assert_eq!(
                passed && !parked,
                how.is_some(),
                "stored, against told: item {index}"
            );
            assert!(passed || !parked, "a parked row without a bit: item {index}");
            let failed = matches!(row, Some(Row::Failed(_)));
            assert_eq!(failed, how == Some(Final::Failed), "row of failed item {index}");
            if how.is_none() {
                let row = row.map(Row::retrying);
                let begun = row
                    .and_then(|t| t.failure.as_ref())
                    .is_some_and(|f| f.code.starts_with("NODE_CRASH"));
                let kept = row.map_or(0, |retrying| retrying.attempts);
                let made = told.attempts.get(&index).copied().unwrap_or(0);
                assert!(
                    kept == made || begun && kept == made + 1,
                    "{index}: {kept} kept of {made} attempts"
                );
            } else if !failed {
                assert_eq!(row, None, "row of settled item {index}");
            }
        }
    }

    pub(crate) fn told(&self) -> Told {
        Told {
            finals: self.finals.clone(),
            attempts: self.attempts.clone(),
        }
    }

    /// All intervals between departures at once: see `tests/twins/pace.rs`.
    pub(crate) fn check_pace(&mut self) {
        if self.rates.iter().any(|(_, rate)| rate.is_none()) {
            return;
        }
        self.departures.sort_unstable();
        let Some((mut at, _)) = self.departures.first().copied() else {
            return;
        };
        let mut segment = self.rates.iter().rposition(|(from, _)| *from <= at).unwrap_or(0);
        let (mut integral, mut before, mut lowest) = (0i128, 0i128, i128::MAX);
        for (departure, items) in &self.departures {
            while at < *departure {
                let next = self.rates.get(segment + 1).map_or(u64::MAX, |(from, _)| *from);
                let to = next.min(*departure).max(at);
                let rate = self.rates[segment].1.expect("every rate is known here");
                let span = i128::from(to - at) * i128::from(rate.items());
                integral += (span * (UNIT >> 20) / i128::from(rate.period_ns()) + 1) << 20;
                at = to;
                segment += usize::from(next <= *departure);
            }
            lowest = lowest.min(before * UNIT - integral);
            before += i128::from(*items);
            let excess = before * UNIT - integral - lowest;
            assert!(
                excess <= i128::from(self.burst_max) * UNIT,
                "{} above the rate",
                excess / UNIT + 1
            );
        }
    }
}

/// What a run had been told when it made a draft.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) finals: Finals,
    attempts: BTreeMap<u64, u32>,
}
