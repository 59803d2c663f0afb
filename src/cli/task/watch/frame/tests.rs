//! The picture as people see it: golden texts, and what holds for every size.

use console::{measure_text_width, strip_ansi_codes};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::super::state::{News, Panel, State};
use super::{Sheet, frame};
use crate::output::table::times::TimeStyle;
use windrow_client::Event;
use windrow_core::settings::RateLimit;
use windrow_core::task::spec::TaskSpec;

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

fn task() -> api::Task {
    let mut task = api::Task {
        id: "t1042".to_owned(),
        business: "push-campaign".to_owned(),
        spec: TaskSpec {
            name: Some("black-friday".to_owned()),
            ..TaskSpec::default()
        },
        status: "running".to_owned(),
        total: 1_000_000,
        pace: api::TaskPace {
            progress: api::TaskProgress {
                settled: 389_939,
                of: 1_000_000,
                percent: 39.0,
            },
            actual_rate: Some(498.7),
            eta_seconds: Some(1224),
        },
        counts: api::TaskCounts {
            succeeded: 388_102,
            skipped: 1776,
            failed: 61,
            in_flight: 214,
            parked: 11,
            pending: 609_836,
            excluded: 0,
        },
        watermark: 389_329,
        live: Some(api::TaskLive {
            high_water: Some(390_529),
            window: Some(1200),
            concurrency: Some(256),
            stall: Some("window_full".to_owned()),
            ..Default::default()
        }),
        ..Default::default()
    };
    task.settings.tuning.rate = "500/s".parse().expect("a rate");
    task.settings.tuning.error_budget = "10/s".parse().expect("a budget");
    task
}

fn event(kind: &str, data: impl Serialize) -> News {
    let data = json!({ "data": data }).to_string();
    News::Event(Event {
        id: String::new(),
        event: kind.to_owned(),
        data,
    })
}

fn log(at: &str, level: &str, index: u64, code: &str, message: &str) -> News {
    let line = api::LogEvent {
        at: at.to_owned(),
        level: level.to_owned(),
        index: Some(index),
        code: Some(code.to_owned()),
        message: message.to_owned(),
        ..Default::default()
    };
    event("log", line)
}

/// What it did in the last minute.
fn stats() -> News {
    let mut stats = api::TaskStats::default();
    stats.series.sent = vec![100.0, 300.0, 480.0];
    stats.series.sent.extend([500.0; 17]);
    stats.series.target = vec![Some(500.0)];
    stats.series.errors = vec![0.0, 1.6];
    (stats.latency.p50, stats.latency.p95) = (Some(0.118), Some(0.453));
    News::Stats(Box::new(stats))
}

/// A task under way, with everything that can be known of it.
fn running() -> State {
    let mut state = State::new(task(), NOW_MS, TimeStyle::Utc);
    state.has_keys = true;
    let window = api::ShardWindow {
        watermark: 389_329,
        high_water: 390_529,
        items_per_cell: 1,
        cells: "F1S200F100S300R10S289F100A5P195".to_owned(),
        head: Some(api::WindowHead {
            index: 389_329,
            attempt: 4,
            age_seconds: 28.4,
            ..Default::default()
        }),
        ..Default::default()
    };
    for news in [
        News::Run(Some(api::Run {
            run: 3,
            node: Some("n1".to_owned()),
            ..Default::default()
        })),
        stats(),
        News::Window(api::TaskWindow {
            shards: vec![window],
            ..Default::default()
        }),
        log(
            "2026-11-20T17:02:11.000Z",
            "warn",
            388_012,
            "RATE_LIMITED",
            "upstream 429, pausing 2 s (Retry-After)",
        ),
        log(
            "2026-11-20T17:02:12.000Z",
            "error",
            63,
            "INVALID_TOKEN",
            "token expired 2026-10-02",
        ),
    ] {
        state.hear(news);
    }
    state
}

fn in_status(status: &str, text: &str) -> State {
    let mut task = task();
    task.status = status.to_owned();
    task.status_text = Some(text.to_owned());
    task.live = None;
    task.pace.actual_rate = Some(0.0);
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
    let numbers = |actual_rate, stale: Option<&str>| {
        let mut numbers = api::StatsEvent::default();
        numbers.pace.actual_rate = actual_rate;
        numbers.stale = stale.map(str::to_owned);
        event("stats", numbers)
    };
    state.hear(numbers(None, Some("store_unavailable")));
    let text = frame(&state, &sheet(80, 24)).join("\n");
    assert!(
        text.contains("! stale: the node can't reach its database"),
        "{text}"
    );
    assert!(!text.contains("/s now") && !text.contains("ETA"), "{text}");
    state.hear(numbers(Some(498.7), None));
    let text = frame(&state, &sheet(80, 24)).join("\n");
    assert!(
        text.contains("498.7/s now") && !text.contains("! stale"),
        "{text}"
    );
}

#[test]
fn wide_characters_are_counted_as_two_cells() {
    let mut state = running();
    state.task.spec.name = Some("黑色星期五大促推送活动第二批次".to_owned());
    check("cjk-40", &state, sheet(40, 24));
}

#[test]
fn what_doesnt_run_says_why_and_what_comes_next() {
    let mut stopped = in_status("stopped", "62 items were failed; the budget is 61");
    stopped.task.stop_reason = Some("error_budget".to_owned());
    check("stopped-80", &stopped, sheet(80, 24));
    let mut recovering = in_status("recovering", "the handler gave no answer");
    recovering.task.next = Some(api::TaskNext {
        action: "recover".to_owned(),
        at: "2026-11-20T17:02:44.000Z".to_owned(),
        attempt: Some(2),
        of: Some(10),
    });
    check("recovering-80", &recovering, sheet(80, 24));
    let mut queued = in_status("queued", "it needs 2000/s, and the freest node, n3, has 1900/s");
    queued.task.status_reason = Some("capacity".to_owned());
    check("queued-40", &queued, sheet(40, 24));
}

#[test]
fn an_unpaced_task_has_no_rate_limit() {
    let mut state = running();
    state.task.settings.tuning.rate = RateLimit::Unlimited;
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
    let group = |code: &str, count, example_index, example: &str, row: Option<&str>| api::FailureGroup {
        code: code.to_owned(),
        count,
        example_index,
        example: example.to_owned(),
        example_data: row.and_then(|row| RawValue::from_string(row.to_owned()).ok()),
        ..Default::default()
    };
    let row = r#"{"email":"chen@example.org","user_id":"u_0064"}"#;
    state.hear(News::Failures(vec![
        group("INVALID_TOKEN", 41, 63, "token expired 2026-10-02", Some(row)),
        group("TIMEOUT", 17, 120_221, "no answer in 3 s", None),
    ]));
    check("failures-80", &state, sheet(80, 24));
    state.press(b'e');
    state.hear(News::Explained("target 500.0/s   actual 312.4/s\n  window full  171.2/s\nwhy: 500/s × p95 2.41 s needs about 1,205 calls in flight".to_owned()));
    state.press(b's');
    check("explain-40", &state, sheet(40, 40));
    state.panel = Panel::Help;
    state.asks = false;
    state.lost_at_ms = Some(NOW_MS - 4000);
    check("stale-80", &state, sheet(80, 30));
}

#[test]
fn no_picture_is_larger_than_its_terminal_whatever_is_on_it() {
    let mut states = vec![running(), in_status("queued", &"x".repeat(300))];
    states.push(State::new(api::Task::default(), 0, TimeStyle::Utc));
    let mut open = running();
    open.panel = Panel::Help;
    open.note = Some("failed: ".repeat(30));
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
