//! What the program says of itself.

use super::support::{Place, repository};

#[test]
fn the_version_is_that_of_the_package() {
    let done = Place::new().windrow(&["version"]).expect(0);
    assert_eq!(done.stdout, concat!("windrow ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn every_exit_code_is_explained() {
    let done = Place::new().windrow(&["help", "exit-codes"]).expect(0);
    for code in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 70, 78, 130] {
        let starts = |line: &str| line.trim_start().starts_with(&format!("{code}  "));
        assert!(done.stdout.lines().any(starts), "{code} is not in\n{}", done.stdout);
    }
}

#[test]
fn help_of_run_has_examples() {
    let done = Place::new().windrow(&["run", "--help"]).expect(0);
    assert!(done.stdout.contains("windrow run --csv users.csv --rate 500/s -- "), "{}", done.stdout);
    assert!(Place::new().windrow(&["help", "run"]).expect(0).stdout.contains("Examples:"));
}

#[test]
fn completions_are_those_of_the_shell() {
    let done = Place::new().windrow(&["completions", "bash"]).expect(0);
    assert!(done.stdout.contains("complete ") && done.stdout.contains("--failures-out"));
}

#[test]
fn the_default_configuration_is_the_documented_one_and_sound() {
    let place = Place::new();
    let done = place.windrow(&["config", "default"]).expect(0);
    assert_eq!(
        done.stdout.trim_end(),
        std::fs::read_to_string(repository("config.toml")).unwrap().trim_end()
    );
    place.write("config.toml", &done.stdout);
    place.windrow(&["config", "check", "config.toml"]).expect(0);
    let shown =
        place.windrow_with(&["config", "show"], "", &[("WINDROW_TASK_DEFAULTS__RATE", "7/s")]).expect(0);
    assert!(shown.stdout.contains(r#""rate": "7/s""#), "{}", shown.stdout);
}
