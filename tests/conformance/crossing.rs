//! Many writers at once, as several nodes and many people are: no lost update, and no error but "ask again".

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinSet;
use uuid::Uuid;
use windrow_core::ids::{CheckpointSeq, Epoch, TaskId, WallMs};
use windrow_core::settings::RateLimit;
use windrow_core::task::lifecycle::StopReason;
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::data_log::{DataLogLine, LogRetention};
use windrow_engine::ports::ownership::run_store::{
    CheckpointAck, ClaimOutcome, ClaimedShard, ReplyLines, RunClose, ShardCheckpoint,
};
use windrow_engine::ports::tasks::store::{CommandError, CreateError, Family, Making, NewTask, TaskCommand};
use windrow_engine::ports::tasks::upkeep::Sweep;

use crate::fixture::{
    BUSINESS, Harness, NOW, Stores, at, closing, failed, hunt, request, task, tuning, with, write,
};
use crate::logs::line;

const STARTS: Making<'_> = Making {
    fire: None,
    starts: true,
    beside: None,
    replay: None,
};

fn beside(seen: &Family, starts: bool) -> Making<'_> {
    Making {
        fire: None,
        starts,
        beside: Some(seen),
        replay: None,
    }
}

/// Asks again while the store says that another try may help; every other error fails the test.
pub async fn again<T, F>(mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    for _ in 0..200 {
        match ask().await {
            Ok(answer) => return answer,
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("the store doesn't come back")
}

/// SplitMix64, with the seed printed.
#[derive(Clone, Copy)]
pub struct Dice(u64);

impl Dice {
    pub fn new(what: &str) -> Dice {
        let given = std::env::var("WINDROW_TEST_SEED")
            .ok()
            .map(|seed| seed.parse().unwrap());
        let seed = given.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0);
        println!("{what}: WINDROW_TEST_SEED={seed}");
        Dice(seed)
    }

    /// The same again.
    pub fn seeded(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub fn fork(&mut self) -> Dice {
        Dice(self.below(u64::MAX))
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// Two nodes write batches in random orders, people command the same tasks, and everything is there in the end.
pub async fn checkpoint_batches_of_two_nodes_and_commands_cross_without_a_lost_update(harness: Harness) {
    const ROUNDS: u64 = 12;
    let mut dice = Dice::new("batches");
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(harness.running(100).await);
    }
    let mut writers = JoinSet::new();
    for own in [runs[..3].to_vec(), runs[3..].to_vec()] {
        let (store, mut dice) = (harness.store.clone(), dice.fork());
        writers.spawn(async move {
            for round in 1..=ROUNDS {
                let mut batch: Vec<ShardCheckpoint> = own.iter().map(|run| failing(run, round)).collect();
                dice.shuffle(&mut batch);
                let acks = again(|| store.checkpoint(&batch)).await;
                assert!(acks.iter().all(|ack| *ack == CheckpointAck::Stored), "{acks:?}");
            }
        });
    }
    for _ in 0..2 {
        let (store, mut dice) = (harness.store.clone(), dice.fork());
        let mut ids: Vec<TaskId> = runs.iter().map(|run| run.shard.task).collect();
        writers.spawn(async move {
            for _ in 0..ROUNDS / 2 {
                dice.shuffle(&mut ids);
                for id in &ids {
                    tune(&*store, *id).await;
                }
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    for run in &runs {
        let view = harness.view(run.shard.task).await;
        assert_eq!(view.watermark.0, 5 * ROUNDS);
        assert_eq!(view.counters.failed, ROUNDS);
        // Each of the two people changed it in each of their rounds.
        assert_eq!(view.control_rev, 1 + ROUNDS);
        let groups = harness.store.groups(run.shard.task).await.unwrap();
        assert_eq!(groups.iter().map(|group| group.count).sum::<u64>(), ROUNDS);
    }
}

/// Five items more than the round before, of which one failed.
fn failing(run: &ClaimedShard, round: u64) -> ShardCheckpoint {
    let mut checkpoint = with(at(run, round, 5 * round), vec![failed(5 * round - 1, "BAD")]);
    checkpoint.counters.failed = round;
    checkpoint.counters.succeeded = 4 * round;
    checkpoint
}

async fn tune(store: &dyn Stores, id: TaskId) {
    let mut tuning = tuning();
    tuning.rate = RateLimit::Unlimited;
    let command = TaskCommand::Tune(Box::new(tuning));
    again(|| async {
        match store.command(id, &command, &write(), NOW).await {
            Ok(_) => Ok(()),
            Err(CommandError::Store(error)) => Err(error),
            Err(refused) => panic!("{refused}"),
        }
    })
    .await;
}

pub async fn of_parallel_creates_with_the_same_key_or_name_one_makes_the_task(harness: Harness) {
    harness
        .store
        .ensure_business(BUSINESS, &write(), NOW)
        .await
        .unwrap();
    let keyed = NewTask {
        idempotency_key: Some("once".to_owned()),
        ..task(10)
    };
    let named = NewTask {
        spec: TaskSpec {
            name: Some("nightly".to_owned()),
            ..TaskSpec::default()
        },
        ..task(10)
    };
    let mut creates = JoinSet::new();
    for (new, at_once) in [(keyed, 12), (named, 12)] {
        for nth in 0..at_once {
            let (store, new) = (harness.store.clone(), new.clone());
            creates.spawn(async move {
                let is_keyed = new.idempotency_key.is_some();
                let starts = nth % 2 == 0;
                let made = match starts && is_keyed {
                    true => store.make(&new, STARTS, &write(), NOW).await,
                    false => store.create(&new, &write(), NOW).await,
                };
                match made {
                    Ok(view) => (is_keyed, Some(view.id)),
                    Err(CreateError::NameTaken(_, _)) if !is_keyed => (false, None),
                    Err(other) => panic!("{other}"),
                }
            });
        }
    }
    let made = creates.join_all().await;
    let keyed: BTreeSet<TaskId> = made
        .iter()
        .filter(|(keyed, _)| *keyed)
        .filter_map(|(_, id)| *id)
        .collect();
    assert_eq!(keyed.len(), 1, "one request, one task: {keyed:?}");
    let named = made.iter().filter(|(keyed, id)| !keyed && id.is_some()).count();
    assert_eq!(named, 1, "one of them got the name");
}

pub async fn of_redrives_that_have_not_seen_each_other_one_is_made(harness: Harness) {
    let origin = harness.created(&task(10)).await.id;
    let redrive = NewTask {
        parent: Some(origin),
        ..task(3)
    };
    let mut seen = Family {
        root: origin,
        redrives: BTreeSet::new(),
    };
    for starts in [false, true] {
        let mut creates = JoinSet::new();
        for _ in 0..8 {
            let (store, new, seen) = (harness.store.clone(), redrive.clone(), seen.clone());
            creates.spawn(async move { store.make(&new, beside(&seen, starts), &write(), NOW).await });
        }
        let (mut made, mut late) = (Vec::new(), 0);
        for outcome in creates.join_all().await {
            match outcome {
                Ok(view) => made.push(view),
                Err(CreateError::Overtaken(root)) if root == origin => late += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!((made.len(), late), (1, 7), "who comes later looks again");
        assert_eq!(made[0].start_no > 0, starts);
        assert!(seen.redrives.insert(made[0].id));
    }
    // A redrive of a redrive may have the same items as one beside it.
    let first = *seen.redrives.first().unwrap();
    let below = NewTask {
        parent: Some(first),
        ..task(1)
    };
    let made = harness
        .store
        .make(&below, beside(&seen, false), &write(), NOW)
        .await
        .unwrap();
    let late = harness
        .store
        .make(&redrive, beside(&seen, false), &write(), NOW)
        .await;
    assert!(matches!(late, Err(CreateError::Overtaken(_))), "{late:?}");
    seen.redrives.insert(made.id);
    harness
        .store
        .make(&redrive, beside(&seen, false), &write(), NOW)
        .await
        .unwrap();
    let keyed = NewTask {
        idempotency_key: Some("once".to_owned()),
        ..redrive
    };
    let all = harness
        .store
        .make(&keyed, beside(&seen, false), &write(), NOW)
        .await;
    assert!(matches!(all, Err(CreateError::Overtaken(_))), "{all:?}");
}

/// Batches of very different sizes are written at once, so that what is numbered first is committed last; and checkpoints
/// write lines of their own, and those of replies.
pub async fn a_follower_of_a_log_that_many_write_misses_no_line(harness: Harness) {
    const ROUNDS: u64 = 12;
    const REPLIES: u64 = 300;
    let run = harness.running(100).await;
    let task = run.shard.task;
    let mut writers = JoinSet::new();
    for (lines, times) in [(5_000, 2), (5_000, 2), (1, 40), (7, 30)] {
        let store = harness.store.clone();
        let batch: Vec<DataLogLine> = (0..lines).map(|number| line(task, number)).collect();
        writers.spawn(async move {
            for _ in 0..times {
                again(|| store.append(&batch)).await;
            }
            lines * times
        });
    }
    let store = harness.store.clone();
    writers.spawn(async move {
        for round in 1..=ROUNDS {
            let said: Arc<[DataLogLine]> = (0..REPLIES).map(|number| line(task, number)).collect();
            let replies = ReplyLines {
                since: CheckpointSeq(round),
                lines: said,
                dropped: 0,
            };
            let batch = [ShardCheckpoint {
                lines: vec![replies],
                ..failing(&run, round)
            }];
            again(|| store.checkpoint(&batch)).await;
        }
        ROUNDS * (1 + REPLIES)
    });
    let is_over = Arc::new(AtomicBool::new(false));
    let follower = tokio::spawn(followed(harness.store.clone(), task, is_over.clone()));
    let written: u64 = writers.join_all().await.into_iter().sum();
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(follower.await.unwrap(), written);
}

/// How many lines whoever always goes on with the last number sees until there are no more.
async fn followed(store: Arc<dyn Stores>, task: TaskId, is_over: Arc<AtomicBool>) -> u64 {
    let (mut last, mut seen) = (0, 0);
    loop {
        let was_over = is_over.load(Ordering::Relaxed);
        let page = again(|| store.after(task, last, 500)).await;
        seen += page.len() as u64;
        match page.last() {
            Some((number, _)) => last = *number,
            None if was_over => return seen,
            None => tokio::time::sleep(std::time::Duration::from_millis(1)).await,
        }
    }
}

/// What a reader of the protocol believes of a shard, compared with what the store does: claims raise the epoch, writes of
/// an older claim change nothing, progress never falls.
pub async fn writers_interleaved_at_random_never_take_progress_back(harness: Harness) {
    let mut dice = Dice::new("writers");
    let shard = harness.queued(1000).await;
    let mut writers = JoinSet::new();
    for _ in 0..4 {
        let (store, mut dice) = (harness.store.clone(), dice.fork());
        let session = harness.session().await;
        writers.spawn(async move {
            let (mut stored, mut seen) = (Vec::new(), Epoch(0));
            for _ in 0..15 {
                let own = request(shard, seen, session);
                let run = match again(|| store.claim(own)).await {
                    ClaimOutcome::Claimed(run) => *run,
                    ClaimOutcome::Lost | ClaimOutcome::Newer(_) => {
                        seen = newest(&*store, shard.task, seen).await;
                        continue;
                    }
                };
                let steps = 1 + dice.below(3);
                for seq in 1..=steps {
                    let watermark = run.watermark.0 + seq;
                    let last = seq == steps;
                    let close = last.then_some(RunClose::Released);
                    let checkpoint = ShardCheckpoint {
                        close,
                        ..at(&run, seq, watermark)
                    };
                    let ack = again(|| store.checkpoint(std::slice::from_ref(&checkpoint))).await[0];
                    assert_eq!(ack, CheckpointAck::Stored, "nobody else owns it");
                    stored.push((run.epoch, watermark));
                }
                seen = run.epoch;
            }
            stored
        });
    }
    let mut all: Vec<(Epoch, u64)> = writers.join_all().await.into_iter().flatten().collect();
    all.sort_unstable();
    let progress: Vec<u64> = all.iter().map(|(_, watermark)| *watermark).collect();
    let expected: Vec<u64> = (1..=progress.len() as u64).collect();
    assert_eq!(
        progress, expected,
        "each write went on where the one before it was"
    );
    assert!(!progress.is_empty());
    assert_eq!(harness.view(shard.task).await.watermark.0, progress.len() as u64);
}

/// The newest epoch of the shard, as a scan would see it.
async fn newest(store: &dyn Stores, task: TaskId, seen: Epoch) -> Epoch {
    let hunt = hunt();
    let game = again(|| store.candidates(&hunt)).await;
    game.found
        .iter()
        .find(|one| one.rank.shard.task == task)
        .map_or(seen, |one| one.epoch)
}

/// Maintenance and outbox dispatchers of several nodes do the same at the same time; what they remove is removed once.
pub async fn nodes_that_look_after_the_store_at_once_do_not_disturb_each_other(harness: Harness) {
    harness
        .store
        .ensure_business(BUSINESS, &write(), NOW)
        .await
        .unwrap();
    harness.want_hooks(r#"{"stopped":{}}"#).await;
    for _ in 0..6 {
        let run = harness.running(10).await;
        let close = RunClose::stopped(StopReason::Business, "enough".to_owned());
        let last = closing(&run, 1, 3, close);
        harness
            .stored(with(last, vec![failed(1, "BAD"), failed(2, "ODD")]))
            .await;
    }
    let held = harness.running(10).await;
    let sessions = harness.store.list().await.unwrap();
    for session in sessions {
        harness.fence(session.id).await;
    }
    let later = WallMs(NOW.0 + 1);
    let mut nodes = JoinSet::new();
    for _ in 0..4 {
        let store = harness.store.clone();
        nodes.spawn(async move {
            let retention = LogRetention {
                keep_from: later,
                max_per_task: 1000,
            };
            let lines = again(|| store.expire(retention)).await;
            let left = again(|| store.orphans(&[], 10)).await;
            let shards: Vec<_> = left.into_iter().map(|(shard, _)| shard).collect();
            let disowned = again(|| store.disown(&shards, NOW)).await.len();
            let calls = again(|| store.take_due(later, WallMs(NOW.0 + 60_000), 100))
                .await
                .len();
            for what in Sweep::ALL {
                again(|| store.sweep(what, later)).await;
            }
            (lines, disowned, calls)
        });
    }
    let done = nodes.join_all().await;
    assert_eq!(done.iter().map(|(lines, ..)| lines).sum::<u64>(), 12, "{done:?}");
    assert_eq!(
        done.iter().map(|(_, disowned, _)| disowned).sum::<usize>(),
        1,
        "{done:?}"
    );
    assert_eq!(done.iter().map(|(.., calls)| calls).sum::<usize>(), 6, "{done:?}");
    assert_eq!(harness.view(held.shard.task).await.status.as_str(), "queued");
}
