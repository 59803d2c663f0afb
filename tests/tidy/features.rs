//! Crates that a user of the library compiles.

use std::collections::BTreeSet;
use std::process::Command;

/// Most crates of the library without features. It may only shrink; decision 0075 says what the rest is needed for.
const CRATES_MAX: usize = 294;

/// Lines of `cargo tree`, one for each crate and version.
fn crates(features: &[&str]) -> BTreeSet<String> {
    let tree = [
        "tree",
        "--locked",
        "--offline",
        "-p",
        "windrow",
        "-e",
        "normal",
        "--prefix",
        "none",
    ];
    let output = Command::new(env!("CARGO"))
        .args(tree)
        .args(features)
        .current_dir(super::root())
        .output()
        .expect("cargo runs");
    let fault = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{fault}");
    // A crate that was shown before has a mark.
    let shown = String::from_utf8(output.stdout).expect("names of crates are text");
    shown
        .lines()
        .map(|line| line.trim_end_matches(" (*)").to_owned())
        .collect()
}

#[test]
fn the_library_without_features_compiles_few_crates() {
    let (few, all) = (crates(&["--no-default-features"]), crates(&[]));
    let count = few.len();
    assert!(
        count <= CRATES_MAX,
        "{count} crates, where {CRATES_MAX} are allowed: {few:#?}"
    );
    for driver in ["clap", "mimalloc", "redis", "sqlx-mysql", "sqlx-postgres"] {
        let has =
            |crates: &BTreeSet<String>| crates.iter().any(|line| line.split(' ').next() == Some(driver));
        assert!(has(&all) && !has(&few), "{driver} needs a feature");
    }
}
