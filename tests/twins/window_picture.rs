//! The picture of a window against sets of who was given out, came back, failed or is done, kept item by item.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use windrow_config::Config;
use windrow_core::execution::{
    Cell, Effects, Event, Execution, Now, Reports, Restored, Shared, Start, WindowPicture,
};
use windrow_core::ids::{Attempt, ItemIndex, Moment, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::{Dispatch, Failed, Failure, FailureClass, Outcome, RetryAdvice, Settled};
use windrow_core::settings::{Auto, RateLimit};
use windrow_core::task::{ShardRange, Tuning};

const MS: u64 = 1_000_000;

#[derive(Clone, Debug)]
enum Act {
    /// Time passes, and so many may leave.
    Take(u8, u32),
    /// One that is out ends well, fails, or comes back without having left.
    Settle(u8),
    Fail(u8),
    Return(u8),
    /// All lanes are gone.
    Lose,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (any::<u8>(), 1u32..40).prop_map(|(ms, want)| Act::Take(ms, want)),
        8 => any::<u8>().prop_map(Act::Settle),
        3 => any::<u8>().prop_map(Act::Fail),
        2 => any::<u8>().prop_map(Act::Return),
        1 => Just(Act::Lose),
    ]
}

/// What is known of each item, one by one.
#[derive(Default)]
struct Twin {
    out: BTreeMap<u64, u32>,
    settled: BTreeSet<u64>,
    /// Failed attempts of those that wait.
    waiting: BTreeMap<u64, u32>,
}

impl Twin {
    fn cell(&self, index: u64) -> Cell {
        if self.settled.contains(&index) {
            Cell::Settled
        } else if self.out.contains_key(&index) {
            Cell::InFlight
        } else if self.waiting.contains_key(&index) {
            Cell::Retry
        } else {
            Cell::Free
        }
    }

    fn cells(&self, picture: &WindowPicture) -> Vec<Cell> {
        let all: Vec<u64> = (picture.watermark.0..picture.until.0).collect();
        all.chunks(picture.per_cell as usize)
            .map(|some| {
                some.iter()
                    .map(|index| self.cell(*index))
                    .max()
                    .expect("not empty")
            })
            .collect()
    }
}

fn tuning(window: u32) -> Tuning {
    Tuning {
        rate: RateLimit::Unlimited,
        window: Auto::Fixed(window.try_into().expect("not zero")),
        concurrency: Auto::Fixed(NonZeroU32::new(48).expect("not zero")),
        max_attempts: NonZeroU32::MAX,
        // Whoever holds a full window is parked else, and the twin knows nothing of that.
        straggler_after: Duration::from_secs(3600),
        park_after: Duration::from_secs(3600),
        ..Config::default().task_defaults.tuning
    }
}

struct World {
    core: Execution,
    twin: Twin,
    now: u64,
}

impl World {
    fn new(window: u32, total: u64) -> World {
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
            tuning: tuning(window),
            restored: Restored::default(),
            has_data: false,
            stalls: 1,
            run: RunNo(1),
            canary: None,
            shared: Shared::alone(range),
            first_contact: None,
            supply: None,
            is_service: false,
            metering: windrow_core::meter::metering::Metering::default(),
        };
        let core = Execution::new(start, at(0));
        World {
            core,
            twin: Twin::default(),
            now: 0,
        }
    }

    fn exchange(&mut self, reports: &mut Reports, want: u32) {
        let mut fx = Effects::default();
        self.core
            .step(Event::Exchange { reports, want }, at(self.now), &mut fx);
        for Dispatch { run, attempt } in fx.dispatch {
            for index in run.iter() {
                self.twin.waiting.remove(&index.0);
                assert_eq!(
                    self.twin.out.insert(index.0, attempt.get()),
                    None,
                    "it is out already"
                );
            }
        }
    }

    /// One of those that are out.
    fn pick(&self, number: u8) -> Option<(ItemIndex, Attempt)> {
        let out = &self.twin.out;
        let at = usize::from(number) % out.len().max(1);
        out.iter()
            .nth(at)
            .map(|(index, attempt)| (ItemIndex(*index), Attempt::new(*attempt)))
    }

    fn act(&mut self, act: &Act) {
        let mut reports = Reports::default();
        match act {
            Act::Take(ms, want) => {
                self.now += u64::from(*ms) * MS;
                return self.exchange(&mut reports, *want);
            }
            Act::Lose => {
                self.core
                    .step(Event::LanesLost, at(self.now), &mut Effects::default());
                for (index, attempt) in std::mem::take(&mut self.twin.out) {
                    if attempt > 1 {
                        self.twin.waiting.insert(index, attempt - 1);
                    }
                }
                return;
            }
            Act::Settle(number) | Act::Fail(number) | Act::Return(number) => {
                let Some((index, attempt)) = self.pick(*number) else {
                    return;
                };
                self.twin.out.remove(&index.0);
                let run = IndexRun::one(index);
                match act {
                    Act::Settle(_) => {
                        self.twin.settled.insert(index.0);
                        reports.settle(Settled {
                            run,
                            attempt,
                            outcome: Outcome::Succeeded,
                        });
                    }
                    Act::Fail(_) => {
                        self.twin.waiting.insert(index.0, attempt.get());
                        reports.failed.push(failed(index, attempt));
                    }
                    _ => {
                        if attempt.get() > 1 {
                            self.twin.waiting.insert(index.0, attempt.get() - 1);
                        }
                        reports.returned.push(Dispatch { run, attempt });
                    }
                }
            }
        }
        self.exchange(&mut reports, 0);
    }
}

fn failed(index: ItemIndex, attempt: Attempt) -> Failed {
    let failure = Failure {
        code: "BUSY".into(),
        message: "later".into(),
        output: None,
    };
    Failed {
        index,
        attempt,
        failure,
        advice: RetryAdvice::Retry { after: None },
        class: FailureClass::Answered,
        call_items: 1,
        departed: Moment(0),
        took: Duration::from_millis(1),
    }
}

fn at(nanos: u64) -> Now {
    Now {
        moment: Moment(nanos),
        wall: WallMs((nanos / MS).cast_signed()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_cell_is_the_worst_of_its_items(
        acts in proptest::collection::vec(act(), 1..300),
        (window, total) in (64u32..200, 1u64..400),
        cells in 1u32..300,
    ) {
        let mut world = World::new(window, total);
        for act in &acts {
            world.act(act);
            let cells = NonZeroU32::new(cells).expect("not zero");
            let picture = world.core.window_picture(cells, Moment(world.now));
            let shown = picture.cells(&[]);
            prop_assert!(shown.len() <= cells.get() as usize);
            prop_assert_eq!(&shown, &world.twin.cells(&picture));
            let first = (0..).find(|index| !world.twin.settled.contains(index)).expect("one is open");
            prop_assert_eq!(picture.watermark, ItemIndex(first));
            match picture.head {
                Some(head) => {
                    prop_assert_eq!((head.index, head.cell), (ItemIndex(first), world.twin.cell(first)));
                    let known = world.twin.out.get(&first).or_else(|| world.twin.waiting.get(&first));
                    prop_assert_eq!(head.attempt, known.copied().unwrap_or(0));
                }
                None => prop_assert!(!world.twin.out.contains_key(&first)),
            }
        }
    }
}

#[test]
fn who_was_given_up_is_shown_where_it_is_known() {
    let mut world = World::new(64, 100);
    world.exchange(&mut Reports::default(), 5);
    world.act(&Act::Settle(2));
    world.act(&Act::Settle(2));
    let picture = world
        .core
        .window_picture(NonZeroU32::new(1000).expect("not zero"), Moment(0));
    let known = [ItemIndex(3), ItemIndex(4), ItemIndex(7000)];
    let cells = picture.cells(&known);
    use Cell::{Failed, Free, InFlight, Settled};
    assert_eq!(
        cells[..6],
        [InFlight, InFlight, Settled, Failed, InFlight, Free],
        "4 is tried again"
    );
    assert_eq!((cells.len(), picture.per_cell), (64, 1));
}
