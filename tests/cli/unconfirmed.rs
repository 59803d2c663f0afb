//! Jobs whose last items failed when nothing was left to compare them with.

use serde_json::Value;

use super::support::Place;

#[test]
fn the_end_of_a_run_tells_unconfirmed_failures_apart() {
    let place = Place::new();
    let script = "test $WINDROW_INDEX = 3 && exit 65; test $WINDROW_INDEX -lt 18 || exit 75";
    let job = [
        "run",
        "--total",
        "20",
        "--rate",
        "50/s",
        "--judge-after",
        "2s",
        "--max-attempts",
        "2",
        "--backoff",
        "50ms",
        "--name",
        "tail",
        "--failures-out",
        "failed.ndjson",
        "--shell",
        "--each",
        script,
    ];
    let told = place.windrow(&job).expect(8).stdout;
    let row = told.lines().find(|line| line.starts_with("  failed"));
    assert!(
        row.is_some_and(|row| row.ends_with("  3 (2 unconfirmed)")),
        "{told}"
    );
    let group = told.lines().find(|line| line.starts_with("EXIT_75"));
    assert!(
        group.is_some_and(|group| group.contains("  2 (2 unconfirmed)  ")),
        "{told}"
    );
    let group = told.lines().find(|line| line.starts_with("EXIT_65"));
    assert!(
        group.is_some_and(|group| !group.contains("unconfirmed")),
        "{told}"
    );

    let lines: Vec<Value> = place
        .read("failed.ndjson")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let unconfirmed = |line: &Value| (line["index"].as_u64().unwrap(), line["unconfirmed"] == true);
    let found: Vec<(u64, bool)> = lines.iter().map(unconfirmed).collect();
    assert_eq!(found, [(3, false), (18, true), (19, true)]);
    assert!(
        lines.iter().all(|line| line["others_answered"].is_u64()),
        "{lines:?}"
    );

    // The same again only looks: the job is over.
    let summary = place.windrow(&[&job[..1], &["-o", "json"], &job[1..]].concat());
    let summary = summary.expect(8).json();
    assert_eq!(summary["unconfirmed"], 2, "{summary:#}");
    let groups = summary["failures"].as_array().unwrap();
    let counts: Vec<(&str, &Value)> = groups
        .iter()
        .map(|group| (group["code"].as_str().unwrap(), &group["unconfirmed"]))
        .collect();
    assert_eq!(counts, [("EXIT_75", &2.into()), ("EXIT_65", &0.into())]);
}
