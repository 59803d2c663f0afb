//! Runs with an autopilot at simulated services: what they get, what they are refused, and that nothing is lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;
use std::time::Duration;

use windrow_core::execution::{
    CallEnd, Effects, Event, Execution, Now, Phase, Reports, Restored, RunEnd, Shared, Start, Usage, Wait,
};
use windrow_core::ids::{Attempt, ItemIndex, Moment, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::{
    Dispatch, Failed, FailedCall, Failure, FailureClass, Outcome, RetryAdvice, Settled,
};
use windrow_core::meter::class::End;
use windrow_core::meter::metering::Metering;
use windrow_core::settings::{Auto, RateLimit};
use windrow_core::task::lifecycle::StopReason;
use windrow_core::task::{ShardRange, Tuning};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// Answer of a simulated service.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Taken,
    Refused(Option<Duration>),
    Unavailable,
}

/// Service: answers a call of an item that arrives at a time in seconds beside so many others, after a time in seconds.
type Service = Box<dyn FnMut(u64, f64, u32) -> (Answer, f64)>;

/// Token bucket: so many calls a second, at most `burst` at once; refusals name a wait or none.
fn bucket(rate: f64, burst: f64, latency: f64, after: Option<Duration>) -> Service {
    let (mut tokens, mut filled) = (burst, 0.0);
    Box::new(move |_, now, _| {
        tokens = (tokens + (now - filled) * rate).min(burst);
        filled = now;
        match tokens >= 1.0 {
            true => {
                tokens -= 1.0;
                (Answer::Taken, latency)
            }
            false => (Answer::Refused(after), 0.02),
        }
    })
}

/// Service that is good for 8 calls at once, and far slower with more.
fn thrash() -> Service {
    Box::new(|_, _, n| (Answer::Taken, 0.05 * (f64::from(n) / 8.0).max(1.0).powi(2)))
}

/// End of a call that is out: time, ticket, item, attempt, number.
type Out = Reverse<(u64, u64, u64, u32, u64)>;

/// A run at a service, on a virtual clock.
struct World {
    core: Execution,
    service: Service,
    now: u64,
    saved: u64,
    fx: Effects,
    reports: Reports,
    out: BinaryHeap<Out>,
    answers: Vec<Answer>,
    /// Departures, and calls taken and refused with the time of their departure.
    departed: Vec<u64>,
    taken: Vec<u64>,
    refused: Vec<u64>,
}

fn tuning(rate: &str, change: impl FnOnce(&mut Tuning)) -> Tuning {
    let mut tuning = Tuning {
        rate: rate.parse().expect("a rate"),
        ..Tuning::default()
    };
    change(&mut tuning);
    tuning
}

fn at(now: u64) -> Now {
    Now {
        moment: Moment(now),
        wall: WallMs(1_800_000_000_000 + (now / MS) as i64),
    }
}

impl World {
    fn new(items: u64, tuning: Tuning, service: Service) -> World {
        World::resumed(items, tuning, Restored::default(), service)
    }

    fn resumed(items: u64, tuning: Tuning, restored: Restored, service: Service) -> World {
        let range = ShardRange {
            start: ItemIndex(0),
            end: ItemIndex(items),
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
            first_contact: None,
            supply: None,
            is_service: true,
            metering: Metering::default(),
        };
        World {
            core: Execution::new(start, at(0)),
            service,
            now: 0,
            saved: 0,
            fx: Effects::default(),
            reports: Reports::default(),
            out: BinaryHeap::new(),
            answers: Vec::new(),
            departed: Vec::new(),
            taken: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Asks for work, and sends what is granted. Calls for which `sends` is false come back unsent.
    fn exchange(&mut self, mut sends: impl FnMut(u64) -> bool) {
        self.fx.clear();
        let event = Event::Exchange {
            reports: &mut self.reports,
            want: 16,
        };
        self.core.step(event, at(self.now), &mut self.fx);
        assert!(self.fx.violations.is_empty(), "{:?}", self.fx.violations);
        let mut ticket = self.fx.ticket.unwrap_or_default();
        for dispatch in std::mem::take(&mut self.fx.dispatch) {
            for index in dispatch.run.iter() {
                match sends(index.0) {
                    true => self.send(index, dispatch.attempt, ticket),
                    false => self.give_back(index, dispatch.attempt, ticket),
                }
                ticket += 1;
            }
        }
    }

    fn send(&mut self, index: ItemIndex, attempt: Attempt, ticket: u64) {
        self.departed.push(self.now);
        let beside = self.out.len() as u32 + 1;
        let (answer, took) = (self.service)(index.0, self.now as f64 / 1e9, beside);
        self.answers.push(answer);
        let ends = self.now + (took * 1e9) as u64;
        let call = self.answers.len() as u64 - 1;
        self.out
            .push(Reverse((ends, ticket, index.0, attempt.get(), call)));
    }

    fn give_back(&mut self, index: ItemIndex, attempt: Attempt, ticket: u64) {
        let run = IndexRun::one(index);
        self.reports.returned.push(Dispatch { run, attempt });
        self.end(ticket, End::NeverSent, None);
    }

    fn end(&mut self, ticket: u64, end: End, refused: Option<(ItemIndex, Option<Duration>)>) {
        if ticket > 0 {
            self.reports.ends.push(CallEnd {
                ticket,
                at: Moment(self.now),
                end,
                item: refused.map(|(item, _)| item),
                after: refused.and_then(|(_, after)| after),
                windows: Vec::new(),
                used: Usage::new(),
            });
        }
    }

    /// Goes on until this time, or the end of the run.
    fn run(&mut self, seconds: u64) {
        let until = seconds * SECOND;
        while self.now < until && !matches!(self.core_phase(), Phase::Ended(_)) {
            self.save();
            self.exchange(|_| true);
            if self.fx.wait == Wait::Ended {
                return;
            }
            if self.departed.last() != Some(&self.now) || self.fx.ticket.is_none() {
                self.pass(until);
            }
        }
    }

    /// Makes a checkpoint durable each second.
    fn save(&mut self) {
        if self.now < self.saved + SECOND {
            return;
        }
        self.saved = self.now;
        self.fx.clear();
        self.core.step(Event::DraftCheckpoint, at(self.now), &mut self.fx);
        if let Some(draft) = self.fx.checkpoint.take() {
            let stored = Event::CheckpointStored(draft.no);
            self.core.step(stored, at(self.now), &mut self.fx);
        }
    }

    fn core_phase(&self) -> Phase {
        self.core.progress(at(self.now)).phase
    }

    /// Lets the time pass until something happens.
    fn pass(&mut self, until: u64) {
        if self.fx.wait == Wait::Now && self.out.is_empty() {
            return;
        }
        let lands = self.out.peek().map(|Reverse((ends, ..))| *ends);
        let wakes = match self.fx.wait {
            Wait::Until(moment) => Some(moment.0),
            _ => None,
        };
        // The timer of a lane has milliseconds.
        let wakes = wakes.map(|wakes| wakes.max(self.now + MS).next_multiple_of(MS));
        let next = lands.into_iter().chain(wakes).min();
        self.now = next.unwrap_or(until).clamp(self.now, until);
        while let Some(Reverse((ends, ..))) = self.out.peek()
            && *ends <= self.now
        {
            self.land();
        }
    }

    fn land(&mut self) {
        let Some(Reverse((_, ticket, index, attempt, call))) = self.out.pop() else {
            return;
        };
        let (index, attempt) = (ItemIndex(index), Attempt::new(attempt));
        let departed = Moment(self.departed[call as usize]);
        match self.answers[call as usize] {
            Answer::Taken => {
                self.taken.push(departed.0);
                self.reports.answered.add(departed);
                self.reports.settle(Settled {
                    run: IndexRun::one(index),
                    attempt,
                    outcome: Outcome::Succeeded,
                });
                self.end(ticket, End::Succeeded, None);
            }
            Answer::Refused(after) => {
                self.refused.push(departed.0);
                let failed = failed(index, attempt, departed, FailureClass::Answered, after);
                self.reports.turned_away.push(failed);
                self.end(ticket, End::TooMany, Some((index, after)));
            }
            Answer::Unavailable => {
                let failed = failed(index, attempt, departed, FailureClass::Unavailable, None);
                self.reports.calls.push(FailedCall {
                    before: std::mem::take(&mut self.reports.answered),
                    class: failed.class,
                    index,
                    items: 1,
                    departed,
                    failure: failed.failure.clone(),
                    after: None,
                });
                self.reports.failed.push(failed);
                self.end(ticket, End::Unavailable, None);
            }
        }
    }

    fn between(times: &[u64], from: u64, to: u64) -> f64 {
        let is_in = |time: &&u64| (from * SECOND..to * SECOND).contains(*time);
        times.iter().filter(is_in).count() as f64
    }

    /// Calls a second that were taken of those sent in this time, and the share refused.
    fn got(&self, from: u64, to: u64) -> (f64, f64) {
        let taken = World::between(&self.taken, from, to);
        let refused = World::between(&self.refused, from, to);
        (taken / (to - from) as f64, refused / (taken + refused).max(1.0))
    }
}

fn failed(
    index: ItemIndex,
    attempt: Attempt,
    departed: Moment,
    class: FailureClass,
    after: Option<Duration>,
) -> Failed {
    Failed {
        index,
        attempt,
        failure: Failure::new("E_SIM", "no"),
        advice: RetryAdvice::Retry { after },
        class,
        call_items: 1,
        departed,
        took: Duration::from_millis(20),
    }
}

fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

#[test]
fn a_service_of_five_a_second_is_used_up_and_refuses_little_whatever_wait_it_names() {
    for after in [None, seconds(0), seconds(1), seconds(60)] {
        let mut world = World::new(1 << 20, tuning("auto", |_| {}), bucket(5.0, 5.0, 0.1, after));
        world.run(660);
        let (rate, refused) = world.got(60, 660);
        assert!(
            rate >= 0.95 * 5.0 && refused <= 0.025,
            "{after:?}: {rate:.2}/s, {refused:.3}"
        );
    }
}

#[test]
fn without_the_autopilot_the_same_service_refuses_most_calls() {
    let mut world = World::new(1 << 20, tuning("50/s", |_| {}), bucket(5.0, 5.0, 0.1, None));
    world.run(360);
    let (_, refused) = world.got(60, 360);
    assert!(refused > 0.1, "{refused:.3}");
}

#[test]
fn a_service_that_more_calls_slow_down_is_held_near_its_best() {
    let mut world = World::new(1 << 20, tuning("auto", |_| {}), thrash());
    world.run(240);
    let (rate, _) = world.got(60, 240);
    // 8 in flight at 50 ms are 160/s; one more is 142/s.
    assert!(rate >= 0.86 * 160.0, "{rate:.1}/s");
}

#[test]
fn a_given_rate_holds_from_the_first_second_and_is_given_up_only_for_a_service_that_slows_down() {
    let quick: Service = Box::new(|_, _, _| (Answer::Taken, 0.3));
    let mut world = World::new(1 << 20, tuning("100/s", |_| {}), quick);
    world.run(120);
    for second in 0..120 {
        let sent = World::between(&world.departed, second, second + 1);
        assert!((98.0..=111.0).contains(&sent), "{sent} in second {second}");
    }
    let mut world = World::new(1 << 20, tuning("1000/s", |_| {}), thrash());
    world.run(240);
    let (rate, _) = world.got(60, 240);
    assert!(rate >= 0.86 * 160.0, "{rate:.1}/s");
}

#[test]
fn a_fixed_concurrency_stays_as_it_was_set() {
    let fixed = |tuning: &mut Tuning| {
        tuning.concurrency = Auto::Fixed(NonZeroU32::new(64).expect("not zero"));
    };
    let mut world = World::new(1 << 20, tuning("auto", fixed), thrash());
    world.run(30);
    assert_eq!(world.out.len(), 64);
    assert_eq!(world.core.progress(at(world.now)).concurrency, 64);
}

#[test]
fn a_ceiling_is_never_exceeded() {
    let mut world = World::new(
        1 << 20,
        tuning("auto up to 20/s", |_| {}),
        bucket(50.0, 50.0, 0.1, None),
    );
    world.run(120);
    assert_eq!(world.refused.len(), 0);
    let (rate, _) = world.got(10, 120);
    assert!((19.8..=20.2).contains(&rate), "{rate:.2}/s");
}

#[test]
fn an_item_that_alone_is_refused_waits_by_itself_and_slows_nobody() {
    let mut inner = bucket(1000.0, 1000.0, 0.1, None);
    let service: Service = Box::new(move |index, now, n| match index {
        700 => (Answer::Refused(seconds(89)), 0.02),
        _ => inner(index, now, n),
    });
    let mut world = World::new(200_000, tuning("auto up to 200/s", |_| {}), service);
    world.run(1000);
    let (rate, _) = world.got(60, 990);
    assert!(rate > 0.97 * 200.0, "{rate:.1}/s");
}

#[test]
fn a_stray_refusal_of_89_seconds_freezes_nothing() {
    let mut number = 0;
    let service: Service = Box::new(move |_, _, _| {
        number += 1;
        match number % 1000 {
            500 => (Answer::Refused(seconds(89)), 0.02),
            _ => (Answer::Taken, 0.1),
        }
    });
    let mut world = World::new(1 << 30, tuning("auto up to 100/s", |_| {}), service);
    world.run(600);
    let (rate, _) = world.got(60, 600);
    assert!(rate >= 95.0, "{rate:.1}/s");
}

#[test]
fn nothing_is_lost_and_no_ticket_stays_out_when_calls_come_back_unsent_or_lanes_are_lost() {
    let mut world = World::new(3_000, tuning("auto", |_| {}), bucket(40.0, 40.0, 0.1, None));
    let mut turns = 0;
    loop {
        turns += 1;
        world.save();
        let every_third = turns;
        world.exchange(|index| (index + every_third) % 3 > 0);
        if world.fx.wait == Wait::Ended {
            break;
        }
        world.pass(u64::MAX);
        if turns % 500 == 0 {
            world.out.clear();
            world.reports = Reports::default();
            world.fx.clear();
            world.core.step(Event::LanesLost, at(world.now), &mut world.fx);
        }
        assert!(
            turns < 1_000_000 && world.now < 3600 * SECOND,
            "it stands still: {:?}, {:?}",
            world.fx.wait,
            world.core.progress(at(world.now))
        );
    }
    let progress = world.core.progress(at(world.now));
    assert_eq!(progress.counters.succeeded, 3_000);
}

#[test]
fn an_outage_teaches_nothing_and_is_over_soon_after_it_ends() {
    let mut inner = bucket(50.0, 50.0, 0.1, None);
    let service: Service = Box::new(move |index, now, n| match now {
        100.0..160.0 => (Answer::Unavailable, 0.01),
        _ => inner(index, now, n),
    });
    let mut world = World::new(1 << 30, tuning("auto", |_| {}), service);
    world.run(400);
    let before = world.got(60, 100).0;
    let after = world.got(200, 260).0;
    assert!(after > 0.9 * before, "{before:.1}/s, then {after:.1}/s");
}

#[test]
fn the_next_run_begins_with_what_was_found() {
    let mut world = World::new(1 << 20, tuning("auto", |_| {}), bucket(5.0, 5.0, 0.1, None));
    world.run(300);
    let found = world.core.found(at(world.now));
    assert!(found.is_some_and(|found| {
        found
            .knowledge
            .rate
            .is_some_and(|rate| (4.5..5.5).contains(&rate))
    }));
    let restored = Restored {
        found,
        ..Restored::default()
    };
    let mut next = World::resumed(
        1 << 20,
        tuning("auto", |_| {}),
        restored,
        bucket(5.0, 5.0, 0.1, None),
    );
    next.run(60);
    let (rate, refused) = next.got(0, 60);
    assert!(rate >= 4.6 && refused < 0.02, "{rate:.2}/s, {refused:.3}");
}

#[test]
fn a_rate_that_becomes_auto_or_given_while_it_runs_is_followed() {
    use windrow_core::execution::Command;
    let mut world = World::new(1 << 20, tuning("auto", |_| {}), bucket(5.0, 5.0, 0.1, None));
    world.run(120);
    let tune = |world: &mut World, rate| {
        let tuning = Box::new(tuning(rate, |_| {}));
        world.fx.clear();
        let event = Event::Command(Command::Tune(tuning));
        world.core.step(event, at(world.now), &mut world.fx);
    };
    tune(&mut world, "2/s");
    world.run(240);
    let (rate, refused) = world.got(130, 240);
    assert!((1.9..=2.1).contains(&rate) && refused == 0.0, "{rate:.2}/s");
    assert_eq!(
        world.core.task_rate(),
        "2/s".parse::<RateLimit>().expect("a rate")
    );
    tune(&mut world, "auto");
    world.run(400);
    let (rate, refused) = world.got(250, 400);
    assert!(rate >= 4.6 && refused < 0.03, "{rate:.2}/s, {refused:.3}");
}

#[test]
fn a_service_that_refuses_everything_stops_the_task_after_its_patience_with_and_without_an_autopilot() {
    for rate in ["auto", "10/s"] {
        let patient = |tuning: &mut Tuning| tuning.outage_patience = Duration::from_secs(1800);
        let refuses: Service = Box::new(|_, _, _| (Answer::Refused(None), 0.02));
        let mut world = World::new(1000, tuning(rate, patient), refuses);
        world.run(4000);
        let Phase::Ended(RunEnd::Stopped { reason, text, .. }) = world.core_phase() else {
            panic!("{rate}: {:?}", world.core_phase());
        };
        assert_eq!(reason, StopReason::HandlerUnreachable, "{text}");
        assert!(
            world.now < 2000 * SECOND && world.departed.len() < 300,
            "{} calls in {} s",
            world.departed.len(),
            world.now / SECOND
        );
        assert!(text.contains("turned every call away for 30m"), "{text}");
    }
}

#[test]
fn calls_that_all_take_the_same_time_soon_go_as_many_at_once_as_allowed() {
    for jitter in [0.0, 0.0001, 0.001, 0.005] {
        let mut number = 0_u64;
        let service: Service = Box::new(move |_, _, _| {
            number += 1;
            (Answer::Taken, 0.5 + jitter * (number % 7) as f64)
        });
        let mut world = World::new(1 << 20, tuning("auto", |_| {}), service);
        world.run(20);
        // A thousand at once, each half a second.
        let (rate, _) = world.got(12, 19);
        assert!(rate > 1_700.0, "{jitter}: {rate}/s");
    }
}
