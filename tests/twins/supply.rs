//! A run of an open task beside a list of its items: they are appended, settled, lost and sealed at random, and runs end and
//! begin anew from what was saved.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use proptest::prelude::*;
use windrow_core::execution::{
    Command, Effects, Event, Execution, Horizon, Now, Phase, Reports, Restored, RunEnd, Shared, Start, Wait,
};
use windrow_core::ids::{Attempt, ItemIndex, Moment, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::{Outcome, Settled};
use windrow_core::settings::Auto;
use windrow_core::task::supply::Supply;
use windrow_core::task::{ShardRange, Tuning};

#[derive(Clone, Debug)]
enum Op {
    /// So many items are appended, and the run hears of it.
    Append(u64),
    /// The same, and it doesn't hear of it yet.
    AppendUnheard(u64),
    Hear,
    Ask(u32),
    /// The calls of so many items come back.
    Land(usize),
    Save,
    Seal,
    /// The node dies; another goes on.
    Crash,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (1u64..40).prop_map(Op::Append),
        2 => (1u64..40).prop_map(Op::AppendUnheard),
        2 => Just(Op::Hear),
        8 => (1u32..30).prop_map(Op::Ask),
        8 => (1usize..40).prop_map(Op::Land),
        3 => Just(Op::Save),
        1 => Just(Op::Seal),
        1 => Just(Op::Crash),
    ];
    proptest::collection::vec(op, 1..120)
}

/// What everybody could see.
#[derive(Default)]
struct Twin {
    total: u64,
    is_sealed: bool,
    /// What the run was told last.
    heard: u64,
    in_flight: Vec<u64>,
    /// How often each item was settled.
    settled: BTreeMap<u64, u32>,
    crashes: u32,
}

struct World {
    run: Execution,
    twin: Twin,
    fx: Effects,
    /// What a new run would begin with.
    saved: Restored,
    clock: u64,
}

impl World {
    fn new() -> World {
        let saved = Restored {
            horizon: Horizon {
                may_leave: ItemIndex(100),
                may_have_left: ItemIndex(0),
            },
            ..Restored::default()
        };
        World {
            run: begin(saved.clone(), (0, false), Moment(0)),
            twin: Twin::default(),
            fx: Effects::default(),
            saved,
            clock: 0,
        }
    }

    fn now(&self) -> Now {
        Now {
            moment: Moment(self.clock * 1_000_000),
            wall: WallMs(self.clock.cast_signed()),
        }
    }

    fn step(&mut self, event: Event<'_>) -> Result<(), TestCaseError> {
        self.clock += 1;
        let now = self.now();
        self.fx.clear();
        self.run.step(event, now, &mut self.fx);
        prop_assert!(self.fx.violations.is_empty(), "{:?}", self.fx.violations);
        Ok(())
    }

    fn hear(&mut self) -> Result<(), TestCaseError> {
        self.twin.heard = self.twin.total;
        let end = ItemIndex(self.twin.total);
        let is_sealed = self.twin.is_sealed;
        self.step(Event::Command(Command::Supply(Supply { end, is_sealed })))?;
        self.step(Event::SourceReady(end))
    }

    fn ask(&mut self, want: u32, mut reports: Reports) -> Result<(), TestCaseError> {
        self.step(Event::Exchange {
            reports: &mut reports,
            want,
        })?;
        let granted: Vec<u64> = self
            .fx
            .dispatch
            .iter()
            .flat_map(|one| one.run.iter())
            .map(|index| index.0)
            .collect();
        for index in granted {
            prop_assert!(index < self.twin.heard, "item {} isn't there yet", index);
            prop_assert!(
                !self.twin.in_flight.contains(&index),
                "item {} is out twice",
                index
            );
            self.twin.in_flight.push(index);
        }
        let is_done = self.fx.wait == Wait::Ended;
        let all = (0..self.twin.total).all(|index| self.twin.settled.contains_key(&index));
        prop_assert!(!is_done || (self.twin.is_sealed && all), "it ended too early");
        Ok(())
    }

    fn land(&mut self, count: usize) -> Result<(), TestCaseError> {
        let mut reports = Reports::default();
        for _ in 0..count.min(self.twin.in_flight.len()) {
            // The one in the middle: neither in order nor in reverse.
            let index = self.twin.in_flight.remove(self.twin.in_flight.len() / 2);
            *self.twin.settled.entry(index).or_default() += 1;
            reports.settle(Settled {
                run: IndexRun::one(ItemIndex(index)),
                attempt: Attempt::FIRST,
                outcome: Outcome::Succeeded,
            });
        }
        self.ask(0, reports)
    }

    fn save(&mut self) -> Result<(), TestCaseError> {
        self.step(Event::DraftCheckpoint)?;
        if let Some(draft) = self.fx.checkpoint.take() {
            self.saved = Restored {
                watermark: draft.watermark,
                high_water: draft.high_water,
                horizon: Horizon {
                    may_leave: draft.horizon.max(draft.high_water.plus(100)),
                    may_have_left: draft.horizon,
                },
                counters: draft.counters,
                above: draft.above,
                ..Restored::default()
            };
            self.step(Event::CheckpointStored(draft.no))?;
        }
        Ok(())
    }

    fn crash(&mut self) {
        self.twin.in_flight.clear();
        self.twin.crashes += 1;
        self.twin.heard = self.twin.total;
        let supply = (self.twin.total, self.twin.is_sealed);
        self.run = begin(self.saved.clone(), supply, self.now().moment);
    }

    fn play(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match *op {
            Op::Append(_) | Op::AppendUnheard(_) | Op::Seal if self.twin.is_sealed => Ok(()),
            Op::Append(items) => {
                self.twin.total += items;
                self.hear()
            }
            Op::AppendUnheard(items) => {
                self.twin.total += items;
                Ok(())
            }
            Op::Hear => self.hear(),
            Op::Ask(want) => self.ask(want, Reports::default()),
            Op::Land(count) => self.land(count),
            Op::Save => self.save(),
            Op::Seal => {
                self.twin.is_sealed = true;
                Ok(())
            }
            Op::Crash => {
                self.crash();
                self.step(Event::SourceReady(ItemIndex(self.twin.total)))
            }
        }
    }

    /// Whatever was, it comes to an end.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        self.twin.is_sealed = true;
        self.hear()?;
        for _ in 0..10_000 {
            if matches!(self.run.ending(), Some(RunEnd::Done)) {
                return Ok(());
            }
            self.ask(50, Reports::default())?;
            self.land(50)?;
            self.save()?;
        }
        prop_assert!(false, "it never ends: {:?}", self.run.progress(self.now()));
        Ok(())
    }
}

fn begin(restored: Restored, (end, is_sealed): (u64, bool), moment: Moment) -> Execution {
    let range = ShardRange {
        start: ItemIndex(0),
        // As a claim may have read it, before the last append.
        end: ItemIndex(end / 2),
    };
    let wall = WallMs(0);
    let start = Start {
        shard: ShardId {
            task: TaskId(1),
            no: 0,
        },
        range,
        tuning: Tuning {
            concurrency: Auto::Fixed(NonZeroU32::new(32).expect("not zero")),
            ..Tuning::default()
        },
        restored,
        has_data: true,
        stalls: 0,
        run: RunNo(1),
        canary: None,
        shared: Shared::alone(range),
        first_contact: None,
        supply: Some(Supply {
            end: ItemIndex(end),
            is_sealed,
        }),
        is_service: false,
        metering: windrow_core::meter::metering::Metering::default(),
    };
    Execution::new(start, Now { moment, wall })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_appended_item_is_settled_once_a_life_and_the_run_ends_only_with_the_seal(ops in ops()) {
        let mut world = World::new();
        for op in &ops {
            world.play(op)?;
        }
        world.finish()?;
        let twin = &world.twin;
        prop_assert_eq!(twin.settled.len() as u64, twin.total);
        for (index, times) in &twin.settled {
            prop_assert!(*times <= 1 + twin.crashes, "item {} was settled {} times", index, times);
        }
        let progress = world.run.progress(world.now());
        prop_assert_eq!(progress.counters.succeeded, twin.total);
        prop_assert_eq!(progress.phase, Phase::Ended(RunEnd::Done));
    }
}

#[test]
fn a_run_without_items_waits_and_says_so() {
    let mut world = World::new();
    world.clock = 1_000;
    world.ask(10, Reports::default()).expect("nothing to do");
    assert_eq!(world.fx.wait, Wait::Completion);
    assert!(world.run.awaits_items());
    let progress = world.run.progress(world.now());
    assert_eq!(progress.stall.map(|stall| stall.as_str()), Some("items"));
    world.play(&Op::Append(3)).expect("they are heard of");
    assert!(!world.run.awaits_items());
    world.ask(10, Reports::default()).expect("they leave");
    assert_eq!(world.twin.in_flight, [0, 1, 2], "without a checkpoint before");
}

#[test]
fn what_is_appended_after_an_early_finish_is_left_out() {
    let mut world = World::new();
    world.clock = 1_000;
    world.play(&Op::Append(5)).expect("they are heard of");
    world.ask(3, Reports::default()).expect("they leave");
    world
        .step(Event::Command(Command::Finish(ItemIndex(0))))
        .expect("it is cut");
    world.play(&Op::Append(4)).expect("they are heard of");
    world.ask(10, Reports::default()).expect("nothing more leaves");
    assert_eq!(world.twin.in_flight, [0, 1, 2]);
    let progress = world.run.progress(world.now());
    assert_eq!((progress.total.0, progress.counters.excluded), (9, 6));
}
