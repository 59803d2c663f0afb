//! Schedules: every time that is over has one outcome and one task at most in any state, and each rule is needed for it.

use protocol_model::schedules::{Left, Setup, search};

const TWO: Setup = Setup {
    nodes: 2,
    times: 3,
    deaths: 1,
    errors: 1,
    left: Left::Nothing,
};

#[test]
fn each_fire_is_decided_once_and_makes_one_task_in_any_state() {
    let (states, faults) = search(TWO);
    println!("{TWO:?}: {states} states");
    assert!(faults.is_empty(), "{faults:?}");
    assert!(states > 1_000, "{states} states are too few to mean much");
}

#[test]
fn each_rule_of_schedules_is_needed() {
    for (left, broken) in [
        (Left::Compare, "a fire is decided once"),
        (Left::Together, "no time is left out"),
        (Left::Rows, "a fire is decided once"),
        (Left::Settle, "a fire makes one task at most"),
        (Left::Lease, "another makes what a dead node had taken"),
        (Left::Clock, "nothing fires before its time"),
        (Left::Mend, "it goes on after its clock was wrong"),
    ] {
        let (states, faults) = search(Setup { left, ..TWO });
        println!("{left:?}: {states} states, {:?}", faults.first());
        assert!(
            faults.iter().any(|(name, _)| *name == broken),
            "{left:?} is not caught: {faults:?}"
        );
    }
}
