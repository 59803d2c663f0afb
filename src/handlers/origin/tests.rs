use std::time::Duration;

use bytes::Bytes;

use super::*;
use windrow_core::ids::{Attempt, Epoch, ItemCount, Moment, RunNo, ShardId, StoreId};
use windrow_core::items::trace::Sampling;
use windrow_core::items::verdict::RetryAdvice;
use windrow_core::pilot::headers::{Limits, Told as Window, Unit};
use windrow_engine::ports::handling::handler::{LogLevel, Mode};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_engine::ports::sources::source::RowChunk;

/// Index, attempt, data and key of an item.
type SeenItem = (u64, u32, Option<String>, String);

/// Remembers what it was called with and answers from a script.
struct Scripted {
    seen: Mutex<Vec<SeenItem>>,
    key_of: Mutex<Option<Arc<RunContext>>>,
    answer: Box<dyn Fn(&Call) -> Reply + Send + Sync>,
}

struct ScriptedFactory(Arc<Scripted>);
struct ScriptedHandler(Arc<Scripted>);

impl HandlerFactory for ScriptedFactory {
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        *self.0.key_of.lock().expect("no panic") = Some(context);
        Ok(Arc::new(ScriptedHandler(self.0.clone())))
    }

    fn service(&self) -> Option<String> {
        None
    }
}

impl Handler for ScriptedHandler {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        let context = self
            .0
            .key_of
            .lock()
            .expect("no panic")
            .clone()
            .expect("it was opened");
        let mut seen = self.0.seen.lock().expect("no panic");
        for (index, attempt) in call.items.iter() {
            let data = call.rows.data(index).map(str::to_owned);
            seen.push((index.0, attempt.get(), data, context.item_key(index)));
        }
        let reply = (self.0.answer)(&call);
        Box::pin(std::future::ready(reply))
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        watch::channel(None).1
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn context() -> RunContext {
    RunContext {
        shard: ShardId {
            task: TaskId(9),
            no: 0,
        },
        task_name: None,
        task_revision: 1,
        business: "mail".to_owned(),
        params: None,
        run: RunNo(1),
        epoch: Epoch(1),
        store: StoreId("abc123".to_owned()),
        keys_of: None,
        is_proven: false,
        keeps_results: false,
        mode: Mode::Live,
        sampling: Sampling::default(),
        metering: Arc::default(),
        gate: Arc::new(Gate::always_open()),
    }
}

fn opened(
    keys_of: Option<TaskId>,
    answer: impl Fn(&Call) -> Reply + Send + Sync + 'static,
) -> (Arc<Scripted>, Arc<dyn Handler>) {
    let scripted = Arc::new(Scripted {
        seen: Mutex::default(),
        key_of: Mutex::default(),
        answer: Box::new(answer),
    });
    let factory = OriginView::new(keys_of).wrap(Arc::new(ScriptedFactory(scripted.clone())));
    let handler = factory.open(Arc::new(context())).expect("it opens");
    (scripted, handler)
}

/// Positions 10, 11, 12 are the origin's 700, 5, 6.
fn call() -> Call {
    let chunk = RowChunk::new(ItemIndex(10), Bytes::from_static(br#""a""b""c""#), vec![3, 6, 9]);
    let chunk = chunk.of_origins(vec![700, 5, 6]);
    let run = IndexRun::new(ItemIndex(10), 3).expect("not empty");
    Call {
        items: CallItems::One(Dispatch {
            run,
            attempt: Attempt::new(2),
        }),
        rows: CallRows {
            chunks: vec![Arc::new(chunk)],
            positions: None,
        },
        gate_time: Moment(0),
        timeout: Duration::from_secs(1),
    }
}

fn line(index: u64) -> LogLine {
    LogLine {
        index: Some(ItemIndex(index)),
        level: LogLevel::Info,
        message: "seen".to_owned(),
        extra: None,
    }
}

#[tokio::test]
async fn the_handler_sees_indexes_and_keys_of_the_first_task_and_the_run_its_own_positions() {
    let (scripted, handler) = opened(Some(TaskId(4)), |call| {
        let failed = ItemVerdict::Failed {
            failure: Failure::new("BUSY", "later"),
            advice: RetryAdvice::Fail,
        };
        let ok = ItemVerdict::Settled(Outcome::Succeeded);
        let verdicts = call.items.iter().map(|(index, _)| {
            (
                index,
                if index == ItemIndex(5) {
                    failed.clone()
                } else {
                    ok.clone()
                },
            )
        });
        let logs = vec![line(6), line(999)];
        Reply::Items(Box::new(ItemReplies {
            verdicts: verdicts.collect(),
            commands: Vec::new(),
            logs,
        }))
    });
    let Reply::Items(replies) = handler.process(call()).await else {
        panic!("verdicts were given")
    };
    let seen = scripted.seen.lock().expect("no panic").clone();
    let item = |index: u64, data: &str| (index, 2, Some(data.to_owned()), format!("abc123-t4-{index}"));
    assert_eq!(seen, [item(700, "\"a\""), item(5, "\"b\""), item(6, "\"c\"")]);
    let failed: Vec<u64> = replies
        .verdicts
        .iter()
        .filter(|(_, verdict)| !matches!(verdict, ItemVerdict::Settled(_)))
        .map(|(index, _)| index.0)
        .collect();
    assert_eq!((failed, replies.verdicts.len()), (vec![11], 3));
    assert_eq!(replies.logs[0].index, Some(ItemIndex(12)));
    assert_eq!(
        (replies.logs[1].index, replies.logs[1].message.contains("999")),
        (None, true)
    );
}

#[tokio::test]
async fn new_keys_are_those_of_the_new_task_over_the_old_indexes() {
    let (scripted, handler) = opened(None, |_| Reply::AllOk);
    assert_eq!(handler.process(call()).await, Reply::AllOk);
    assert_eq!(scripted.seen.lock().expect("no panic")[1].3, "abc123-t9-5");
}

#[tokio::test]
async fn after_finish_items_at_or_above_its_total_are_skipped_without_a_call() {
    let (scripted, handler) = opened(None, |call| {
        let ok = |index| (index, ItemVerdict::Settled(Outcome::Succeeded));
        let verdicts = call.items.iter().map(|(index, _)| ok(index)).collect();
        let commands = vec![HandlerCommand::Finish {
            total: Some(ItemCount(6)),
        }];
        Reply::Items(Box::new(ItemReplies {
            verdicts,
            commands,
            logs: Vec::new(),
        }))
    });
    let Reply::Items(first) = handler.process(call()).await else {
        panic!("verdicts were given")
    };
    assert!(first.commands.is_empty(), "positions know no such end");
    scripted.seen.lock().expect("no panic").clear();
    let Reply::Items(replies) = handler.process(call()).await else {
        panic!("verdicts were given")
    };
    let seen: Vec<u64> = scripted
        .seen
        .lock()
        .expect("no panic")
        .iter()
        .map(|item| item.0)
        .collect();
    assert_eq!(seen, [5]);
    let skipped = ItemVerdict::Settled(Outcome::Skipped);
    let ok = ItemVerdict::Settled(Outcome::Succeeded);
    let at = |index| ItemIndex(index);
    assert_eq!(
        replies.verdicts,
        [(at(10), skipped.clone()), (at(11), ok), (at(12), skipped)]
    );
}

#[tokio::test]
async fn what_is_skipped_is_not_charged_for_a_failed_call_of_the_others() {
    let finish = std::sync::atomic::AtomicBool::new(true);
    let (_, handler) = opened(None, move |call| {
        if !finish.swap(false, Ordering::Relaxed) {
            return Reply::failed(FailureClass::Unclear, Failure::new("TIMEOUT", "late"));
        }
        let verdicts = call
            .items
            .iter()
            .map(|(index, _)| (index, ItemVerdict::Settled(Outcome::Succeeded)));
        let commands = vec![HandlerCommand::Finish {
            total: Some(ItemCount(6)),
        }];
        Reply::Items(Box::new(ItemReplies {
            verdicts: verdicts.collect(),
            commands,
            logs: Vec::new(),
        }))
    });
    handler.process(call()).await;
    let Reply::Items(replies) = handler.process(call()).await else {
        panic!("verdicts were given")
    };
    let is_failed = |verdict: &ItemVerdict| !matches!(verdict, ItemVerdict::Settled(_));
    let failed: Vec<bool> = replies
        .verdicts
        .iter()
        .map(|(_, verdict)| is_failed(verdict))
        .collect();
    assert_eq!(failed, [false, true, false]);
}

#[tokio::test]
async fn limits_that_the_handler_describes_pass_through() {
    let limits = Limits {
        windows: vec![Window {
            unit: Unit::Calls,
            left: 3,
            reset: None,
        }],
        ..Limits::default()
    };
    let own = limits.clone();
    let (_, handler) = opened(None, move |call| {
        let ok = |(index, _)| (index, ItemVerdict::Settled(Outcome::Succeeded));
        let replies = ItemReplies {
            verdicts: call.items.iter().map(ok).collect(),
            commands: vec![HandlerCommand::Finish {
                total: Some(ItemCount(100)),
            }],
            ..ItemReplies::default()
        };
        Reply::Items(Box::new(replies)).with_limits(own.clone())
    });
    // The second time, the item at 700 is beyond the end that the first reply named.
    for first in [Outcome::Succeeded, Outcome::Skipped] {
        let reply = handler.process(call()).await;
        let Reply::Told(told) = reply else {
            panic!("no limits: {reply:?}")
        };
        assert_eq!(told.limits, limits);
        let Reply::Items(replies) = told.reply else {
            panic!("no verdicts: {:?}", told.reply)
        };
        let settled = replies
            .verdicts
            .into_iter()
            .map(|(index, verdict)| (index.0, verdict));
        let expected = [(10, first), (11, Outcome::Succeeded), (12, Outcome::Succeeded)];
        let expected = expected.map(|(index, outcome)| (index, ItemVerdict::Settled(outcome)));
        assert!(settled.eq(expected));
    }
}
