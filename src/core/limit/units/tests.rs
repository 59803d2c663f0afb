//! Shared limits in units beside a naive judge, who counts what really left.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::bucket::Units;
use super::call::{Departing, Estimates, Taken};
use super::settle::uses_of;
use super::{Dealt, Key, Kind, Ledger};
use crate::ids::{Moment, SessionId, WallMs};
use crate::limit::demand::Demand;
use crate::limit::local_bucket::SlotNo;
use crate::limit::round::{Round, Row, Terms, play};
use crate::limit::{Bounds, Part};
use crate::meter::amount::Amount;
use crate::meter::class::Cost;
use crate::meter::metering::Metering;

const SESSIONS: usize = 3;
/// Run of each session.
const RUN: SlotNo = 1;
/// Beginning of a day in UTC.
const MIDNIGHT: WallMs = WallMs(1_767_225_600_000);
const HOUR: Duration = Duration::from_secs(3600);

/// Node with one run under the limit.
struct Node {
    session: SessionId,
    units: Units,
    seq: u64,
    /// Estimates of its calls that are out.
    out: Vec<Amount>,
}

/// Sessions, their rows, and what really was used.
struct World {
    terms: Terms,
    rows: Vec<Row>,
    gone: Vec<Row>,
    nodes: Vec<Node>,
    lives: u128,
    now: Moment,
    /// Departures with their times and actual costs.
    left: Vec<(Moment, Amount)>,
    /// Actual costs by the hour of the database's clock.
    by_hour: BTreeMap<i64, Amount>,
}

fn metering(limits: &[&str]) -> Metering {
    let limits: Vec<String> = limits.iter().map(|text| (*text).to_owned()).collect();
    Metering::parse(&limits, &["x = 1".to_owned()], &[], &[]).expect("a metering")
}

/// Takes a call of a node's run with this estimate, which is its own.
fn take(units: &mut Units, estimate: Amount, now: Moment) -> Taken {
    take_of(units, (RUN, estimate), estimate, now)
}

/// Takes a call of a run with an estimate of its own, and another that also has what others cost.
fn take_of(units: &mut Units, (no, own): (SlotNo, Amount), estimate: Amount, now: Moment) -> Taken {
    let call = Departing {
        own: &[own],
        pace: &mut [estimate],
        total: &mut [estimate],
    };
    units.take(no, call, now)
}

impl World {
    fn new(limits: &[&str]) -> World {
        let mut world = World {
            terms: Terms {
                bounds: Bounds::default(),
                metering: metering(limits),
                ledger: Vec::new(),
                now: MIDNIGHT,
            },
            rows: Vec::new(),
            gone: Vec::new(),
            nodes: Vec::new(),
            lives: 0,
            now: Moment(1_000_000_000),
            left: Vec::new(),
            by_hour: BTreeMap::new(),
        };
        world.nodes = (0..SESSIONS).map(|_| world.node()).collect();
        world
    }

    fn node(&mut self) -> Node {
        self.lives += 1;
        let mut units = Units::default();
        units.join(RUN, &self.terms.metering, 10, self.now);
        Node {
            session: SessionId(Uuid::from_u128(self.lives)),
            units,
            seq: 0,
            out: Vec::new(),
        }
    }

    fn limit(&mut self, limits: &[&str]) {
        self.terms.metering = metering(limits);
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(span);
        self.terms.now = self.terms.now.plus(span);
    }

    /// Plays a round of a node, whose answer may be lost.
    fn play(&mut self, who: usize, is_lost: bool) {
        let now = self.now;
        let node = &mut self.nodes[who];
        node.seq += 1;
        let round = Round {
            session: node.session,
            seq: node.seq,
            uses: Part::UNBOUNDED,
            demand: Demand::default(),
            yields: false,
            leaves: false,
            units: node.units.report(false, now),
        };
        let played = play(&self.terms, &self.rows, &self.gone, &round).expect("newer");
        self.gone.clear();
        self.rows.retain(|row| row.session != round.session);
        self.rows.push(played.row);
        self.terms.ledger = played.ledger;
        assert!(
            play(&self.terms, &self.rows, &[], &round).is_none(),
            "a repeat changes nothing"
        );
        if !is_lost {
            node.units.set_limits(&self.terms.metering, now);
            node.units.apply(&played.dealt, Dealt::usable, now);
        }
    }

    /// Sends a call with this estimate, if it may leave.
    fn send(&mut self, who: usize, estimate: Amount, actual: Amount) -> bool {
        let now = self.now;
        let node = &mut self.nodes[who];
        let calls = node.units.leave(RUN, now).calls;
        let left = calls > 0 && matches!(take(&mut node.units, estimate, now), Taken::Yes(_));
        node.units
            .see(RUN, !left, Some(now.plus(Duration::from_millis(5))), now);
        if left {
            node.out.push(estimate);
            self.left.push((now, actual));
            let hour = self.by_hour.entry(self.terms.now.0 / 3_600_000).or_default();
            *hour = hour.plus(actual);
        }
        left
    }

    /// Ends the oldest call of a node.
    fn end(&mut self, who: usize, actual: Amount) {
        let now = self.now;
        let node = &mut self.nodes[who];
        if node.out.is_empty() {
            return;
        }
        let of = [node.out.remove(0)];
        let estimates = Estimates {
            pace: &of,
            total: &of,
        };
        node.units
            .end(RUN, estimates, (&[Cost::Known(actual)], &[actual]), now);
    }

    /// Fences a node, and begins its next life.
    fn fence(&mut self, who: usize) {
        let session = self.nodes[who].session;
        let (gone, live) = self.rows.drain(..).partition(|row| row.session == session);
        self.rows = live;
        self.gone.extend::<Vec<Row>>(gone);
        self.nodes[who] = self.node();
    }

    /// Does what needs no judge of its own.
    fn act(&mut self, op: Op) {
        match op {
            Op::Send { who, estimate } => {
                let estimate = Amount::units(estimate);
                self.send(who, estimate, estimate);
            }
            Op::End(who) => {
                let actual = self.nodes[who].out.first().copied().unwrap_or_default();
                self.end(who, actual);
            }
            Op::Play { who, is_lost } => self.play(who, is_lost),
            Op::Fence(who) => self.fence(who),
            Op::Pass(millis) => self.pass(Duration::from_millis(millis)),
            Op::Limit(_) => unreachable!("the judge changes the limit"),
        }
    }

    /// Returns what counts as used, and what nodes hold beyond it.
    fn counted(&self) -> (Amount, Amount) {
        let uses = uses_of(&self.terms, &self.rows, &self.gone);
        uses.first().map_or((Amount::ZERO, Amount::ZERO), |used| {
            (used.spent.plus(used.unsure), used.held)
        })
    }

    fn really(&self) -> Amount {
        self.left.iter().map(|(_, actual)| *actual).sum()
    }
}

#[derive(Clone, Debug)]
enum Op {
    Send { who: usize, estimate: u64 },
    End(usize),
    Play { who: usize, is_lost: bool },
    Fence(usize),
    Limit(u64),
    Pass(u64),
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => (0..SESSIONS, 1..6_u64).prop_map(|(who, estimate)| Op::Send { who, estimate }),
        6 => (0..SESSIONS).prop_map(Op::End),
        8 => (0..SESSIONS, any::<bool>()).prop_map(|(who, is_lost)| Op::Play { who, is_lost }),
        1 => (0..SESSIONS).prop_map(Op::Fence),
        1 => (100..400_u64).prop_map(Op::Limit),
        2 => (1..12_000_u64).prop_map(Op::Pass),
    ]
}

proptest! {
    #[test]
    fn no_more_of_a_total_leaves_than_the_amount_whoever_dies(ops in prop::collection::vec(ops(), 1..250)) {
        let mut world = World::new(&["200 x"]);
        let mut ceiling = Amount::units(200);
        for op in ops {
            match op {
                Op::Limit(amount) => {
                    // What was given out under a higher amount may still be used.
                    let (used, held) = world.counted();
                    world.limit(&[&format!("{amount} x")]);
                    ceiling = Amount::units(amount).max(ceiling.min(used.plus(held).max(world.really())));
                }
                other => world.act(other),
            }
            let most = world.terms.metering.limits[0].amount().expect("an amount").0.max(ceiling);
            prop_assert!(world.really() <= most, "{} of {}", world.really(), most);
            let (used, held) = world.counted();
            prop_assert!(world.really() <= used.plus(held), "what left is counted: {}", world.really());
        }
    }

    #[test]
    fn no_more_of_an_allowance_leaves_in_an_hour_of_the_database_whoever_dies(
        ops in prop::collection::vec((ops(), any::<bool>()), 1..250),
    ) {
        let mut world = World::new(&["200 x/hour"]);
        for (op, is_late) in ops {
            match op {
                // The first moment of the next hour, or somewhere in it.
                Op::Limit(into) => {
                    let rest = HOUR.as_millis() as u64 - world.terms.now.0.unsigned_abs() % 3_600_000;
                    world.pass(Duration::from_millis(rest + into * u64::from(is_late)));
                }
                other => world.act(other),
            }
            for used in world.by_hour.values() {
                prop_assert!(*used <= Amount::units(200), "{:?}", world.by_hour);
            }
        }
    }

    #[test]
    fn a_pace_over_all_nodes_keeps_its_interval_also_when_nodes_die_in_debt(
        steps in prop::collection::vec((0..SESSIONS, 1..400_u64, 1..30_u64, any::<bool>(), 0..60_u32), 1..400),
    ) {
        let mut world = World::new(&["600 x/min"]);
        let (mut deaths, mut excess) = (SESSIONS as u64, Amount::ZERO);
        for (who, millis, estimate, doubles, chance) in steps {
            world.pass(Duration::from_millis(millis));
            let estimate = Amount::units(estimate);
            let actual = if doubles { estimate.plus(estimate) } else { estimate };
            if world.send(who, estimate, actual) {
                excess = excess.plus(actual.minus(estimate));
                world.end(who, actual);
            }
            match chance {
                0 => {
                    world.fence(who);
                    deaths += 1;
                }
                1..=20 => world.play(who, chance < 4),
                _ => {}
            }
        }
        // Ten a second; a largest cost for each life of a session.
        let room = Amount::units(1 + 30 * deaths).plus(excess);
        for (at, (from, _)) in world.left.iter().enumerate() {
            let mut sum = Amount::ZERO;
            for (to, actual) in &world.left[at..] {
                sum = sum.plus(*actual);
                let earned = Amount(to.since(*from).as_nanos() * 10);
                prop_assert!(sum <= earned.plus(room), "{sum} in {:?}", to.since(*from));
            }
        }
    }
}

/// Every node sends as much as it may for so many seconds, with a round a second.
fn run(world: &mut World, seconds: u64, costs: [Amount; SESSIONS]) {
    for tick in 0..seconds * 100 {
        world.pass(Duration::from_millis(10));
        for (who, cost) in costs.into_iter().enumerate() {
            if cost.is_zero() {
                continue;
            }
            if world.send(who, cost, cost) {
                world.end(who, cost);
            }
            if tick % 100 == who as u64 {
                world.play(who, false);
            }
        }
    }
}

#[test]
fn a_pace_is_used_in_whole_and_shared_in_its_unit() {
    let mut world = World::new(&["6000 x/min"]);
    let costs = [1, 1, 1].map(Amount::units);
    run(&mut world, 30, costs);
    let used = world.really().0 as f64 / 1e9;
    assert!((2_700.0..=3_010.0).contains(&used), "of 3,000: {used}");
}

#[test]
fn runs_of_a_node_share_a_pace_by_weight_and_cost() {
    let now = |millis: u64| Moment(millis * 1_000_000);
    let metering = metering(&["6600 x/min"]);
    let mut world = World::new(&["6600 x/min"]);
    let mut units = Units::default();
    // The first one's calls cost ten times as much as the second one's, the third one has twice the weight.
    let runs = [(1, 10, 10), (2, 10, 1), (3, 20, 2)];
    for (no, weight, _) in runs {
        units.join(no, &metering, weight, now(0));
    }
    world.nodes[0].units = units;
    let mut used = [0_u64; 3];
    for millis in 0..40_000 {
        world.now = now(millis);
        if millis % 1000 == 0 {
            world.play(0, false);
        }
        let units = &mut world.nodes[0].units;
        for (at, (no, _, cost)) in runs.into_iter().enumerate() {
            let (of, calls) = ([Amount::units(cost)], units.leave(no, now(millis)).calls);
            let estimates = Estimates {
                pace: &of,
                total: &of,
            };
            let left = calls > 0 && matches!(take_of(units, (no, of[0]), of[0], now(millis)), Taken::Yes(_));
            if left {
                used[at] += cost;
                units.end(no, estimates, (&[Cost::Known(of[0])], &of), now(millis));
            }
            units.see(no, true, Some(now(millis + 5)), now(millis));
        }
    }
    // 110 a second for 40 s.
    for (used, share) in used.iter().zip([1_100_u64, 1_100, 2_200]) {
        assert!(used.abs_diff(share) <= share / 8, "{used} of {share}");
    }
}

#[test]
fn what_a_dead_node_owed_is_paid_by_the_others() {
    let mut world = World::new(&["600 x/min"]);
    (0..3).for_each(|who| world.play(who, false));
    world.pass(Duration::from_secs(2));
    (0..3).for_each(|who| world.play(who, false));
    world.pass(Duration::from_secs(2));
    assert!(world.send(0, Amount::units(300), Amount::units(300)));
    world.play(0, false);
    world.fence(0);
    let before = world.left.len();
    // It owes half a minute of the whole pace.
    run(&mut world, 20, [Amount::ZERO, Amount::ONE, Amount::ONE]);
    let early = world.left.len() - before;
    run(&mut world, 40, [Amount::ZERO, Amount::ONE, Amount::ONE]);
    let late = world.left.len() - before;
    assert!(early <= 30, "hardly anything for 30 s: {early}");
    assert!((200..=330).contains(&late), "then all of it: {late}");
}

#[test]
fn a_total_is_used_up_to_the_last_call_and_then_nobody_may_send() {
    let mut world = World::new(&["300 x"]);
    run(&mut world, 60, [3, 2, 1].map(Amount::units));
    assert_eq!(world.really(), Amount::units(300));
    run(&mut world, 5, [3, 2, 1].map(Amount::units));
    for who in 0..SESSIONS {
        assert_eq!(world.nodes[who].units.used_up(RUN).as_deref(), Some("300 x"));
    }
    world.limit(&["400 x"]);
    run(&mut world, 60, [3, 2, 1].map(Amount::units));
    assert_eq!(world.really(), Amount::units(400), "it goes on once it is raised");
}

#[test]
fn an_allowance_is_used_up_each_hour_and_goes_on_in_the_next() {
    let mut world = World::new(&["300 x/hour"]);
    let costs = [3, 2, 1].map(Amount::units);
    for hour in 1..=3 {
        run(&mut world, 60, costs);
        assert_eq!(world.really(), Amount::units(300 * hour));
        assert_eq!(world.counted(), (Amount::units(300), Amount::ZERO));
        let used = uses_of(&world.terms, &world.rows, &world.gone).remove(0);
        let next = MIDNIGHT.plus(HOUR * u32::try_from(hour).expect("small"));
        assert_eq!((used.is_nearly_used, used.next), (true, Some(next)));
        for who in 0..SESSIONS {
            assert_eq!(world.nodes[who].units.used_up(RUN), None, "nobody stops");
        }
        world.pass(HOUR - Duration::from_secs(60));
    }
}

#[test]
fn a_block_in_hand_when_an_hour_begins_counts_in_that_hour() {
    let mut world = World::new(&["6400 x/hour"]);
    world.send(0, Amount::ONE, Amount::ONE);
    world.play(0, false);
    assert_eq!(world.counted().1, Amount::units(100));
    world.pass(HOUR);
    run(&mut world, 120, [0, 50, 50].map(Amount::units));
    // Its block was given out in the hour before, and it has heard of no round since.
    while world.send(0, Amount::ONE, Amount::ONE) {}
    assert!(
        world.by_hour.values().all(|used| *used <= Amount::units(6400)),
        "{:?}",
        world.by_hour
    );
    assert!(world.really() > Amount::units(6300), "{}", world.really());
}

#[test]
fn a_clock_that_was_ahead_brings_what_was_used_back_to_the_hour_that_is() {
    let mut world = World::new(&["300 x/hour"]);
    world.pass(Duration::from_secs(600));
    let used = |world: &World| world.really().0 / Amount::ONE.0;
    run(&mut world, 1, [50, 0, 0].map(Amount::units));
    let early = used(&world);
    let month = HOUR * 24 * 30;
    world.terms.now = world.terms.now.plus(month);
    run(&mut world, 60, [1, 1, 1].map(Amount::units));
    assert_eq!(used(&world), early + 300, "an hour of its own");
    world.terms.now = world.terms.now.minus(month);
    run(&mut world, 60, [1, 1, 1].map(Amount::units));
    assert_eq!(used(&world), early + 300, "all of it counts in the hour that is");
    world.pass(HOUR);
    run(&mut world, 60, [1, 1, 1].map(Amount::units));
    assert_eq!(used(&world), early + 600);
}

#[test]
fn a_longer_period_keeps_what_was_used_and_a_shorter_one_begins_after_it() {
    let mut world = World::new(&["300 x/hour"]);
    run(&mut world, 60, [1, 1, 1].map(Amount::units));
    world.limit(&["400 x/day"]);
    world.pass(HOUR);
    run(&mut world, 60, [1, 1, 1].map(Amount::units));
    assert_eq!(world.really(), Amount::units(400), "the day has used 300");
    world.limit(&["400 x/hour"]);
    world.pass(HOUR);
    run(&mut world, 60, [1, 1, 1].map(Amount::units));
    assert_eq!(
        world.really(),
        Amount::units(400),
        "what was used counts until the day ends"
    );
    world.pass(HOUR * 24);
    run(&mut world, 60, [1, 1, 1].map(Amount::units));
    assert_eq!(world.really(), Amount::units(800));
}

#[test]
fn an_idle_block_goes_back_and_a_dead_one_counts() {
    let mut world = World::new(&["6400 x"]);
    world.send(0, Amount::ONE, Amount::ONE);
    world.play(0, false);
    let (used, held) = world.counted();
    assert_eq!((used, held), (Amount::ZERO, Amount::units(100)), "1/64 of it");
    world.nodes[0].units.see(RUN, false, None, world.now);
    world.pass(Duration::from_secs(11));
    world.play(0, false);
    assert_eq!(world.counted().1, Amount::ZERO, "nobody wanted it for 10 s");
    world.send(0, Amount::ONE, Amount::ONE);
    world.play(0, false);
    world.fence(0);
    assert_eq!(
        world.counted(),
        (Amount::units(100), Amount::ZERO),
        "it may have used all"
    );
}

#[test]
fn one_call_never_claims_more_than_a_sixteenth() {
    let mut world = World::new(&["160 x"]);
    world.send(0, Amount::ONE, Amount::ONE);
    world.play(0, false);
    assert!(world.send(0, Amount::ONE, Amount::ONE));
    world.end(0, Amount::MAX);
    world.play(0, false);
    assert_eq!(world.counted().0, Amount::units(10));
    let now = world.now;
    assert_eq!(
        take(&mut world.nodes[0].units, Amount::units(11), now),
        Taken::TooLarge("160 x".to_owned())
    );
}

#[test]
fn one_dear_answer_makes_no_later_call_too_large() {
    let dear = Amount::units(500);
    for limit in ["160 x", "60 x/min"] {
        let mut world = World::new(&[limit]);
        world.send(0, Amount::ONE, Amount::ONE);
        world.play(0, false);
        world.pass(Duration::from_secs(2));
        assert!(world.send(0, Amount::ONE, Amount::ONE));
        world.end(0, dear);
        world.pass(Duration::from_secs(70));
        world.nodes[0].units.leave(RUN, world.now);
        world.play(0, false);
        world.pass(Duration::from_secs(70));
        let (now, units) = (world.now, &mut world.nodes[0].units);
        assert!(units.leave(RUN, now).calls > 0, "{limit}");
        let taken = take_of(units, (RUN, Amount::ONE), dear, now);
        assert!(matches!(taken, Taken::Yes(_)), "{limit} {taken:?}");
    }
}

#[test]
fn a_removed_limit_keeps_its_count_for_when_it_comes_back() {
    let mut world = World::new(&["300 x"]);
    run(&mut world, 5, [1, 0, 0].map(Amount::units));
    let used = world.really();
    world.limit(&["6000 x/min"]);
    run(&mut world, 5, [1, 0, 0].map(Amount::units));
    assert!(world.really() > used, "only the pace holds");
    world.limit(&["300 x"]);
    world.play(0, false);
    assert!(world.counted().0 >= used);
    let key = Key {
        kind: Kind::Pace,
        unit: crate::meter::unit::Unit::parse("x").expect("a unit"),
    };
    assert!(world.rows[0].units.iter().any(|held| held.key == key));
}

#[test]
fn a_large_call_that_waits_is_asked_for_although_the_run_wants_no_more_meanwhile() {
    let mut world = World::new(&["640 x"]);
    world.send(0, Amount::ONE, Amount::ONE);
    world.play(0, false);
    let now = world.now;
    let large = Amount::units(30);
    assert_eq!(take(&mut world.nodes[0].units, large, now), Taken::No(true));
    world.nodes[0].units.see(RUN, false, None, now);
    world.play(0, false);
    assert!(world.nodes[0].units.leave(RUN, now).calls > 0);
    assert!(matches!(
        take(&mut world.nodes[0].units, large, now),
        Taken::Yes(_)
    ));
    world.nodes[0].units.see(RUN, false, None, now);
    world.pass(Duration::from_secs(11));
    world.play(0, false);
    assert_eq!(world.counted().1, large, "nobody asks for it any more");
}

#[test]
fn a_new_run_asks_again_where_the_one_before_it_used_a_total_up() {
    for reports in [false, true] {
        let mut world = World::new(&["20 x"]);
        run(&mut world, 20, [1, 0, 0].map(Amount::units));
        let begin = |world: &mut World| {
            let (now, units) = (world.now, &mut world.nodes[0].units);
            units.leave_run(RUN);
            if reports {
                // Nobody hears the reply to the last report.
                units.report(true, now);
            }
            units.join(RUN, &world.terms.metering, 10, now);
            assert_eq!(units.leave(RUN, now).calls, 0);
            units.see(RUN, true, None, now);
        };
        // The second run doesn't know yet what a call costs.
        begin(&mut world);
        world.play(0, false);
        assert_eq!(world.nodes[0].units.used_up(RUN).as_deref(), Some("20 x"));
        world.limit(&["400 x"]);
        begin(&mut world);
        assert_eq!(world.nodes[0].units.used_up(RUN), None);
    }
}

#[test]
fn a_debt_waits_while_its_limit_is_removed() {
    let mut world = World::new(&["600 x/min"]);
    world.play(1, false);
    let owed = Amount::units(300);
    world.terms.ledger = vec![Ledger {
        key: world.rows[0].units[0].key.clone(),
        spent: Amount::ZERO,
        unsure: Amount::ZERO,
        owed,
        turn: None,
    }];
    world.limit(&["600 y/min"]);
    world.play(1, false);
    assert_eq!(world.terms.ledger[0].owed, owed);
    assert_eq!(world.rows[0].units[0].inherited, Amount::ZERO);
}

#[test]
fn a_call_that_is_given_back_leaves_no_trace() {
    let mut world = World::new(&["600 x/min", "6400 x"]);
    world.play(0, false);
    world.pass(Duration::from_secs(2));
    let (now, units) = (world.now, &mut world.nodes[0].units);
    assert!(units.leave(RUN, now).calls > 0);
    assert!(matches!(take(units, Amount(1), now), Taken::Yes(_)));
    let before = format!("{units:?}");
    // More than the pace earns in a second.
    let of = [Amount::units(18)];
    assert!(matches!(take(units, of[0], now), Taken::Yes(_)));
    let estimates = Estimates {
        pace: &of,
        total: &of,
    };
    units.give(RUN, estimates, now);
    assert_eq!(format!("{units:?}"), before);
}
