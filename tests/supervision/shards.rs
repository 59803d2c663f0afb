//! Tasks of several shards, on one node and on two: together they are one task, in its items, its rate and its end.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::ids::{ItemCount, ItemIndex, TaskId};
use windrow_core::items::verdict::{Failure, FailureClass, HandlerCommand, Outcome};
use windrow_core::settings::{Auto, FailedLimit, Rate, RateLimit};
use windrow_core::shards::Share;
use windrow_core::task::lifecycle::{ShardState, Status, StopReason, TaskResult};
use windrow_core::task::spec::Shards;
use windrow_core::task::{Canary, CanaryThen};
use windrow_engine::ports::handling::handler::{CallFailure, ItemReplies, ItemVerdict, Reply};
use windrow_engine::ports::tasks::store::{NewTask, TaskCommand, TaskStore, TaskView};

use super::{ok, slow};
use crate::patience::holds_within;
use crate::scripted::Act;
use crate::world::World;

fn of(shards: u32) -> Auto<NonZeroU32> {
    Auto::Fixed(NonZeroU32::new(shards).expect("not zero"))
}

fn rate(per_second: u64) -> RateLimit {
    RateLimit::Limited(Rate::per_second(per_second).expect("valid"))
}

/// Makes and starts a task of several shards.
async fn started(world: &World, total: u64, shards: u32, change: impl FnOnce(&mut NewTask)) -> TaskId {
    let id = world
        .made(total, |new| {
            new.spec.shards = Shards(of(shards));
            change(new);
        })
        .await;
    world.command(id, TaskCommand::Start).await;
    id
}

/// When which item left.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<(Instant, ItemIndex)>>>);

impl Diary {
    fn note(&self, index: ItemIndex) {
        self.0
            .lock()
            .expect("no panic while held")
            .push((Instant::now(), index));
    }

    fn entries(&self) -> Vec<(Instant, ItemIndex)> {
        self.0.lock().expect("no panic while held").clone()
    }

    /// In no interval more left than `rates` (each from its moment on) and a burst allow.
    fn assert_within(&self, rates: &[(Instant, f64)], burst: f64) {
        let entries = self.entries();
        let allowed = |from: Instant, to: Instant| -> f64 {
            let ends = rates.iter().skip(1).map(|(at, _)| *at).chain([to]);
            let span = |(at, _): &(Instant, f64), end: Instant| {
                end.min(to)
                    .saturating_duration_since((*at).max(from))
                    .as_secs_f64()
            };
            rates
                .iter()
                .zip(ends)
                .map(|(piece, end)| span(piece, end) * piece.1)
                .sum()
        };
        for (at, (from, _)) in entries.iter().enumerate() {
            for (upto, (to, _)) in entries.iter().enumerate().skip(at) {
                let (left, most) = ((upto - at + 1) as f64, allowed(*from, *to) + burst + 1e-6);
                assert!(left <= most, "{left} left in {:?}, at most {most}", *to - *from);
            }
        }
    }
}

/// Waits until the task has one run here, and that run this rate.
async fn until_paced(world: &World, task: TaskId, per_second: u64) {
    let whole = Some(Rate::per_second(per_second).expect("valid"));
    let rates = || {
        world
            .node()
            .progress(task)
            .into_iter()
            .map(|(_, run)| run.rate)
            .collect::<Vec<_>>()
    };
    assert!(
        holds_within(Duration::from_secs(10), || rates() == [whole]).await,
        "{:?}",
        rates()
    );
}

fn reply(index: ItemIndex, command: Option<HandlerCommand>) -> Act {
    Act::Reply(Reply::Items(Box::new(ItemReplies {
        verdicts: vec![(index, ItemVerdict::Settled(Outcome::Succeeded))],
        commands: command.into_iter().collect(),
        logs: Vec::new(),
    })))
}

fn failed() -> Act {
    Act::Reply(Reply::failed(FailureClass::Answered, Failure::new("DOWN", "no")))
}

#[tokio::test(start_paused = true)]
async fn shards_deliver_every_item_once_and_the_task_finishes_once() {
    let world = World::start("shards", |_, _| slow()).await;
    let task = started(&world, 1_003, 4, |_| {}).await;
    let view = world.view(task).await;
    let ranges: Vec<(u64, u64)> = view
        .shards
        .iter()
        .map(|shard| (shard.first.0, shard.end.0))
        .collect();
    assert_eq!(ranges, [(0, 251), (251, 502), (502, 753), (753, 1003)]);
    assert!(
        view.shards
            .iter()
            .all(|shard| shard.part() == Some(Share::one_of(4))),
        "{:?}",
        view.shards
    );
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.result, Some(TaskResult::Succeeded));
    assert_eq!(view.counters.succeeded, 1_003);
    assert!(
        view.shards
            .iter()
            .all(|shard| shard.state == ShardState::Done && shard.part().is_none())
    );
    let deliveries = world.handler.deliveries();
    assert_eq!(deliveries.len(), 1_003);
    assert!(deliveries.values().all(|count| *count == 1));
    let audit = world.store.audit(task).await.expect("memory");
    assert_eq!(
        audit
            .iter()
            .filter(|entry| entry.action == "task.finished")
            .count(),
        1
    );
    world.assert_nothing_leaks().await;
}

#[tokio::test(start_paused = true)]
async fn more_shards_than_items_and_ordered_tasks_are_cut_as_far_as_there_is_something_to_cut() {
    let world = World::start("shards-few", |_, _| ok()).await;
    let few = started(&world, 3, 8, |_| {}).await;
    assert_eq!(world.view(few).await.shards.len(), 3);
    let ordered = started(&world, 100, 8, |new| new.tuning.ordered = true).await;
    assert_eq!(world.view(ordered).await.shards.len(), 1);
    let none = started(&world, 0, 8, |_| {}).await;
    for task in [few, ordered, none] {
        world.until(task, Status::Finished).await;
    }
}

#[tokio::test(start_paused = true)]
async fn shards_keep_the_rate_together_while_some_end_one_crashes_and_it_changes() {
    let diary = Diary::default();
    let notes = diary.clone();
    let world = World::start("shards-rate", move |index, _| {
        notes.note(index);
        // The first third answers at once, the last is slow and ends long after the others.
        if index.0 < 400 {
            ok()
        } else {
            Act::Slow(Duration::from_millis(400))
        }
    })
    .await;
    let begun = Instant::now();
    let task = started(&world, 600, 3, |new| {
        new.tuning.rate = rate(100);
        new.tuning.concurrency = of(30);
    })
    .await;
    world
        .until_that(task, "in full flight", |view| view.counters.succeeded >= 150)
        .await;
    world.kill("t1.1").await;
    let view = world
        .until_that(task, "partly done", |view| {
            view.shards[0].state == ShardState::Done
        })
        .await;
    let open: Vec<_> = view.shards.iter().filter_map(|shard| shard.part()).collect();
    assert!(
        open.iter().all(|share| share.parts() as usize == open.len()),
        "{:?}",
        view.shards
    );
    let mut tuning = view.tuning.clone();
    tuning.rate = rate(200);
    let raised = Instant::now();
    world.command(task, TaskCommand::Tune(Box::new(tuning))).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, 600);
    // 100 ms of either rate.
    diary.assert_within(&[(begun, 100.0), (raised, 200.0)], 20.0);
    let before: Vec<_> = diary
        .entries()
        .into_iter()
        .filter(|(at, _)| *at < raised)
        .collect();
    let early = Diary(Arc::new(Mutex::new(before)));
    early.assert_within(&[(begun, 100.0)], 10.0);
}

#[tokio::test(start_paused = true)]
async fn what_a_shard_leaves_is_used_by_the_others() {
    let diary = Diary::default();
    let notes = diary.clone();
    let world = World::start("shards-grow", move |index, _| {
        notes.note(index);
        ok()
    })
    .await;
    // A finish cuts the second half of the task: its shards are done at once.
    let task = started(&world, 4_000, 4, |new| new.tuning.rate = rate(100)).await;
    world
        .until_that(task, "in full flight", |view| view.counters.succeeded >= 100)
        .await;
    world
        .command(
            task,
            TaskCommand::Finish {
                end: ItemIndex(1_000),
            },
        )
        .await;
    let shares = |view: &TaskView| view.shards.iter().map(|shard| shard.part()).collect::<Vec<_>>();
    let alone = [Some(Share::ALL), None, None, None];
    world
        .until_that(task, "alone in its first shard", |view| shares(view) == alone)
        .await;
    until_paced(&world, task, 100).await;
    let from = Instant::now();
    let before = diary.entries().len();
    // The span in which its items are counted.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let left = diary.entries().len() - before;
    assert!((297..=303).contains(&left), "{left} left in {:?}", from.elapsed());
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.result, Some(TaskResult::Early));
    assert_eq!(view.counters.settled() + view.counters.excluded, 4_000);
    diary.assert_within(&[(from - Duration::from_secs(60), 100.0)], 10.0);
}

#[tokio::test(start_paused = true)]
async fn a_growing_share_that_does_not_fit_the_node_waits_for_room() {
    let arrange = |world: &mut World| {
        world.capacity = windrow_core::capacity::Capacity::Limited(Rate::per_second(100).expect("valid"));
    };
    let world = World::start_as("shards-room", arrange, |_, _| slow()).await;
    let task = started(&world, 20_000, 2, |new| new.tuning.rate = rate(100)).await;
    world
        .until_that(task, "in full flight", |view| view.counters.succeeded >= 100)
        .await;
    // Nothing fits beside it but what the second shard leaves.
    let other = started(&world, 10_000, 1, |new| new.tuning.rate = rate(50)).await;
    world
        .command(
            task,
            TaskCommand::Finish {
                end: ItemIndex(10_000),
            },
        )
        .await;
    world.until(other, Status::Running).await;
    // Many looks at whether there is room.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (_, progress) = world.node().progress(task).pop().expect("it runs");
    assert_eq!(
        progress.rate,
        Some(Rate::per_second(50).expect("valid")),
        "the rest is taken"
    );
    world.command(other, TaskCommand::Cancel).await;
    world.until(other, Status::Cancelled).await;
    until_paced(&world, task, 100).await;
}

#[tokio::test(start_paused = true)]
async fn one_shard_that_stops_stops_all_and_says_why_once() {
    let world = World::start("shards-stop", |index, _| {
        if index == ItemIndex(700) {
            reply(
                index,
                Some(HandlerCommand::Stop {
                    reason: "enough".into(),
                }),
            )
        } else {
            slow()
        }
    })
    .await;
    let task = started(&world, 100_000, 4, |new| new.tuning.concurrency = of(40)).await;
    let view = world.until(task, Status::Stopped).await;
    assert_eq!(
        (view.stop_reason, view.status_text.as_deref()),
        (Some(StopReason::Business), Some("enough"))
    );
    assert!(
        view.shards.iter().all(|shard| shard.state == ShardState::Stopped),
        "{:?}",
        view.shards
    );
    assert_eq!(
        view.counters.settled(),
        world.handler.deliveries().len() as u64,
        "drained"
    );
}

#[tokio::test(start_paused = true)]
async fn shards_stop_by_command_and_go_on_without_repeats() {
    let world = World::start("shards-again", |_, _| slow()).await;
    let task = started(&world, 2_000, 3, |new| new.tuning.concurrency = of(60)).await;
    world.until_in_flight(task, 60).await;
    world
        .command(
            task,
            TaskCommand::Stop {
                reason: StopReason::Operator,
            },
        )
        .await;
    world.until(task, Status::Stopped).await;
    world.command(task, TaskCommand::Start).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, 2_000);
    assert!(
        world.handler.deliveries().values().all(|count| *count == 1),
        "nothing was repeated"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_one_shard_is_told_holds_for_all_within_two_seconds() {
    let diary = Diary::default();
    let notes = diary.clone();
    let world = World::start("shards-pause", move |index, attempt| {
        notes.note(index);
        let pause = HandlerCommand::PauseFor(Duration::from_secs(30));
        if index == ItemIndex(60) && attempt.get() == 1 {
            reply(index, Some(pause))
        } else {
            ok()
        }
    })
    .await;
    let task = started(&world, 6_000, 3, |new| new.tuning.rate = rate(300)).await;
    assert_eq!(
        world.until(task, Status::Finished).await.counters.succeeded,
        6_000
    );
    let entries = diary.entries();
    let told = entries
        .iter()
        .find(|(_, index)| *index == ItemIndex(60))
        .expect("it left")
        .0;
    let (from, to) = (told + Duration::from_secs(2), told + Duration::from_secs(30));
    let left = entries.iter().filter(|(at, _)| (from..to).contains(at)).count();
    assert_eq!(left, 0, "left during the pause");
    assert!(entries.iter().any(|(at, _)| *at > to), "it goes on");
}

#[tokio::test(start_paused = true)]
async fn a_business_that_finishes_one_shard_finishes_the_task() {
    let world = World::start("shards-early", |index, _| {
        if index == ItemIndex(50) {
            reply(index, Some(HandlerCommand::Finish { total: None }))
        } else {
            slow()
        }
    })
    .await;
    let task = started(&world, 100_000, 4, |new| new.tuning.concurrency = of(40)).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.result, Some(TaskResult::Early));
    assert_eq!(view.counters.settled() + view.counters.excluded, 100_000);
    assert!(view.counters.excluded > 90_000, "{:?}", view.counters);
    assert_eq!(view.counters.settled(), world.handler.deliveries().len() as u64);
}

#[tokio::test(start_paused = true)]
async fn only_the_first_shard_runs_until_the_canary_has_passed() {
    let world = World::start("shards-canary", |_, _| slow()).await;
    let canary = |items, then| {
        Some(Canary {
            items: NonZeroU64::new(items).expect("not zero"),
            then,
        })
    };
    let task = started(&world, 4_000, 4, |new| {
        new.spec.canary = canary(100, CanaryThen::Stop)
    })
    .await;
    let view = world.until(task, Status::Stopped).await;
    assert_eq!(
        (view.stop_reason, view.counters.succeeded),
        (Some(StopReason::CanaryDone), 100)
    );
    assert_eq!(world.handler.deliveries().len(), 100);
    world.command(task, TaskCommand::Start).await;
    assert_eq!(
        world.until(task, Status::Finished).await.counters.succeeded,
        4_000
    );

    let goes_on = started(&world, 4_000, 4, |new| {
        new.spec.canary = canary(100, CanaryThen::Continue)
    })
    .await;
    assert_eq!(
        world.until(goes_on, Status::Finished).await.counters.succeeded,
        4_000
    );
}

#[tokio::test(start_paused = true)]
async fn items_that_all_shards_failed_count_together() {
    let world = World::start("shards-fail", |_, _| failed()).await;
    let task = started(&world, 100_000, 4, |new| {
        new.tuning.max_attempts = NonZeroU32::MIN;
        new.tuning.rate = rate(40);
        new.tuning.error_budget.failed_attempts = None;
        new.tuning.error_budget.failed = Some(FailedLimit::Count(100));
    })
    .await;
    let view = world.until(task, Status::Stopped).await;
    assert_eq!(view.stop_reason, Some(StopReason::ErrorBudget));
    let text = view.status_text.expect("it says why");
    assert!(
        text.contains(" failed, more than the error budget allows"),
        "{text}"
    );
    // What the others failed is known a checkpoint and a look later.
    assert!((101..=220).contains(&view.counters.failed), "{:?}", view.counters);
}

#[tokio::test(start_paused = true)]
async fn too_many_failed_attempts_of_one_shard_let_the_whole_task_recover_once() {
    let world = World::start(
        "shards-recover",
        |index, _| if index.0 < 1_000 { failed() } else { slow() },
    )
    .await;
    let task = started(&world, 100_000, 3, |new| new.tuning.concurrency = of(60)).await;
    let view = world.until(task, Status::Recovering).await;
    assert_eq!(
        (view.status_reason.as_deref(), view.recoveries),
        (Some("error_budget"), 1)
    );
    let text = view.status_text.clone().expect("it says why");
    assert!(
        text.contains("attempts failed") && text.contains("recovery 1 of 10"),
        "{text}"
    );
    let until: Vec<_> = view.shards.iter().map(|shard| shard.next_at()).collect();
    assert!(
        until.iter().all(|at| at.is_some() && *at == until[0]),
        "{until:?}"
    );
    let calls = world.handler.calls.lock().expect("ok").len();
    // A third of the shortest wait of a recovery.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(
        world.handler.calls.lock().expect("ok").len(),
        calls,
        "all of them wait"
    );
    let view = world
        .until_that(task, "in its second recovery", |view| view.recoveries == 2)
        .await;
    assert!(view.shards.iter().all(|shard| shard.state != ShardState::Done));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_gone_for_one_shard_is_gone_for_all() {
    let world = World::start("shards-gone", |index, _| {
        if index.0 == 300 {
            let failure = Failure::new("GONE", "410 from the business");
            return Act::Reply(Reply::Failed(Box::new(CallFailure::Gone(failure))));
        }
        slow()
    })
    .await;
    let task = started(&world, 100_000, 4, |new| new.tuning.concurrency = of(400)).await;
    let view = world.until(task, Status::Stopped).await;
    assert_eq!(view.stop_reason, Some(StopReason::HandlerGone));
    assert_eq!(view.status_text.as_deref(), Some("GONE: 410 from the business"));
}

#[tokio::test(start_paused = true)]
async fn a_total_that_changes_before_the_first_run_is_cut_anew() {
    use windrow_engine::ports::tasks::store::TaskEdit;
    let world = World::start("shards-edit", |_, _| slow()).await;
    let task = world
        .made(10, |new| {
            new.spec.shards = Shards(of(4));
            new.source = r#"{"kind":"range","total":10}"#.to_owned();
        })
        .await;
    let longer = TaskEdit {
        total: Some(ItemCount(400)),
        ..TaskEdit::default()
    };
    world.command(task, TaskCommand::Edit(Box::new(longer))).await;
    world.command(task, TaskCommand::Start).await;
    let view = world.view(task).await;
    let ends: Vec<u64> = view.shards.iter().map(|shard| shard.end.0).collect();
    assert_eq!(ends, [100, 200, 300, 400]);
    assert_eq!(world.until(task, Status::Finished).await.counters.succeeded, 400);
}

#[tokio::test(start_paused = true)]
async fn two_nodes_share_a_task_and_what_one_leaves_the_other_takes() {
    let diary = Diary::default();
    let notes = diary.clone();
    let arrange = |world: &mut World| world.exclusive = false;
    let mut world = World::start_as("shards-n1", arrange, move |index, _| {
        notes.note(index);
        slow()
    })
    .await;
    let begun = Instant::now();
    // Neither node has room for all of it.
    world.capacity = windrow_core::capacity::Capacity::Limited(Rate::per_second(300).expect("valid"));
    world.node().set_capacity(world.capacity);
    let mut other = world.beside("shards-n2").await;
    let task = started(&world, 12_000, 4, |new| new.tuning.rate = rate(400)).await;
    let runs = || [&world, &other].map(|world| world.node().progress(task).len());
    let shared = || runs().iter().all(|here| *here >= 1) && runs().iter().sum::<usize>() == 4;
    assert!(holds_within(Duration::from_secs(5), shared).await, "{:?}", runs());
    let node = other.node.take().expect("it runs");
    assert!(node.drain(Duration::from_secs(60)).await);
    let view = world.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, 12_000);
    assert_eq!(world.handler.deliveries().len(), 12_000);
    assert!(
        world.handler.deliveries().values().all(|count| *count == 1),
        "a drained node repeats nothing"
    );
    diary.assert_within(&[(begun, 400.0)], 40.0);
}
