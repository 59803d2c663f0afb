//! A run of which people want items skipped, beside a list of its items: they leave, succeed, fail, come back, are skipped by
//! name at any time, and runs end and begin anew from what was saved.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use windrow_core::execution::{
    Command, Effects, Event, Execution, Horizon, Now, Phase, Reports, Restored, RunEnd, Shared, Start,
};
use windrow_core::ids::{Attempt, ItemIndex, Moment, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::run::IndexRun;
use windrow_core::items::stretches::Stretches;
use windrow_core::items::verdict::{
    AnsweredCalls, Dispatch, Failed, FailedCall, FailingItem, Failure, FailureClass, Outcome, ParkedItem,
    RetryAdvice, Settled, SideRecord,
};
use windrow_core::settings::{Auto, ErrorBudget, RateLimit};
use windrow_core::task::{ShardRange, Tuning};

#[derive(Clone, Debug)]
enum Op {
    Skip(u64, u64),
    Ask(u32),
    /// The calls of so many items come back: well, skipped by the handler, to be tried again, for good, or without having left.
    Land(usize, How),
    Pass(u64),
    Save,
    LoseLanes,
    /// The node dies; another goes on.
    Crash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Well,
    Skipped,
    Again(u64),
    Never,
    Unsent,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let how = prop_oneof![
        4 => Just(How::Well),
        1 => Just(How::Skipped),
        2 => (0u64..20_000).prop_map(How::Again),
        1 => Just(How::Never),
        1 => Just(How::Unsent),
    ];
    let op = prop_oneof![
        2 => (0u64..320, 1u64..100).prop_map(|(from, len)| Op::Skip(from, len)),
        8 => (1u32..30).prop_map(Op::Ask),
        8 => ((1usize..40), how).prop_map(|(count, how)| Op::Land(count, how)),
        2 => (1u64..4_000).prop_map(Op::Pass),
        3 => Just(Op::Save),
        1 => Just(Op::LoseLanes),
        1 => Just(Op::Crash),
    ];
    (1u64..300, proptest::collection::vec(op, 1..150)).prop_map(|(total, ops)| {
        let within = move |op: Op| match op {
            Op::Skip(from, len) => Op::Skip(from % total, len.min(total - from % total)),
            op => op,
        };
        std::iter::once(Op::Pass(total))
            .chain(ops.into_iter().map(within))
            .collect()
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Succeeded,
    Skipped,
    Failed,
}

/// What everybody could see.
#[derive(Default)]
struct Twin {
    total: u64,
    wanted: BTreeSet<u64>,
    in_flight: BTreeMap<u64, u32>,
    /// How items ended that a handler answered, as far as the run that goes on knows.
    ends: BTreeMap<u64, End>,
    /// The same, as it was saved.
    saved: BTreeMap<u64, End>,
}

struct World {
    run: Execution,
    twin: Twin,
    fx: Effects,
    restored: Restored,
    rows: BTreeMap<u64, SideRecord>,
    clock_ms: u64,
}

impl World {
    fn new(total: u64) -> World {
        let restored = Restored::default();
        World {
            run: begin(restored.clone(), total, at(0)),
            twin: Twin {
                total,
                ..Twin::default()
            },
            fx: Effects::default(),
            restored,
            rows: BTreeMap::new(),
            clock_ms: 0,
        }
    }

    fn step(&mut self, event: Event<'_>) -> Result<(), TestCaseError> {
        self.fx.clear();
        self.run.step(event, at(self.clock_ms), &mut self.fx);
        prop_assert!(self.fx.violations.is_empty(), "{:?}", self.fx.violations);
        Ok(())
    }

    fn ask(&mut self, want: u32, mut reports: Reports) -> Result<(), TestCaseError> {
        self.step(Event::Exchange {
            reports: &mut reports,
            want,
        })?;
        for Dispatch { run, attempt } in self.fx.dispatch.clone() {
            for index in run.iter().map(|index| index.0) {
                prop_assert!(
                    !self.twin.wanted.contains(&index),
                    "item {} is called all the same",
                    index
                );
                prop_assert!(!self.twin.ends.contains_key(&index), "item {} is settled", index);
                let before = self.twin.in_flight.insert(index, attempt.get());
                prop_assert_eq!(before, None, "item {} is out twice", index);
            }
        }
        self.check()
    }

    /// The terms add up, and nothing is skipped but what people or the handler said.
    fn check(&self) -> Result<(), TestCaseError> {
        let progress = self.run.progress(at(self.clock_ms));
        let counters = progress.counters;
        prop_assert_eq!(counters.accounted() + progress.pending, self.twin.total);
        let ended = |end: End| self.twin.ends.values().filter(|one| **one == end).count() as u64;
        prop_assert_eq!(counters.succeeded, ended(End::Succeeded));
        prop_assert_eq!(counters.failed, ended(End::Failed));
        let open =
            |index: &&u64| !self.twin.ends.contains_key(index) && !self.twin.in_flight.contains_key(index);
        let may = self.twin.wanted.iter().filter(open).count() as u64;
        let by_handler = ended(End::Skipped);
        prop_assert!(
            (by_handler..=by_handler + may).contains(&counters.skipped),
            "{} skipped of {} and {}",
            counters.skipped,
            by_handler,
            may
        );
        Ok(())
    }

    fn land(&mut self, count: usize, how: How) -> Result<(), TestCaseError> {
        let mut reports = Reports::default();
        for _ in 0..count {
            let middle = self
                .twin
                .in_flight
                .keys()
                .nth(self.twin.in_flight.len() / 2)
                .copied();
            let Some((index, attempt)) = middle.and_then(|index| self.twin.in_flight.remove_entry(&index))
            else {
                break;
            };
            self.answer(&mut reports, (index, attempt), how);
        }
        self.ask(0, reports)
    }

    fn answer(&mut self, reports: &mut Reports, (index, attempt): (u64, u32), how: How) {
        let (run, attempt) = (IndexRun::one(ItemIndex(index)), Attempt::new(attempt));
        let departed = Moment(self.clock_ms * 1_000_000);
        let is_wanted = self.twin.wanted.contains(&index);
        let mut settle = |outcome, end| {
            reports.settled.push(Settled {
                run,
                attempt,
                outcome,
            });
            self.twin.ends.insert(index, end);
        };
        let advice = match how {
            How::Well => return settle(Outcome::Succeeded, End::Succeeded),
            How::Skipped => return settle(Outcome::Skipped, End::Skipped),
            How::Unsent => return reports.returned.push(Dispatch { run, attempt }),
            How::Again(wait) => RetryAdvice::Retry {
                after: Some(Duration::from_millis(wait)),
            },
            How::Never => RetryAdvice::Fail,
        };
        if how == How::Never && !is_wanted {
            self.twin.ends.insert(index, End::Failed);
        }
        let (failure, class) = (Failure::new("E_NO", "no"), FailureClass::Answered);
        reports.calls.push(FailedCall {
            before: AnsweredCalls::default(),
            class,
            index: ItemIndex(index),
            items: 1,
            departed,
            failure: failure.clone(),
            after: None,
        });
        let took = Duration::ZERO;
        reports.failed.push(Failed {
            index: ItemIndex(index),
            attempt,
            failure,
            advice,
            class,
            call_items: 1,
            departed,
            took,
        });
    }

    fn save(&mut self) -> Result<(), TestCaseError> {
        self.step(Event::DraftCheckpoint)?;
        let Some(draft) = self.fx.checkpoint.take() else {
            return Ok(());
        };
        for record in draft.side {
            match record {
                SideRecord::Cleared(index) => self.rows.remove(&index.0),
                record => self.rows.insert(record.index().0, record),
            };
        }
        self.restored = Restored {
            watermark: draft.watermark,
            high_water: draft.high_water,
            horizon: Horizon::default(),
            counters: draft.counters,
            above: draft.above,
            ..Restored::default()
        };
        self.twin.saved = self.twin.ends.clone();
        self.step(Event::CheckpointStored(draft.no))
    }

    fn crash(&mut self) -> Result<(), TestCaseError> {
        self.twin.in_flight.clear();
        self.twin.ends = self.twin.saved.clone();
        let mut restored = self.restored.clone();
        for row in self.rows.values().cloned() {
            match row {
                SideRecord::Retrying(retrying) => restored.retrying.push(retrying),
                SideRecord::Parked { retrying, due_at } => restored.parked.push(parked(retrying, due_at)),
                SideRecord::Failed(_) | SideRecord::Cleared(_) => {}
            }
        }
        self.run = begin(restored, self.twin.total, at(self.clock_ms));
        self.tell()
    }

    fn tell(&mut self) -> Result<(), TestCaseError> {
        let named: Vec<String> = self.twin.wanted.iter().map(u64::to_string).collect();
        if named.is_empty() {
            return Ok(());
        }
        let wanted = Stretches::parse(&named.join(",")).expect("a set");
        self.step(Event::Command(Command::Skip(wanted)))
    }

    fn play(&mut self, op: &Op) -> Result<(), TestCaseError> {
        self.clock_ms += 1;
        match *op {
            Op::Skip(from, len) => {
                self.twin.wanted.extend(from..from + len);
                self.tell()
            }
            Op::Ask(want) => self.ask(want, Reports::default()),
            Op::Land(count, how) => self.land(count, how),
            Op::Pass(ms) => {
                self.clock_ms += ms;
                Ok(())
            }
            Op::Save => self.save(),
            Op::LoseLanes => {
                self.twin.in_flight.clear();
                self.step(Event::LanesLost)
            }
            Op::Crash => self.crash(),
        }
    }

    /// Whatever was, it comes to an end.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..10_000 {
            if matches!(
                self.run.progress(at(self.clock_ms)).phase,
                Phase::Ended(RunEnd::Done)
            ) {
                return self.save();
            }
            self.clock_ms += 100;
            self.ask(50, Reports::default())?;
            self.land(50, How::Well)?;
            self.save()?;
        }
        prop_assert!(false, "it never ends: {:?}", self.run.progress(at(self.clock_ms)));
        Ok(())
    }
}

fn parked(retrying: FailingItem, due_at: WallMs) -> ParkedItem {
    let FailingItem {
        index,
        attempts,
        charged,
        failure,
        at,
        history,
        ..
    } = retrying;
    ParkedItem {
        index,
        attempts,
        charged,
        failure,
        at,
        due_at,
        history,
    }
}

fn at(ms: u64) -> Now {
    Now {
        moment: Moment(ms * 1_000_000),
        wall: WallMs(ms.cast_signed()),
    }
}

fn begin(restored: Restored, total: u64, now: Now) -> Execution {
    let range = ShardRange {
        start: ItemIndex(0),
        end: ItemIndex(total),
    };
    let start = Start {
        shard: ShardId {
            task: TaskId(1),
            no: 0,
        },
        range,
        tuning: Tuning {
            // Many fail on purpose, within an instant.
            error_budget: ErrorBudget {
                failed_attempts: None,
                ..Tuning::default().error_budget
            },
            concurrency: Auto::Fixed(NonZeroU32::new(32).expect("not zero")),
            window: Auto::Fixed(NonZeroU32::new(64).expect("not zero")),
            rate: RateLimit::Unlimited,
            park_after: Duration::from_millis(5_000),
            ..Tuning::default()
        },
        restored,
        has_data: false,
        stalls: 0,
        run: RunNo(1),
        canary: None,
        shared: Shared::alone(range),
        first_contact: None,
        supply: None,
        is_service: false,
        metering: windrow_core::meter::metering::Metering::default(),
    };
    Execution::new(start, now)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_people_want_skipped_is_never_called_and_all_else_is_settled_as_it_is(ops in ops()) {
        let Some(Op::Pass(total)) = ops.first() else { unreachable!("the first says how many items") };
        let mut world = World::new(*total);
        for op in &ops {
            world.play(op)?;
        }
        world.finish()?;
        let twin = &world.twin;
        for index in 0..twin.total {
            let ended = twin.ends.contains_key(&index);
            prop_assert!(ended || twin.wanted.contains(&index), "item {} ended as nothing", index);
        }
        let counters = world.run.progress(at(world.clock_ms)).counters;
        let unanswered = twin.total - twin.ends.len() as u64;
        let skipped = twin.ends.values().filter(|end| **end == End::Skipped).count() as u64;
        prop_assert_eq!(counters.skipped, skipped + unanswered);
        prop_assert_eq!(counters.settled(), twin.total);
        let rows = world.rows.values().all(|row| matches!(row, SideRecord::Failed(_)));
        prop_assert!(rows, "rows are left over: {:?}", world.rows);
    }
}

#[test]
fn a_billion_items_are_passed_over_in_one_step() {
    let mut world = World::new(1_000_000_010);
    let wanted = Stretches::parse("5-1000000004").expect("a set");
    world
        .step(Event::Command(Command::Skip(wanted)))
        .expect("it is heard");
    for settled in [0, 5] {
        let mut reports = Reports::default();
        if let Some(run) = IndexRun::new(ItemIndex(0), settled) {
            let (attempt, outcome) = (Attempt::FIRST, Outcome::Succeeded);
            reports.settle(Settled {
                run,
                attempt,
                outcome,
            });
        }
        let event = Event::Exchange {
            reports: &mut reports,
            want: 5 - settled,
        };
        world.step(event).expect("it goes on");
    }
    let progress = world.run.progress(at(0));
    assert_eq!(
        (progress.counters.skipped, progress.watermark.0),
        (1_000_000_000, 1_000_000_005)
    );
}
