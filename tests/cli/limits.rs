//! Limits in units: a job stops exactly at its total and goes on once it is raised; what can't fit is refused before
//! anything is called.

#![allow(clippy::disallowed_methods, reason = "a day ends by the real clock")]

use rustix::process::Signal;

use super::requests::Api;
use super::support::{Done, Place};

fn api() -> Api {
    Api::start(|_| (200, r#"{"usage":{"total_tokens":7}}"#.to_owned()))
}

/// Runs a job over counted items with these words.
fn counted(place: &Place, api: &Api, words: &[&str]) -> Done {
    let request = format!("POST {}/v1/{{index}}", api.origin);
    let run = [
        "run",
        "--total",
        "1000",
        "--name",
        "metered",
        "--request",
        &request,
    ];
    let run = run.into_iter().chain(["--rate", "unlimited", "-o", "json"]);
    place.windrow(&run.chain(words.iter().copied()).collect::<Vec<_>>())
}

#[test]
fn a_total_of_calls_stops_a_job_exactly_and_a_higher_one_goes_on() {
    let (place, api) = (Place::new(), api());
    let done = counted(&place, &api, &["--limit", "200 calls"]).expect(9);
    assert_eq!(done.json()["stop_reason"], "limit_reached", "{done:?}");
    assert!(
        done.stderr.contains("limits: 200 calls in all"),
        "{}",
        done.stderr
    );
    assert_eq!(api.seen().len(), 200);
    let again = ["run", "--resume", "metered", "-o", "json"];
    let done = place.windrow(&again).expect(9);
    assert!(
        done.stderr.contains("limits: 200 calls in all"),
        "kept: {}",
        done.stderr
    );
    assert_eq!(api.seen().len(), 200, "nothing is left of it");
    let raised = ["run", "--resume", "metered", "--limit", "500 calls", "-o", "json"];
    let done = place.windrow(&raised).expect(9);
    assert!(
        done.stderr.contains("limits: 500 calls in all"),
        "{}",
        done.stderr
    );
    assert_eq!(api.seen().len(), 500);
    let shown = place.windrow(&["job", "show", "metered"]).expect(0);
    assert!(shown.stdout.contains("500 calls in all"), "{}", shown.stdout);
    let none = ["run", "--resume", "metered", "--limit", "none", "-o", "json"];
    place.windrow(&none).expect(0);
    assert_eq!(api.seen().len(), 1000);
}

#[test]
fn a_stop_by_a_signal_costs_nothing_of_a_total() {
    let (place, api) = (Place::new(), api());
    let request = format!("POST {}/v1/{{index}}", api.origin);
    let words = [
        "run",
        "--total",
        "1000",
        "--name",
        "cut",
        "--request",
        &request,
        "--limit",
        "100 calls",
    ];
    let mut run = place.start(&[&words[..], &["--rate", "50/s"]].concat());
    run.wait_for("running");
    run.signal(Signal::INT);
    run.end().expect(9);
    assert!(api.seen().len() < 100, "it was stopped before its total");
    let resumed = ["run", "--resume", "cut", "--rate", "unlimited"];
    place.windrow(&resumed).expect(9);
    assert_eq!(api.seen().len(), 100);
}

#[test]
fn an_allowance_of_a_day_is_used_up_and_the_job_waits_for_the_next_one() {
    let (place, api) = (Place::new(), api());
    let request = format!("POST {}/v1/{{index}}", api.origin);
    let words = ["run", "--total", "1000", "--name", "daily", "--rate", "unlimited"];
    // A zone in which it isn't nearly midnight.
    let zone = match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        Ok(since) if since.as_secs() % 86_400 >= 43_200 => "Pacific/Honolulu",
        _ => "UTC",
    };
    let limit = |calls: u32| format!("{calls}/day {zone}");
    let mut run = place.start(&[&words[..], &["--request", &request, "--limit", &limit(50)]].concat());
    run.wait_for(&format!("50 calls/day ({zone})"));
    run.wait_for(&format!("{} is used; next at", limit(50)));
    assert_eq!(api.seen().len(), 50);
    run.signal(Signal::INT);
    run.end().expect(9);
    let mut run = place.start(&["run", "--resume", "daily"]);
    run.wait_for("is used; next at");
    assert_eq!(api.seen().len(), 50, "the day is used up");
    run.signal(Signal::INT);
    run.end().expect(9);
    let shown = place.windrow(&["job", "show", "daily"]).expect(0);
    assert!(
        shown.stdout.contains(&format!("(50 of {})", limit(50))),
        "{}",
        shown.stdout
    );
    let mut run = place.start(&["run", "--resume", "daily", "--limit", &limit(60)]);
    run.wait_for("is used; next at");
    assert_eq!(api.seen().len(), 60, "what was used stays used");
    run.signal(Signal::INT);
    run.end().expect(9);
}

#[test]
fn an_estimate_may_be_the_length_of_the_request() {
    let (place, api) = (Place::new(), api());
    // Nine bytes each.
    let costs = [
        "--json",
        r#"{"a":"{index}"}"#,
        "--cost",
        "tokens = {request:bytes}",
    ];
    let words = [&costs[..], &["--total", "9", "--limit", "50 tokens"]].concat();
    let request = format!("POST {}/v1", api.origin);
    let run = [
        "run",
        "--name",
        "bytes",
        "--request",
        &request,
        "--rate",
        "unlimited",
        "-o",
        "json",
    ];
    let done = place.windrow(&[&run[..], &words].concat()).expect(9);
    assert_eq!(done.json()["stop_reason"], "limit_reached", "{done:?}");
    assert_eq!(api.seen().len(), 5);
    let program = ["run", "--total", "3", "--each", "true", "--limit", "50 tokens"];
    let words = [&program[..], &["--cost", "tokens = {request:bytes}"]].concat();
    place
        .windrow(&words)
        .refused(2, &["a program is sent no request"]);
}

#[test]
fn a_unit_that_only_the_results_of_a_handler_say_is_accepted_from_it() {
    let place = Place::new();
    let api = Api::start(|_| (200, r#"{"result":"ok","costs":{"eur":0.5}}"#.to_owned()));
    let run = [
        "run",
        "--total",
        "100",
        "--name",
        "own",
        "--url",
        &api.origin,
        "--concurrency",
        "1",
    ];
    let words = ["--limit", "5 eur", "--rate", "unlimited", "-o", "json"];
    let done = place.windrow(&[&run[..], &words].concat()).expect(9);
    assert_eq!(done.json()["stop_reason"], "limit_reached", "{done:?}");
    assert_eq!(api.seen().len(), 10);
}

#[test]
fn responses_without_a_cost_are_named_in_the_log() {
    let place = Place::new();
    let nth = std::sync::atomic::AtomicU32::new(0);
    let api = Api::start(move |_| {
        let nth = nth.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let has_cost = !nth.is_multiple_of(4);
        let body = if has_cost {
            r#"{"usage":{"total_tokens":7}}"#
        } else {
            "{}"
        };
        (200, body.to_owned())
    });
    counted(&place, &api, &["--limit", "900k tokens/s"]).expect(0);
    let log = place.windrow(&["job", "log", "metered"]).expect(0);
    assert!(log.stdout.contains("say their cost in tokens"), "{}", log.stdout);
}

#[test]
fn a_trial_shows_the_costs_that_it_read_beside_their_estimates() {
    let (place, api) = (Place::new(), api());
    let request = format!("POST {}/v1", api.origin);
    let run = [
        "try",
        "--items",
        "0",
        "--request",
        &request,
        "--json",
        r#"{"a":"{index}"}"#,
    ];
    let words = [
        "--limit",
        "5 eur",
        "--cost",
        "tokens = {request:bytes}",
        "--price",
        "eur = 0.5*{tokens}",
    ];
    let from = ["--cost-from", "tokens = {answer./usage/total_tokens}"];
    let tried = |words: &[&str]| place.windrow(&[&run[..], words].concat()).expect(0).stdout;
    let text = tried(&[&words[..], &from].concat());
    assert!(
        text.contains("costs: 7 tokens (estimate 9), 3.5 eur (estimate 4.5)"),
        "{text}"
    );
    let text = tried(&["--limit", "9k tokens/min"]);
    assert!(
        text.contains("costs: 7 tokens; tokens read from {answer./usage/total_tokens}"),
        "{text}"
    );
    assert!(!tried(&[]).contains("costs"), "nothing is counted");
}

#[test]
fn an_item_above_a_total_fails_without_a_call() {
    let (place, api) = (Place::new(), api());
    place.write("rows.ndjson", "{\"n\":10}\n{\"n\":500}\n{\"n\":20}\n");
    let request = format!("POST {}/v1/{{n}}", api.origin);
    let words = [
        "run",
        "--ndjson",
        "rows.ndjson",
        "--request",
        &request,
        "--max-attempts",
        "1",
        "-o",
        "json",
    ];
    let costs = [
        "--cost",
        "tokens = {n:number}",
        "--limit",
        "100 tokens",
        "--failures-out",
        "dead.ndjson",
    ];
    let done = place.windrow(&[&words[..], &costs[..]].concat()).expect(8);
    assert_eq!(done.json()["counts"]["succeeded"], 2, "{done:?}");
    assert_eq!(api.seen().len(), 2);
    let dead = place.read("dead.ndjson");
    assert!(
        dead.contains("COST_TOO_LARGE") && dead.contains("100 tokens"),
        "{dead}"
    );
}

#[test]
fn limits_that_no_item_fits_are_refused_before_anything_is_called() {
    let (place, api) = (Place::new(), api());
    place.write("rows.ndjson", "{\"n\":300}\n{\"n\":500}\n");
    let request = format!("POST {}/v1/{{n}}", api.origin);
    let words = [
        "run",
        "--ndjson",
        "rows.ndjson",
        "--request",
        &request,
        "--limit",
        "100 tokens",
    ];
    let run = |cost: &str| place.windrow(&[&words[..], &["--cost", cost]].concat());
    let texts = [
        "each of the first 2 items",
        "at least 300 tokens",
        "raise --limit to 300 tokens",
    ];
    run("tokens = {n:number}").refused(2, &texts);
    run("tokens = {m:number}").refused(2, &["has no cost in tokens", "m"]);
    assert_eq!(api.seen().len(), 0);
}

#[test]
fn limits_and_expressions_that_are_wrong_say_where_and_why() {
    let place = Place::new();
    let refused = |words: &[&str], texts: &[&str]| {
        let run = ["run", "--total", "3", "--each", "true"];
        let done = place.windrow(&[&run[..], words].concat()).expect(2);
        for text in texts {
            assert!(done.stderr.contains(text), "{text:?} is not in\n{}", done.stderr);
        }
    };
    refused(
        &["--cost", "tokens = {prompt:bytes}/"],
        &["--cost", "at character 25"],
    );
    refused(
        &["--cost", "tokens = {answer./n}"],
        &["--cost", "before the call"],
    );
    refused(&["--limit", "5 sheep per day"], &["--limit"]);
    refused(&["--limit", "openai"], &["--limit", "openai", "name"]);
    refused(&["--limit", "5 eur"], &["eur", "cost"]);
    refused(
        &["--limit", "2000/day", "--limit", "9/hour"],
        &["9/hour", "same kind"],
    );
    let from = ["--limit", "9 tokens", "--cost-from", "tokens = {answer./n}"];
    refused(&from, &["a program", "--cost"]);
    refused(
        &["--limit", "50 items/s", "--batch", "51"],
        &["51 items", "50 items/s"],
    );
}
