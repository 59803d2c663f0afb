//! Runs whose calls are counted in units: paces hold, totals are never overspent, and what dies counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use windrow_core::execution::{
    CallEnd, Departure, Effects, Event, Execution, MetersSaved, Now, Phase, Progress, Reports, RunEnd,
    Shared, Start, Wait,
};
use windrow_core::ids::{Attempt, ItemIndex, Moment, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::{Dispatch, Outcome, Settled};
use windrow_core::meter::amount::Amount;
use windrow_core::meter::class::End;
use windrow_core::meter::metering::Metering;
use windrow_core::task::lifecycle::StopReason;
use windrow_core::task::{ShardRange, Tuning};

use crate::rng::Rng;
use crate::store::Store;

const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1000 * MS;

/// Call that was sent: time, cost and estimate in whole units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paid {
    pub(crate) at: u64,
    pub(crate) cost: u64,
}

/// Amount of an item, in whole units.
pub(crate) type Cost = fn(u64) -> u64;

/// End of a call that is out: time, ticket, item, attempt.
type Out = Reverse<(u64, u64, u64, u32)>;

pub(crate) struct World {
    metering: Metering,
    items: u64,
    /// True time at which the world began.
    began: WallMs,
    /// Milliseconds by which the node's clock is ahead.
    pub(crate) clock_ahead: i64,
    /// Set while the store takes nothing.
    is_deaf: bool,
    cost: Cost,
    /// Estimate of an item, if rows have one.
    estimate: Option<Cost>,
    says_costs: bool,
    store: Store,
    meters: MetersSaved,
    core: Execution,
    pub(crate) now: u64,
    saved: u64,
    fx: Effects,
    reports: Reports,
    out: BinaryHeap<Out>,
    pub(crate) paid: Vec<Paid>,
    out_max: usize,
    pub(crate) rng: Rng,
}

fn metering(limits: &[&str]) -> Metering {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let price = owned(&["eur = 0.002 * {tokens}"]);
    let is_priced = limits.iter().any(|limit| limit.contains("eur"));
    let price = if is_priced { price } else { Vec::new() };
    Metering::parse(&owned(limits), &[], &[], &price).expect("it is sound")
}

/// Between 50 and 3,000 tokens, in no order.
pub(crate) fn uneven(index: u64) -> u64 {
    50 + index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 2951
}

pub(crate) fn thousand(_: u64) -> u64 {
    1000
}

impl World {
    pub(crate) fn new(items: u64, limits: &[&str], cost: Cost, estimate: Option<Cost>) -> World {
        let metering = metering(limits);
        let store = Store::new(0, None);
        let began = WallMs(1_800_000_000_000);
        let now = Now {
            moment: Moment(0),
            wall: began,
        };
        let core = core(items, &metering, &store, &MetersSaved::default(), now);
        World {
            metering,
            items,
            began,
            clock_ahead: 0,
            is_deaf: false,
            cost,
            estimate,
            says_costs: true,
            store,
            meters: MetersSaved::default(),
            core,
            now: 0,
            saved: 0,
            fx: Effects::default(),
            reports: Reports::default(),
            out: BinaryHeap::new(),
            paid: Vec::new(),
            out_max: 0,
            rng: Rng(7),
        }
    }

    /// Begins again at this true time.
    pub(crate) fn begin(&mut self, at: WallMs) {
        self.began = at;
        self.kill();
    }

    /// Sets another limit, for the next run.
    pub(crate) fn set_limit(&mut self, limit: &str) {
        self.metering = metering(&[limit]);
    }

    /// Returns the true time of a moment.
    pub(crate) fn true_wall(&self, now: u64) -> WallMs {
        WallMs(self.began.0 + (now / MS) as i64)
    }

    fn at(&self, now: u64) -> Now {
        Now {
            moment: Moment(now),
            wall: WallMs(self.true_wall(now).0 + self.clock_ahead),
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        self.core.progress(self.at(self.now))
    }

    /// Goes on while the store takes nothing that is saved.
    pub(crate) fn run_unsaved(&mut self, until: u64) {
        self.is_deaf = true;
        self.run(until);
        self.is_deaf = false;
    }

    /// Kills the run: what it had out was paid, and the next run begins from the store.
    pub(crate) fn kill(&mut self) {
        self.out.clear();
        self.reports = Reports::default();
        self.fx = Effects::default();
        self.store.claim();
        self.core = core(
            self.items,
            &self.metering,
            &self.store,
            &self.meters,
            self.at(self.now),
        );
    }

    /// Goes on until this time, or the end of the run.
    pub(crate) fn run(&mut self, until: u64) {
        let (until, mut turns) = (until * SECOND, 0);
        while self.now < until && !self.is_over() {
            turns += 1;
            assert!(turns < 1_000_000, "it turns in circles: {:?}", self.progress());
            self.exchange();
            self.save();
            if self.fx.wait != Wait::Now || self.fx.dispatch.is_empty() {
                self.pass(until);
            }
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.progress().phase, Phase::Ended(_))
    }

    fn exchange(&mut self) {
        self.fx.clear();
        let now = self.at(self.now);
        let event = Event::Exchange {
            reports: &mut self.reports,
            want: 64,
        };
        self.core.step(event, now, &mut self.fx);
        assert!(self.fx.violations.is_empty(), "{:?}", self.fx.violations);
        let (mut ticket, mut goes_back) = (self.fx.ticket.unwrap_or_default(), false);
        for dispatch in self.fx.dispatch.clone() {
            for index in dispatch.run.iter() {
                let usage = vec![self.estimate.map(|estimate| Amount::units(estimate(index.0)))];
                if !goes_back {
                    let departure = self.core.charge(ticket, usage, 1, now);
                    assert!(!matches!(departure, Departure::TooLarge(_)), "{departure:?}");
                    goes_back = departure != Departure::Go;
                }
                match goes_back {
                    true => self.give_back(index, dispatch.attempt, ticket),
                    false => self.send(index, dispatch.attempt, ticket),
                }
                ticket += 1;
            }
        }
    }

    fn send(&mut self, index: ItemIndex, attempt: Attempt, ticket: u64) {
        let cost = (self.cost)(index.0);
        self.paid.push(Paid { at: self.now, cost });
        let took = (100 + self.rng.between(0, 900)) * MS;
        self.out
            .push(Reverse((self.now + took, ticket, index.0, attempt.get())));
        self.out_max = self.out_max.max(self.out.len());
    }

    fn give_back(&mut self, index: ItemIndex, attempt: Attempt, ticket: u64) {
        let run = IndexRun::one(index);
        self.reports.returned.push(Dispatch { run, attempt });
        self.end(ticket, End::NeverSent, Vec::new());
    }

    fn end(&mut self, ticket: u64, end: End, used: Vec<Option<Amount>>) {
        self.reports.ends.push(CallEnd {
            ticket,
            at: Moment(self.now),
            end,
            item: None,
            after: None,
            windows: Vec::new(),
            used,
        });
    }

    /// Makes a checkpoint durable, each second and when one is asked for.
    fn save(&mut self) {
        if self.now < self.saved + SECOND && !self.fx.checkpoint_due && !self.is_over() {
            return;
        }
        if self.is_deaf {
            return;
        }
        let now = self.at(self.now);
        self.saved = self.now;
        let mut fx = Effects::default();
        self.core.step(Event::DraftCheckpoint, now, &mut fx);
        if let Some(draft) = fx.checkpoint.take() {
            self.store.apply(&draft);
            self.meters = draft.meters.clone();
            let stored = Event::CheckpointStored(draft.no);
            self.core.step(stored, now, &mut fx);
        }
    }

    fn pass(&mut self, until: u64) {
        let lands = self.out.peek().map(|Reverse((ends, ..))| *ends);
        let wakes = match self.fx.wait {
            Wait::Until(moment) => Some(moment.0.max(self.now + MS).next_multiple_of(MS)),
            _ => None,
        };
        // The store answers within a tick; nobody asks it while only time allows more.
        let is_idle = wakes.is_some() && self.out.is_empty() && !self.fx.checkpoint_due;
        let tick = (!is_idle).then_some(self.now + SECOND / 10);
        let next = lands.into_iter().chain(wakes).chain(tick).min();
        self.now = next.unwrap_or(until).clamp(self.now, until);
        while let Some(Reverse((ends, ticket, index, attempt))) = self.out.peek().copied()
            && ends <= self.now
        {
            self.out.pop();
            self.reports.answered.add(Moment(ends));
            self.reports.settle(Settled {
                run: IndexRun::one(ItemIndex(index)),
                attempt: Attempt::new(attempt),
                outcome: Outcome::Succeeded,
            });
            let used = Amount::units((self.cost)(index));
            let used = if self.says_costs {
                vec![Some(used)]
            } else {
                Vec::new()
            };
            self.end(ticket, End::Succeeded, used);
        }
    }

    pub(crate) fn paid(&self) -> u64 {
        self.paid.iter().map(|paid| paid.cost).sum()
    }

    fn between(&self, from: u64, to: u64) -> u64 {
        let is_in = |paid: &&Paid| (from * SECOND..to * SECOND).contains(&paid.at);
        self.paid.iter().filter(is_in).map(|paid| paid.cost).sum()
    }

    pub(crate) fn stopped(&self) -> Option<StopReason> {
        match self.progress().phase {
            Phase::Ended(RunEnd::Stopped { reason, .. }) => Some(reason),
            _ => None,
        }
    }

    /// Use that the store knows of, certain or not, in whole units.
    fn known(&self) -> u64 {
        let of = |meter: &windrow_core::execution::MeterSaved| meter.spent.plus(meter.unsure);
        let used: Amount = self.meters.0.iter().take(1).map(of).sum();
        (used.0 / Amount::ONE.0) as u64
    }
}

fn core(items: u64, metering: &Metering, store: &Store, meters: &MetersSaved, now: Now) -> Execution {
    let range = ShardRange {
        start: ItemIndex(0),
        end: ItemIndex(items),
    };
    let mut restored = store.restored();
    restored.meters = meters.clone();
    let tuning = Tuning {
        rate: windrow_core::settings::RateLimit::Unlimited,
        ..Tuning::default()
    };
    let start = Start {
        shard: ShardId {
            task: TaskId(7),
            no: 0,
        },
        range,
        tuning,
        restored,
        has_data: false,
        stalls: 0,
        run: RunNo(1),
        canary: None,
        shared: Shared::alone(range),
        first_contact: Some(Duration::from_secs(3600)),
        supply: None,
        is_service: false,
        metering: metering.clone(),
    };
    Execution::new(start, now)
}

#[test]
fn a_pace_is_used_up_and_held_in_every_second_whatever_the_estimates_are_worth() {
    let guesses: [Option<Cost>; 4] = [
        None,
        Some(uneven),
        Some(|index| 13 * uneven(index)),
        Some(|index| uneven(index) / 10),
    ];
    for (at, guess) in guesses.into_iter().enumerate() {
        let mut world = World::new(1 << 20, &["90k tokens/s"], uneven, guess);
        world.run(120);
        let used = world.between(60, 120) as f64 / (60.0 * 90_000.0);
        assert!((0.93..=1.01).contains(&used), "guess {at}: {used:.3}");
        for second in 10..119 {
            // Burst, credit that came back, and the largest call.
            let most = 90_000 + 9_000 + 90_000 + 3_000;
            let sent = world.between(second, second + 1);
            assert!(sent <= most, "guess {at}: {sent} tokens in second {second}");
        }
        let sent = world.between(20, 120);
        assert!(
            sent <= 100 * 90_000 + 9_000 + 90_000 + 3_000,
            "guess {at}: {sent} tokens in 100 s"
        );
    }
}

#[test]
fn a_total_of_calls_is_used_to_the_last_one_and_no_further() {
    let mut world = World::new(100_000, &["200 calls"], thousand, None);
    world.run(600);
    assert_eq!(world.stopped(), Some(StopReason::LimitReached));
    assert_eq!(world.paid.len(), 200);
    world.metering = metering(&["500 calls"]);
    world.kill();
    world.run(1200);
    assert_eq!(
        (world.stopped(), world.paid.len()),
        (Some(StopReason::LimitReached), 500)
    );
}

#[test]
fn a_total_is_never_overspent_however_often_the_run_dies_and_what_died_counts() {
    for seed in 0..20 {
        let mut world = World::new(100_000, &["400k tokens"], uneven, Some(uneven));
        world.rng = Rng(seed + 1);
        let mut kills = 0;
        while world.stopped().is_none() {
            let until = world.now / SECOND + 1 + world.rng.between(0, 3);
            world.run(until);
            if world.stopped().is_none() && kills < 15 {
                world.kill();
                kills += 1;
            }
            assert!(
                world.now < 3600 * SECOND,
                "seed {seed} stands still: {:?}",
                world.progress()
            );
        }
        let paid = world.paid();
        assert_eq!(world.stopped(), Some(StopReason::LimitReached), "seed {seed}");
        assert!(paid <= 400_000, "seed {seed} paid {paid}");
        assert!(
            world.known() >= paid,
            "seed {seed} paid {paid}, and knows of {}",
            world.known()
        );
        // A kill may leave what a checkpoint allowed unspent: 1/64 of what was left, or two calls.
        assert!(
            paid >= 400_000 - 3_000 - 15 * 6_250 - 15 * 6_000,
            "seed {seed} paid {paid}"
        );
    }
}

#[test]
fn a_total_in_money_is_made_of_what_it_buys() {
    let mut world = World::new(100_000, &["5 eur"], thousand, Some(thousand));
    world.run(600);
    // 1,000 tokens are 2 eur.
    assert_eq!(
        (world.stopped(), world.paid()),
        (Some(StopReason::LimitReached), 2000)
    );
}

#[test]
fn no_more_is_out_at_once_than_is_allowed() {
    let mut world = World::new(5_000, &["20 at once"], thousand, None);
    world.run(60);
    assert_eq!(world.out_max, 20);
    let mut world = World::new(5_000, &["20k tokens at once"], thousand, Some(thousand));
    world.run(60);
    assert_eq!(world.out_max, 20);
}

#[test]
fn until_eight_costs_are_known_at_most_four_calls_are_out() {
    let mut world = World::new(5_000, &["1M tokens/s"], thousand, None);
    while world.paid.len() < 8 {
        world.run(world.now / SECOND + 1);
        assert!(
            world.out.len() <= 4 || world.paid.len() >= 8,
            "{} are out",
            world.out.len()
        );
    }
}

#[test]
fn answers_that_never_say_a_cost_stop_the_run() {
    let mut world = World::new(5_000, &["90k tokens/s"], thousand, None);
    world.says_costs = false;
    world.run(120);
    assert_eq!(world.stopped(), Some(StopReason::CostUnknown));
    assert!(world.paid.len() < 20, "{} calls", world.paid.len());
}

#[test]
fn an_item_above_a_whole_limit_is_never_sent() {
    let mut world = World::new(10, &["500 tokens/s"], thousand, Some(thousand));
    let ticket = (0..4).find_map(|now| {
        world.now = now * SECOND;
        world.save();
        world.fx.clear();
        let now_at = world.at(world.now);
        let event = Event::Exchange {
            reports: &mut world.reports,
            want: 1,
        };
        world.core.step(event, now_at, &mut world.fx);
        world.fx.ticket
    });
    let ticket = ticket.expect("a call is granted");
    let now = world.at(world.now);
    let departure = world.core.charge(ticket, vec![Some(Amount::units(501))], 1, now);
    assert_eq!(departure, Departure::TooLarge("500 tokens/s".to_owned()));
}

#[test]
fn near_the_end_of_a_total_so_few_calls_are_out_that_it_is_exceeded_by_at_most_two_per_cent() {
    // Estimates that say nothing about the item: the mean for each.
    for (seed, guess) in (0..20).flat_map(|seed| [(seed, None), (seed, Some(thousand as Cost))]) {
        let mut world = World::new(100_000, &["400k tokens"], uneven, guess);
        world.rng = Rng(seed + 1);
        world.run(3600);
        assert_eq!(world.stopped(), Some(StopReason::LimitReached), "seed {seed}");
        let paid = world.paid();
        assert!(paid <= 408_000, "seed {seed} paid {paid}");
        assert!(paid >= 392_000, "seed {seed} paid {paid}");
    }
}
