//! Facts about limits that tasks share.

use std::collections::BTreeSet;
use std::time::Duration;

use windrow_core::ids::SessionId;
use windrow_core::limit::demand::{Demand, Wishes};
use windrow_core::limit::key::LimitKey;
use windrow_core::limit::round::{Allocated, Round};
use windrow_core::limit::units::{Key, Kind, Report};
use windrow_core::limit::{Amount, NANOS_PER_ITEM, Part};
use windrow_core::meter::amount as units;
use windrow_core::meter::unit::Unit;
use windrow_core::settings::Rate;
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::clock::Clock as _;
use windrow_engine::ports::ownership::limit_store::RoundOutcome;
use windrow_engine::ports::tasks::store::{CreateError, NewTask};
use windrow_host::clock::SystemClock;

use crate::fixture::{BUSINESS, Harness, NOW, task, write};

fn round(session: SessionId, seq: u64, uses: Part) -> Round {
    let demand = Demand {
        rates: Wishes::of([u64::MAX]),
        batch: 1,
        ..Demand::default()
    };
    Round {
        session,
        seq,
        uses,
        demand,
        yields: false,
        leaves: false,
        units: Vec::new(),
    }
}

async fn play(harness: &Harness, round: Round) -> RoundOutcome {
    let played = harness.store.play(&[(BUSINESS.to_owned(), round)]).await.unwrap();
    assert_eq!(played.len(), 1);
    played[0].clone()
}

async fn allocated(harness: &Harness, round: Round) -> Allocated {
    match play(harness, round).await {
        RoundOutcome::Allocated { allocated, .. } => allocated,
        other => panic!("{other:?}"),
    }
}

fn rate(per_second: u64) -> Amount {
    Amount::of(per_second * NANOS_PER_ITEM)
}

/// A business whose tasks may have 300/s, and two sessions.
async fn two(harness: &Harness) -> (SessionId, SessionId) {
    harness
        .store
        .ensure_business(BUSINESS, &write(), NOW)
        .await
        .unwrap();
    harness.limit(Some(300)).await;
    (harness.session().await, harness.session().await)
}

pub async fn a_part_grows_only_into_what_no_live_session_holds(harness: Harness) {
    let (one, two) = two(&harness).await;
    let whole = allocated(&harness, round(one, 1, Part::NONE)).await;
    assert_eq!(whole.usable().rate, rate(300));
    let none = allocated(&harness, round(two, 1, Part::NONE)).await;
    assert_eq!((none.held.rate, none.target.rate), (rate(0), rate(150)));
    let half = allocated(&harness, round(one, 2, whole.held)).await;
    assert_eq!((half.held.rate, half.usable().rate), (rate(300), rate(150)));
    allocated(&harness, round(one, 3, half.usable())).await;
    assert_eq!(
        allocated(&harness, round(two, 2, none.usable()))
            .await
            .usable()
            .rate,
        rate(150)
    );
    let parts = harness.store.parts(BUSINESS).await.unwrap();
    let held: Vec<_> = parts
        .iter()
        .map(|part| (part.session, part.held.rate, part.runs))
        .collect();
    assert_eq!(held.len(), 2);
    assert!(
        held.contains(&(one, rate(150), 1)) && held.contains(&(two, rate(150), 1)),
        "{parts:?}"
    );
}

pub async fn a_fenced_session_plays_no_round_and_holds_nothing(harness: Harness) {
    let (one, two) = two(&harness).await;
    let whole = allocated(&harness, round(one, 1, Part::NONE)).await;
    assert_eq!(
        allocated(&harness, round(two, 1, Part::NONE)).await.held.rate,
        rate(0),
        "silent is not fenced"
    );
    harness.fence(one).await;
    assert_eq!(
        allocated(&harness, round(two, 2, Part::NONE)).await.usable().rate,
        rate(300)
    );
    assert_eq!(
        play(&harness, round(one, 2, whole.held)).await,
        RoundOutcome::Fenced
    );
    harness.store.end(two).await.unwrap();
    assert_eq!(
        play(&harness, round(two, 3, Part::NONE)).await,
        RoundOutcome::Fenced,
        "its row is gone"
    );
    assert!(harness.store.parts(BUSINESS).await.unwrap().is_empty());
}

pub async fn a_round_that_comes_late_changes_nothing(harness: Harness) {
    let (one, _) = two(&harness).await;
    allocated(&harness, round(one, 7, Part::NONE)).await;
    for seq in [3, 7] {
        assert_eq!(
            play(&harness, round(one, seq, Part::NONE)).await,
            RoundOutcome::Late
        );
    }
    assert_eq!(
        harness.store.parts(BUSINESS).await.unwrap()[0].held.rate,
        rate(300)
    );
}

pub async fn a_limit_is_read_as_its_business_has_it(harness: Harness) {
    let (one, two) = two(&harness).await;
    let names = BTreeSet::from([BUSINESS.to_owned(), "nobody".to_owned()]);
    let bounds = harness.store.bounds(&names).await.unwrap();
    assert_eq!(bounds.keys().collect::<Vec<_>>(), [BUSINESS]);
    let whole = allocated(&harness, round(one, 1, Part::NONE)).await;
    harness.limit(Some(100)).await;
    assert_eq!(
        allocated(&harness, round(two, 1, Part::NONE)).await.target.rate,
        rate(50)
    );
    let less = allocated(&harness, round(one, 2, whole.held)).await;
    assert_eq!(less.usable().rate, rate(50));
    harness.limit(None).await;
    assert!(harness.store.bounds(&names).await.unwrap().is_empty());
    assert_eq!(
        allocated(&harness, round(one, 3, less.usable())).await.usable(),
        Part::UNBOUNDED
    );
    let numbers = [4, 5].map(|seq| play(&harness, round(one, seq, Part::UNBOUNDED)));
    let [first, second] = numbers;
    let number = |played: RoundOutcome| match played {
        RoundOutcome::Allocated { round_no, .. } => round_no,
        other => panic!("{other:?}"),
    };
    let (first, second) = (number(first.await), number(second.await));
    assert!(second > first, "each round has a number");
}

pub async fn a_named_limit_is_shared_apart_from_that_of_a_business_of_its_name(harness: Harness) {
    let (one, two) = two(&harness).await;
    harness.name_limit(BUSINESS, 100).await;
    let named = LimitKey::Named(BUSINESS).text();
    let names = BTreeSet::from([
        BUSINESS.to_owned(),
        named.clone(),
        LimitKey::Named("nobody").text(),
    ]);
    let bounds = harness.store.bounds(&names).await.unwrap();
    let rates: Vec<_> = bounds
        .iter()
        .map(|(key, bounds)| (key.as_str(), bounds.rate))
        .collect();
    let of = Rate::per_second;
    let mut expected = [(BUSINESS, of(300)), (named.as_str(), of(100))];
    expected.sort_by_key(|(key, _)| *key);
    assert_eq!(rates, expected);
    // Each is allocated whole: what one session has of the one takes nothing from the other.
    let rounds = [
        (named.clone(), round(one, 1, Part::NONE)),
        (BUSINESS.to_owned(), round(one, 2, Part::NONE)),
    ];
    let whole: Vec<_> = harness
        .store
        .play(&rounds)
        .await
        .unwrap()
        .into_iter()
        .map(usable)
        .collect();
    assert_eq!(whole, [rate(100), rate(300)]);
    // What it allows is read in each round.
    harness.name_limit(BUSINESS, 40).await;
    let less = harness
        .store
        .play(&[(named.clone(), round(two, 3, Part::NONE))])
        .await
        .unwrap()
        .remove(0);
    let RoundOutcome::Allocated { allocated, .. } = less else {
        panic!("{less:?}")
    };
    assert_eq!((allocated.held.rate, allocated.target.rate), (rate(0), rate(20)));
    assert_eq!(harness.store.parts(&named).await.unwrap().len(), 2);
    assert_eq!(harness.store.parts(BUSINESS).await.unwrap().len(), 1);
}

fn usable(played: RoundOutcome) -> Amount {
    match played {
        RoundOutcome::Allocated { allocated, .. } => allocated.usable().rate,
        other => panic!("{other:?}"),
    }
}

pub async fn a_task_names_only_limits_that_are_there(harness: Harness) {
    harness
        .store
        .ensure_business(BUSINESS, &write(), NOW)
        .await
        .unwrap();
    harness.name_limit("vendor-x", 100).await;
    let of = |limits: &[&str]| NewTask {
        spec: TaskSpec {
            limits: limits.iter().map(|&name| name.to_owned()).collect(),
            ..TaskSpec::default()
        },
        ..task(3)
    };
    let refused = harness
        .store
        .create(&of(&["vendor-x", "vendor-y"]), &write(), NOW)
        .await;
    assert_eq!(refused, Err(CreateError::NoLimit("vendor-y".to_owned())));
    let made = harness
        .store
        .create(&of(&["vendor-x"]), &write(), NOW)
        .await
        .unwrap();
    assert_eq!(made.spec.limits, ["vendor-x"]);
    assert_eq!(
        harness.store.get(made.id).await.unwrap().unwrap().spec.limits,
        ["vendor-x"]
    );
}

pub async fn nodes_that_play_at_once_never_hold_more_than_the_limit(harness: Harness) {
    let (one, two) = two(&harness).await;
    let three = harness.session().await;
    let mut uses = [Part::NONE; 3];
    for seq in 1..=20 {
        let plays = [one, two, three].into_iter().zip(uses).map(|(session, uses)| {
            let store = harness.store.clone();
            let played = [(BUSINESS.to_owned(), round(session, seq, uses))];
            tokio::spawn(async move { store.play(&played).await.unwrap().remove(0) })
        });
        let plays: Vec<_> = plays.collect();
        for (at, play) in plays.into_iter().enumerate() {
            let RoundOutcome::Allocated { allocated, .. } = play.await.unwrap() else {
                panic!("late or fenced")
            };
            uses[at] = allocated.usable();
        }
        let held = harness.store.parts(BUSINESS).await.unwrap();
        let sum = held.iter().fold(Part::NONE, |sum, part| sum.plus(part.held));
        let sum = sum.rate.bound().unwrap();
        assert!(sum <= 300 * NANOS_PER_ITEM, "{held:?}");
    }
    let each = uses.map(|part| part.rate.bound().unwrap() / NANOS_PER_ITEM);
    assert_eq!(each, [100, 100, 100]);
}

/// A report on a total of calls: so many are spent, one more is wanted, and no more than `uses` are sent.
fn report(uses: u64, spent: u64) -> Report {
    Report {
        key: Key {
            kind: Kind::Total,
            unit: Unit::calls(),
        },
        uses: units::Amount::units(uses),
        spent: units::Amount::units(spent),
        unsure: units::Amount::ZERO,
        out: units::Amount::ZERO,
        owed: units::Amount::ZERO,
        applied: units::Amount::ZERO,
        wishes: Wishes::default(),
        least: units::Amount::ONE,
    }
}

pub async fn an_allowance_is_counted_in_the_period_of_the_stores_clock(harness: Harness) {
    harness.meter_limit("openai", &["6400 calls/hour"]).await;
    let key = LimitKey::Named("openai").text();
    let own = |report| Report {
        key: Key {
            kind: Kind::Allowance,
            unit: Unit::calls(),
        },
        ..report
    };
    let session = harness.session().await;
    for (seq, report) in [(1, report(0, 0)), (2, report(100, 40))] {
        let round = Round {
            units: vec![own(report)],
            ..round(session, seq, Part::UNBOUNDED)
        };
        let played = harness.store.play(&[(key.clone(), round)]).await.unwrap();
        assert!(matches!(played[0], RoundOutcome::Allocated { .. }), "{played:?}");
    }
    let used = harness.store.uses(&key).await.unwrap().remove(0);
    let now = SystemClock::new().wall();
    let next = used.next.expect("an allowance has periods");
    assert!(
        next > now && next <= now.plus(Duration::from_secs(3600)),
        "{next:?}"
    );
    // The hour may have ended between the two.
    let spent = units::Amount::units(40);
    assert!(
        used.spent == spent || next > now.plus(Duration::from_secs(3590)),
        "{used:?}"
    );
    harness.fence(session).await;
    let used = harness.store.uses(&key).await.unwrap().remove(0);
    assert!(used.unsure > units::Amount::units(59), "{used:?}");
}

/// A round of a session that spent so many calls of a total.
pub fn spending(session: SessionId, seq: u64, spent: u64) -> Round {
    Round {
        units: vec![report(spent, spent)],
        ..round(session, seq, Part::UNBOUNDED)
    }
}

pub async fn blocks_of_a_total_are_counted_whoever_ends(harness: Harness) {
    harness.meter_limit("openai", &["6400 calls"]).await;
    let key = LimitKey::Named("openai").text();
    let bounds = harness
        .store
        .bounds(&BTreeSet::from([key.clone()]))
        .await
        .unwrap();
    assert_eq!(bounds.len(), 1, "limits in units limit something");
    let play = async |session, seq, report| {
        let round = Round {
            units: vec![report],
            ..round(session, seq, Part::UNBOUNDED)
        };
        let played = harness
            .store
            .play(&[(key.clone(), round)])
            .await
            .unwrap()
            .remove(0);
        match played {
            RoundOutcome::Allocated {
                units: (metering, dealt),
                ..
            } => {
                assert_eq!(metering.to_string(), "6400 calls");
                (dealt[0].usable(), dealt[0].full_from)
            }
            other => panic!("{other:?}"),
        }
    };
    let calls = units::Amount::units;
    let counted = async || {
        let used = harness.store.uses(&key).await.unwrap().remove(0);
        (used.spent, used.unsure, used.held)
    };
    let (one, two, three) = (
        harness.session().await,
        harness.session().await,
        harness.session().await,
    );
    assert_eq!(
        play(one, 1, report(0, 0)).await,
        (calls(100), None),
        "1/64 of all"
    );
    let block = play(one, 2, report(100, 40)).await.0.minus(calls(40));
    assert!(
        block > calls(99) && block < calls(100),
        "1/64 of what is left: {block}"
    );
    assert_eq!(counted().await, (calls(40), calls(0), block));
    // Of a fenced session all that it was given counts.
    harness.fence(one).await;
    assert_eq!(counted().await, (calls(40), block, calls(0)));
    play(two, 1, report(0, 0)).await;
    let (spent, unsure, held) = counted().await;
    assert_eq!((spent, unsure), (calls(40), block));
    assert!(held > calls(90));
    // A session that ends in order leaves no more than it says.
    play(
        two,
        2,
        Report {
            least: calls(0),
            ..report(7, 7)
        },
    )
    .await;
    harness.store.end(two).await.unwrap();
    assert_eq!(counted().await, (calls(47), block, calls(0)));
    play(three, 1, report(0, 0)).await;
    harness.meter_limit("openai", &["6400 calls"]).await;
    assert_eq!(counted().await.0, calls(47), "it is kept with the limit's rounds");
}
