//! Open tasks: appends, seal and end in every order, and each rule is needed for it.

use protocol_model::open::{Left, Setup, search};

const THREE: Setup = Setup {
    claims: 3,
    left: Left::Nothing,
};

#[test]
fn what_is_acknowledged_is_done_before_the_end_in_any_state() {
    let (states, faults) = search(THREE);
    println!("{THREE:?}: {states} states");
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn each_rule_of_an_open_task_is_needed() {
    let acknowledged = "what was acknowledged is settled in the end";
    for (left, breaks) in [
        (Left::Compare, acknowledged),
        (Left::Seal, "a task ends only once it is sealed"),
        (Left::Refusal, acknowledged),
        (Left::Together, acknowledged),
        (Left::Key, "an item is added once"),
        (Left::Claim, "who was taken over is not believed"),
    ] {
        let (states, faults) = search(Setup { left, ..THREE });
        println!("{left:?}: {states} states, {:?}", faults.first());
        let is_caught = |(name, steps): &(&str, String)| *name == breaks && steps != "never";
        assert!(
            faults.iter().any(is_caught),
            "{left:?} does not break {breaks:?}: {faults:?}"
        );
    }
}
