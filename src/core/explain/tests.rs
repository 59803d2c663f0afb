//! Explanations of spans whose numbers are known.

use super::*;
use crate::handler::sight::HandlerSight;
use crate::ids::{ItemIndex, TaskId, WallMs};
use crate::items::verdict::{FailureClass, HandlerState, LastError, Outage};
use crate::meter::metering::HeldBy;
use crate::meter::unit::Unit;
use crate::settings::{Auto, RateLimit};
use crate::stats::autopilot::{Picture, Scouting, Why};
use crate::stats::permits::{MICRO, Permits};
use crate::task::Tuning;
use crate::task::lifecycle::Status;

const TUNING: &str = r#"{"rate":"500/s","burst":"100ms","concurrency":"auto","max_concurrency":1024,
"window":"auto","batch":1,"batch_linger":"5ms","timeout":"10s","max_attempts":5,
"backoff":"1s..60s x2 jitter 20%","on_exhausted":"fail","error_budget":"none","error_window":"30s",
"checkpoint_interval":"1s","unsaved_max":"auto","straggler_after":"1s","park_after":"2s","parked_max":10000,
"ordered":false}"#;

fn tuning(change: &str) -> Tuning {
    let whole: Tuning = serde_json::from_str(TUNING).expect("sound");
    let patch: TuningPatch = serde_json::from_str(change).expect("sound");
    patch.apply(&whole)
}

/// A minute at 500/s in which so many attempts were sent; the rest is in the bucket.
fn minute(sent: u64, change: &str) -> Facts {
    let permits = Permits {
        due: 30_000 * MICRO,
        first: sent * MICRO,
        ..Permits::default()
    };
    let live = Live {
        in_flight: 64,
        concurrency: 64,
        window: 4096,
        ..Live::default()
    };
    Facts {
        task: TaskId(7),
        business: "push".to_owned(),
        covered: Duration::from_secs(60),
        idle: Duration::ZERO,
        stood: Stood::default(),
        unheard: Unheard::default(),
        silent: Silent::default(),
        permits,
        latency: Latency::default(),
        tuning: tuning(change),
        standing: Standing {
            status: Status::Running,
            reason: None,
            text: None,
        },
        live: Some(live),
        worst_code: None,
        free_rate: None,
        is_alone: false,
        held_back: Vec::new(),
        handler: HandlerSight::default(),
        limit: None,
        taken_over: None,
        unsaved: None,
        stood_still: None,
        company: 0,
    }
}

/// Of three shards one is on a node that gives no sign; the others settled so many items.
fn widowed(settled: u64) -> Facts {
    let mut facts = minute(settled, "{}");
    facts.permits.due = 20_000 * MICRO;
    facts.unheard = Unheard {
        shards: 1,
        of: 3,
        time: Duration::from_secs(20),
    };
    facts.silent = Silent {
        nodes: vec![("n3".to_owned(), "Connection refused".to_owned())],
        prospect: Some(windrow_words::explain::will_be_taken_over()),
    };
    facts
}

const WIDOWED: &str = "1 of 3 shards unreachable: n3 (Connection refused); \
                       if that node is gone, another node takes it over";

/// The sentences, as people see them.
fn why(explanation: &Explanation) -> String {
    windrow_words::list::text(&explanation.why)
}

/// Details of the largest cause.
fn detail(explanation: &Explanation) -> String {
    let text = &explanation.causes[0].text;
    text.as_ref().map_or_else(String::new, ToString::to_string)
}

/// Code of the first advice.
fn advised(explanation: &Explanation) -> &'static str {
    explanation.advice[0].text.code()
}

#[test]
fn the_part_of_a_node_that_gives_no_sign_is_missed_as_unknown() {
    let mut facts = widowed(19_000);
    facts.permits.late = 1_000 * MICRO;
    let explanation = explained(&facts);
    let target = explanation.target.expect("a target");
    assert_eq!(
        explanation.per_second(target),
        500.0,
        "the rate was never another one"
    );
    let causes: Vec<(&str, i64)> = explanation
        .causes
        .iter()
        .map(|cause| (cause.kind.slug(), cause.micros))
        .collect();
    assert_eq!(
        causes,
        [("unknown", 10_000_000_000), ("late", 1_000_000_000)],
        "the node that came too late is another one"
    );
    assert_eq!(why(&explanation), WIDOWED);
    assert_eq!(
        detail(&explanation),
        "1 of 3 shards: no response from n3; work done there isn't counted"
    );
    let advice = &explanation.advice[0];
    assert_eq!(advice.text.to_string(), "check n3");
    assert_eq!(advice.hindrance, facts.silent.prospect);
}

#[test]
fn a_silent_node_is_told_also_where_most_is_missing_elsewhere() {
    let mut facts = widowed(5_000);
    facts.permits.late = 15_000 * MICRO;
    let told = why(&explained(&facts));
    assert!(
        told.starts_with("node overloaded") && told.ends_with(WIDOWED),
        "{told}"
    );
    // It has so small a part that the task keeps its rate all the same; or there is no rate.
    let mut facts = widowed(20_000);
    (facts.unheard.of, facts.unheard.time) = (64, Duration::from_millis(300));
    assert!(why(&explained(&facts)).contains("on target; 1 of 64 shards unreachable"));
    facts.tuning = tuning(r#"{"rate":"unlimited"}"#);
    assert!(why(&explained(&facts)).contains("no rate limit"));
    assert!(why(&explained(&facts)).contains("unreachable: n3"));
    let mut facts = widowed(20_000);
    facts.unheard.shards = 2;
    facts.silent.nodes.push(("n4".to_owned(), "timed out".to_owned()));
    let told = explained(&facts);
    assert!(
        detail(&told).starts_with("2 of 3 shards: no response from n3, n4"),
        "{told:#?}"
    );
    assert!(
        why(&told).contains("unreachable: n3 (Connection refused), n4 (timed out)"),
        "{}",
        why(&told)
    );
}

/// Its missing permits were lost for one reason.
fn lost(settled: u64, reason: StallReason, change: &str) -> Facts {
    let mut facts = minute(settled, change);
    facts.permits.lost[reason as usize] = (30_000 - settled) * MICRO;
    facts
}

fn millis(ms: u64) -> Option<Duration> {
    Some(Duration::from_millis(ms))
}

fn change(explanation: &Explanation) -> String {
    let change = explanation
        .advice
        .first()
        .and_then(|advice| advice.change.clone())
        .expect("a change");
    serde_json::to_string(&change).expect("a patch can be written")
}

/// What holds of every explanation.
fn explained(facts: &Facts) -> Explanation {
    let explanation = explain(facts);
    let sum: i64 = explanation.causes.iter().map(|cause| cause.micros).sum();
    assert_eq!(Some(sum), explanation.missing().or(Some(0)), "{explanation:#?}");
    assert!(!explanation.why.is_empty());
    assert!(explanation.causes.is_sorted_by_key(|cause| -cause.micros));
    for advice in &explanation.advice {
        assert!(advice.change.is_some() || advice.hindrance.is_some());
    }
    explanation
}

#[test]
fn what_a_node_has_no_room_for_is_missing_as_long_as_it_was_refused() {
    let mut facts = minute(30_000, "{}");
    let limit = |text: &str| RateLimit::Limited(text.parse().expect("a rate"));
    let held = |age| HeldBack {
        rate: limit("500/s"),
        wanted: limit("1000/s"),
        age: Duration::from_secs(age),
        why: "it needs 1000/s".to_owned(),
    };
    facts.held_back = vec![held(20)];
    let explanation = explained(&facts);
    assert_eq!(
        (explanation.target, explanation.missing()),
        (Some(40_000_000_000), Some(10_000_000_000))
    );
    assert_eq!(
        (explanation.causes[0].kind, explanation.causes[0].kind.slug()),
        (CauseKind::NoRoom, "no_room")
    );
    assert_eq!(detail(&explanation), "500/s instead of 1000/s");
    assert!(
        why(&explanation).ends_with("no room for it: it needs 1000/s"),
        "{}",
        why(&explanation)
    );
    assert_eq!(advised(&explanation), "advice.move_shard");
    facts.held_back = vec![
        held(600),
        HeldBack {
            rate: RateLimit::Unlimited,
            ..held(9)
        },
    ];
    assert_eq!(
        explained(&facts).missing(),
        Some(30_000_000_000),
        "of this minute; what has no rate misses none"
    );
}

#[test]
fn a_window_that_a_slow_item_holds_is_made_larger_than_it_lasts() {
    let mut facts = lost(18_744, StallReason::WindowFull, r#"{"window":600}"#);
    facts.permits.lost[StallReason::WindowFull as usize] -= 984 * MICRO;
    facts.permits.lost[StallReason::BackPressure as usize] = 834 * MICRO;
    facts.permits.lost[StallReason::RetryWait as usize] = 150 * MICRO;
    (facts.latency.p95, facts.latency.p99) = (millis(2410), millis(2410));
    let head = Head {
        index: ItemIndex(71_204),
        attempt: 4,
        waits: false,
        age: Duration::from_secs(2),
    };
    let live = Live {
        in_flight: 600,
        concurrency: 2000,
        window: 600,
        head: Some(head),
        ..Live::default()
    };
    facts.live = Some(live);
    let explanation = explained(&facts);
    assert_eq!(explanation.target, Some(30_000_000_000));
    assert!((explanation.per_second(explanation.actual) - 312.4).abs() < 1e-9);
    let slugs: Vec<&str> = explanation.causes.iter().map(|cause| cause.kind.slug()).collect();
    assert_eq!(slugs, ["window_full", "back_pressure", "retry_wait"]);
    assert!((explanation.per_second(explanation.causes[0].micros) - 171.2).abs() < 1e-9);
    assert_eq!(detail(&explanation), "held by #71,204 (attempt 4, 2s)");
    assert_eq!(
        why(&explanation),
        "500/s × p95 2.4s needs about 1,205 calls in flight; the window is 600"
    );
    assert_eq!(change(&explanation), r#"{"window":1900}"#);
    let predicted = explanation.advice[0].predicted.expect("a prediction");
    assert!((predicted - 483.6).abs() < 1e-9, "{predicted}");
}

#[test]
fn a_window_held_by_one_straggler_names_it_and_may_park_it_sooner() {
    let mut facts = lost(15_000, StallReason::WindowFull, r#"{"window":100}"#);
    (facts.latency.p95, facts.latency.longest) = (millis(20), millis(4000));
    let head = Head {
        index: ItemIndex(900),
        attempt: 1,
        waits: false,
        age: Duration::from_millis(700),
    };
    facts.live = Some(Live {
        window: 100,
        concurrency: 64,
        head: Some(head),
        ..Live::default()
    });
    let explanation = explained(&facts);
    assert!(
        why(&explanation).contains("#900 (attempt 1, 700ms)"),
        "{}",
        why(&explanation)
    );
    assert_eq!(change(&explanation), r#"{"window":2500}"#);
    let other = explanation.advice[1].change.clone().expect("a change");
    assert_eq!(other.straggler_after, millis(100));
}

#[test]
fn too_few_slots_are_raised_to_what_littles_law_asks_for_and_the_window_with_them() {
    let mut facts = lost(
        6_000,
        StallReason::Concurrency,
        r#"{"concurrency":20,"window":20}"#,
    );
    facts.latency.p95 = millis(200);
    facts.live = Some(Live {
        in_flight: 20,
        concurrency: 20,
        window: 20,
        ..Live::default()
    });
    let explanation = explained(&facts);
    assert_eq!(
        why(&explanation),
        "500/s × p95 200ms needs about 100 calls in flight; at most 20 may be in flight"
    );
    assert_eq!(change(&explanation), r#"{"concurrency":150,"window":300}"#);
    assert_eq!(explanation.advice[0].predicted.map(f64::round), Some(500.0));
}

#[test]
fn an_automatic_concurrency_is_raised_by_its_bound() {
    let mut facts = lost(6_000, StallReason::Concurrency, r#"{"max_concurrency":80}"#);
    facts.latency.p95 = millis(1000);
    facts.live = Some(Live {
        in_flight: 80,
        concurrency: 80,
        window: 4096,
        ..Live::default()
    });
    assert_eq!(change(&explained(&facts)), r#"{"max_concurrency":750}"#);
}

#[test]
fn an_ordered_task_is_told_why_nothing_helps() {
    let facts = lost(600, StallReason::Concurrency, r#"{"ordered":true}"#);
    let explanation = explained(&facts);
    assert_eq!(explanation.advice[0].change, None);
    assert!(
        explanation.advice[0]
            .hindrance
            .as_ref()
            .is_some_and(|text| text.code() == "advice.ordered_rate")
    );
}

#[test]
fn a_handler_that_turns_calls_away_gets_the_rate_that_it_takes() {
    let explanation = explained(&lost(8_130, StallReason::BackPressure, "{}"));
    assert_eq!(change(&explanation), r#"{"rate":"130/s"}"#);
    assert!(
        why(&explanation).contains("it accepted 136/s of the target 500/s"),
        "{}",
        why(&explanation)
    );
    assert!(
        explanation.advice[0].hindrance.is_some(),
        "the old target stays out of reach"
    );
}

#[test]
fn repeats_are_a_cause_and_the_rate_is_raised_by_their_factor() {
    let mut facts = minute(20_000, "{}");
    facts.permits.repeats = 10_000 * MICRO;
    facts.worst_code = Some(("HTTP_500".to_owned(), 10_000));
    facts.free_rate = Some(100.0);
    let explanation = explained(&facts);
    assert_eq!(explanation.missing(), Some(0), "a repeat is sent at the rate");
    assert_eq!(explanation.repeats.micros, 10_000_000_000);
    assert_eq!(change(&explanation), r#"{"rate":"750/s"}"#);
    assert!(
        why(&explanation).contains("500/s settles at most 333/s; most often HTTP_500 ×10,000"),
        "{}",
        why(&explanation)
    );
    let hindrance = explanation.advice[0].hindrance.clone();
    assert_eq!(hindrance, Some(windrow_words::advice::node_has_only(100.0)));
}

#[test]
fn no_higher_rate_is_advised_where_what_is_left_waits_for_its_next_attempt() {
    let mut facts = lost(20_000, StallReason::RetryWait, "{}");
    facts.permits.lost[StallReason::RetryWait as usize] = 6_000 * MICRO;
    facts.permits.repeats = 4_000 * MICRO;
    let advice = explained(&facts).advice;
    let retries = advice.iter().find(|advice| advice.about == CauseKind::Retries);
    let retries = retries.expect("a cause of its own");
    assert_eq!(
        (retries.change.as_ref(), retries.predicted),
        (None, None),
        "{}",
        retries.text
    );
}

#[test]
fn no_higher_rate_is_advised_where_something_else_leaves_the_rate_unused() {
    for reason in [StallReason::Limit, StallReason::Usage, StallReason::SourceWait] {
        let mut facts = lost(20_000, reason, "{}");
        facts.permits.lost[reason as usize] = 6_000 * MICRO;
        facts.permits.repeats = 4_000 * MICRO;
        let advice = explained(&facts).advice;
        let retries = advice.iter().find(|advice| advice.about == CauseKind::Retries);
        assert_eq!(retries.expect("a cause of its own").change, None, "{reason:?}");
    }
}

#[test]
fn a_slow_source_has_nothing_to_set() {
    let explanation = explained(&lost(3_000, StallReason::SourceWait, "{}"));
    assert!(
        why(&explanation).contains("the source delivers 50/s"),
        "{}",
        why(&explanation)
    );
    assert_eq!(explanation.advice[0].change, None);
}

#[test]
fn every_stall_has_a_title_an_advice_or_a_reason_why_there_is_none() {
    for reason in StallReason::ALL {
        let explanation = explained(&lost(1_000, reason, "{}"));
        assert_eq!(explanation.causes[0].kind, CauseKind::Stall(reason));
        assert_eq!(
            explanation.advice[0].about,
            CauseKind::Stall(reason),
            "{reason:?}"
        );
        let hindrance = explanation.advice[0].hindrance.as_ref();
        assert_ne!(
            hindrance.map(windrow_words::Message::code),
            Some("advice.nothing_known"),
            "{reason:?}"
        );
    }
}

#[test]
fn what_settles_late_is_no_part_of_the_rate() {
    // A stall is over, and its answers came at once: the rate is what was sent, and nothing is missing twice.
    let mut facts = minute(28_000, "{}");
    facts.permits.lost[StallReason::WindowFull as usize] = 2_000 * MICRO;
    let explanation = explained(&facts);
    assert_eq!(explanation.per_second(explanation.actual), 28_000.0 / 60.0);
    assert_eq!(explanation.missing(), Some(2_000_000_000));
    // A burst spends what was saved before: more is sent than is due, and none is missing.
    facts = minute(30_050, "{}");
    let explanation = explained(&facts);
    assert_eq!((explanation.missing(), explanation.causes.len()), (Some(0), 0));
    assert_eq!(why(&explanation), "on target");
}

#[test]
fn a_slow_rate_of_which_nothing_is_due_yet_is_kept() {
    let mut facts = minute(0, r#"{"rate":"5/h"}"#);
    facts.permits.due = 83_333;
    let explanation = explained(&facts);
    assert_eq!(why(&explanation), "on target: one item is due every 12m");
    assert_eq!((explanation.missing(), explanation.advice.len()), (Some(0), 0));
}

#[test]
fn a_task_at_its_rate_is_told_so() {
    let explanation = explained(&minute(29_990, "{}"));
    assert_eq!(why(&explanation), "on target");
    assert_eq!(explanation.advice, []);
}

#[test]
fn a_task_that_nearly_keeps_its_rate_gets_no_advice_and_a_young_one_none_either() {
    let nearly = explained(&lost(29_450, StallReason::WindowFull, "{}"));
    assert_eq!((why(&nearly), nearly.advice.len()), ("on target".to_owned(), 0));
    let mut young = lost(10, StallReason::WindowFull, "{}");
    young.covered = Duration::from_secs(1);
    assert_eq!(explained(&young).advice, []);
}

#[test]
fn no_advice_predicts_less_than_is_done() {
    let facts = lost(20_000, StallReason::BackPressure, "{}");
    let explanation = explained(&facts);
    assert_eq!(advised(&explanation), "advice.lower_to_taken");
    assert_eq!(explanation.advice[0].predicted, None, "333/s were sent");
}

#[test]
fn a_takeover_is_named_and_asks_for_no_processor_time() {
    let mut facts = minute(20_000, "{}");
    (facts.permits.due, facts.permits.late) = (22_500 * MICRO, 2_500 * MICRO);
    (facts.covered, facts.idle) = (Duration::from_secs(60), Duration::from_secs(15));
    facts.taken_over = Some(takeover());
    let explanation = explained(&facts);
    assert_eq!(explanation.causes[0].kind, CauseKind::NotRunning(Status::Running));
    assert_eq!(explanation.why.last(), Some(&takeover().text));
    let codes: Vec<&str> = explanation
        .advice
        .iter()
        .map(|advice| advice.text.code())
        .collect();
    assert!(!codes.contains(&"advice.more_cpu"), "{codes:?}");
    assert!(codes.contains(&"advice.see_report"), "{codes:?}");
}

fn takeover() -> Takeover {
    let text = windrow_words::life::taken_over(
        "n2",
        "0",
        windrow_words::list::quoted("n3"),
        Duration::from_secs(15),
    );
    Takeover {
        by: "n2".to_owned(),
        text,
    }
}

#[test]
fn what_a_frozen_node_came_round_to_after_a_takeover_is_due_once() {
    let mut facts = minute(26_000, "{}");
    // One of two shards stood for 27 s; its second owner had it for the last 12 of them.
    (facts.permits.due, facts.permits.late) = (33_000 * MICRO, 7_000 * MICRO);
    facts.taken_over = Some(takeover());
    let explanation = explained(&facts);
    assert_eq!(
        explanation.per_second(explanation.target.expect("a rate")),
        500.0,
        "the task's rate and no more"
    );
    assert_eq!(
        (explanation.causes[0].kind, explanation.causes[0].micros),
        (CauseKind::Late, 4_000_000_000)
    );
    assert!(
        detail(&explanation).contains("the node was paused"),
        "{:?}",
        explanation.causes[0]
    );
    facts.taken_over = None;
    let (from, to) = (Duration::from_secs(70), Duration::from_secs(43));
    facts.stood_still = Some(("n3".to_owned(), Spell { from, to }));
    assert_eq!(
        explained(&facts).target,
        explanation.target,
        "it was taken over before what is told"
    );
}

#[test]
fn what_waits_for_a_save_names_the_database_and_no_failures() {
    let explanation = explained(&lost(20_000, StallReason::Checkpoint, "{}"));
    assert!(
        detail(&explanation).ends_with("the database was slow or unavailable"),
        "{}",
        why(&explanation)
    );
    assert!(!why(&explanation).contains("fail"), "{}", why(&explanation));
    assert_eq!(advised(&explanation), "advice.check_writes");
}

#[test]
fn a_database_that_took_no_writes_is_named_with_its_times_whatever_waited_for_it() {
    let waits = [
        StallReason::Checkpoint,
        StallReason::Unsaved,
        StallReason::ResultsUnsaved,
        StallReason::Lease,
    ];
    for reason in waits {
        let mut facts = lost(20_000, reason, "{}");
        let (from, to) = (Duration::from_secs(31), Duration::from_secs(6));
        facts.unsaved = Some(Spell { from, to });
        let explanation = explained(&facts);
        assert_eq!(
            detail(&explanation),
            "the database accepted no writes for 25s, until 6s ago"
        );
        assert!(why(&explanation).contains(&detail(&explanation)));
        let advice = &explanation.advice;
        assert_eq!((advice.len(), &advice[0].change), (1, &None), "no setting helps");
        assert_eq!(advised(&explanation), "advice.check_database");
        let hindrance = advice[0].hindrance.clone();
        assert_eq!(hindrance, Some(windrow_words::advice::nothing_lost_once_saved()));
    }
    let mut lasting = lost(20_000, StallReason::Checkpoint, "{}");
    let (from, to) = (Duration::from_secs(22), Duration::ZERO);
    lasting.unsaved = Some(Spell { from, to });
    assert_eq!(
        detail(&explained(&lasting)),
        "the database accepted no writes for 22s so far"
    );
    let mut window = lost(20_000, StallReason::WindowFull, "{}");
    let before = explained(&window);
    let (from, to) = (Duration::from_secs(9), Duration::from_secs(7));
    window.unsaved = Some(Spell { from, to });
    assert_eq!(
        explained(&window),
        before,
        "what waited for something else says so"
    );
}

#[test]
fn a_node_that_stood_still_is_named_with_its_times() {
    let mut facts = minute(26_000, "{}");
    (facts.permits.first, facts.permits.late) = (26_000 * MICRO, 4_000 * MICRO);
    let (from, to) = (Duration::from_secs(35), Duration::from_secs(8));
    facts.stood_still = Some(("n3".to_owned(), Spell { from, to }));
    let explanation = explained(&facts);
    assert_eq!(explanation.advice.len(), 1, "{:?}", explanation.advice);
    assert_eq!(
        advised(&explanation),
        "advice.check_pause",
        "no burst makes up for it"
    );
    assert_eq!(
        why(&explanation),
        "node overloaded: n3 stood still for 27s, until 8s ago: paused, or short of CPU"
    );
}

#[test]
fn a_shard_that_did_not_run_is_told_as_one_of_several() {
    let mut facts = minute(27_500, "{}");
    facts.permits.due = 27_500 * MICRO;
    (facts.idle, facts.stood) = (
        Duration::from_secs(5),
        Stood {
            shards: 1,
            of: 3,
            longest: Duration::from_secs(15),
        },
    );
    let explanation = explained(&facts);
    assert_eq!(explanation.target, Some(30_000_000_000), "the rate, and no more");
    assert_eq!(detail(&explanation), "1 of 3 shards did not run for 15s");
    facts.stood = Stood {
        shards: 1,
        of: 1,
        longest: facts.idle,
    };
    assert_eq!(detail(&explained(&facts)), "nothing ran for 5s");
}

#[test]
fn a_task_that_its_deadline_stopped_is_not_to_be_started_before_that_is_moved() {
    let mut facts = minute(0, "{}");
    (facts.live, facts.standing.status) = (None, Status::Stopped);
    facts.standing.reason = Some(LATE.to_owned());
    assert_eq!(advised(&explained(&facts)), "advice.move_deadline");
}

#[test]
fn time_without_a_run_is_a_cause_and_a_task_that_waits_says_for_what() {
    let mut facts = minute(0, "{}");
    (facts.permits, facts.idle, facts.live) = (Permits::default(), facts.covered, None);
    facts.free_rate = Some(388.0);
    facts.standing = Standing {
        status: Status::Queued,
        reason: Some("capacity".to_owned()),
        text: Some("it needs 500/s".to_owned()),
    };
    let explanation = explained(&facts);
    assert_eq!(explanation.target, Some(30_000_000_000));
    assert_eq!(explanation.causes[0].kind.slug(), "queued");
    assert_eq!(why(&explanation), "the task is queued (capacity): it needs 500/s");
    assert_eq!(change(&explanation), r#"{"rate":"380/s"}"#);
}

#[test]
fn a_task_without_a_rate_has_no_target_but_something_that_bounds_it() {
    let mut facts = minute(12_000, r#"{"rate":"unlimited"}"#);
    facts.latency.p50 = millis(300);
    facts.latency.p95 = millis(320);
    let mut live = Live {
        in_flight: 64,
        concurrency: 64,
        age: Duration::from_secs(100),
        ..Live::default()
    };
    live.stalled[StallReason::Concurrency as usize] = Duration::from_secs(93);
    live.stalled[StallReason::SourceWait as usize] = Duration::from_secs(2);
    facts.live = Some(live);
    let explanation = explained(&facts);
    assert_eq!((explanation.target, explanation.causes.len()), (None, 0));
    assert_eq!(
        explanation.waits,
        [
            (StallReason::Concurrency, 930_000),
            (StallReason::SourceWait, 20_000)
        ]
    );
    assert!(
        why(&explanation).contains("93 % of the run was spent waiting: concurrency"),
        "{}",
        why(&explanation)
    );
    assert_eq!(change(&explanation), r#"{"concurrency":200}"#);
}

/// Limits found at a service that refuses some calls.
fn found(why: Option<Why>) -> Picture {
    Picture {
        in_flight: 8,
        rate: Some(38.2),
        refused_share: 0.01,
        slope: Some(0.9),
        why,
        ..Picture::default()
    }
}

/// A minute that the autopilot held back for most of the time.
fn held_back(change: &str, autopilot: Picture) -> Facts {
    let mut facts = lost(2_292, StallReason::Autopilot, change);
    let mut live = Live {
        age: Duration::from_secs(100),
        autopilot: Some(autopilot),
        ..Live::default()
    };
    live.stalled[StallReason::Autopilot as usize] = Duration::from_secs(95);
    facts.live = Some(live);
    facts
}

#[test]
fn a_rate_above_what_the_service_takes_is_held_by_the_autopilot() {
    let explanation = explained(&held_back("{}", found(Some(Why::RefusedAboveRate))));
    assert_eq!(explanation.causes[0].kind.slug(), "autopilot");
    assert_eq!(why(&explanation), "held by autopilot: refused above 38.2/s");
    assert_eq!(advised(&explanation), "advice.ask_service");
    assert!(
        explanation.advice[0].change.is_none(),
        "only the service can help"
    );
    let starting = explained(&held_back("{}", found(Some(Why::Starting))));
    assert_eq!(why(&starting), "held by autopilot: starting with 8 in flight");
    assert_eq!(advised(&starting), "advice.wait_for_autopilot");
}

#[test]
fn a_limit_in_units_that_holds_calls_back_is_named() {
    let held = |held_by: Option<HeldBy>| {
        let mut facts = lost(2_292, StallReason::Usage, "{}");
        let mut live = Live {
            age: Duration::from_secs(100),
            held_by,
            ..Live::default()
        };
        live.stalled[StallReason::Usage as usize] = Duration::from_secs(95);
        facts.live = Some(live);
        explained(&facts)
    };
    let limited = held(Some(HeldBy::Limit("90k tokens/min".to_owned())));
    assert_eq!(limited.causes[0].kind.slug(), "usage");
    assert_eq!(why(&limited), "held by limit: 90k tokens/min");
    assert_eq!(
        limited.advice[0].text.to_string(),
        "raise the limit of 90k tokens/min, if the service and the money allow it"
    );
    assert_eq!(limited.advice[0].change, None, "money isn't spent by advice");
    let unit = Unit::parse("tokens").expect("a unit");
    let learning = held(Some(HeldBy::Learning(unit)));
    assert_eq!(
        why(&learning),
        "held by limit: few calls at a time until responses show what they cost in tokens"
    );
    assert_eq!(advised(&learning), "advice.wait_for_costs");
    assert_eq!(why(&held(None)), "held by limit: no more calls are allowed now");
}

#[test]
fn an_automatic_rate_is_explained_by_what_was_found() {
    let explanation = explained(&held_back(r#"{"rate":"auto"}"#, found(Some(Why::Slower))));
    assert_eq!((explanation.target, explanation.causes.len()), (None, 0));
    assert_eq!(
        why(&explanation),
        "found by the autopilot: 38.2/s, 8 calls in flight; 1 % of the calls were refused; \
         95 % of the run was spent waiting: held by autopilot (calls get slower beyond 8 in flight \
         (10 % more in flight made calls 9 % slower))"
    );
    assert_eq!(advised(&explanation), "advice.ask_service");
    let at_ceiling = held_back(r#"{"rate":"auto up to 38/s"}"#, found(None));
    assert!(why(&explained(&at_ceiling)).contains("at the ceiling of 38/s"));
    let unknown = Facts {
        live: Some(Live::default()),
        ..at_ceiling
    };
    assert_eq!(why(&explained(&unknown)), "the autopilot finds the rate");
}

#[test]
fn each_reason_of_the_autopilot_has_its_text() {
    let text = |picture: Picture| held_by_autopilot(&picture).to_string();
    let found = |why| found(Some(why));
    let seconds = Duration::from_secs;
    assert_eq!(
        text(Picture {
            slope: None,
            ..found(Why::Slower)
        }),
        "calls get slower beyond 8 in flight"
    );
    assert_eq!(
        text(Picture {
            refused_above: Some(20),
            ..found(Why::RefusedInFlight)
        }),
        "refused above 20 in flight"
    );
    let scouting = |next| Scouting {
        since: seconds(12),
        next: seconds(next),
        is_told: false,
    };
    assert_eq!(
        text(Picture {
            scouting: Some(scouting(3)),
            ..found(Why::Scouting)
        }),
        "one call at a time until the service takes calls again (since 12s, next in 3s)"
    );
    assert_eq!(
        text(Picture {
            scouting: Some(scouting(0)),
            ..found(Why::Scouting)
        }),
        "one call at a time until the service takes calls again (since 12s)"
    );
    assert_eq!(
        text(Picture {
            held_for: Some(seconds(40)),
            ..found(Why::WindowUsed)
        }),
        "the service says its window is used up for another 40s"
    );
}

#[test]
fn tiny_rates_are_exact() {
    let mut facts = minute(0, r#"{"rate":"1/h"}"#);
    facts.permits.due = 16_666;
    facts.permits.lost[StallReason::WindowFull as usize] = 16_666;
    let explanation = explained(&facts);
    assert_eq!(explanation.missing(), Some(16_666));
    assert_eq!(rate_text(explanation.per_second(16_666)), "1.0/h");
    assert!(matches!(facts.tuning.rate, RateLimit::Limited(_)) && facts.tuning.window == Auto::Auto);
}

fn failing(code: &'static str, down_since: Option<i64>) -> HandlerSight {
    let (index, example) = (ItemIndex(7), "no such field".to_owned());
    let (since, at) = (WallMs(10_000), WallMs(49_000));
    let class = FailureClass::Faulty;
    let error = LastError {
        class,
        code: code.into(),
        example,
        index,
        count: 12,
        since,
        at,
    };
    let state = HandlerState {
        outage: down_since.map(|since| Outage {
            since: WallMs(since),
            probes: 4,
        }),
        next_probe_in: down_since.map(|_| Duration::from_secs(8)),
        error: Some(error),
        ..HandlerState::default()
    };
    HandlerSight::of([("n1", &state)], WallMs(50_000))
}

#[test]
fn a_handler_that_is_down_is_named_with_the_code_the_item_and_since_when() {
    let facts = Facts {
        handler: failing("CONNECT", Some(10_000)),
        ..lost(0, StallReason::HandlerDown, "{}")
    };
    let said = "handler down for 40s (CONNECT at item 7: no such field); next probe in 8s";
    let explanation = explained(&facts);
    assert_eq!(
        (why(&explanation), detail(&explanation)),
        (said.to_owned(), said.to_owned())
    );
}

#[test]
fn an_outage_that_is_over_is_told_as_over() {
    let facts = Facts {
        handler: HandlerSight::of([("n1", &HandlerState::default())], WallMs(50_000)),
        ..lost(0, StallReason::HandlerDown, "{}")
    };
    let explanation = explained(&facts);
    assert_eq!(explanation.why, [windrow_words::explain::recovered()]);
    assert_eq!(advised(&explanation), "advice.wait_for_rate");
}

#[test]
fn calls_that_fail_are_told_also_where_no_permit_is_lost() {
    let facts = Facts {
        handler: failing("HTTP_400", None),
        ..minute(30_000, "{}")
    };
    assert_eq!(
        why(&explained(&facts)),
        "on target; 12 calls failed in 39s, the last with HTTP_400 at item 7: no such field"
    );
}

#[test]
fn while_the_handler_is_down_nothing_else_is_advised() {
    let facts = |handler| {
        let mut facts = lost(20_000, StallReason::HandlerDown, "{}");
        facts.permits.late = 3_000 * MICRO;
        Facts { handler, ..facts }
    };
    let about = |handler| {
        let advice = explained(&facts(handler)).advice.into_iter();
        advice.map(|advice| advice.about).collect::<Vec<_>>()
    };
    let down = CauseKind::Stall(StallReason::HandlerDown);
    assert_eq!(about(failing("CONNECT", Some(40_000))), [down]);
    assert!(about(HandlerSight::default()).len() > 1);
}

#[test]
fn where_only_items_are_left_that_failed_each_time_it_is_advised_to_judge_them() {
    let mut handler = failing("HTTP_503", None);
    handler.state.judged_in = Some(Duration::from_secs(590));
    let facts = Facts {
        handler,
        ..lost(20_000, StallReason::RetryWait, "{}")
    };
    assert_eq!(advised(&explained(&facts)), "advice.decide_sooner");
}

#[test]
fn what_is_not_to_run_misses_nothing() {
    for status in [
        Status::Created,
        Status::Stopped,
        Status::Finished,
        Status::Cancelled,
    ] {
        let mut facts = lost(20_000, StallReason::Limit, "{}");
        facts.standing.status = status;
        let explanation = explained(&facts);
        assert_eq!(
            (explanation.target, explanation.causes.len()),
            (None, 0),
            "{status}"
        );
        assert!(explanation.waits.is_empty(), "{status}");
    }
}

#[test]
fn a_cause_below_two_hundredths_of_the_rate_gets_no_advice() {
    let mut facts = minute(29_000, "{}");
    (facts.permits.late, facts.permits.slowed) = (250 * MICRO, 750 * MICRO);
    let explanation = explained(&facts);
    let about: Vec<CauseKind> = explanation.advice.iter().map(|advice| advice.about).collect();
    assert_eq!(about, [CauseKind::Slowed], "250 of 30,000 are no matter");
}

#[test]
fn advice_for_what_doesnt_run_fits_its_reason() {
    for (status, reason, code) in [
        (Status::Recovering, None, "advice.recover_now"),
        (Status::Stopped, None, "advice.start_task"),
        (Status::Stopped, Some("handler_rejected"), "advice.fix_handler"),
    ] {
        let standing = Standing {
            status,
            reason: reason.map(str::to_owned),
            text: None,
        };
        let explanation = explained(&Facts {
            standing,
            live: None,
            ..minute(0, "{}")
        });
        assert_eq!(advised(&explanation), code);
    }
}

#[test]
fn high_rates_are_written_as_settings_are() {
    assert_eq!(
        [99_999.0, 1000.2, 999.94, 5.0].map(rate_text),
        ["99999/s", "1000/s", "999.9/s", "5.0/s"]
    );
    assert_eq!(
        [0.7, 0.25, 0.1254, 0.0, 0.999_96].map(rate_text),
        ["0.7/s", "0.25/s", "0.125/s", "0.0/s", "1.0/s"]
    );
}

#[test]
fn a_difference_that_is_rounded_to_nothing_has_no_sign() {
    let told = [
        (-0.04, 50.0),
        (-0.4, 5000.0),
        (-0.000_1, 0.5),
        (-0.000_001, 0.001),
        (-0.06, 50.0),
    ];
    assert_eq!(
        told.map(|(rate, like)| rate_like(rate, like)),
        ["0.0/s", "0/s", "0.0/s", "0.0/h", "-0.1/s"]
    );
}

#[test]
fn a_node_more_is_advised_only_where_one_can_join() {
    let mut facts = minute(0, "{}");
    facts.standing.status = Status::Queued;
    facts.standing.reason = Some("capacity".to_owned());
    let advised = |facts: &Facts| explained(facts).advice[0].text.to_string();
    assert!(advised(&facts).starts_with("add a node, "), "{}", advised(&facts));
    facts.is_alone = true;
    assert_eq!(advised(&facts), "raise the node's capacity, or stop another task");
    facts.free_rate = Some(120.0);
    assert!(
        advised(&facts).starts_with("lower the rate to 120/s") && !advised(&facts).contains("add a node"),
        "{}",
        advised(&facts)
    );
}

#[test]
fn a_task_whose_node_lacks_the_key_is_told_where_the_key_goes() {
    let mut facts = minute(0, "{}");
    facts.standing = Standing {
        status: Status::Recovering,
        reason: Some("key_missing".to_owned()),
        text: Some("node n2 can't open the secrets of push".to_owned()),
    };
    let explanation = explained(&facts);
    assert_eq!(
        why(&explanation),
        "the task is recovering (key missing): node n2 can't open the secrets of push"
    );
    assert_eq!(advised(&explanation), "advice.same_key");
}

#[test]
fn many_tasks_at_one_service_are_told_of_a_named_limit() {
    let mut facts = held_back(r#"{"rate":"auto"}"#, found(Some(Why::RefusedAboveRate)));
    facts.company = 3;
    let told = |facts: &Facts| why(&explained(facts)).contains("windrow limit create");
    assert!(!told(&facts), "four share it fairly");
    facts.company = 4;
    assert!(told(&facts));
}
