//! Shared limits: no more is used than the limit in any state, and each rule is needed for it.

use protocol_model::limits::{Left, Setup, search};

const USED: &str = "no more is used than the limit";
const TWO: Setup = Setup {
    sessions: 2,
    rounds: 4,
    changes: 1,
    left: Left::Nothing,
};

#[test]
fn no_more_is_used_than_the_limit_in_any_state() {
    for setup in [
        Setup { rounds: 3, ..TWO },
        Setup {
            sessions: 3,
            rounds: 1,
            changes: 0,
            ..TWO
        },
    ] {
        let (states, faults) = search(setup);
        println!("{setup:?}: {states} states");
        let broken: Vec<_> = faults.iter().filter(|(name, _)| *name == USED).collect();
        assert!(broken.is_empty(), "{broken:?}");
        assert!(setup.sessions > 2 || faults.is_empty(), "never seen: {faults:?}");
    }
}

#[test]
fn each_rule_of_a_shared_limit_is_needed() {
    let rules = [
        Left::Order,
        Left::Silence,
        Left::Acknowledgement,
        Left::Growth,
        Left::Lateness,
        Left::Lesser,
        Left::Trust,
        Left::Fence,
    ];
    for left in rules {
        let (states, faults) = search(Setup { left, ..TWO });
        println!("{left:?}: {states} states, {:?}", faults.first());
        assert!(
            faults.iter().any(|(name, _)| *name == USED),
            "{left:?} is not caught"
        );
    }
}
