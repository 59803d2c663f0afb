//! What the pure core costs an item: the window alone, the obvious ring of booleans beside it in the same run,
//! and exchanges of `Execution` with a lane that answers at once. `cargo bench --bench window`.
//!
//! Prints nanoseconds an item, the best of five. It asserts nothing: numbers belong to the machine.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(
    unreachable_pub,
    dead_code,
    reason = "a benchmark exports nothing, and doesn't use all that is shared"
)]

#[path = "shared/smoke.rs"]
mod smoke;

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};

use windrow_core::execution::{Effects, Event, Execution, Now, Reports, Restored, Shared, Start};
use windrow_core::ids::{ItemIndex, Moment, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::{Failed, Failure, FailureClass, Outcome, RetryAdvice, Settled};
use windrow_core::items::window::Window;
use windrow_core::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, RateLimit};
use windrow_core::task::{ShardRange, Tuning};

fn items() -> u64 {
    smoke::sized(4_000_000, 20_000)
}
const ROUNDS: usize = 5;

fn main() {
    for &in_flight in smoke::sized(&[1_000u64, 10_000, 100_000][..], &[1_000][..]) {
        let inorder: Vec<u64> = (0..in_flight).collect();
        let mixed = shuffled(in_flight);
        row("window, in order, runs of 64", in_flight, || {
            words_in_runs(in_flight)
        });
        row("window, in order, one by one", in_flight, || words(&inorder));
        row("ring of bools, in order", in_flight, || bools(&inorder));
        row("window, random order", in_flight, || words(&mixed));
        row("ring of bools, random order", in_flight, || bools(&mixed));
    }
    for (name, want, fail_every) in [
        ("execution, 64 an exchange", 64, 0),
        ("execution, 64 an exchange, 1/64 fails", 64, 64),
        ("execution, 1 an exchange", 1, 0),
    ] {
        row(name, 1000, || exchanges(want, fail_every));
    }
}

fn row(name: &str, in_flight: u64, work: impl Fn() -> u64) {
    let best = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        let items = black_box(work());
        begun.elapsed().as_secs_f64() * 1e9 / items as f64
    });
    let best = best.fold(f64::INFINITY, f64::min);
    println!("{name:<40} {in_flight:>7} in flight  {best:>7.2} ns an item");
}

/// The numbers below `count`, each once, in an order that looks random and is always the same.
fn shuffled(count: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    order.sort_by_key(|n| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    order
}

fn one(index: u64) -> IndexRun {
    IndexRun::one(ItemIndex(index))
}

/// Waves of as many as are in flight, in a window twice as wide: each wave settles in the given order.
fn words(order: &[u64]) -> u64 {
    let items = items();
    let mut window = Window::new(ItemIndex(0), 2 * order.len() as u32);
    let mut first = 0;
    while first < items {
        for at in order {
            black_box(window.settle(one(first + at)).is_ok());
        }
        first = window.watermark().0;
    }
    first
}

fn words_in_runs(in_flight: u64) -> u64 {
    let items = items();
    let mut window = Window::new(ItemIndex(0), 2 * in_flight as u32);
    while window.watermark().0 < items {
        let run = IndexRun::new(window.watermark(), 64).expect("not empty");
        black_box(window.settle(run).is_ok());
    }
    window.watermark().0
}

/// What one would write first: a ring of booleans and a watermark that walks.
fn bools(order: &[u64]) -> u64 {
    let items = items();
    let mut ring = vec![false; 2 * order.len()];
    let (mut low, len) = (0u64, 2 * order.len() as u64);
    while low < items {
        let first = low;
        for at in order {
            ring[((first + at) % len) as usize] = true;
            while ring[(low % len) as usize] {
                ring[(low % len) as usize] = false;
                low += 1;
            }
        }
        black_box(&ring);
    }
    low
}

fn tuning() -> Tuning {
    let n = |number: u32| number.try_into().expect("not zero");
    Tuning {
        rate: RateLimit::Unlimited,
        burst: Burst::Span(Duration::from_millis(100)),
        concurrency: Auto::Fixed(n(1000)),
        max_concurrency: n(1000),
        window: Auto::Fixed(n(2048)),
        batch: n(1),
        batch_linger: Duration::from_millis(5),
        timeout: Duration::from_secs(30),
        max_attempts: n(5),
        backoff: Backoff {
            first: Duration::ZERO,
            max: Duration::ZERO,
            factor: 1,
            jitter_percent: 0,
        },
        on_exhausted: OnExhausted::Fail,
        error_budget: ErrorBudget {
            failed_attempts: None,
            failed: None,
        },
        error_window: Duration::from_secs(10),
        checkpoint_interval: Duration::from_secs(1),
        unsaved_max: Auto::Fixed(n(u32::MAX)),
        straggler_after: Duration::from_secs(1),
        park_after: Duration::from_secs(2),
        parked_max: 10_000,
        outage_patience: Duration::from_secs(24 * 3600),
        judge_after: Auto::Fixed(Duration::from_secs(600)),
        ordered: false,
        ..Tuning::default()
    }
}

/// A lane that keeps up to 1,000 calls out and lets as many end in each exchange as it asks for.
fn exchanges(want: u32, fail_every: u64) -> u64 {
    let items = items();
    let range = ShardRange {
        start: ItemIndex(0),
        end: ItemIndex(items),
    };
    let shard = ShardId {
        task: TaskId(1),
        no: 0,
    };
    let restored = Restored::fresh(range);
    let now = |ns: u64| Now {
        moment: Moment(ns),
        wall: WallMs(0),
    };
    let start = Start {
        shard,
        range,
        tuning: tuning(),
        restored,
        has_data: false,
        stalls: 1,
        run: RunNo(1),
        canary: None,
        shared: Shared::alone(range),
        first_contact: None,
        supply: None,
        is_service: false,
        metering: windrow_core::meter::metering::Metering::default(),
    };
    let (mut core, mut fx, mut reports) = (
        Execution::new(start, now(0)),
        Effects::default(),
        Reports::default(),
    );
    let (mut out, mut out_items, mut time) = (VecDeque::new(), 0u32, 0u64);
    while core.ending().is_none() {
        time += 1000;
        fx.clear();
        core.step(
            Event::Exchange {
                reports: &mut reports,
                want,
            },
            now(time),
            &mut fx,
        );
        out_items += fx.dispatch.iter().map(|dispatch| dispatch.run.len()).sum::<u32>();
        out.extend(fx.dispatch.drain(..));
        if let Some(draft) = (time % 4_000_000 == 0)
            .then_some(())
            .and_then(|()| draft(&mut core, now(time)))
        {
            core.step(Event::CheckpointStored(draft), now(time), &mut fx);
        }
        if out_items + want <= 1000 && !fx.dispatch.is_empty() {
            continue;
        }
        let mut ended = 0;
        while ended < want {
            let Some(dispatch) = out.pop_front() else { break };
            ended += dispatch.run.len();
            out_items -= dispatch.run.len();
            answer(&mut reports, dispatch, fail_every);
        }
    }
    items
}

fn draft(core: &mut Execution, now: Now) -> Option<u64> {
    let mut fx = Effects::default();
    core.step(Event::DraftCheckpoint, now, &mut fx);
    fx.checkpoint.map(|draft| draft.no)
}

/// The last item of a run fails when its turn has come and it was never tried before.
fn answer(reports: &mut Reports, dispatch: windrow_core::items::verdict::Dispatch, fail_every: u64) {
    let last = ItemIndex(dispatch.run.end().0 - 1);
    let fails = fail_every > 0 && dispatch.attempt.get() == 1 && last.0 % fail_every == fail_every - 1;
    let well = dispatch.run.len() - u32::from(fails);
    if let Some(run) = IndexRun::new(dispatch.run.first(), well) {
        reports.settle(Settled {
            run,
            attempt: dispatch.attempt,
            outcome: Outcome::Succeeded,
        });
    }
    if fails {
        let failure = Failure {
            code: "E_BENCH".into(),
            message: String::new(),
            output: None,
        };
        let (index, attempt) = (last, dispatch.attempt);
        let (class, advice) = (FailureClass::Answered, RetryAdvice::Retry { after: None });
        let (departed, took) = (Moment(0), Duration::from_millis(1));
        reports.failed.push(Failed {
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
