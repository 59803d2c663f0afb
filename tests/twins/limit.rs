//! Shared limits beside naive twins: the allocate against water that is poured drop by drop, and a node's local_bucket against the
//! promise that in no interval more departs than its part and burst allow.

use std::time::Duration;

use proptest::prelude::*;
use windrow_core::ids::{Moment, SessionId};
use windrow_core::limit::allocate::shared;
use windrow_core::limit::demand::{Demand, Wishes};
use windrow_core::limit::local_bucket::{LocalBucket, Used};
use windrow_core::limit::round::{Round, Row, settle};
use windrow_core::limit::{Amount, Bounds, NANOS_PER_ITEM, Part};

const STALE: Duration = Duration::from_millis(2);

/// One drop after the other to whoever has least of those that want more; what nobody wants goes round.
fn poured(total: u64, wishes: &[Vec<u64>]) -> Vec<u64> {
    let mut given: Vec<Vec<u64>> = wishes.iter().map(|runs| vec![0; runs.len()]).collect();
    let mut left = total;
    while left > 0 {
        let wanting = |who: usize, run: usize, given: &[Vec<u64>]| given[who][run] < wishes[who][run];
        let runs = (0..wishes.len()).flat_map(|who| (0..wishes[who].len()).map(move |run| (who, run)));
        let least = runs
            .filter(|(who, run)| wanting(*who, *run, &given))
            .min_by_key(|(who, run)| given[*who][*run]);
        let Some((who, run)) = least else { break };
        given[who][run] += 1;
        left -= 1;
    }
    let mut sums: Vec<u64> = given.iter().map(|runs| runs.iter().sum()).collect();
    let number = sums.len().max(1);
    for at in 0..usize::try_from(left).expect("small") {
        sums[at % number] += 1;
    }
    sums
}

#[derive(Clone, Debug)]
enum Op {
    /// A session plays a round with these wishes; its answer is lost, or not.
    Play {
        who: usize,
        wishes: Vec<u64>,
        lost: bool,
        yields: bool,
    },
    /// The round before its last one arrives once more.
    Repeat(usize),
    Fence(usize),
    Limit(u32),
}

fn ops() -> impl Strategy<Value = Op> {
    let wishes = prop::collection::vec(0..40_u64, 0..4);
    prop_oneof![
        8 => (0..4_usize, wishes, any::<bool>(), any::<bool>())
            .prop_map(|(who, wishes, lost, yields)| Op::Play { who, wishes, lost, yields }),
        1 => (0..4_usize).prop_map(Op::Repeat),
        1 => (0..4_usize).prop_map(Op::Fence),
        1 => (1..60_u32).prop_map(Op::Limit),
    ]
}

fn session(who: usize, life: u128) -> SessionId {
    SessionId(uuid::Uuid::from_u128(life * 16 + who as u128))
}

proptest! {
    #[test]
    fn the_deal_is_what_pouring_drop_by_drop_gives(
        total in 0..200_u64,
        wishes in prop::collection::vec(prop::collection::vec(1..60_u64, 0..4), 1..5),
    ) {
        let each: Vec<Wishes> = wishes.iter().map(|runs| Wishes::of(runs.iter().copied())).collect();
        let allocated = shared(total, &each.iter().collect::<Vec<_>>());
        prop_assert_eq!(allocated.iter().sum::<u64>(), total, "all of it is allocated");
        // Which of equals gets the odd one is nobody's matter.
        let runs = wishes.iter().map(Vec::len).max().unwrap_or(0) as u64;
        for (part, poured) in allocated.iter().zip(poured(total, &wishes)) {
            prop_assert!(part.abs_diff(poured) <= runs.max(1), "{} is not about {}", part, poured);
        }
    }

    #[test]
    fn what_sessions_may_use_never_grows_beyond_the_limit(ops in prop::collection::vec(ops(), 1..120)) {
        let mut limit = 30_u32;
        let mut rows: Vec<Row> = Vec::new();
        let mut lives = [1_u128; 4];
        let mut uses = [0_u64; 4];
        let mut seqs = [0_u64; 4];
        let mut last: [Option<Round>; 4] = Default::default();
        let mut ceiling = u64::from(limit);
        for op in ops {
            let bounds = Bounds { rate: None, concurrency: Some(limit) };
            let apply = |rows: &mut Vec<Row>, round: &Round| {
                let (row, allocated) = settle(&bounds, rows, round)?;
                rows.retain(|other| other.session != row.session);
                rows.push(row);
                Some(allocated)
            };
            match op {
                Op::Play { who, wishes, lost, yields } => {
                    seqs[who] += 1;
                    let demand = Demand { slots: Wishes::of(wishes), batch: 1, ..Demand::default() };
                    let held = Part { slots: Amount::of(uses[who]), ..Part::UNBOUNDED };
                    let session = session(who, lives[who]);
                    let round = Round { session, seq: seqs[who], uses: held, demand, yields, leaves: false, units: Vec::new() };
                    let allocated = apply(&mut rows, &round).expect("newer");
                    last[who] = Some(round);
                    if !lost {
                        uses[who] = allocated.usable().slots.bound().expect("limited");
                    }
                }
                Op::Repeat(who) => {
                    if let Some(round) = &last[who] {
                        prop_assert_eq!(apply(&mut rows, round), None, "it is no newer than the last one");
                    }
                }
                Op::Fence(who) => {
                    rows.retain(|row| row.session != session(who, lives[who]));
                    lives[who] += 1;
                    (uses[who], seqs[who]) = (0, 0);
                    last[who] = None;
                }
                Op::Limit(to) => limit = to,
            }
            let held = |row: &Row| row.held.slots.bound().unwrap_or(0);
            let sum: u64 = rows.iter().map(held).sum();
            ceiling = u64::from(limit).max(ceiling.min(sum));
            prop_assert!(sum <= ceiling && uses.iter().sum::<u64>() <= ceiling, "{} of {}", sum, ceiling);
        }
    }

    #[test]
    fn in_no_interval_more_departs_than_the_part_and_its_burst(
        steps in prop::collection::vec((0..3_usize, 0..30_000_000_u64, 1..40_u32, 0..3_u32, 0..=2_u64), 1..300),
        parts in prop::collection::vec((1..400_u64, 4..60_u64), 1..6),
    ) {
        let part = |(rate, burst): (u64, u64)| Part {
            rate: Amount::of(rate * NANOS_PER_ITEM),
            burst: Amount::of(burst),
            slots: Amount::UNBOUNDED,
        };
        let mut now = Moment(0);
        let mut local_bucket = LocalBucket::new(part(parts[0]), STALE, now);
        let seats: Vec<_> = (0..3).map(|_| local_bucket.join(None, 1, now)).collect();
        // The highest of all parts bounds all intervals.
        let rate = parts.iter().map(|part| part.0).max().expect("some") as f64;
        let burst = parts.iter().map(|part| part.1).max().expect("some") as f64;
        let mut departed: Vec<(f64, u32)> = Vec::new();
        for (at, (who, gap, want, unused, delay)) in steps.into_iter().enumerate() {
            now = now.plus(Duration::from_nanos(gap));
            if at % 17 == 16 {
                local_bucket.apply(part(parts[(at / 17) % parts.len()]), now);
            }
            let reserved = local_bucket.reserve(seats[who], want, now);
            prop_assert!(reserved.items <= want);
            let left = reserved.items.saturating_sub(unused);
            local_bucket.settle(seats[who], reserved, Used { left, wants_more: unused == 0, in_flight: 0 }, now);
            let departs = now.plus(Duration::from_millis(delay));
            departed.push((departs.0 as f64 / 1e9, left));
        }
        departed.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut sum, mut least) = (0.0, f64::INFINITY);
        for (at, left) in departed {
            least = f64::min(least, sum - rate * at);
            sum += f64::from(left);
            prop_assert!(sum - rate * at - least <= burst + 1e-3, "{} above", sum - rate * at - least);
        }
    }
}

#[test]
fn runs_that_want_all_get_the_same_whatever_they_ask_for_at_once() {
    let part = Part {
        rate: Amount::of(300 * NANOS_PER_ITEM),
        burst: Amount::of(30),
        slots: Amount::UNBOUNDED,
    };
    let mut local_bucket = LocalBucket::new(part, STALE, Moment(0));
    let wants = [
        (local_bucket.join(None, 1, Moment(0)), 64_u32),
        (local_bucket.join(None, 1, Moment(0)), 3),
    ];
    let mut got = [0_u32; 2];
    let mut asks = [Moment(0); 2];
    for micros in (0..20_000_000_u64).step_by(500) {
        let now = Moment(micros * 1000);
        for (at, (seat, want)) in wants.iter().enumerate() {
            // The second comes less often, as one with slower timers does.
            if now < asks[at].plus(Duration::from_micros(at as u64 * 900)) {
                continue;
            }
            let reserved = local_bucket.reserve(*seat, *want, now);
            local_bucket.settle(
                *seat,
                reserved,
                Used {
                    left: reserved.items,
                    wants_more: true,
                    in_flight: 0,
                },
                now,
            );
            got[at] += reserved.items;
            asks[at] = reserved.ask_at.unwrap_or(now);
        }
    }
    assert!(
        got[0].abs_diff(got[1]) <= 60 && got[0] + got[1] >= 5_900,
        "{got:?}"
    );
    let demand = local_bucket.collect(Moment(20_000_000_000));
    assert_eq!((demand.runs, demand.rates.weight()), (2, 20));
    assert_eq!(demand.rates.up_to(u64::MAX), u64::MAX);
}

/// A run that shares slots with others: it asks each millisecond for what its own rate lets leave.
struct Caller {
    seat: u64,
    /// How long its calls take. Unit: milliseconds.
    takes: u64,
    /// Milliseconds between two items; 0 is as many as it may.
    every: u64,
    due: u64,
    /// When its calls end.
    calls: Vec<u64>,
    sent: u64,
}

impl Caller {
    fn new(local_bucket: &mut LocalBucket, (takes, every, batch): (u64, u64, u32)) -> Caller {
        Caller {
            seat: local_bucket.join(None, batch, Moment(0)),
            takes,
            every,
            due: 0,
            calls: Vec::new(),
            sent: 0,
        }
    }

    fn tick(&mut self, local_bucket: &mut LocalBucket, at: u64) {
        let now = Moment(at * 1_000_000);
        self.due += u64::from(self.every > 0 && at.is_multiple_of(self.every.max(1)));
        // A lane that has told of an answer asks again at once.
        (0..2).for_each(|_| self.ask(local_bucket, at, now));
    }

    fn ask(&mut self, local_bucket: &mut LocalBucket, at: u64, now: Moment) {
        let want = if self.every == 0 { 64 } else { self.due.min(64) };
        let reserved = local_bucket.reserve(self.seat, u32::try_from(want).expect("few"), now);
        self.calls.retain(|end| *end > at);
        let left = u64::from(reserved.items);
        (0..left).for_each(|_| self.calls.push(at + self.takes));
        (self.due, self.sent) = (self.due.saturating_sub(left), self.sent + left);
        let used = Used {
            left: reserved.items,
            wants_more: left < want,
            in_flight: self.calls.len() as u64,
        };
        local_bucket.settle(self.seat, reserved, used, now);
    }
}

/// What these callers sent in a minute, and how many of the slots were used on average. Each has the milliseconds of a call
/// and those between two items, and the items of a call.
fn a_minute_of(slots: u64, callers: &[(u64, u64, u32)]) -> (Vec<u64>, f64) {
    let part = Part {
        rate: Amount::UNBOUNDED,
        burst: Amount::UNBOUNDED,
        slots: Amount::of(slots),
    };
    let mut local_bucket = LocalBucket::new(part, STALE, Moment(0));
    let mut callers: Vec<Caller> = callers
        .iter()
        .map(|caller| Caller::new(&mut local_bucket, *caller))
        .collect();
    let mut used = 0;
    for at in 0..60_000 {
        callers
            .iter_mut()
            .for_each(|caller| caller.tick(&mut local_bucket, at));
        assert!(local_bucket.in_flight() <= slots);
        used += local_bucket.in_flight();
        if at.is_multiple_of(500) {
            local_bucket.collect(Moment(at * 1_000_000));
        }
    }
    let sent = callers.iter().map(|caller| caller.sent).collect();
    (sent, used as f64 / 60_000.0)
}

#[test]
fn a_run_of_long_calls_leaves_slots_to_one_of_short_calls() {
    // 8 s a call and as many as it may have; 10 ms a call, 50 a second: that takes half a slot.
    for callers in [[(8_000, 0, 1), (10, 20, 1)], [(10, 20, 1), (8_000, 0, 1)]] {
        let (sent, used) = a_minute_of(10, &callers);
        let short = if callers[0].1 == 20 { sent[0] } else { sent[1] };
        assert!((2_600..=3_000).contains(&short), "of 3,000: {sent:?}");
        assert!(used >= 8.0, "and hardly any is idle: {used}");
    }
}

#[test]
fn runs_that_want_all_slots_have_as_many_whatever_their_calls_take() {
    let (sent, used) = a_minute_of(10, &[(2_000, 0, 1), (100, 0, 1)]);
    // Five slots each, half a second's and ten calls' worth a second each.
    assert!(
        sent[0].abs_diff(150) <= 20 && sent[1].abs_diff(3_000) <= 300,
        "{sent:?}"
    );
    assert!(used >= 9.5, "{used}");
}

#[test]
fn runs_under_one_limit_share_it_by_their_weights() {
    let part = Part {
        rate: Amount::of(330 * NANOS_PER_ITEM),
        burst: Amount::of(33),
        slots: Amount::UNBOUNDED,
    };
    let mut local_bucket = LocalBucket::new(part, STALE, Moment(0));
    let seats = [10, 20, 3].map(|weight| {
        let seat = local_bucket.join(None, 1, Moment(0));
        local_bucket.weigh(seat, weight);
        seat
    });
    let mut got = [0_u32; 3];
    for millis in 0..20_000 {
        let now = Moment(millis * 1_000_000);
        for (at, seat) in seats.iter().enumerate() {
            let reserved = local_bucket.reserve(*seat, 64, now);
            let used = Used {
                left: reserved.items,
                wants_more: true,
                in_flight: 0,
            };
            local_bucket.settle(*seat, reserved, used, now);
            got[at] += reserved.items;
        }
    }
    for (got, share) in got.iter().zip([2_000, 4_000, 600]) {
        assert!(got.abs_diff(share) <= share / 10, "{got} of {share}");
    }
    let demand = local_bucket.collect(Moment(20_000_000_000));
    assert_eq!((demand.runs, demand.rates.weight()), (3, 33));
}

#[test]
fn who_needs_more_slots_for_a_batch_than_its_share_has_its_turn() {
    for (slots, batch) in [(2, 2), (3, 2), (10, 8), (10, 10)] {
        let (sent, _) = a_minute_of(slots, &[(100, 0, 1), (100, 0, batch)]);
        assert!(
            sent.iter().all(|sent| *sent >= 300),
            "{slots} slots, batches of {batch}: {sent:?}"
        );
    }
}
