use super::*;

const LOTS: u64 = 1_000_000;

fn at(millis: u64) -> Moment {
    Moment(millis * 1_000_000)
}

struct Rig {
    circuit: Circuit,
    now: u64,
}

impl Rig {
    fn new() -> Rig {
        Rig {
            circuit: Circuit::new(None, 7, at(0)),
            now: 0,
        }
    }

    fn fail(&mut self, class: FailureClass, item: u64, is_new: bool) -> Turn {
        self.fail_of(class, item, is_new, LOTS)
    }

    fn fail_of(&mut self, class: FailureClass, item: u64, is_new: bool, can_leave: u64) -> Turn {
        self.now += 1;
        let call = Unanswered {
            class,
            item: ItemIndex(item),
            is_new,
            departed: at(self.now),
            after: None,
        };
        let alternatives = Alternatives {
            can_leave,
            is_fresh_left: can_leave == LOTS,
            in_order: false,
            most: 64,
            row: 5,
        };
        self.circuit
            .on_unanswered(call, alternatives, at(self.now), WallMs(self.now as i64))
    }

    fn answer(&mut self) -> Turn {
        self.now += 1;
        self.circuit.on_answered(1, at(self.now), 64, at(self.now))
    }

    fn opened(&mut self) {
        let turns: Vec<Turn> = (0..5)
            .map(|item| self.fail(FailureClass::Unreachable, item, true))
            .collect();
        assert_eq!(turns.last(), Some(&Turn::Opened));
    }
}

#[test]
fn five_calls_that_reached_nobody_open_it_over_three_items_or_as_many_as_there_are() {
    let mut rig = Rig::new();
    for _ in 0..20 {
        assert_eq!(
            rig.fail(FailureClass::Unreachable, 1, false),
            Turn::Same,
            "one item says nothing of the alternatives"
        );
    }
    assert_eq!(rig.fail(FailureClass::Unavailable, 2, true), Turn::Same);
    assert_eq!(rig.fail(FailureClass::Unavailable, 3, true), Turn::Opened);
    let mut last = Rig::new();
    let turns: Vec<Turn> = (0..5)
        .map(|_| last.fail_of(FailureClass::Unreachable, 1, true, 1))
        .collect();
    assert_eq!(
        turns,
        [Turn::Same, Turn::Same, Turn::Same, Turn::Same, Turn::Opened]
    );
}

#[test]
fn a_503_of_items_that_failed_before_opens_it_only_where_nothing_fresh_is_left() {
    let mut rig = Rig::new();
    for item in 0..50 {
        assert_eq!(
            rig.fail(FailureClass::Unavailable, item, false),
            Turn::Same,
            "known to be bad"
        );
    }
    let mut last = Rig::new();
    let turns: Vec<Turn> = (0..5)
        .map(|item| last.fail_of(FailureClass::Unavailable, item, false, 9))
        .collect();
    assert_eq!(turns.last(), Some(&Turn::Opened));
}

#[test]
fn an_answer_begins_every_row_anew() {
    let mut rig = Rig::new();
    for round in 0..50 {
        for item in 0..4 {
            assert_eq!(
                rig.fail(FailureClass::Unreachable, round * 4 + item, true),
                Turn::Same
            );
        }
        assert_eq!(rig.answer(), Turn::Same);
    }
    assert!(!rig.circuit.is_stirred());
}

#[test]
fn twenty_unclear_calls_open_it_only_over_ten_items_that_did_not_fail_before() {
    let mut rig = Rig::new();
    for item in 0..100 {
        assert_eq!(
            rig.fail(FailureClass::Unclear, item, false),
            Turn::Same,
            "known to be bad"
        );
    }
    for item in 0..9 {
        assert_eq!(rig.fail(FailureClass::Unclear, 1000 + item, true), Turn::Same);
    }
    assert_eq!(rig.fail(FailureClass::Unclear, 1009, true), Turn::Opened);
}

#[test]
fn refusals_between_unclear_calls_keep_it_closed() {
    let mut rig = Rig::new();
    for item in 0..200 {
        let class = if item % 4 == 0 {
            FailureClass::Rejected
        } else {
            FailureClass::Unclear
        };
        assert_eq!(rig.fail(class, item, true), Turn::Same);
    }
}

#[test]
fn probes_come_after_a_second_and_never_later_than_36_seconds_after_one_another() {
    let mut rig = Rig::new();
    rig.opened();
    let opened = at(rig.now);
    let (mut last, mut gaps) = (opened, Vec::new());
    for _ in 0..40 {
        let next = rig.circuit.next_probe().expect("it is open");
        assert_eq!(
            rig.circuit.room(next.minus(Duration::from_millis(1))),
            Room::Until(next)
        );
        assert_eq!(rig.circuit.room(next), Room::Calls(1));
        gaps.push(next.since(last));
        rig.circuit.on_sent(1, next);
        last = next;
    }
    assert!(
        gaps[0] >= Duration::from_millis(800) && gaps[0] <= Duration::from_millis(1200),
        "{gaps:?}"
    );
    assert!(gaps.iter().all(|gap| *gap <= Duration::from_secs(36)), "{gaps:?}");
    assert!(gaps[39] >= Duration::from_secs(24), "{gaps:?}");
    assert_eq!(rig.circuit.outage().map(|outage| outage.probes), Some(40));
}

#[test]
fn a_probe_that_reached_somebody_after_those_that_reached_nobody_is_followed_by_another_soon() {
    let mut rig = Rig::new();
    rig.opened();
    let mut probe = |class| {
        let next = rig.circuit.next_probe().expect("it is open");
        rig.circuit.on_sent(1, next);
        rig.now = next.0 / 1_000_000;
        rig.fail(class, 9, false);
        rig.circuit.next_probe().expect("it is open").since(at(rig.now))
    };
    let unreached: Vec<Duration> = (0..8).map(|_| probe(FailureClass::Unreachable)).collect();
    assert!(unreached[7] >= Duration::from_secs(24), "{unreached:?}");
    let reached: Vec<Duration> = (0..8).map(|_| probe(FailureClass::Unclear)).collect();
    assert!(reached[0] <= Duration::from_millis(1_200), "{reached:?}");
    assert!(reached[1] <= Duration::from_millis(2_400), "{reached:?}");
    assert!(
        reached[7] >= Duration::from_secs(24),
        "but not for ever: {reached:?}"
    );
}

#[test]
fn news_of_the_handler_brings_a_probe_forward_but_not_within_ten_seconds_of_the_last_one() {
    let mut rig = Rig::new();
    rig.opened();
    for _ in 0..10 {
        let next = rig.circuit.next_probe().expect("it is open");
        rig.circuit.on_sent(1, next);
    }
    let late = rig.circuit.next_probe().expect("it is open");
    rig.circuit.on_news();
    let early = rig.circuit.next_probe().expect("it is open");
    assert!(
        late.since(early) >= Duration::from_secs(24 - 10),
        "{late:?} {early:?}"
    );
    rig.circuit.on_sent(1, early);
    rig.circuit.on_news();
    assert_eq!(
        rig.circuit.next_probe(),
        Some(early.plus(Duration::from_secs(10)))
    );
}

#[test]
fn rounds_double_until_as_many_leave_as_may_be_in_flight() {
    let mut rig = Rig::new();
    rig.opened();
    assert_eq!(rig.answer(), Turn::Answered);
    let mut rounds = Vec::new();
    while let Room::Calls(calls) = rig.circuit.room(at(rig.now)) {
        rounds.push(calls);
        rig.circuit.on_sent(calls, at(rig.now));
        assert_eq!(rig.circuit.room(at(rig.now)), Room::Completion);
        (0..calls).for_each(|_| assert!(matches!(rig.answer(), Turn::Same)));
    }
    assert_eq!(rounds, [2, 4, 8, 16, 32]);
    assert!(rig.circuit.is_closed() && rig.circuit.outage().is_none());
}

#[test]
fn a_round_without_an_answer_opens_it_again_and_is_the_same_outage() {
    let mut rig = Rig::new();
    rig.opened();
    let since = rig.circuit.outage().map(|outage| outage.since);
    rig.answer();
    rig.circuit.on_sent(2, at(rig.now));
    rig.fail(FailureClass::Unclear, 1, true);
    rig.fail(FailureClass::Unclear, 2, true);
    assert!(rig.circuit.is_open());
    assert_eq!(
        (
            rig.circuit.outage().map(|outage| outage.since),
            rig.circuit.outages()
        ),
        (since, 1)
    );
}

#[test]
fn what_came_back_unused_or_was_lost_leaves_again() {
    let mut rig = Rig::new();
    rig.opened();
    rig.answer();
    rig.circuit.on_sent(2, at(rig.now));
    rig.circuit.on_returned(1);
    assert_eq!(rig.circuit.room(at(rig.now)), Room::Calls(1));
    rig.circuit.on_lost(at(rig.now));
    assert_eq!(rig.circuit.room(at(rig.now)), Room::Calls(2));
}

#[test]
fn a_call_that_departed_before_the_circuit_closed_is_excused() {
    let mut rig = Rig::new();
    assert!(!rig.circuit.excuses(at(0)));
    rig.opened();
    let during = at(rig.now);
    assert!(rig.circuit.excuses(during));
    rig.now += 6_000;
    rig.answer();
    rig.now += 6_000;
    rig.circuit.on_sent(2, at(rig.now));
    (0..2).for_each(|_| assert!(matches!(rig.answer(), Turn::Same)));
    assert!(rig.circuit.is_closed(), "rounds have grown for long enough");
    assert!(rig.circuit.excuses(during) && !rig.circuit.excuses(at(rig.now + 1)));
}

#[test]
fn an_outage_of_the_run_before_goes_on_and_is_probed_at_once() {
    let outage = Outage {
        since: WallMs(5),
        probes: 9,
    };
    let circuit = Circuit::new(Some(outage), 7, at(100));
    assert_eq!(
        (circuit.room(at(100)), circuit.outage()),
        (Room::Calls(1), Some(outage))
    );
}
