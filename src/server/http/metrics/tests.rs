//! The page is what Prometheus's own lint would let pass.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;

use super::board::TaskSample;
use super::requests::Requests;
use super::*;
use windrow_core::execution::MeterPicture;
use windrow_core::handler::failed_calls::FailedCalls;
use windrow_core::ids::{Moment, TaskId};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::FailureClass;
use windrow_core::meter::amount::{Amount, PARTS};
use windrow_core::meter::unit::Unit;
use windrow_core::pilot::Picture;
use windrow_core::stats::histogram::Histogram;
use windrow_engine::ports::handling::handler::Workers;

/// Use of tokens and of calls.
fn costs() -> Vec<MeterPicture> {
    let of = |unit: &str| MeterPicture {
        unit: Unit::parse(unit).expect("a unit"),
        actual: Amount::units(1_200),
        unsure: Amount(PARTS / 2),
        out: Amount::ONE,
        total: None,
        is_nearly_used: false,
        allowance: None,
        is_sparse: false,
    };
    vec![of("calls"), of("tokens")]
}

fn board_of(tasks: i64) -> Board {
    let sample = |task| TaskSample {
        task: TaskId(task),
        business: "say \"hi\"\n".to_owned(),
        counters: Counters {
            succeeded: 3,
            in_flight: 1,
            ..Counters::default()
        },
        total: 10,
        target_rate: Some(5.0),
        watermark: 3,
        window: 64,
        window_used: 2,
        stalled: [Duration::from_millis(1500); StallReason::ALL.len()],
        latency_p95: Some(Duration::from_millis(20)),
        autopilot: Some(Picture {
            rate: Some(38.2),
            slope: Some(0.9),
            ..Picture::default()
        }),
        costs: costs(),
        began: Counters::default(),
        head_age: Duration::from_secs(2),
        budget_left_ppm: Some(500_000),
        unsaved_for: Duration::from_millis(100),
        is_handler_down: task == 1,
        workers: Some(Workers { busy: 2, idle: 1 }),
    };
    let mut board = Board::default();
    board.look((1..=tasks).map(sample).collect(), vec![], Moment(1));
    board
        .entries
        .values_mut()
        .for_each(|entry| entry.actual_rate = Some(5.0));
    let mut calls = Histogram::default();
    calls.record(Duration::from_millis(20), 3);
    let mut failed = FailedCalls::default();
    failed.count(FailureClass::Unreachable, "CONNECT".into());
    board.calls.add_failed("say \"hi\"", &failed);
    board.calls.add("say \"hi\"", "http", &calls);
    board
}

fn page_of(tasks: i64) -> String {
    let requests = Requests::default();
    requests.answered(&Method::GET, "/v1/tasks/{task}", 200, Duration::from_millis(3));
    requests.answered(
        &Method::from_bytes(b"BREW").unwrap(),
        OTHER,
        405,
        Duration::from_secs(90),
    );
    let mut page = Page::default();
    write_tasks(&mut page, &board_of(tasks), &[]);
    let meters = windrow_engine::ports::handling::meters::Meters::default();
    meters.queried("select", Duration::from_millis(2), true);
    meters.recovers("run_failed");
    inside::write(&mut page, &meters);
    process::write(&mut page);
    requests.write(&mut page);
    page.finish()
}

/// Metric → (kind, has help, samples).
fn families(page: &str) -> BTreeMap<String, (String, bool, usize)> {
    let mut families: BTreeMap<String, (String, bool, usize)> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.is_empty()) {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').expect("a text");
            assert!(!text.is_empty(), "{line}");
            let before = families.insert(name.to_owned(), (String::new(), true, 0));
            assert_eq!(before, None, "{name} stands twice");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a kind");
            families.entry(name.to_owned()).or_default().0 = kind.to_owned();
        } else {
            let name = line.split(['{', ' ']).next().expect("a name");
            let base = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end));
            let family = base.filter(|base| families.contains_key(*base)).unwrap_or(name);
            families
                .get_mut(family)
                .unwrap_or_else(|| panic!("{line} has no TYPE"))
                .2 += 1;
            line.rsplit_once(' ')
                .and_then(|(_, value)| value.parse::<f64>().ok())
                .unwrap_or_else(|| panic!("{line}"));
        }
    }
    families
}

#[test]
fn every_metric_has_help_and_type_and_a_name_by_the_rules() {
    let page = page_of(3);
    for (name, (kind, has_help, samples)) in families(&page) {
        assert!(has_help && samples > 0, "{name}: {kind} {samples}");
        assert!(
            name.starts_with("windrow_") || name.starts_with("process_"),
            "{name}"
        );
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
        assert!(
            !name.contains("_ms") && !name.contains("millis"),
            "base units: {name}"
        );
    }
    assert!(
        page.contains(r#"business="say \"hi\"\n",task="t1""#),
        "labels are escaped"
    );
    assert!(
        page.contains(r#"method="other",route="other",status="405""#),
        "{page}"
    );
}

#[test]
fn the_use_of_a_task_is_exported_by_unit_but_for_calls() {
    let page = page_of(1);
    let costs = page.lines().filter(|line| line.starts_with("windrow_task_cost{"));
    assert_eq!(
        costs.collect::<Vec<_>>(),
        [r#"windrow_task_cost{task="t1",unit="tokens"} 1200.5"#]
    );
}

#[test]
fn the_number_of_series_is_bounded_whatever_tasks_there_are() {
    let page = page_of(10_000);
    let tasks: BTreeSet<&str> = page
        .split("task=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(tasks.len(), board::TASKS_MAX + 1, "and one for all the others");
    assert!(tasks.contains(OTHER));
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
}

#[test]
fn alerts_ask_for_metrics_that_there_are() {
    let code = include_str!("families.rs");
    for line in include_str!("../../../../deploy/alerts.yml")
        .lines()
        .filter(|line| !line.contains("alert:"))
    {
        for name in line
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .filter(|word| word.starts_with("windrow_"))
        {
            assert!(code.contains(&format!("\"{name}\"")), "there is no {name}");
        }
    }
}

#[test]
fn the_terms_of_a_task_add_up_to_its_total() {
    let page = page_of(1);
    let mut sum = 0.0;
    let mut total = None;
    for line in page
        .lines()
        .filter(|line| line.starts_with("windrow_task_items{"))
    {
        let value: f64 = line.rsplit_once(' ').unwrap().1.parse().unwrap();
        if line.contains("state=\"total\"") {
            total = Some(value)
        } else {
            sum += value
        }
    }
    assert_eq!(Some(sum), total);
}

/// The series that a text of deploy/ asks for: words that begin as ours do.
fn asked(text: &str) -> BTreeSet<&str> {
    let words =
        text.split(|letter: char| !letter.is_ascii_lowercase() && !letter.is_ascii_digit() && letter != '_');
    words
        .filter(|word| word.starts_with("windrow_") || word.starts_with("process_"))
        .collect()
}

#[test]
fn what_is_asked_for_in_alerts_and_in_grafana_is_exported() {
    let exported: BTreeSet<String> = f::ALL
        .iter()
        .flat_map(|family| match family.kind {
            f::Kind::Histogram => ["_bucket", "_sum", "_count"]
                .map(|end| format!("{}{end}", family.name))
                .to_vec(),
            f::Kind::Counter | f::Kind::Gauge => vec![family.name.to_owned()],
        })
        .collect();
    let alerts = include_str!("../../../../deploy/alerts.yml");
    let grafana = include_str!("../../../../deploy/grafana.json");
    for (file, text) in [("alerts.yml", alerts), ("grafana.json", grafana)] {
        let asked = asked(text);
        assert!(asked.len() > 10, "{file}: {asked:?}");
        for name in asked {
            assert!(exported.contains(name), "{file} asks for {name}");
        }
    }
}

#[test]
fn grafana_takes_the_dashboard() {
    let text = include_str!("../../../../deploy/grafana.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(
            ids.insert(panel["id"].as_u64().expect("a number")),
            "{title}: each has its own"
        );
        let place = &panel["gridPos"];
        let right = place["x"].as_u64().expect("x") + place["w"].as_u64().expect("w");
        assert!(right <= 24, "{title} is within the 24 columns");
        if panel["type"] != "row" {
            let targets = panel["targets"].as_array().expect("targets");
            assert!(
                !targets.is_empty() && targets.iter().all(|one| one["expr"].is_string()),
                "{title}"
            );
        }
    }
    assert!(ids.len() > 20);
}

#[test]
fn an_objective_at_300_ms_has_a_bound_and_every_bound_cuts_exactly() {
    assert!(calls::CALLS.contains(&300_000), "300 ms");
    for bounds in [calls::CALLS, calls::SHORT, inside::LATE] {
        assert!(bounds.is_sorted());
        for micros in bounds {
            let (bound, mut histogram) = (Duration::from_micros(*micros), Histogram::default());
            histogram.record(bound - Duration::from_nanos(1), 1);
            histogram.record(bound, 1);
            assert_eq!(histogram.below(bound), 1, "{bound:?}");
        }
    }
}
