//! Handlers in this process: what they can say, and that a panic costs its own call only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windrow_core::ids::{Attempt, Epoch, ItemIndex, RunNo, ShardId, StoreId, TaskId};
use windrow_core::items::run::IndexRun;
use windrow_core::items::trace::Sampling;
use windrow_core::items::verdict::{Dispatch, Failure, HandlerCommand, Outcome, RetryAdvice};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{
    Call, CallFailure, CallItems, CallRows, Handler, HandlerFactory, ItemVerdict, LogLevel, Mode, Reply,
    RunContext,
};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_handlers::rust::{
    Batch, Cause, ItemCtx, ItemHandler, PANIC, Results, RustHandlerFactory, handler_fn,
};
use windrow_host::clock::SystemClock;

use crate::command_support::charged;

fn open(code: impl ItemHandler) -> (Arc<dyn Handler>, Arc<Gate>) {
    let gate = Arc::new(Gate::always_open());
    let run = RunContext {
        shard: ShardId {
            task: TaskId(42),
            no: 0,
        },
        task_name: None,
        task_revision: 1,
        business: "push".to_owned(),
        params: None,
        run: RunNo(1),
        epoch: Epoch(9),
        store: StoreId("k7f3q2".to_owned()),
        keys_of: None,
        is_proven: false,
        keeps_results: false,
        mode: Mode::Live,
        sampling: Sampling::default(),
        metering: Arc::default(),
        gate: gate.clone(),
    };
    let factory = RustHandlerFactory::new(code, Arc::new(SystemClock::new()));
    (
        factory
            .open(Arc::new(run))
            .expect("code in this process always opens"),
        gate,
    )
}

fn call(first: u64, len: u32) -> Call {
    let run = IndexRun::new(ItemIndex(first), len).expect("at least one item");
    Call {
        items: CallItems::One(Dispatch {
            run,
            attempt: Attempt::new(2),
        }),
        rows: CallRows::default(),
        gate_time: SystemClock::new().now(),
        timeout: Duration::from_secs(30),
    }
}

/// Does with a whole call what its function says.
struct Code<F>(F);

impl<F: Fn(&ItemCtx<'_>, Batch<'_>) -> Results + Send + Sync + 'static> ItemHandler for Code<F> {
    async fn process(&self, ctx: &ItemCtx<'_>, items: Batch<'_>) -> Results {
        (self.0)(ctx, items)
    }
}

const OK: ItemVerdict = ItemVerdict::Settled(Outcome::Succeeded);

#[tokio::test]
async fn plain_success_needs_no_words() {
    let (handler, _) = open(Code(|_: &ItemCtx<'_>, items: Batch<'_>| {
        assert_eq!(
            (items.len(), items.iter().next().map(|item| item.attempt.get())),
            (3, Some(2))
        );
        Results::AllOk
    }));
    assert_eq!(handler.process(call(0, 3)).await, Reply::AllOk);
    assert_eq!(*handler.slots().borrow(), None);
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_with_its_text() {
    let (handler, _) = open(Code(|_: &ItemCtx<'_>, items: Batch<'_>| {
        match items.iter().next() {
            Some(item) if item.index.0 == 0 => panic!("index {} is cursed", item.index.0),
            _ => Results::AllOk,
        }
    }));
    let failure = charged(&handler.process(call(0, 2)).await);
    assert_eq!(
        (failure.code.as_ref(), failure.message.as_str()),
        (PANIC, "the handler panicked: index 0 is cursed")
    );
    assert_eq!(handler.process(call(1, 2)).await, Reply::AllOk);
}

#[tokio::test]
async fn a_panic_after_an_await_and_an_odd_payload_are_caught_too() {
    let (handler, _) = open(handler_fn(|item| async move {
        tokio::task::yield_now().await;
        match item.index.0 {
            0 => std::panic::panic_any(7),
            _ => Ok::<_, Cause>(OK),
        }
    }));
    let Reply::Items(items) = handler.process(call(0, 2)).await else {
        panic!("a verdict per item was expected")
    };
    assert!(
        matches!(&items.verdicts[0].1, ItemVerdict::Failed { failure, advice: RetryAdvice::Retry { .. } } if failure.code == PANIC)
    );
    assert_eq!(items.verdicts[1], (ItemIndex(1), OK));
}

#[tokio::test]
async fn a_closure_answers_item_by_item() {
    let (handler, _) = open(handler_fn(|item| async move {
        match item.index.0 {
            1 => Err("no route"),
            2 => Ok(ItemVerdict::Failed {
                failure: Failure::new("NO_USER", item.key),
                advice: RetryAdvice::Fail,
            }),
            _ => Ok(OK),
        }
    }));
    assert_eq!(handler.process(call(5, 4)).await, Reply::AllOk);
    let Reply::Items(items) = handler.process(call(0, 4)).await else {
        panic!("a verdict per item was expected")
    };
    let kinds: Vec<(u64, Option<(&str, &str)>)> = items
        .verdicts
        .iter()
        .map(|(index, verdict)| match verdict {
            ItemVerdict::Settled(_) | ItemVerdict::SucceededWith(_) => (index.0, None),
            ItemVerdict::Unclear(failure) | ItemVerdict::Failed { failure, .. } => {
                (index.0, Some((failure.code.as_ref(), failure.message.as_str())))
            }
        })
        .collect();
    let expected = [
        (0, None),
        (1, Some(("ERROR", "no route"))),
        (2, Some(("NO_USER", "k7f3q2-t42-2"))),
        (3, None),
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn what_a_handler_says_meanwhile_comes_with_the_reply_even_when_it_panics() {
    let (handler, _) = open(Code(|ctx: &ItemCtx<'_>, _: Batch<'_>| {
        assert_eq!(
            (ctx.epoch(), ctx.idempotency_key(ItemIndex(7)).as_str()),
            (Epoch(9), "k7f3q2-t42-7")
        );
        ctx.log(Some(ItemIndex(0)), LogLevel::Warn, "odd");
        ctx.command(HandlerCommand::Stop {
            reason: "enough".to_owned(),
        });
        panic!("and now this");
    }));
    let Reply::Items(items) = handler.process(call(0, 1)).await else {
        panic!("words were expected")
    };
    assert_eq!((items.logs.len(), items.commands.len()), (1, 1));
    assert!(matches!(&items.verdicts[..], [(_, ItemVerdict::Unclear(failure))] if failure.code == PANIC));
}

#[tokio::test]
async fn an_item_without_a_result_is_tried_again() {
    let (handler, _) = open(Code(|_: &ItemCtx<'_>, _: Batch<'_>| {
        Results::Each(vec![(ItemIndex(2), OK), (ItemIndex(0), OK), (ItemIndex(99), OK)])
    }));
    let Reply::Items(items) = handler.process(call(0, 3)).await else {
        panic!("a verdict per item was expected")
    };
    assert_eq!(
        (&items.verdicts[0], &items.verdicts[2]),
        (&(ItemIndex(0), OK), &(ItemIndex(2), OK))
    );
    assert!(
        matches!(&items.verdicts[1].1, ItemVerdict::Failed { failure, .. } if failure.code == "MISSING_RESULT")
    );
}

#[tokio::test]
async fn a_handler_that_hangs_is_cut_off_and_dropped() {
    struct Hanging(Arc<AtomicUsize>);
    struct CountsDrop(Arc<AtomicUsize>);
    impl Drop for CountsDrop {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    impl ItemHandler for Hanging {
        async fn process(&self, _: &ItemCtx<'_>, _: Batch<'_>) -> Results {
            let _held = CountsDrop(self.0.clone());
            std::future::pending().await
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let (handler, _) = open(Hanging(dropped.clone()));
    let mut short = call(0, 1);
    short.timeout = Duration::from_millis(30);
    assert_eq!(charged(&handler.process(short).await).code, "TIMEOUT");
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_shut_gate_is_seen_by_the_code_and_keeps_calls_back() {
    let (handler, gate) = open(Code(|ctx: &ItemCtx<'_>, _: Batch<'_>| {
        assert!(ctx.still_owner());
        Results::AllOk
    }));
    assert_eq!(handler.process(call(0, 1)).await, Reply::AllOk);
    gate.close();
    assert_eq!(
        handler.process(call(0, 1)).await,
        Reply::Failed(Box::new(CallFailure::NotSent))
    );
}
