//! The list of tasks at the widths that people have.

use super::*;
use crate::output::table::Paper;
use crate::output::table::times::TimeStyle;
use windrow_core::ids::WallMs;
use windrow_core::task::spec::TaskSpec;

/// 2026-11-20T17:00:00Z
const NOW_MS: i64 = 1_795_194_000_000;

fn task(id: &str, name: Option<&str>, status: &str, counts: (u64, u64, u64)) -> Task {
    let (succeeded, failed, total) = counts;
    let mut task = Task {
        id: id.into(),
        business: "push-campaign".into(),
        spec: TaskSpec {
            name: name.map(str::to_owned),
            ..TaskSpec::default()
        },
        status: status.into(),
        total,
        counts: api::TaskCounts {
            succeeded,
            failed,
            pending: total - succeeded - failed,
            ..Default::default()
        },
        ..Default::default()
    };
    let settled = succeeded + failed;
    task.pace.progress = api::TaskProgress {
        settled,
        of: total,
        percent: (settled as f64 * 1000.0 / total as f64).round() / 10.0,
    };
    task.pace.actual_rate = Some(0.0);
    at(task, "500/s")
}

fn at(mut task: Task, rate: &str) -> Task {
    task.settings.tuning.rate = rate.parse().expect("a rate");
    task
}

fn tasks() -> Vec<Task> {
    let mut running = task("t1042", Some("black-friday"), "running", (389_878, 61, 1_000_000));
    (running.pace.actual_rate, running.pace.eta_seconds) = (Some(498.7), Some(1224));
    running.beside.nodes = Some("n1".into());
    let unlimited = task("t1036", Some("all"), "running", (1, 0, 7));
    let mut unlimited = at(unlimited, "unlimited");
    unlimited.pace.actual_rate = None;
    vec![
        running,
        Task {
            status_reason: Some("capacity".into()),
            ..at(
                task("t1041", Some("订单回填-2025"), "queued", (0, 0, 100)),
                "2000/s",
            )
        },
        Task {
            result: Some("with_failures".into()),
            ..task("t1039", Some("smoke"), "finished", (97, 3, 100))
        },
        Task {
            next: Some(api::TaskNext {
                action: "recover".into(),
                at: "2026-11-20T17:00:14.000Z".into(),
                attempt: Some(2),
                of: Some(10),
            }),
            ..task("t1038", None, "recovering", (712, 1204, 3000))
        },
        Task {
            stop_reason: Some("operator".into()),
            ..at(task("t1037", Some("slow"), "stopped", (1, 0, 7)), "10/m")
        },
        unlimited,
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
    let labels = [("day", "5"), ("team", "growth")].map(|(key, value)| (key.into(), value.into()));
    let task = Task {
        spec: TaskSpec {
            labels: labels.into(),
            limits: vec!["vendor".into(), "sms".into()],
            deadline: WallMs::from_rfc3339("2026-11-22T21:00:00Z").ok(),
            priority: -3,
            ..tasks().swap_remove(0).spec
        },
        shard_list: vec![api::TaskShard::default(); 2],
        watermark: 389_000,
        ..tasks().swap_remove(0)
    };
    let csv = TASKS.csv(&[task], &times, windrow_core::text::csv::Guard::On);
    let (head, line) = csv.split_once('\n').expect("two lines");
    let more = "rate,pending,stop_reason,labels,priority,limits,start_at,deadline,watermark,shards,\
                recovered,still_failed";
    assert!(
        head.ends_with(&format!("created_at,started_at,finished_at,{more}")),
        "{head}"
    );
    assert!(head.contains(",actual_rate,eta,failed,"), "{head}");
    let seen = "t1042,push-campaign,black-friday,running,39.0,498.7,1224,61,n1,1000000,389878,0,0,0,,,,,,,";
    let also = "500/s,610061,,day=5 team=growth,-3,vendor sms,,2026-11-22T21:00:00.000Z,389000,2,,";
    assert_eq!(line.trim_end(), format!("{seen},{also}"));
}

#[test]
fn failures_that_redrives_recovered_stand_beside_those_that_there_were() {
    let times = Times {
        style: TimeStyle::Utc,
        now_ms: 0,
    };
    let of = |recovered: u64| {
        let mut task = task("t1", None, "finished", (97, 3, 100));
        task.beside.redriven = Some(api::TaskRedriven {
            recovered,
            still_failed: 3 - recovered,
            exact: true,
        });
        failed(&task, &times)
    };
    let cell = of(2);
    assert_eq!((cell.text.as_str(), cell.tone), ("3 (2 recovered)", Tone::Bad));
    assert_eq!(
        (cell.short.as_deref(), cell.plain.as_deref()),
        (Some("3"), Some("3"))
    );
    assert_eq!(of(3).tone, Tone::Plain);
    assert_eq!(of(0).text, "3");
}
