//! Facts about searching and forgetting lines of the data log.

use windrow_core::ids::{CheckpointSeq, Epoch, ItemIndex, ShardId, TaskId, WallMs};
use windrow_engine::ports::handling::data_log::{
    DataLogLine, DropReason, EXPIRE_MAX, LogOrigin, LogQuery, LogRetention,
};
use windrow_engine::ports::handling::handler::{LogLevel, LogLine};
use windrow_engine::ports::ownership::run_store::{
    CheckpointAck, ClaimedShard, ReplyLines, RunClose, ShardCheckpoint,
};

use crate::fixture::{BUSINESS, Harness, NOW, at, closing, task};

const LEVELS: [LogLevel; 4] = [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error];

/// A line of its own for each number.
pub fn line(task: TaskId, number: u64) -> DataLogLine {
    DataLogLine {
        shard: ShardId { task, no: 0 },
        at: WallMs(NOW.0 + number.cast_signed()),
        origin: if number.is_multiple_of(2) {
            LogOrigin::Business
        } else {
            LogOrigin::System
        },
        code: (number % 5 == 1).then(|| "BUSY".to_owned()),
        line: LogLine {
            index: number.is_multiple_of(3).then_some(ItemIndex(number % 7)),
            level: LEVELS[(number % 4) as usize],
            message: format!("Line {number} of ÄRGER"),
            extra: None,
        },
    }
}

/// All pages of a query, and how many there were.
async fn all(harness: &Harness, query: &LogQuery) -> (Vec<u64>, u32) {
    let (mut query, mut found, mut pages) = (query.clone(), Vec::new(), 0);
    loop {
        let page = harness.store.search(&query).await.unwrap();
        assert!(page.lines.len() <= query.limit as usize);
        found.extend(
            page.lines
                .iter()
                .map(|(_, line)| (line.at.0 - NOW.0).cast_unsigned()),
        );
        pages += 1;
        match page.next {
            Some(next) => query.before = Some(next),
            None => return (found, pages),
        }
    }
}

pub async fn a_search_gives_what_a_scan_of_all_lines_gives(harness: Harness) {
    let (one, two) = (TaskId(1), TaskId(2));
    let lines: Vec<DataLogLine> = (0..2_500)
        .map(|n| line(if n % 10 == 0 { two } else { one }, n))
        .collect();
    harness.store.append(&lines).await.unwrap();
    let base = LogQuery::newest(Some(one), 100);
    let queries = [
        base.clone(),
        LogQuery {
            level: LogLevel::Error,
            ..base.clone()
        },
        LogQuery {
            index: Some(ItemIndex(3)),
            ..base.clone()
        },
        LogQuery {
            text: Some("line 12".to_owned()),
            ..base.clone()
        },
        LogQuery {
            text: Some("ärger".to_owned()),
            level: LogLevel::Warn,
            ..base.clone()
        },
        LogQuery {
            text: Some("%".to_owned()),
            ..base.clone()
        },
        LogQuery {
            origin: Some(LogOrigin::System),
            code: Some("BUSY".to_owned()),
            ..base.clone()
        },
        LogQuery {
            from: Some(WallMs(NOW.0 + 100)),
            to: Some(WallMs(NOW.0 + 140)),
            ..base.clone()
        },
        LogQuery {
            task: None,
            level: LogLevel::Warn,
            limit: 7,
            ..base
        },
    ];
    for query in queries {
        let wanted = |line: &&DataLogLine| {
            query.task.is_none_or(|task| line.shard.task == task)
                && line.line.level >= query.level
                && query.index.is_none_or(|index| line.line.index == Some(index))
                && query
                    .text
                    .as_ref()
                    .is_none_or(|text| line.line.message.to_lowercase().contains(text))
                && query.origin.is_none_or(|origin| line.origin == origin)
                && query
                    .code
                    .as_ref()
                    .is_none_or(|code| line.code.as_ref() == Some(code))
                && query.from.is_none_or(|from| line.at >= from)
                && query.to.is_none_or(|to| line.at < to)
        };
        let expected = lines
            .iter()
            .rev()
            .filter(wanted)
            .map(|line| (line.at.0 - NOW.0).cast_unsigned());
        let (found, pages) = all(&harness, &query).await;
        assert!(found.iter().copied().eq(expected), "{query:?}");
        assert!(pages <= 2_500 / query.limit + 2, "{pages} pages for {query:?}");
    }
}

/// A checkpoint with lines that were first sent with these numbers.
fn saying(run: &ClaimedShard, seq: u64, parts: &[(u64, &[u64], u64)]) -> ShardCheckpoint {
    let part = |(since, lines, dropped): &(u64, &[u64], u64)| ReplyLines {
        since: CheckpointSeq(*since),
        lines: lines.iter().map(|number| line(run.shard.task, *number)).collect(),
        dropped: *dropped,
    };
    ShardCheckpoint {
        lines: parts.iter().map(part).collect(),
        ..at(run, seq, seq)
    }
}

/// The lines of a task in the order of their numbers.
async fn stored(harness: &Harness, task: TaskId) -> Vec<u64> {
    let lines = harness.store.after(task, 0, 100_000).await.unwrap();
    lines
        .iter()
        .map(|(_, line)| (line.at.0 - NOW.0).cast_unsigned())
        .collect()
}

pub async fn lines_of_replies_are_stored_with_their_checkpoint_and_once(harness: Harness) {
    let run = harness.running(100).await;
    let task = run.shard.task;
    let first = saying(&run, 1, &[(1, &[1, 2], 3)]);
    harness.stored(first.clone()).await;
    harness.stored(first).await;
    assert_eq!(
        stored(&harness, task).await,
        [1, 2],
        "a repeat of the same number writes nothing"
    );
    // The second was stored unheard: the third carries its lines again, beside its own.
    harness.stored(saying(&run, 2, &[(2, &[3], 0)])).await;
    harness
        .stored(saying(&run, 3, &[(2, &[3], 0), (3, &[4, 5], 1)]))
        .await;
    // The fourth never came: the fifth carries its lines for the first time.
    harness
        .stored(saying(&run, 5, &[(4, &[6], 0), (5, &[7], 0)]))
        .await;
    assert_eq!(stored(&harness, task).await, [1, 2, 3, 4, 5, 6, 7]);
    let zombie = ShardCheckpoint {
        epoch: Epoch(run.epoch.0 - 1),
        ..saying(&run, 6, &[(6, &[8], 1)])
    };
    assert_eq!(harness.write(zombie).await, CheckpointAck::Fenced);
    let backwards = ShardCheckpoint {
        watermark: ItemIndex(1),
        ..saying(&run, 6, &[(6, &[8], 1)])
    };
    assert_eq!(harness.write(backwards).await, CheckpointAck::Fenced);
    assert_eq!(
        stored(&harness, task).await.len(),
        7,
        "what is refused leaves nothing"
    );
    assert_eq!(
        harness.store.dropped(task).await.unwrap(),
        [(DropReason::Queue, 4)]
    );
    // The next run counts its checkpoints from one again.
    harness.stored(closing(&run, 6, 6, RunClose::Released)).await;
    let session = harness.session().await;
    let next = harness.claimed(run.shard, run.epoch, session).await;
    harness
        .stored(ShardCheckpoint {
            watermark: ItemIndex(6),
            ..saying(&next, 1, &[(1, &[9], 0)])
        })
        .await;
    assert_eq!(stored(&harness, task).await.last(), Some(&9));
}

pub async fn a_checkpoint_with_more_lines_than_a_statement_takes_is_stored_in_order(harness: Harness) {
    let run = harness.running(100).await;
    let mut long = line(run.shard.task, 2);
    long.line.message = "x".repeat(700_000);
    let few: Vec<DataLogLine> = (1..=3).map(|_| long.clone()).collect();
    let many = (3..5_000).map(|number| line(run.shard.task, number));
    let lines: std::sync::Arc<[DataLogLine]> = few.into_iter().chain(many).collect();
    let replies = ReplyLines {
        since: CheckpointSeq(1),
        lines: lines.clone(),
        dropped: 0,
    };
    harness
        .stored(ShardCheckpoint {
            lines: vec![replies],
            ..at(&run, 1, 1)
        })
        .await;
    let found = harness.store.after(run.shard.task, 0, 100_000).await.unwrap();
    assert!(
        found.iter().map(|(_, line)| line).eq(lines.iter()),
        "{} lines",
        found.len()
    );
}

pub async fn a_business_finds_the_lines_of_its_own_tasks(harness: Harness) {
    let own = harness.created(&task(10)).await;
    harness
        .store
        .append(&[line(own.id, 1), line(TaskId(own.id.0 + 1), 2)])
        .await
        .unwrap();
    let query = LogQuery {
        business: Some(BUSINESS.to_owned()),
        ..LogQuery::newest(None, 10)
    };
    assert_eq!(all(&harness, &query).await.0, [1]);
    let other = LogQuery {
        business: Some("others".to_owned()),
        ..query
    };
    assert_eq!(all(&harness, &other).await.0, [0_u64; 0]);
}

pub async fn lines_come_oldest_first_after_a_number(harness: Harness) {
    let lines: Vec<DataLogLine> = (0..25_u64)
        .map(|n| line(TaskId(1 + (n % 2).cast_signed()), n))
        .collect();
    harness.store.append(&lines).await.unwrap();
    let (mut seen, mut after) = (Vec::new(), 0);
    loop {
        let page = harness.store.after(TaskId(1), after, 4).await.unwrap();
        let Some((last, _)) = page.last() else { break };
        after = *last;
        seen.extend(page.into_iter().map(|(_, line)| line));
    }
    assert!(seen.iter().eq(lines.iter().step_by(2)));
}

pub async fn old_lines_go_and_are_counted(harness: Harness) {
    let lines: Vec<DataLogLine> = (0..100_u64)
        .map(|n| line(TaskId(1 + (n % 2).cast_signed()), n))
        .collect();
    harness.store.append(&lines).await.unwrap();
    let retention = LogRetention {
        keep_from: WallMs(NOW.0 + 31),
        max_per_task: 1_000,
    };
    assert_eq!(harness.store.expire(retention).await.unwrap(), 31);
    assert_eq!(harness.store.expire(retention).await.unwrap(), 0);
    assert_eq!(
        harness.store.dropped(TaskId(1)).await.unwrap(),
        [(DropReason::Age, 16)]
    );
    assert_eq!(
        harness.store.dropped(TaskId(2)).await.unwrap(),
        [(DropReason::Age, 15)]
    );
    assert_eq!(
        harness
            .store
            .tail(TaskId(1), LogLevel::Debug, 999)
            .await
            .unwrap()
            .len(),
        34
    );
}

pub async fn of_too_many_lines_the_oldest_of_little_weight_go_first(harness: Harness) {
    let many = EXPIRE_MAX * 2 + 40;
    let lines: Vec<DataLogLine> = (0..many).map(|n| line(TaskId(1), n)).collect();
    harness.store.append(&lines).await.unwrap();
    harness.store.append(&[line(TaskId(2), 0)]).await.unwrap();
    let retention = LogRetention {
        keep_from: WallMs(0),
        max_per_task: 100,
    };
    let mut rounds = Vec::new();
    loop {
        match harness.store.expire(retention).await.unwrap() {
            0 => break,
            removed => rounds.push(removed),
        }
    }
    assert_eq!(rounds, [EXPIRE_MAX, many - 100 - EXPIRE_MAX], "so many at a time");
    harness
        .store
        .count_dropped(TaskId(1), DropReason::Queue, 3)
        .await
        .unwrap();
    harness
        .store
        .count_dropped(TaskId(1), DropReason::Queue, 4)
        .await
        .unwrap();
    let expected = [(DropReason::MaxPerTask, many - 100), (DropReason::Queue, 7)];
    assert_eq!(harness.store.dropped(TaskId(1)).await.unwrap(), expected);
    let kept = harness.store.tail(TaskId(1), LogLevel::Debug, 999).await.unwrap();
    assert_eq!(kept.len(), 100);
    assert!(
        kept.iter().all(|line| line.line.level >= LogLevel::Warn),
        "half of all lines are of weight"
    );
    let heavy = lines
        .iter()
        .rev()
        .filter(|line| line.line.level >= LogLevel::Warn)
        .take(100);
    assert!(kept.iter().eq(heavy));
    assert_eq!(
        harness
            .store
            .tail(TaskId(2), LogLevel::Debug, 9)
            .await
            .unwrap()
            .len(),
        1
    );
}
