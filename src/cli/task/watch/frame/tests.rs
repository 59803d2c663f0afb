//! The picture as people see it: golden texts, and what holds for every size.

use console::{measure_text_width, strip_ansi_codes};
use serde_json::{Value, json};

use super::super::state::{News, Panel, State};
use super::{Sheet, frame};
use crate::output::table::times::TimeStyle;
use windrow_client::Event;

/// 2026-11-20T17:02:30Z.
const NOW_MS: i64 = 1_795_194_150_000;

fn sheet(width: usize, height: usize) -> Sheet {
    Sheet {
        width,
        height,
        colours: false,
        is_ascii: false,
    }
}

fn task() -> Value {
    json!({
        "id": "t1042", "business": "push-campaign", "name": "black-friday", "status": "running", "rate": "500/s",
        "total": 1_000_000, "actual_rate": 498.7, "error_budget": "10/s", "low_water": 389_329,
        "eta_seconds": 1224, "progress": {"settled": 389_939, "of": 1_000_000, "percent": 39.0},
        "counts": {"succeeded": 388_102, "skipped": 1776, "abandoned": 61, "in_flight": 214, "parked": 11,
            "pending": 609_836, "excluded": 0},
        "live": {"high_water": 390_529, "window": 1200, "concurrency": 256, "stall": "window_full"},
    })
}

fn event(kind: &str, data: Value) -> News {
    let data = json!({ "data": data }).to_string();
    News::Event(Event {
        id: String::new(),
        event: kind.to_owned(),
        data,
    })
}

/// A task under way, with everything that can be known of it.
fn running() -> State {
    let mut state = State::new(task(), NOW_MS, TimeStyle::Utc);
    state.has_keys = true;
    let mut rates = vec![100.0, 300.0, 480.0];
    rates.extend([500.0; 17]);
    for news in [
        News::Run(json!({"items": [{"run": 3, "node": "n1", "ended_at": null}]})),
        News::Stats(json!({
            "series": {"sent": rates, "target": [500.0], "errors": [0.0, 1.6]},
            "latency": {"p50": 0.118, "p95": 0.453},
        })),
        News::Window(json!({"shards": [{
            "low_water": 389_329, "high_water": 390_529, "items_per_cell": 1,
            "cells": "F1S200F100S300R10S289F100A5P195", "head": {"index": 389_329, "attempt": 4, "age_seconds": 28.4},
        }]})),
        event(
            "log",
            json!({"at": "2026-11-20T17:02:11.000Z", "level": "warn", "index": 388_012,
            "code": "RATE_LIMITED", "message": "upstream 429, pausing 2 s (Retry-After)"}),
        ),
        event(
            "log",
            json!({"at": "2026-11-20T17:02:12.000Z", "level": "error", "index": 63,
            "code": "INVALID_TOKEN", "message": "token expired 2026-10-02"}),
        ),
    ] {
        state.hear(news);
    }
    state
}

fn in_status(members: Value) -> State {
    let mut task = task();
    task["live"] = Value::Null;
    task["actual_rate"] = json!(0.0);
    for (name, value) in members.as_object().expect("members") {
        task[name] = value.clone();
    }
    let mut state = State::new(task, NOW_MS, TimeStyle::Utc);
    state.has_keys = true;
    state
}

/// Compares a picture with the golden one; a new one that is right is copied over it.
#[track_caller]
fn check(name: &str, state: &State, sheet: Sheet) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let text = frame(state, &sheet).join("\n") + "\n";
    let golden = std::fs::read_to_string(format!("{root}/tests/golden/watch/{name}.txt")).unwrap_or_default();
    if text != golden {
        let new = format!("{root}/target/watch-{name}.txt");
        std::fs::write(&new, &text).expect("a place for the new picture");
        panic!("{name} is another picture now ({new}):\n{text}\nit was\n{golden}");
    }
}

#[test]
fn a_running_task_fits_wide_and_narrow_terminals() {
    check("running-80", &running(), sheet(80, 24));
    check("running-40", &running(), sheet(40, 24));
    check("running-120", &running(), sheet(120, 40));
}

#[test]
fn numbers_of_a_node_without_its_database_are_marked_as_old() {
    let mut state = running();
    let lost = json!({"counts": {"succeeded": 388_102}, "actual_rate": null, "eta_seconds": null, "stale": "store_unavailable"});
    state.hear(event("stats", lost));
    let text = frame(&state, &sheet(80, 24)).join("\n");
    assert!(
        text.contains("! old: the node can't reach its database"),
        "{text}"
    );
    assert!(!text.contains("/s now") && !text.contains("ETA"), "{text}");
    state.hear(event("stats", json!({"actual_rate": 498.7, "stale": null})));
    let text = frame(&state, &sheet(80, 24)).join("\n");
    assert!(text.contains("498.7/s now") && !text.contains("! old"), "{text}");
}

#[test]
fn wide_characters_are_counted_as_two_cells() {
    let mut state = running();
    state.task["name"] = json!("黑色星期五大促推送活动第二批次");
    check("cjk-40", &state, sheet(40, 24));
}

#[test]
fn what_doesnt_run_says_why_and_what_comes_next() {
    let stopped = in_status(json!({"status": "stopped", "stop_reason": "error_budget",
        "status_text": "62 items were abandoned; the budget is 61"}));
    check("stopped-80", &stopped, sheet(80, 24));
    let recovering = in_status(
        json!({"status": "recovering", "status_text": "the handler gave no answer",
        "next": {"action": "recover", "at": "2026-11-20T17:02:44.000Z", "attempt": 2, "of": 10}}),
    );
    check("recovering-80", &recovering, sheet(80, 24));
    let queued = in_status(json!({"status": "queued", "status_reason": "capacity",
        "status_text": "it needs 2000/s, and the freest node, n3, has 1900/s"}));
    check("queued-40", &queued, sheet(40, 24));
}

#[test]
fn an_unpaced_task_has_no_rate_limit() {
    let mut state = running();
    state.task["rate"] = json!("unlimited");
    state.pace.target = None;
    check("unpaced-80", &state, sheet(80, 24));
}

#[test]
fn a_terminal_without_unicode_is_given_ascii() {
    let picture = frame(
        &running(),
        &Sheet {
            is_ascii: true,
            ..sheet(80, 24)
        },
    );
    assert!(picture.join("\n").is_ascii(), "{}", picture.join("\n"));
    check(
        "ascii-80",
        &running(),
        Sheet {
            is_ascii: true,
            ..sheet(80, 24)
        },
    );
}

#[test]
fn what_lies_open_is_shown() {
    let mut state = running();
    state.press(b'f');
    state.hear(News::Failures(json!({"items": [
        {"code": "INVALID_TOKEN", "count": 41, "example_index": 63, "example": "token expired 2026-10-02",
            "example_data": {"user_id": "u_0064", "email": "chen@example.org"}},
        {"code": "TIMEOUT", "count": 17, "example_index": 120_221, "example": "no answer in 3 s"},
    ]})));
    check("failures-80", &state, sheet(80, 24));
    state.press(b'e');
    state.hear(News::Explained("target 500.0/s   actual 312.4/s\n  window full  171.2/s\nwhy: by Little's law 500/s × p95 2.41 s needs 1,205 slots".to_owned()));
    state.press(b's');
    check("explain-40", &state, sheet(40, 40));
    state.panel = Panel::Help;
    state.asks = false;
    state.lost_at_ms = Some(NOW_MS - 4000);
    check("stale-80", &state, sheet(80, 30));
}

#[test]
fn no_picture_is_larger_than_its_terminal_whatever_is_on_it() {
    let mut states = vec![
        running(),
        in_status(json!({"status": "queued", "status_text": "x".repeat(300)})),
    ];
    states.push(State::new(Value::Null, 0, TimeStyle::Utc));
    let mut open = running();
    open.panel = Panel::Help;
    open.note = Some("not done: ".repeat(30));
    states.push(open);
    for state in &states {
        for (width, height) in [(1, 1), (10, 3), (20, 8), (40, 10), (80, 12), (200, 60)] {
            for colours in [false, true] {
                let lines = frame(
                    state,
                    &Sheet {
                        colours,
                        ..sheet(width, height)
                    },
                );
                assert!(
                    lines.len() < height.max(2),
                    "{width}×{height}: {} lines",
                    lines.len()
                );
                for line in &lines {
                    assert!(measure_text_width(line) <= width, "{width}×{height}: {line:?}");
                }
            }
        }
    }
}

#[test]
fn colours_change_no_text() {
    let plain = frame(&running(), &sheet(80, 24));
    let coloured = frame(
        &running(),
        &Sheet {
            colours: true,
            ..sheet(80, 24)
        },
    );
    assert!(coloured.iter().any(|line| line.contains('\u{1b}')));
    let bare: Vec<String> = coloured
        .iter()
        .map(|line| strip_ansi_codes(line).into_owned())
        .collect();
    assert_eq!(bare, plain);
}
