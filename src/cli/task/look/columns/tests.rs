//! The list of tasks at the widths that people have.

use serde_json::json;

use super::*;
use crate::output::table::Paper;
use crate::output::table::times::TimeStyle;

/// 2026-11-20T17:00:00Z
const NOW_MS: i64 = 1_795_194_000_000;

fn progress(settled: u64, of: u64) -> Value {
    let percent = (settled as f64 * 1000.0 / of as f64).round() / 10.0;
    json!({"settled": settled, "of": of, "percent": percent})
}

fn task(id: &str, name: Value, status: &str, counts: (u64, u64, u64), more: Value) -> Value {
    let (succeeded, abandoned, total) = counts;
    let mut task = json!({"id": id, "business": "push-campaign", "name": name, "status": status, "total": total,
        "counts": {"succeeded": succeeded, "skipped": 0, "abandoned": abandoned, "parked": 0, "in_flight": 0,
            "pending": total - succeeded - abandoned, "excluded": 0},
        "progress": progress(succeeded + abandoned, total), "rate": "500/s", "actual_rate": 0.0});
    for (member, value) in more.as_object().expect("members") {
        task[member.as_str()] = value.clone();
    }
    task
}

fn tasks() -> Vec<Value> {
    vec![
        task(
            "t1042",
            json!("black-friday"),
            "running",
            (389_878, 61, 1_000_000),
            json!({"actual_rate": 498.7, "eta_seconds": 1224, "node": "n1"}),
        ),
        task(
            "t1041",
            json!("订单回填-2025"),
            "queued",
            (0, 0, 100),
            json!({"status_reason": "capacity", "rate": "2000/s"}),
        ),
        task(
            "t1039",
            json!("smoke"),
            "finished",
            (97, 3, 100),
            json!({"result": "with_failures"}),
        ),
        task(
            "t1038",
            Value::Null,
            "recovering",
            (712, 1204, 3000),
            json!({"next": {"action": "recover", "at": "2026-11-20T17:00:14.000Z", "attempt": 2, "of": 10}}),
        ),
        task(
            "t1037",
            json!("slow"),
            "stopped",
            (1, 0, 7),
            json!({"stop_reason": "operator", "rate": "10/m"}),
        ),
        task(
            "t1036",
            json!("all"),
            "running",
            (1, 0, 7),
            json!({"actual_rate": null, "rate": "unlimited"}),
        ),
    ]
}

fn drawn(width: Option<usize>) -> String {
    let times = Times {
        style: TimeStyle::Relative,
        now_ms: NOW_MS,
    };
    TASKS.table(
        &tasks(),
        &times,
        Paper {
            width,
            colours: false,
        },
        false,
    )
}

#[test]
fn the_list_is_golden_at_200_columns() {
    assert_eq!(drawn(Some(200)), include_str!("golden_200.txt"));
    assert_eq!(drawn(None), drawn(Some(200)));
}

#[test]
fn the_list_is_golden_at_80_columns() {
    assert_eq!(drawn(Some(80)), include_str!("golden_80.txt"));
}

#[test]
fn the_list_is_golden_at_40_columns() {
    assert_eq!(drawn(Some(40)), include_str!("golden_40.txt"));
}

#[test]
fn scripts_get_plain_numbers() {
    let times = Times {
        style: TimeStyle::Relative,
        now_ms: NOW_MS,
    };
    let mut task = tasks().swap_remove(0);
    for (member, value) in [
        ("labels", json!({"day": "5", "team": "growth"})),
        ("limits", json!(["vendor", "sms"])),
        ("deadline", json!("2026-11-22T21:00:00.000Z")),
        ("shard_list", json!([{}, {}])),
        ("low_water", json!(389_000)),
        ("priority", json!(-3)),
    ] {
        task[member] = value;
    }
    let csv = TASKS.csv(&[task], &times, windrow_core::text::csv::Guard::On);
    let (head, line) = csv.split_once('\n').expect("two lines");
    let more = "rate,pending,stop_reason,labels,priority,limits,start_at,deadline,low_water,shards,\
                made_good,still_failed";
    assert!(
        head.ends_with(&format!("created_at,started_at,finished_at,{more}")),
        "{head}"
    );
    assert!(head.contains(",actual_rate,eta,abandoned,"), "{head}");
    let seen = "t1042,push-campaign,black-friday,running,39.0,498.7,1224,61,n1,1000000,389878,0,0,0,,,,,,,";
    let also = "500/s,610061,,day=5 team=growth,-3,vendor sms,,2026-11-22T21:00:00.000Z,389000,2,,";
    assert_eq!(line.trim_end(), format!("{seen},{also}"));
}

#[test]
fn failures_that_redrives_made_good_stand_beside_those_that_there_were() {
    let times = Times {
        style: TimeStyle::Utc,
        now_ms: 0,
    };
    let of = |made_good: u64| {
        let redriven = json!({"made_good": made_good, "still_failed": 3 - made_good, "exact": true});
        let more = json!({"result": "with_failures", "redriven": redriven});
        failed(&task("t1", Value::Null, "finished", (97, 3, 100), more), &times)
    };
    let cell = of(2);
    assert_eq!((cell.text.as_str(), cell.tone), ("3 (2 made good)", Tone::Bad));
    assert_eq!(
        (cell.short.as_deref(), cell.plain.as_deref()),
        (Some("3"), Some("3"))
    );
    assert_eq!(of(3).tone, Tone::Plain);
    assert_eq!(of(0).text, "3");
}
