//! Blocks of a shared total: no more is used than the total in any state, and each rule is needed for it.

use protocol_model::blocks::{Left, Setup, search};

const TWO: Setup = Setup {
    sessions: 2,
    rounds: 3,
    changes: 1,
    left: Left::Nothing,
};

#[test]
fn no_more_of_a_total_is_used_than_it_holds_in_any_state() {
    let three = Setup {
        sessions: 3,
        rounds: 1,
        changes: 0,
        ..TWO
    };
    for setup in [TWO, three] {
        let (states, faults) = search(setup);
        println!("{setup:?}: {states} states");
        let broken: Vec<_> = faults.iter().filter(|(_, steps)| steps != "never").collect();
        assert!(broken.is_empty(), "{broken:?}");
        assert!(setup.sessions > 2 || faults.is_empty(), "never seen: {faults:?}");
    }
}

#[test]
fn each_rule_of_the_blocks_of_a_total_is_needed() {
    let rules = [
        Left::Acknowledgement,
        Left::GivingBack,
        Left::Growth,
        Left::Lateness,
        Left::Unsure,
        Left::Ledger,
        Left::Silence,
        Left::Trust,
        Left::Fence,
        Left::Idle,
    ];
    for left in rules {
        let (states, faults) = search(Setup { left, ..TWO });
        println!("{left:?}: {states} states, {:?}", faults.first());
        assert!(
            faults.iter().any(|(_, steps)| steps != "never"),
            "{left:?} is not caught"
        );
    }
}
