//! Single promises of the core, each in a short story told by hand.

use std::num::NonZeroU64;
use std::time::Duration;

use windrow_core::execution::{
    CheckpointDraft, Command, Effects, Event, Execution, Horizon, Phase, Reports, Restored, RunEnd, Shared,
    Start, Wait,
};
use windrow_core::ids::{Attempt, ItemIndex, Moment, RunNo, ShardId, TaskId, WallMs};
use windrow_core::invariants::Invariant;
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::{
    AnsweredCalls, Dispatch, Failed, FailedCall, FailingItem, Failure, FailureClass, Outcome, ParkedItem,
    RetryAdvice, Settled, SideRecord, Signal,
};
use windrow_core::settings::{Auto, Burst, FailedAttempts, FailedLimit, Rate, RateLimit};
use windrow_core::stats::stall::StallReason;
use windrow_core::task::failed_codes::FailedCodes;
use windrow_core::task::lifecycle::{CutOff, StopReason};
use windrow_core::task::{Canary, CanaryThen, ShardRange, Tuning};

use crate::plan::defaults;
use crate::world::at;

const MS: u64 = 1_000_000;

fn n(number: u32) -> std::num::NonZeroU32 {
    number.try_into().expect("not zero")
}

/// A core, its clock, and the calls that are out.
struct Story {
    core: Execution,
    now: u64,
    fx: Effects,
    reports: Reports,
    out: Vec<Dispatch>,
}

impl Story {
    fn new(total: u64, change: impl FnOnce(&mut Tuning)) -> Story {
        Story::resumed(total, Restored::default(), 1, change)
    }

    fn canary(total: u64, restored: Restored, items: u64, then: CanaryThen) -> Story {
        let items = NonZeroU64::new(items).expect("not zero");
        Story::begun(total, restored, 1, Some(Canary { items, then }), |_| {})
    }

    fn resumed(total: u64, restored: Restored, stalls: u32, change: impl FnOnce(&mut Tuning)) -> Story {
        Story::begun(total, restored, stalls, None, change)
    }

    fn begun(
        total: u64,
        restored: Restored,
        stalls: u32,
        canary: Option<Canary>,
        change: impl FnOnce(&mut Tuning),
    ) -> Story {
        let mut tuning = defaults();
        change(&mut tuning);
        let range = ShardRange {
            start: ItemIndex(0),
            end: ItemIndex(total),
        };
        let shard = ShardId {
            task: TaskId(1),
            no: 0,
        };
        let (run, shared) = (RunNo(3), Shared::alone(range));
        let start = Start {
            shard,
            range,
            tuning,
            restored,
            has_data: false,
            stalls,
            run,
            canary,
            shared,
            first_contact: None,
            supply: None,
            is_service: false,
            metering: windrow_core::meter::metering::Metering::default(),
        };
        let core = Execution::new(start, at(0));
        Story {
            core,
            now: 0,
            fx: Effects::default(),
            reports: Reports::default(),
            out: Vec::new(),
        }
    }

    /// Reports what was gathered and asks for `want` items; says how many left.
    fn exchange(&mut self, want: u32) -> u32 {
        self.fx.clear();
        let event = Event::Exchange {
            reports: &mut self.reports,
            want,
        };
        self.core.step(event, at(self.now), &mut self.fx);
        assert!(self.fx.violations.is_empty(), "{:?}", self.fx.violations);
        self.out.extend(self.fx.dispatch.iter().copied());
        self.fx.dispatch.iter().map(|dispatch| dispatch.run.len()).sum()
    }

    fn step(&mut self, event: Event<'_>) {
        self.fx.clear();
        self.core.step(event, at(self.now), &mut self.fx);
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms * MS;
    }

    fn step_with_reports(&mut self) {
        self.fx.clear();
        let event = Event::Exchange {
            reports: &mut self.reports,
            want: 0,
        };
        self.core.step(event, at(self.now), &mut self.fx);
    }

    fn draft(&mut self) -> Option<CheckpointDraft> {
        self.step(Event::DraftCheckpoint);
        self.fx.checkpoint.take()
    }

    fn save(&mut self) -> CheckpointDraft {
        let draft = self.draft().expect("something changed");
        self.step(Event::CheckpointStored(draft.no));
        draft
    }

    /// Every call that is out ends well, but for the items that `hangs` names.
    fn succeed_but(&mut self, hangs: impl Fn(u64) -> bool) {
        let out = std::mem::take(&mut self.out);
        for Dispatch { run, attempt } in out {
            for index in run.iter() {
                let run = IndexRun::one(index);
                if hangs(index.0) {
                    self.out.push(Dispatch { run, attempt });
                } else {
                    self.reports.settle(Settled {
                        run,
                        attempt,
                        outcome: Outcome::Succeeded,
                    });
                }
            }
        }
    }

    /// Reports a call of several items, sent now, that a busy handler turned away.
    fn turn_batch_away(&mut self, after: Option<Duration>) {
        self.reports.signals.push(Signal::BackPressure {
            after,
            departed: Moment(self.now),
            failure: Failure::new("HTTP_429", "not now"),
        });
    }

    fn fail_all(&mut self, advice: RetryAdvice) {
        for Dispatch { run, attempt } in std::mem::take(&mut self.out) {
            for index in run.iter() {
                let failure = Failure::new("E_NO", "no");
                let (class, departed, took) = (FailureClass::Answered, Moment(0), Duration::from_millis(7));
                self.reports.answered.add(departed);
                self.reports.failed.push(Failed {
                    index,
                    attempt,
                    failure,
                    advice,
                    class,
                    call_items: 1,
                    departed,
                    took,
                });
            }
        }
    }

    /// The first call that is out is refused; so many others were answered before.
    fn refuse(&mut self, answered_before: u32) {
        let failure = Failure::new("HTTP_401", "who are you");
        self.fail_first(
            answered_before,
            (FailureClass::Rejected, failure),
            RetryAdvice::Retry { after: None },
        );
    }

    /// Of the first item that is out no call can be made.
    fn find_unsendable(&mut self) {
        let failure = (
            FailureClass::Unsendable,
            Failure::new("TEMPLATE_VALUE", "no number"),
        );
        self.reports.unsent += 1;
        self.fail_first(0, failure, RetryAdvice::Fail);
    }

    fn fail_first(
        &mut self,
        answered_before: u32,
        (class, failure): (FailureClass, Failure),
        advice: RetryAdvice,
    ) {
        let Dispatch { run, attempt } = self.out.remove(0);
        let (index, departed) = (run.first(), Moment(self.now));
        let before = AnsweredCalls {
            calls: answered_before,
            departed,
        };
        let call = FailedCall {
            before,
            class,
            index,
            items: 1,
            departed,
            failure: failure.clone(),
            after: None,
        };
        self.reports.calls.push(call);
        let took = Duration::ZERO;
        self.reports.failed.push(Failed {
            index,
            attempt,
            failure,
            advice,
            class,
            call_items: 1,
            departed,
            took,
        });
    }

    fn return_all(&mut self) {
        self.reports.returned.append(&mut self.out);
    }

    fn end(&self) -> Option<&RunEnd> {
        self.core.ending()
    }

    fn succeeded(&self) -> u64 {
        self.core.progress(at(self.now)).counters.succeeded
    }
}

fn stopped(end: Option<&RunEnd>) -> Option<StopReason> {
    match end {
        Some(RunEnd::Stopped { reason, .. }) => Some(*reason),
        _ => None,
    }
}

#[test]
fn five_hanging_items_do_not_hold_the_others() {
    let mut story = Story::new(2000, |t| {
        (t.concurrency, t.window) = (Auto::Fixed(n(16)), Auto::Fixed(n(32)));
    });
    let hangs = |index: u64| index % 400 == 7;
    for _ in 0..20_000 {
        story.exchange(64);
        story.succeed_but(hangs);
        story.pass(1);
    }
    assert_eq!(story.succeeded(), 1995);
    assert_eq!(story.out.len(), 5, "still with the handler");
    story.succeed_but(|_| false);
    story.exchange(1);
    assert_eq!(story.end(), Some(&RunEnd::Done));
}

#[test]
fn an_item_that_always_fails_ends_failed_with_its_reason_and_nothing_else_does() {
    let mut story = Story::new(3, |t| t.max_attempts = n(4));
    let mut attempts = Vec::new();
    for _ in 0..10_000 {
        story.exchange(8);
        if let Some(at) = story.out.iter().position(|d| d.run.contains(ItemIndex(1))) {
            let run = story.out.remove(at);
            attempts.push(run.attempt.get());
            story.succeed_but(|_| false);
            for index in run.run.iter() {
                if index == ItemIndex(1) {
                    let (attempt, failure) = (run.attempt, Failure::new("E_NO", "no"));
                    let advice = RetryAdvice::Retry { after: None };
                    let (class, departed, took) = (FailureClass::Answered, Moment(0), Duration::ZERO);
                    story.reports.failed.push(Failed {
                        index,
                        attempt,
                        failure,
                        advice,
                        class,
                        call_items: 1,
                        departed,
                        took,
                    });
                } else {
                    let (run, attempt) = (IndexRun::one(index), run.attempt);
                    story.reports.settle(Settled {
                        run,
                        attempt,
                        outcome: Outcome::Succeeded,
                    });
                }
            }
        }
        story.pass(10);
    }
    assert_eq!(attempts, [1, 2, 3, 4]);
    let draft = story.save();
    assert_eq!((draft.counters.succeeded, draft.counters.failed), (2, 1));
    let [SideRecord::Failed(retrying)] = &draft.side[..] else {
        panic!("{:?}", draft.side)
    };
    assert_eq!((retrying.index, retrying.attempts), (ItemIndex(1), 4));
    assert_eq!(
        retrying.failure.as_ref().map(|failure| failure.code.as_ref()),
        Some("E_NO")
    );
    assert_eq!(draft.end, Some(RunEnd::Done));
}

#[test]
fn too_many_failed_attempts_pause_the_task_and_too_many_failed_items_stop_it() {
    let mut story = Story::new(1000, |t| {
        t.error_budget.failed_attempts = Rate::per_second(1).map(FailedAttempts::Rate);
        t.error_window = Duration::from_secs(7);
    });
    story.exchange(8);
    story.fail_all(RetryAdvice::Retry { after: None });
    story.exchange(8);
    assert!(
        matches!(
            story.end(),
            Some(RunEnd::Recovering {
                reason: "error_budget",
                ..
            })
        ),
        "8 of 7"
    );

    let mut story = Story::new(1000, |t| t.error_budget.failed = Some(FailedLimit::Count(7)));
    story.exchange(7);
    story.fail_all(RetryAdvice::Fail);
    story.exchange(1);
    assert_eq!(story.end(), None, "7 of 7");
    story.fail_all(RetryAdvice::Fail);
    story.exchange(1);
    assert_eq!(stopped(story.end()), Some(StopReason::ErrorBudget));
}

#[test]
fn a_task_of_which_some_fail_goes_on_and_one_of_which_most_fail_pauses() {
    let mut story = Story::new(100_000, |t| {
        t.error_budget.failed_attempts = Some(FailedAttempts::AUTO)
    });
    // 150 a second for a minute, of which one in ten fails.
    for _ in 0..600 {
        story.exchange(15);
        let first = story.out.first().map(|dispatch| dispatch.run.first().0);
        story.succeed_but(|index| Some(index) == first);
        story.fail_all(RetryAdvice::Fail);
        story.pass(100);
    }
    assert_eq!(story.end(), None);
    for _ in 0..100 {
        story.exchange(15);
        story.fail_all(RetryAdvice::Fail);
        story.pass(100);
    }
    story.exchange(0);
    let Some(RunEnd::Recovering { text, .. }) = story.end() else {
        panic!("{:?}", story.end());
    };
    assert!(
        text.starts_with("attempts failed faster than 10/s over 10s, and more than succeeded; "),
        "{text}"
    );
}

#[test]
fn the_last_items_that_fail_again_and_again_pause_no_task_of_which_most_succeeded() {
    for (total, pauses) in [(400, false), (100_000, true)] {
        let mut story = Story::new(total, |t| {
            t.error_budget.failed_attempts = Some(FailedAttempts::AUTO);
            (t.max_attempts, t.concurrency) = (n(1_000), Auto::Fixed(n(400)));
        });
        story.exchange(400);
        story.succeed_but(|index| index % 4 == 0);
        for _ in 0..10 {
            story.fail_all(RetryAdvice::Retry { after: None });
            story.pass(2_000);
            story.exchange(400);
        }
        assert_eq!(story.end().is_some(), pauses, "of {total}: {:?}", story.end());
    }
}

#[test]
fn three_refusals_in_a_row_stop_the_task_and_an_answer_between_them_does_not() {
    let mut story = Story::new(1000, |_| {});
    for answered_before in [0, 0, 100_000, 0] {
        story.exchange(1);
        story.refuse(answered_before);
    }
    story.exchange(1);
    assert_eq!(story.end(), None);
    story.refuse(0);
    story.exchange(1);
    assert_eq!(story.core.progress(at(story.now)).counters.failed, 0);
    assert_eq!(stopped(story.end()), Some(StopReason::HandlerRejected));
}

#[test]
fn three_calls_that_no_worker_lived_to_take_stop_the_task_whatever_people_have_decided() {
    let restored = Restored {
        is_proven: true,
        ..Restored::default()
    };
    let mut story = Story::resumed(1000, restored, 1, |t| t.judge_after = Auto::Fixed(Duration::ZERO));
    story.exchange(10);
    story.succeed_but(|_| false);
    for _ in 0..3 {
        assert_eq!(story.end(), None);
        story.exchange(1);
        let fault = (
            FailureClass::Unstarted,
            Failure::new("WORKER_CRASH", "exited with code 3"),
        );
        story.fail_first(0, fault, RetryAdvice::Retry { after: None });
    }
    story.exchange(1);
    assert_eq!(stopped(story.end()), Some(StopReason::HandlerRejected));
    let counters = story.core.progress(at(story.now)).counters;
    assert_eq!((counters.failed, counters.parked), (0, 0));
}

#[test]
fn items_of_which_no_call_can_be_made_fail_at_once_where_no_others_are_left() {
    for (total, ordered) in [(1, false), (3, false), (9, true)] {
        let mut story = Story::new(total, |t| {
            (t.ordered, t.error_budget.failed_attempts) = (ordered, None);
        });
        let mut calls = 0;
        while story.end().is_none() {
            assert!(calls < 2 * total, "{total} items are tried again and again");
            story.pass(1_000);
            calls += u64::from(story.exchange(1));
            while !story.out.is_empty() {
                story.find_unsendable();
            }
            if let Some(draft) = story.draft() {
                story.step(Event::CheckpointStored(draft.no));
            }
        }
        assert_eq!(story.core.progress(at(story.now)).counters.failed, total);
        assert_eq!(stopped(story.end()), None, "{:?}", story.end());
    }
}

#[test]
fn ten_items_of_which_no_call_can_be_made_stop_a_task_that_never_made_one_and_nothing_is_charged() {
    let mut story = Story::new(1000, |_| {});
    for _ in 0..10 {
        assert_eq!(story.end(), None);
        story.exchange(1);
        story.find_unsendable();
    }
    story.exchange(1);
    assert_eq!(story.core.progress(at(story.now)).counters.failed, 0);
    let Some(RunEnd::Stopped { text, .. }) = story.end() else {
        panic!("{:?}", story.end());
    };
    assert!(text.contains("TEMPLATE_VALUE: no number"), "{text}");
    assert_eq!(stopped(story.end()), Some(StopReason::HandlerRejected));

    let mut story = Story::new(1000, |t| t.error_budget.failed_attempts = None);
    story.exchange(1);
    story.succeed_but(|_| false);
    story.reports.answered.add(Moment(story.now));
    for _ in 0..20 {
        if let Some(draft) = story.draft() {
            story.step(Event::CheckpointStored(draft.no));
        }
        story.pass(100);
        assert_eq!(story.exchange(1), 1, "{:?} {:?}", story.end(), story.fx.wait);
        story.find_unsendable();
    }
    story.exchange(1);
    assert_eq!(story.end(), None, "others could be sent");
    assert_eq!(story.core.progress(at(story.now)).counters.failed, 20);
}

#[test]
fn a_handler_that_succeeded_before_finds_fault_with_items_and_a_new_one_with_the_request() {
    let faults = |is_proven: bool| {
        let restored = Restored {
            is_proven,
            ..Restored::default()
        };
        let mut story = Story::resumed(30, restored, 1, |t| t.error_budget.failed_attempts = None);
        for _ in 0..30 {
            if let Some(draft) = story.draft() {
                story.step(Event::CheckpointStored(draft.no));
            }
            story.pass(100);
            if story.exchange(1) == 0 {
                break;
            }
            let fault = (FailureClass::Faulty, Failure::new("HTTP_409", "no"));
            story.fail_first(0, fault, RetryAdvice::Fail);
        }
        story.exchange(1);
        let failed = story.core.progress(at(story.now)).counters.failed;
        (stopped(story.end()), failed)
    };
    assert_eq!(faults(false).0, Some(StopReason::HandlerRejected));
    assert_eq!(faults(true), (None, 30), "all of them are failures still");

    let restored = Restored {
        is_proven: true,
        ..Restored::default()
    };
    let mut story = Story::resumed(30, restored, 1, |_| {});
    for _ in 0..3 {
        story.exchange(1);
        story.refuse(0);
    }
    story.exchange(1);
    let why = stopped(story.end());
    assert_eq!(
        why,
        Some(StopReason::HandlerRejected),
        "who refuses us is no matter of items"
    );
}

#[test]
fn one_gone_stops_the_task_and_a_fence_ends_it_without_a_checkpoint() {
    let mut story = Story::new(1000, |_| {});
    story
        .reports
        .signals
        .push(Signal::Gone(Failure::new("HTTP_410", "gone")));
    story.exchange(1);
    assert_eq!(stopped(story.end()), Some(StopReason::HandlerGone));

    let mut story = Story::new(1000, |_| {});
    story.exchange(3);
    story.succeed_but(|index| index == 2);
    story.reports.signals.push(Signal::Fenced);
    story.exchange(1);
    assert_eq!(story.draft(), None);
    story.succeed_but(|_| false);
    story.exchange(1);
    assert_eq!(story.core.progress(at(0)).phase, Phase::Ended(RunEnd::Fenced));
    assert_eq!(story.draft(), None);
}

#[test]
fn a_429_pauses_everything_uncharged_and_twice_as_long_when_it_comes_again() {
    let mut story = Story::new(1000, |_| {});
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(story.exchange(8), 8);
        assert!(
            story
                .out
                .iter()
                .all(|dispatch| dispatch.attempt == Attempt::FIRST),
            "uncharged"
        );
        story.return_all();
        // Those that were out together count as one.
        (0..3).for_each(|_| story.turn_batch_away(None));
        assert_eq!(story.exchange(8), 0);
        assert_eq!(
            story.fx.wait,
            Wait::Until(at(story.now + seconds * 1000 * MS).moment)
        );
        story.pass(seconds * 1000 - 1);
        assert_eq!(story.exchange(8), 0);
        story.pass(1);
    }
    (0..64).for_each(|_| story.reports.answered.add(Moment(story.now)));
    story.turn_batch_away(None);
    story.exchange(8);
    assert_eq!(
        story.fx.wait,
        Wait::Until(at(story.now + 1000 * MS).moment),
        "answers end the row"
    );
}

#[test]
fn unsaved_completions_hold_dispatch_back_until_a_checkpoint_is_stored() {
    let mut story = Story::new(1000, |t| t.unsaved_max = Auto::Fixed(n(10)));
    assert_eq!(story.exchange(8), 8);
    story.succeed_but(|_| false);
    assert_eq!(story.exchange(8), 2, "10 less 8");
    assert!(story.fx.checkpoint_due);
    story.succeed_but(|_| false);
    assert_eq!(story.exchange(8), 0);
    assert_eq!(story.fx.wait, Wait::Completion);
    let draft = story.draft().expect("ten completions");
    assert_eq!(story.exchange(8), 0, "drafted is not stored");
    story.step(Event::CheckpointStored(draft.no));
    assert!(story.fx.wake_lanes, "nobody else wakes them");
    assert_eq!(story.exchange(8), 8);
}

#[test]
fn a_batch_that_does_not_fill_leaves_after_its_linger() {
    let mut story = Story::new(1000, |t| {
        (t.batch, t.batch_linger) = (n(10), Duration::from_millis(50));
        (t.rate, t.burst) = (
            RateLimit::Limited(Rate::per_second(20).expect("valid")),
            Burst::Items(n(30)),
        );
        t.concurrency = Auto::Fixed(n(40));
    });
    story.pass(100);
    assert_eq!(story.exchange(40), 0, "credit for two");
    let Wait::Until(then) = story.fx.wait else {
        panic!("{:?}", story.fx.wait)
    };
    assert!(then <= at(story.now + 50 * MS).moment, "{then:?}");
    story.now = then.0;
    assert!(story.exchange(40) > 0);
}

#[test]
fn a_tail_smaller_than_a_batch_does_not_wait_for_credit_for_a_whole_one() {
    let mut story = Story::new(1, |t| {
        (t.batch, t.batch_linger) = (n(10), Duration::from_millis(50));
        (t.rate, t.burst) = (
            RateLimit::Limited(Rate::per_second(1).expect("valid")),
            Burst::Items(n(30)),
        );
        t.concurrency = Auto::Fixed(n(40));
    });
    for _ in 0..4 {
        if story.exchange(40) > 0 {
            break;
        }
        let Wait::Until(then) = story.fx.wait else {
            panic!("{:?}", story.fx.wait)
        };
        story.now = then.0;
    }
    assert_eq!(story.out.len(), 1);
    assert!(story.now <= 1100 * MS, "left at {} ms", story.now / MS);
}

#[test]
fn automatic_concurrency_grows_with_how_long_calls_take() {
    let mut story = Story::new(1_000_000, |t| {
        t.concurrency = Auto::Auto;
        t.rate = RateLimit::Limited(Rate::per_second(1000).expect("valid"));
    });
    assert_eq!(story.core.progress(at(0)).concurrency, 64);
    (0..100).for_each(|_| story.reports.latencies.record(Duration::from_millis(400), 1));
    story.reports.answered.add(Moment(story.now));
    story.pass(1001);
    story.exchange(1);
    // 1,000/s × 400 ms × 1.5, the p95 up to a twentieth low.
    let concurrency = story.core.progress(at(story.now)).concurrency;
    assert!((570..=600).contains(&concurrency), "{concurrency}");
}

#[test]
fn parked_items_are_still_sent_after_the_task_became_ordered() {
    let mut story = Story::new(10, |t| t.park_after = Duration::ZERO);
    story.exchange(8);
    story.fail_all(RetryAdvice::Retry {
        after: Some(Duration::from_millis(10)),
    });
    let ordered = Tuning {
        ordered: true,
        ..defaults()
    };
    story.step(Event::Command(Command::Tune(Box::new(ordered))));
    for _ in 0..100 {
        story.exchange(1);
        story.succeed_but(|_| false);
        story.pass(5);
    }
    assert_eq!(story.end(), Some(&RunEnd::Done));
}

#[test]
fn lanes_lost_while_stopping_end_the_run_and_their_items_stay_pending() {
    let mut story = Story::new(1, |_| {});
    story.exchange(1);
    let stop = RunEnd::stopped(StopReason::Operator, String::new());
    story.step(Event::Command(Command::Stop(stop.clone())));
    assert_eq!(story.core.progress(at(0)).phase, Phase::Stopping(stop));
    story.step(Event::LanesLost);
    let progress = story.core.progress(at(0));
    let cut_off = CutOff {
        items: 1,
        runs: vec![IndexRun::one(ItemIndex(0))],
    };
    let told = RunEnd::Stopped {
        reason: StopReason::Operator,
        text: String::new(),
        cut_off,
    };
    assert_eq!(
        (progress.phase, progress.pending),
        (Phase::Ended(told.clone()), 1)
    );
    assert_eq!(story.draft().and_then(|draft| draft.end), Some(told));
}

#[test]
fn an_item_that_comes_back_without_having_been_out_is_a_violation_and_changes_nothing() {
    let mut story = Story::new(10, |_| {});
    story.exchange(4);
    story.succeed_but(|_| false);
    story.exchange(1);
    let before = story.core.progress(at(0)).counters;
    let back = Dispatch {
        run: IndexRun::one(ItemIndex(2)),
        attempt: Attempt::FIRST,
    };
    story.reports.returned.push(back);
    story.step_with_reports();
    assert_eq!(story.fx.violations, [Invariant::ReportWasInFlight]);
    assert_eq!(story.core.progress(at(0)).counters, before);
}

/// The codes of marks; an attempt that only a mark tells of isn't charged.
const MARKS: [&str; 3] = ["NODE_CRASH", "NODE_CRASH_2", "NODE_CRASH_3"];

/// A row that a run in single file left behind.
fn mark(index: u64, attempts: u32, code: &'static str) -> FailingItem {
    let failure = Some(Failure::new(code, "the node ended while this item was in flight"));
    let charged = attempts.saturating_sub(
        MARKS
            .iter()
            .position(|mark| *mark == code)
            .map_or(0, |at| at as u32 + 1),
    );
    FailingItem {
        index: ItemIndex(index),
        attempts,
        charged,
        is_unconfirmed: false,
        others_answered: 0,
        failure,
        at: WallMs(0),
        history: Vec::new(),
    }
}

fn restored(retrying: Vec<FailingItem>) -> Restored {
    Restored {
        retrying,
        high_water: ItemIndex(3),
        ..Restored::default()
    }
}

#[test]
fn in_single_file_an_item_leaves_only_after_its_mark_is_durable_and_is_not_charged_for_it() {
    let mut story = Story::resumed(3, restored(vec![]), 3, |_| {});
    assert_eq!(story.exchange(8), 0);
    assert!(story.fx.checkpoint_due);
    let draft = story.draft().expect("the mark");
    assert!(
        matches!(&draft.side[..], [SideRecord::Retrying(t)] if t.attempts == 1),
        "{:?}",
        draft.side
    );
    assert_eq!(story.exchange(8), 0, "drafted is not stored");
    story.step(Event::CheckpointStored(draft.no));
    assert_eq!(story.exchange(8), 1);
    assert_eq!(
        story.out,
        [Dispatch {
            run: IndexRun::one(ItemIndex(0)),
            attempt: Attempt::FIRST
        }]
    );
    assert_eq!(story.exchange(8), 0, "one at a time");
    story.fail_all(RetryAdvice::Retry { after: None });
    story.exchange(8);
    let draft = story.save();
    let [SideRecord::Retrying(row)] = &draft.side[..] else {
        panic!("{:?}", draft.side)
    };
    let code = row.failure.as_ref().map(|failure| failure.code.as_ref());
    assert_eq!(
        (row.attempts, code),
        (1, Some("E_NO")),
        "the answer replaced the mark"
    );
}

#[test]
fn a_stop_before_the_marked_item_left_takes_the_mark_back() {
    let mut story = Story::resumed(3, restored(vec![]), 3, |_| {});
    story.exchange(8);
    story.save();
    story.step(Event::Command(Command::Stop(RunEnd::HandedOver)));
    assert_eq!(story.exchange(8), 0);
    let last = story.save();
    assert_eq!(last.side, [SideRecord::Cleared(ItemIndex(0))]);
    assert_eq!(last.end, Some(RunEnd::HandedOver));
}

#[test]
fn three_marks_in_a_row_fail_an_item_and_three_attempts_of_its_own_do_not() {
    let own = restored(vec![mark(0, 3, "E_NO")]);
    let mut story = Story::resumed(3, own, 3, |_| {});
    story.exchange(8);
    let draft = story.save();
    assert!(
        matches!(&draft.side[..], [SideRecord::Retrying(t)] if t.attempts == 4),
        "{:?}",
        draft.side
    );

    let killer = restored(vec![mark(0, 4, "NODE_CRASH_3")]);
    let mut story = Story::resumed(3, killer, 3, |t| t.max_attempts = n(100));
    story.exchange(8);
    let draft = story.save();
    let failed = draft.side.iter().find_map(|record| match record {
        SideRecord::Failed(retrying) => Some(retrying),
        _ => None,
    });
    let code = failed
        .and_then(|t| t.failure.as_ref())
        .map(|failure| failure.code.as_ref());
    assert_eq!(code, Some("NODE_CRASH"));
    assert_eq!(draft.watermark, ItemIndex(1));
}

#[test]
fn a_parked_item_that_was_begun_as_often_as_it_may_be_is_failed_in_single_file_only() {
    let parked = || {
        let FailingItem {
            index,
            attempts,
            charged,
            failure,
            at,
            history,
            ..
        } = mark(0, 5, "NODE_CRASH");
        let item = ParkedItem {
            index,
            attempts,
            charged,
            failure,
            at,
            due_at: WallMs(0),
            history,
        };
        Restored {
            watermark: ItemIndex(1),
            parked: vec![item],
            ..restored(vec![])
        }
    };
    let mut story = Story::resumed(1, parked(), 1, |_| {});
    assert_eq!(story.exchange(8), 1, "sent as usual");
    let mut story = Story::resumed(1, parked(), 3, |_| {});
    assert_eq!(story.exchange(8), 0);
    assert_eq!(story.end(), Some(&RunEnd::Done));
    assert!(matches!(&story.save().side[..], [SideRecord::Failed(_)]));
}

#[test]
fn lanes_that_were_lost_begin_with_an_empty_bucket() {
    let mut story = Story::new(1000, |t| {
        (t.rate, t.burst) = (
            RateLimit::Limited(Rate::per_second(1000).expect("valid")),
            Burst::Items(n(30)),
        );
    });
    story.pass(100);
    assert!(story.exchange(2) > 0);
    story.step(Event::LanesLost);
    assert_eq!(story.exchange(8), 0, "what was left is forgotten");
    story.pass(2);
    assert_eq!(story.exchange(8), 2);
}

#[test]
fn after_lost_lanes_an_item_that_waits_for_its_retry_holds_nobody() {
    let mut story = Story::new(100, |_| {});
    story.exchange(8);
    story.fail_all(RetryAdvice::Retry {
        after: Some(Duration::from_millis(1500)),
    });
    assert_eq!(story.exchange(8), 8);
    story.step(Event::LanesLost);
    story.out.clear();
    assert_eq!(story.exchange(8), 8);
    let left: Vec<u64> = story
        .out
        .iter()
        .flat_map(|d| d.run.iter())
        .map(|index| index.0)
        .collect();
    assert_eq!(
        left,
        (8..16).collect::<Vec<_>>(),
        "the lost ones again, past those that wait"
    );
}

#[test]
fn a_retry_beyond_a_window_that_was_narrowed_between_two_runs_still_settles() {
    let failure = Some(Failure::new("E", "no"));
    let row = |index| FailingItem {
        failure: failure.clone(),
        ..mark(index, 1, "E")
    };
    let restored = Restored {
        high_water: ItemIndex(4000),
        retrying: vec![row(0), row(3000)],
        ..Restored::default()
    };
    let mut story = Story::resumed(10_000, restored, 1, |tuning| tuning.window = Auto::Fixed(n(8)));
    assert!(story.exchange(100) >= 2);
    let retries: Vec<_> = story
        .out
        .iter()
        .filter(|out| out.attempt == Attempt::new(2))
        .copied()
        .collect();
    assert_eq!(retries.len(), 2);
    for Dispatch { run, attempt } in retries {
        story.reports.settle(Settled {
            run,
            attempt,
            outcome: Outcome::Succeeded,
        });
    }
    story.exchange(0);
    assert_eq!(story.core.progress(at(story.now)).counters.succeeded, 2);
}

#[test]
fn nothing_leaves_before_each_item_of_the_canary_is_settled_and_then_the_run_stops() {
    let mut story = Story::canary(100, Restored::default(), 10, CanaryThen::Stop);
    assert_eq!((story.exchange(64), story.exchange(64)), (8, 0));
    story.succeed_but(|index| index == 4);
    assert_eq!(story.exchange(64), 2, "the rest of the canary");
    story.succeed_but(|index| index == 4);
    assert_eq!((story.exchange(64), story.end()), (0, None));
    assert_eq!(
        story.core.progress(at(story.now)).stall,
        Some(StallReason::Canary)
    );
    story.fail_all(RetryAdvice::Retry {
        after: Some(Duration::from_secs(9)),
    });
    assert_eq!(
        (story.exchange(64), story.end()),
        (0, None),
        "it is parked, not settled"
    );
    story.pass(9_000);
    assert_eq!(story.exchange(64), 1);
    story.fail_all(RetryAdvice::Fail);
    assert_eq!(story.exchange(64), 0);
    assert_eq!(stopped(story.end()), Some(StopReason::CanaryDone));
    let Some(RunEnd::Stopped { text, .. }) = story.end() else {
        panic!("it is stopped")
    };
    assert!(
        text.starts_with("the canary of 10 items is done: 9 succeeded, 0 skipped, 1 failed"),
        "{text}"
    );
    assert_eq!((story.save().canary_passed, story.succeeded()), (false, 9));
}

#[test]
fn a_canary_without_losses_goes_on_once_that_is_saved() {
    let mut story = Story::canary(100, Restored::default(), 5, CanaryThen::Continue);
    assert_eq!(story.exchange(64), 5);
    story.succeed_but(|_| false);
    assert_eq!(story.exchange(64), 0, "not before it is saved");
    assert!(story.fx.checkpoint_due);
    let draft = story.draft().expect("it has passed");
    assert!(draft.canary_passed);
    assert_eq!(story.exchange(64), 0, "not before it is saved");
    story.step(Event::CheckpointStored(draft.no));
    assert!(story.fx.wake_lanes);
    assert_eq!(story.exchange(64), 8);
    let again = Canary {
        items: NonZeroU64::new(5).expect("not zero"),
        then: CanaryThen::Stop,
    };
    story.step(Event::Command(Command::Canary(Some(again))));
    story.succeed_but(|_| false);
    assert_eq!(story.exchange(64), 8, "one that has passed doesn't come back");
}

#[test]
fn a_canary_with_losses_does_not_go_on_by_itself() {
    let mut story = Story::canary(100, Restored::default(), 5, CanaryThen::Continue);
    story.exchange(64);
    story.fail_all(RetryAdvice::Fail);
    story.exchange(64);
    assert_eq!(stopped(story.end()), Some(StopReason::CanaryDone));
}

#[test]
fn a_run_that_begins_in_mid_canary_goes_on_with_it_and_a_lifted_one_holds_nothing() {
    let restored = Restored {
        watermark: ItemIndex(6),
        high_water: ItemIndex(8),
        ..Restored::default()
    };
    let counters = windrow_core::items::counters::Counters {
        succeeded: 6,
        ..Default::default()
    };
    let mut story = Story::canary(100, Restored { counters, ..restored }, 10, CanaryThen::Stop);
    assert_eq!(
        (story.exchange(64), story.exchange(64)),
        (4, 0),
        "what is left of the canary"
    );
    story.step(Event::Command(Command::Canary(None)));
    assert!(story.fx.wake_lanes);
    assert_eq!(story.exchange(64), 4, "up to the concurrency");
}

#[test]
fn a_canary_of_everything_ends_as_the_task_does() {
    let mut story = Story::canary(5, Restored::default(), 9, CanaryThen::Stop);
    assert_eq!(story.exchange(64), 5);
    story.succeed_but(|_| false);
    story.exchange(64);
    assert_eq!(story.end(), Some(&RunEnd::Done));
}

#[test]
fn the_latest_failed_attempts_are_remembered_across_runs() {
    let mut story = Story::new(1, |tuning| tuning.max_attempts = n(100));
    let fail = |story: &mut Story| {
        story.pass(10_000);
        assert_eq!(story.exchange(64), 1);
        story.fail_all(RetryAdvice::Retry {
            after: Some(Duration::from_millis(1)),
        });
        story.exchange(0);
    };
    (0..10).for_each(|_| fail(&mut story));
    let SideRecord::Retrying(retrying) = story.save().side.remove(0) else {
        panic!("it waits in the window")
    };
    let attempts: Vec<u32> = retrying.history.iter().map(|note| note.attempt).collect();
    assert_eq!(attempts, (3..=10).collect::<Vec<_>>());
    let last = retrying.history.last().expect("eight");
    assert_eq!((last.duration_ms, last.code.as_ref(), last.run), (7, "E_NO", 3));
    assert_eq!(last.at_ms, at(story.now).wall.0);

    let mut story = Story::resumed(1, restored(vec![retrying.clone()]), 1, |tuning| {
        tuning.max_attempts = n(11)
    });
    fail(&mut story);
    let SideRecord::Failed(next) = story.save().side.remove(0) else {
        panic!("its last attempt")
    };
    assert_eq!(next.history[..7], retrying.history[1..]);
    assert_eq!(next.history[7].attempt, 11);
}

#[test]
fn an_item_that_succeeds_at_first_leaves_no_timeline() {
    let mut story = Story::new(20, |_| {});
    story.exchange(64);
    story.succeed_but(|_| false);
    story.exchange(64);
    assert!(story.save().side.is_empty());
}

#[test]
fn what_led_to_a_stop_is_saved_with_the_stop_and_never_before_it() {
    let mut story = Story::new(100, |_| {});
    assert_eq!(story.exchange(2), 2);
    let first = IndexRun::one(ItemIndex(0));
    story.reports.settled.push(Settled {
        run: first,
        attempt: Attempt::FIRST,
        outcome: Outcome::Succeeded,
    });
    let stop = windrow_core::items::verdict::HandlerCommand::Stop {
        reason: "enough".to_owned(),
    };
    story.reports.signals.push(Signal::Command(stop));
    assert_eq!(story.exchange(2), 0);
    story.step(Event::DraftCheckpoint);
    assert_eq!(
        story.fx.checkpoint, None,
        "a crash now repeats item 0, which says it again"
    );
    let second = IndexRun::one(ItemIndex(1));
    story.reports.settled.push(Settled {
        run: second,
        attempt: Attempt::FIRST,
        outcome: Outcome::Succeeded,
    });
    story.exchange(2);
    story.step(Event::DraftCheckpoint);
    let draft = story.fx.checkpoint.take().expect("the last one");
    assert_eq!(draft.counters.succeeded, 2);
    let is_business = |end: &RunEnd| {
        matches!(
            end,
            RunEnd::Stopped {
                reason: StopReason::Business,
                ..
            }
        )
    };
    assert!(draft.end.as_ref().is_some_and(is_business), "{:?}", draft.end);
}

/// A command to give up what waits with this code and failed by now.
fn give_up(story: &Story, code: &str) -> Command {
    let mut decided = FailedCodes::default();
    decided.decide(code, at(story.now).wall).expect("there is room");
    Command::MarkFailed(decided)
}

/// The items that a draft gives up, with their codes.
fn failed(draft: &CheckpointDraft) -> Vec<(u64, &str)> {
    let found = draft.side.iter().filter_map(|record| match record {
        SideRecord::Failed(retrying) => Some((retrying.index.0, retrying.failure.as_ref()?.code.as_ref())),
        _ => None,
    });
    found.collect()
}

/// What a run that begins now would find of a draft that was saved.
fn saved(draft: &CheckpointDraft) -> Restored {
    let mut restored = Restored {
        watermark: draft.watermark,
        high_water: draft.high_water,
        counters: draft.counters,
        above: draft.above.clone(),
        ..Restored::default()
    };
    for record in &draft.side {
        match record {
            SideRecord::Retrying(retrying) => restored.retrying.push(retrying.clone()),
            SideRecord::Parked { retrying, due_at } => {
                let FailingItem {
                    index,
                    attempts,
                    charged,
                    failure,
                    at,
                    history,
                    ..
                } = retrying.clone();
                restored.parked.push(ParkedItem {
                    index,
                    attempts,
                    charged,
                    failure,
                    at,
                    due_at: *due_at,
                    history,
                });
            }
            SideRecord::Failed(_) | SideRecord::Cleared(_) => {}
        }
    }
    restored
}

#[test]
fn what_waits_with_a_code_is_marked_and_what_is_in_flight_is_not() {
    let mut story = Story::new(5, |_| {});
    assert_eq!(story.exchange(8), 5);
    let hanging = story
        .out
        .iter()
        .flat_map(|dispatch| dispatch.run.iter())
        .last()
        .expect("five left");
    let all: Vec<Dispatch> = std::mem::take(&mut story.out);
    for Dispatch { run, attempt } in all {
        for index in run.iter() {
            story.out.push(Dispatch {
                run: IndexRun::one(index),
                attempt,
            });
        }
    }
    let kept = story.out.pop().expect("the last one");
    assert_eq!(kept.run.first(), hanging);
    story.fail_all(RetryAdvice::Retry {
        after: Some(Duration::from_secs(3600)),
    });
    assert_eq!(story.exchange(8), 0, "they wait, parked");
    let other = give_up(&story, "E_OTHER");
    story.step(Event::Command(other));
    assert_eq!(story.exchange(8), 0);
    assert_eq!(
        story.core.progress(at(story.now)).counters.failed,
        0,
        "nobody failed with that code"
    );
    let command = give_up(&story, "E_NO");
    story.step(Event::Command(command.clone()));
    story.step(Event::Command(command));
    assert_eq!(story.exchange(8), 0);
    let draft = story.save();
    assert_eq!(
        failed(&draft),
        [(0, "E_NO"), (1, "E_NO"), (2, "E_NO"), (3, "E_NO")]
    );
    assert_eq!(story.end(), None, "the call that is out is awaited");
    story.pass(1);
    story.out.push(kept);
    story.fail_all(RetryAdvice::Retry {
        after: Some(Duration::ZERO),
    });
    assert_eq!(
        story.exchange(8),
        1,
        "it failed after the decision, and is tried again"
    );
    story.succeed_but(|_| false);
    story.exchange(8);
    assert_eq!((story.end(), story.succeeded()), (Some(&RunEnd::Done), 1));
}

#[test]
fn a_run_that_begins_from_what_was_saved_before_gives_the_same_items_up() {
    for park_after in [Duration::from_secs(2), Duration::from_secs(7200)] {
        let mut story = Story::new(4, |tuning| tuning.park_after = park_after);
        assert_eq!(story.exchange(8), 4);
        story.fail_all(RetryAdvice::Retry {
            after: Some(Duration::from_secs(3600)),
        });
        assert_eq!(story.exchange(8), 0);
        let before = story.save();
        story.pass(50);
        let command = give_up(&story, "E_NO");
        story.step(Event::Command(command.clone()));
        story.exchange(8);
        assert_eq!(story.end(), Some(&RunEnd::Done));
        // Its node dies before anything more is saved.
        let mut next = Story::resumed(4, saved(&before), 1, |tuning| tuning.park_after = park_after);
        next.pass(60_000);
        next.step(Event::Command(command));
        assert_eq!(next.exchange(8), 0);
        assert_eq!(failed(&next.save()), failed(&story.save()));
        assert_eq!(next.end(), Some(&RunEnd::Done));
    }
}

#[test]
fn what_was_in_flight_when_the_lanes_were_lost_waits_again_and_is_marked() {
    let mut story = Story::new(1, |_| {});
    story.exchange(1);
    story.fail_all(RetryAdvice::Retry {
        after: Some(Duration::ZERO),
    });
    assert_eq!(story.exchange(1), 1, "its second attempt leaves at once");
    story.pass(1);
    let command = give_up(&story, "E_NO");
    story.step(Event::Command(command));
    assert_eq!(story.exchange(1), 0);
    assert_eq!(story.end(), None);
    story.out.clear();
    story.step(Event::LanesLost);
    story.exchange(0);
    assert_eq!(story.end(), Some(&RunEnd::Done));
    assert_eq!(failed(&story.save()), [(0, "E_NO")]);
}

#[test]
fn what_people_give_up_does_not_stop_the_task_by_its_error_budget() {
    let mut story = Story::new(100, |tuning| {
        tuning.error_budget.failed = Some(FailedLimit::Count(3))
    });
    assert_eq!(story.exchange(8), 8);
    story.fail_all(RetryAdvice::Retry {
        after: Some(Duration::from_secs(3600)),
    });
    story.exchange(0);
    let command = give_up(&story, "E_NO");
    story.step(Event::Command(command));
    assert_eq!(story.exchange(8), 8, "it goes on");
    assert_eq!(story.core.progress(at(story.now)).counters.failed, 8);
    story.fail_all(RetryAdvice::Fail);
    story.exchange(8);
    assert_eq!(
        stopped(story.end()),
        Some(StopReason::ErrorBudget),
        "the next one stops it"
    );
}

fn horizon(may_leave: u64, may_have_left: u64) -> Restored {
    let horizon = Horizon {
        may_leave: ItemIndex(may_leave),
        may_have_left: ItemIndex(may_have_left),
    };
    Restored {
        horizon,
        ..Restored::default()
    }
}

#[test]
fn nothing_leaves_further_than_the_store_was_told() {
    let mut story = Story::resumed(5000, horizon(100, 0), 1, |tuning| {
        (tuning.concurrency, tuning.window) = (Auto::Fixed(n(2000)), Auto::Fixed(n(4000)));
    });
    assert_eq!(story.exchange(49), 49);
    assert!(!story.fx.checkpoint_due);
    assert_eq!(story.exchange(1), 1, "half of it has left");
    assert!(
        story.fx.checkpoint_due,
        "nothing is settled, and yet a checkpoint is due"
    );
    assert_eq!(story.exchange(1000), 50);
    assert_eq!(story.exchange(1000), 0);
    assert_eq!(story.fx.wait, Wait::Completion);
    let draft = story.draft().expect("the horizon is due");
    assert_eq!(
        (draft.high_water, draft.horizon),
        (ItemIndex(100), ItemIndex(2100)),
        "as many as may be in flight"
    );
    assert_eq!(story.exchange(1000), 0, "the store doesn't know it yet");
    story.step(Event::CheckpointStored(draft.no));
    assert!(story.fx.wake_lanes);
    assert_eq!(story.exchange(1000), 1000);
    story.succeed_but(|_| false);
    story.exchange(0);
    story.step(Event::Command(Command::Stop(RunEnd::HandedOver)));
    story.exchange(0);
    let draft = story.save();
    assert_eq!(
        (draft.high_water, draft.horizon),
        (ItemIndex(1100), ItemIndex(1100)),
        "nothing more leaves"
    );
}

#[test]
fn the_reach_follows_the_speed_and_the_pace() {
    let mut story = Story::resumed(10_000_000, horizon(100, 0), 1, |_| {});
    let (mut high, mut left) = (0, 0);
    for _ in 0..5 {
        while !story.fx.checkpoint_due && story.exchange(64) > 0 {
            story.succeed_but(|_| false);
        }
        let draft = story.save();
        (high, left) = (draft.high_water.0, draft.high_water.0 - high);
        assert_eq!(
            draft.horizon.0 - high,
            (16 * left).max(100).min(10_000_000 - high)
        );
    }
    assert!(left > 10_000, "it grows with each checkpoint: {left}");
    let mut story = Story::resumed(1_000_000, horizon(100, 0), 1, |t| {
        t.rate = RateLimit::Limited(Rate::per_second(5000).expect("not zero"));
    });
    story.pass(10);
    story.exchange(10);
    story.succeed_but(|_| false);
    story.exchange(0);
    let draft = story.save();
    assert_eq!(
        draft.horizon.0 - draft.high_water.0,
        75_000,
        "fifteen seconds of the rate"
    );
}

#[test]
fn an_early_finish_leaves_out_nothing_that_a_dead_owner_may_have_called() {
    let restored = Restored {
        high_water: ItemIndex(5),
        ..horizon(105, 40)
    };
    let mut story = Story::resumed(100, restored, 1, |_| {});
    story.step(Event::Command(Command::Finish(ItemIndex(10))));
    while story.exchange(16) > 0 {
        story.succeed_but(|_| false);
    }
    assert_eq!((story.succeeded(), story.end()), (40, Some(&RunEnd::Done)));
    assert_eq!(story.core.progress(at(story.now)).counters.excluded, 60);
}

#[test]
fn a_lost_draft_is_asked_for_again_before_the_store_knows_how_far_items_may_leave() {
    let mut story = Story::resumed(5000, horizon(100, 0), 1, |tuning| {
        tuning.concurrency = Auto::Fixed(n(64))
    });
    assert_eq!(story.exchange(60), 60);
    assert!(story.fx.checkpoint_due && story.draft().is_some());
    story.step(Event::LanesLost);
    story.out.clear();
    assert_eq!(story.exchange(30), 30);
    assert!(story.fx.checkpoint_due, "nobody knows whether the draft arrived");
}

/// Exchanges, two seconds after each other: every call that is out ends well, but those for `busy` items are turned away.
/// How often those were called.
fn turn_away(story: &mut Story, exchanges: u32, busy: impl Fn(u64) -> bool) -> u32 {
    let mut turned_away = 0;
    for _ in 0..exchanges {
        story.exchange(8);
        let departed = Moment(story.now);
        for dispatch in story.out.clone() {
            for index in dispatch.run.iter().filter(|index| busy(index.0)) {
                turned_away += 1;
                story.reports.turned_away.push(Failed {
                    index,
                    attempt: dispatch.attempt,
                    failure: Failure::new("HTTP_429", "not this one"),
                    advice: RetryAdvice::Retry { after: None },
                    class: FailureClass::Answered,
                    call_items: 1,
                    departed,
                    took: Duration::from_millis(1),
                });
            }
        }
        for dispatch in &story.out {
            for _ in dispatch.run.iter().filter(|index| !busy(index.0)) {
                story.reports.answered.add(departed);
            }
        }
        story.succeed_but(&busy);
        story.out.clear();
        story.pass(2_000);
    }
    turned_away
}

fn of_three_attempts(tuning: &mut Tuning) {
    (tuning.concurrency, tuning.max_attempts) = (Auto::Fixed(n(8)), n(3));
}

#[test]
fn an_item_that_is_turned_away_while_others_are_answered_uses_its_attempts_and_is_marked() {
    let mut story = Story::new(1000, of_three_attempts);
    let turned_away = turn_away(&mut story, 120, |index| index == 2);
    let progress = story.core.progress(at(story.now));
    assert_eq!(
        (progress.counters.failed, turned_away),
        (1, 8),
        "five turns, three attempts"
    );
    let draft = story.draft().expect("an item was given up");
    let failed = draft.side.iter().find_map(|record| match record {
        SideRecord::Failed(retrying) => Some(retrying),
        _ => None,
    });
    let failed = failed.expect("a record");
    assert_eq!((failed.index, failed.charged), (ItemIndex(2), 3));
    assert_eq!(
        failed.failure.as_ref().map(|failure| &*failure.code),
        Some("HTTP_429")
    );
}

#[test]
fn a_handler_that_turns_everything_away_charges_nobody_however_long() {
    let mut story = Story::new(1000, of_three_attempts);
    turn_away(&mut story, 10, |_| false);
    story.exchange(0);
    let before = story.core.progress(at(story.now)).counters.settled();
    assert!(
        turn_away(&mut story, 10_000, |_| true) > 1000,
        "20,000 s, and at most 60 s of pause"
    );
    let progress = story.core.progress(at(story.now));
    assert_eq!(
        (progress.counters.settled(), progress.counters.failed),
        (before, 0)
    );
}

#[test]
fn items_that_are_left_over_because_they_are_always_turned_away_end_too() {
    let mut story = Story::new(2000, of_three_attempts);
    turn_away(&mut story, 1000, |index| {
        index == 7 || index == 8 || index == 1000
    });
    let progress = story.core.progress(at(story.now));
    assert_eq!((progress.counters.succeeded, progress.counters.failed), (1997, 3));
}

#[test]
fn the_only_item_of_a_task_waits_for_as_long_as_it_is_turned_away() {
    let mut story = Story::new(1, of_three_attempts);
    assert!(turn_away(&mut story, 1000, |_| true) > 10);
    assert_eq!(story.core.progress(at(story.now)).counters.failed, 0);
    let draft = story.save();
    let waits = |record: &SideRecord| match record {
        SideRecord::Retrying(retrying) => retrying.failure.as_ref().map(|failure| failure.code.to_string()),
        _ => None,
    };
    let row = draft.side.iter().find_map(waits);
    assert_eq!(row.as_deref(), Some("HTTP_429"), "people see what it waits for");
}

#[test]
fn an_item_that_never_reached_the_handler_is_a_probe_before_long_however_many_others_failed() {
    let mut story = Story::new(12, |t| t.concurrency = Auto::Fixed(n(12)));
    (0..12).for_each(|_| assert_eq!(story.exchange(1), 1));
    let again = RetryAdvice::Retry { after: None };
    let unclear = || (FailureClass::Unclear, Failure::new("HTTP_500", "no"));
    (0..7).for_each(|_| story.fail_first(0, unclear(), again));
    for _ in 7..12 {
        let nobody = (FailureClass::Unreachable, Failure::new("CONNECT", "nobody"));
        story.fail_first(0, nobody, again);
    }
    assert_eq!(story.exchange(1), 0, "an outage");
    let mut probed = Vec::new();
    for _ in 0..2 {
        story.pass(40_000);
        assert_eq!(story.exchange(1), 1);
        probed.push(story.out[0].run.first().0);
        story.fail_first(0, unclear(), again);
    }
    assert!(probed[0] < 7 && probed[1] >= 7, "{probed:?}");
}

#[test]
fn a_handler_that_names_no_time_or_a_past_one_is_not_called_again_at_once() {
    let mut story = Story::new(1000, |_| {});
    for seconds in [1, 2, 4, 8] {
        assert_eq!(story.exchange(8), 8);
        story.return_all();
        let after = Some(Duration::ZERO);
        (0..3).for_each(|_| story.turn_batch_away(after));
        assert_eq!(story.exchange(8), 0);
        story.pass(seconds * 1000 - 1);
        assert_eq!(story.exchange(8), 0);
        story.pass(1);
    }
    story.exchange(8);
    story.return_all();
    let after = Some(Duration::from_secs(100));
    story.turn_batch_away(after);
    assert_eq!(story.exchange(8), 0);
    story.pass(99_999);
    assert_eq!(story.exchange(8), 0, "a longer time is obeyed");
}

/// Exchanges in which one call of a hundred is turned away for half a minute; the times at which all calls rested.
fn turn_one_in_a_hundred_away(story: &mut Story, exchanges: u32, last: &mut u64) -> u32 {
    let mut rests = 0;
    for _ in 0..exchanges {
        rests += u32::from(story.exchange(8) == 0);
        let departed = Moment(story.now);
        for Dispatch { run, attempt } in std::mem::take(&mut story.out) {
            for index in run.iter() {
                *last += 1;
                if *last % 100 != 99 {
                    story.reports.answered.add(departed);
                    let (run, outcome) = (IndexRun::one(index), Outcome::Succeeded);
                    story.reports.settle(Settled {
                        run,
                        attempt,
                        outcome,
                    });
                    continue;
                }
                story.reports.turned_away.push(Failed {
                    index,
                    attempt,
                    failure: Failure::new("HTTP_429", "not this one"),
                    advice: RetryAdvice::Retry {
                        after: Some(Duration::from_secs(30)),
                    },
                    class: FailureClass::Answered,
                    call_items: 1,
                    departed,
                    took: Duration::from_millis(1),
                });
            }
        }
        story.pass(100);
    }
    rests
}

#[test]
fn one_call_of_a_hundred_that_is_turned_away_holds_nobody_else_up() {
    let mut story = Story::new(4000, |tuning| tuning.concurrency = Auto::Fixed(n(8)));
    let mut calls = 0;
    assert_eq!(turn_one_in_a_hundred_away(&mut story, 490, &mut calls), 0);
    // Those that were turned away are left, and those of them that are turned away again.
    turn_one_in_a_hundred_away(&mut story, 1500, &mut calls);
    let counters = story.core.progress(at(story.now)).counters;
    assert_eq!((counters.succeeded, counters.failed), (4000, 0));
    assert!(calls < 4100, "{calls}");
}

/// Exchanges of one call, a second after each other, all of which fail like this; the items that were called.
fn fail_alike(story: &mut Story, exchanges: u32, class: FailureClass, after: Option<Duration>) -> Vec<u64> {
    let mut called = Vec::new();
    for _ in 0..exchanges {
        if story.exchange(1) == 1 {
            called.push(story.out[0].run.first().0);
            let failure = Failure::new("E_7", "nobody is there");
            story.fail_first(0, (class, failure), RetryAdvice::Retry { after });
        }
        story.pass(1000);
    }
    story.exchange(0);
    called
}

#[test]
fn a_503_with_a_time_is_seen_as_an_outage_at_a_low_rate_and_in_order() {
    let after = Some(Duration::from_secs(1));
    for ordered in [false, true] {
        let mut story = Story::new(1000, |tuning| {
            (tuning.concurrency, tuning.ordered) = (Auto::Fixed(n(1)), ordered);
        });
        let called = fail_alike(&mut story, 60, FailureClass::Unavailable, after);
        let outage = story.core.handler(at(story.now)).outage;
        assert!(outage.is_some(), "{ordered}: {called:?}");
        assert!(called.len() < 20, "{ordered}: {called:?}");
    }
}

#[test]
fn programs_that_all_end_with_one_code_after_a_success_are_an_outage_that_costs_nobody() {
    let mut story = Story::new(200, |tuning| tuning.concurrency = Auto::Fixed(n(4)));
    for _ in 0..20 {
        story.exchange(4);
        story.succeed_but(|_| false);
        story.reports.answered.add(Moment(story.now));
        story.pass(1000);
    }
    let before = story.succeeded();
    fail_alike(&mut story, 600, FailureClass::Exited, None);
    assert!(story.core.handler(at(story.now)).outage.is_some());
    assert_eq!(story.core.progress(at(story.now)).counters.failed, 0);
    for _ in 0..400 {
        story.exchange(4);
        story.reports.answered.add(Moment(story.now));
        story.succeed_but(|_| false);
        story.pass(1000);
    }
    story.exchange(0);
    assert!(before < 200);
    assert_eq!(story.succeeded(), 200);
}

#[test]
fn programs_that_never_succeeded_and_those_that_fail_beside_others_are_charged() {
    let mut story = Story::new(20, of_three_attempts);
    fail_alike(&mut story, 300, FailureClass::Exited, None);
    assert_eq!(story.core.progress(at(story.now)).counters.failed, 20);
}
