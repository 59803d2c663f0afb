//! Figures of `scripts/house.sh`: counted on a short text, and on the tree.

use std::process::Command;

/// Runs the script; a machine without python3 can't run the other tests either.
fn measured(arguments: &[&str]) -> String {
    let script = super::root().join("scripts/house.sh");
    let output = Command::new("bash").arg(script).args(arguments).output();
    let output = output.expect("bash runs");
    let (told, fault) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{told}{fault}");
    told.into_owned()
}

#[test]
fn every_counter_of_the_house_counts_what_its_script_says() {
    assert_eq!(measured(&["--self-test"]), "every counter counts\n");
}

#[test]
fn the_house_is_measured_with_its_goals_beside_the_figures() {
    let table = measured(&[]);
    for start in [
        "product lines (src)  ",
        "untyped look-ups  ",
        "files that name priority  ",
    ] {
        let row = table.lines().find(|line| line.starts_with(start));
        assert!(
            row.is_some_and(|row| row.contains(['≤', '<'])),
            "{start}: {table}"
        );
    }
}

#[test]
fn comments_name_things_and_what_people_read_lies_in_one_crate() {
    let faults = measured(&["--words"]);
    assert!(faults.is_empty(), "{faults}");
}
