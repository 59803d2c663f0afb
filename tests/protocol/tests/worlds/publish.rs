//! Publications: the pointer of a dataset in every state, and each rule is needed for it.

use protocol_model::publish::{Left, Setup, search};

const TWO: Setup = Setup {
    claims: 2,
    rollbacks: 1,
    left: Left::Nothing,
};

#[test]
fn the_pointer_of_a_dataset_holds_in_any_state() {
    let (states, faults) = search(TWO);
    println!("{TWO:?}: {states} states");
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn each_rule_of_a_publication_is_needed() {
    for (left, breaks) in [
        (Left::Claim, "no publication of an older claim"),
        (Left::Highest, "the pointer goes back by a rollback alone"),
        (Left::Together, "what was published is not withheld"),
        (Left::Growth, "a publication number names one generation"),
    ] {
        let (states, faults) = search(Setup { left, ..TWO });
        println!("{left:?}: {states} states, {:?}", faults.first());
        let is_caught = |(name, steps): &(&str, String)| *name == breaks && steps != "never";
        assert!(
            faults.iter().any(is_caught),
            "{left:?} does not break {breaks:?}: {faults:?}"
        );
    }
}
