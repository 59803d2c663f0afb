//! `RetryingItems` beside a plain map that is searched from end to end.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windrow_core::ids::{ItemIndex, Moment, WallMs};
use windrow_core::items::run::IndexRun;
use windrow_core::items::waiting::{Doing, Place, RetryingItem, RetryingItems};

#[derive(Clone, Debug)]
enum Op {
    Put {
        index: u64,
        outside: bool,
        due: Option<u64>,
        attempts: u32,
    },
    Take(u64),
    PopDue {
        outside: bool,
        now: u64,
    },
    NextDue {
        outside: bool,
    },
    LoseFlights(u64),
    LowestIn(u64, u32),
    MarkRow(u64),
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0u64..30, any::<bool>(), prop::option::weighted(0.7, 0u64..50), 0u32..9)
            .prop_map(|(index, outside, due, attempts)| Op::Put { index, outside, due, attempts }),
        3 => (0u64..30).prop_map(Op::Take),
        5 => (any::<bool>(), 0u64..50).prop_map(|(outside, now)| Op::PopDue { outside, now }),
        3 => any::<bool>().prop_map(|outside| Op::NextDue { outside }),
        1 => (0u64..50).prop_map(Op::LoseFlights),
        3 => (0u64..30, 1u32..10).prop_map(|(first, len)| Op::LowestIn(first, len)),
        1 => (0u64..30).prop_map(Op::MarkRow),
    ]
}

#[derive(Clone, Debug, PartialEq)]
struct Plain {
    attempts: u32,
    place: Place,
    doing: Doing,
    has_row: bool,
}

type Twin = BTreeMap<u64, Plain>;

fn place(outside: bool) -> Place {
    if outside { Place::Outside } else { Place::Window }
}

fn earliest(twin: &Twin, place: Place) -> Option<(Moment, u64)> {
    let due = |(index, item): (&u64, &Plain)| match item.doing {
        Doing::Waiting(due) if item.place == place => Some((due, *index)),
        _ => None,
    };
    twin.iter().filter_map(due).min()
}

fn apply(op: &Op, real: &mut RetryingItems, twin: &mut Twin) -> Result<(), TestCaseError> {
    match *op {
        Op::Put {
            index,
            outside,
            due,
            attempts,
        } => {
            let doing = due.map_or(Doing::InFlight, |due| Doing::Waiting(Moment(due)));
            let place = place(outside);
            let (failure, at, due_at) = (None, WallMs(0), WallMs(0));
            let item = RetryingItem {
                attempts,
                place,
                doing,
                failure,
                at,
                due_at,
                ..RetryingItem::default()
            };
            real.put(ItemIndex(index), item);
            twin.insert(
                index,
                Plain {
                    attempts,
                    place,
                    doing,
                    has_row: false,
                },
            );
        }
        Op::Take(index) => {
            let taken = real.take(ItemIndex(index)).map(|item| item.attempts);
            prop_assert_eq!(taken, twin.remove(&index).map(|item| item.attempts));
        }
        Op::PopDue { outside, now } => {
            let expected = earliest(twin, place(outside)).filter(|(due, _)| due.0 <= now);
            let popped = real.pop_due(place(outside), Moment(now));
            let attempts = |index: u64| twin[&index].attempts;
            prop_assert_eq!(
                popped,
                expected.map(|(_, index)| (ItemIndex(index), attempts(index)))
            );
            if let Some((_, index)) = expected {
                twin.entry(index).and_modify(|item| item.doing = Doing::InFlight);
            }
        }
        Op::NextDue { outside } => {
            let expected = earliest(twin, place(outside)).map(|(due, _)| due);
            prop_assert_eq!(real.next_due(place(outside)), expected);
        }
        Op::LoseFlights(now) => {
            real.lose_flights(Moment(now));
            for item in twin.values_mut().filter(|item| item.doing == Doing::InFlight) {
                item.doing = Doing::Waiting(Moment(now));
            }
        }
        Op::LowestIn(first, len) => {
            let run = IndexRun::new(ItemIndex(first), len).expect("not empty");
            let expected = twin.keys().copied().find(|index| run.contains(ItemIndex(*index)));
            prop_assert_eq!(real.lowest_in(run), expected.map(ItemIndex));
        }
        Op::MarkRow(index) => {
            real.mark_row(ItemIndex(index));
            twin.entry(index).and_modify(|item| item.has_row = true);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn troubles_do_what_a_plain_map_does(ops in prop::collection::vec(ops(), 1..120)) {
        let (mut real, mut twin) = (RetryingItems::default(), Twin::new());
        for op in &ops {
            apply(op, &mut real, &mut twin)?;
            prop_assert_eq!(real.lowest(), twin.keys().next().copied().map(ItemIndex));
            let plain = |t: &RetryingItem| Plain {
                attempts: t.attempts, place: t.place, doing: t.doing, has_row: t.has_row,
            };
            let found: Twin = real.iter().map(|(index, item)| (index.0, plain(item))).collect();
            prop_assert_eq!(&found, &twin);
            let outside = twin.values().filter(|item| item.place == Place::Outside);
            let waiting = outside.clone().filter(|item| item.doing != Doing::InFlight).count();
            prop_assert_eq!(real.outside(), outside.count() as u64);
            prop_assert_eq!(real.outside_waiting(), waiting as u64);
            prop_assert_eq!((real.len(), real.is_empty()), (twin.len(), twin.is_empty()));
        }
    }
}
