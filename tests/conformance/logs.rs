//! Facts about searching and forgetting lines of the data log.

use windrow::domain::ids::{ItemIndex, ShardId, TaskId, WallMs};
use windrow::ports::data_log::{DataLogLine, DropReason, EXPIRE_MAX, LogOrigin, LogQuery, LogRetention};
use windrow::ports::handler::{LogLevel, LogLine};

use crate::fixture::{BUSINESS, Harness, NOW, task};

const LEVELS: [LogLevel; 4] = [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error];

/// A line of its own for each number.
pub fn line(task: TaskId, number: u64) -> DataLogLine {
    DataLogLine {
        shard: ShardId { task, no: 0 },
        at: WallMs(NOW.0 + number.cast_signed()),
        origin: if number.is_multiple_of(2) { LogOrigin::Business } else { LogOrigin::System },
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
        found.extend(page.lines.iter().map(|(_, line)| (line.at.0 - NOW.0).cast_unsigned()));
        pages += 1;
        match page.next {
            Some(next) => query.before = Some(next),
            None => return (found, pages),
        }
    }
}

pub async fn a_search_gives_what_a_scan_of_all_lines_gives(harness: Harness) {
    let (one, two) = (TaskId(1), TaskId(2));
    let lines: Vec<DataLogLine> = (0..2_500).map(|n| line(if n % 10 == 0 { two } else { one }, n)).collect();
    harness.store.append(&lines).await.unwrap();
    let base = LogQuery::newest(Some(one), 100);
    let queries = [
        base.clone(),
        LogQuery { level: LogLevel::Error, ..base.clone() },
        LogQuery { index: Some(ItemIndex(3)), ..base.clone() },
        LogQuery { text: Some("line 12".to_owned()), ..base.clone() },
        LogQuery { text: Some("ärger".to_owned()), level: LogLevel::Warn, ..base.clone() },
        LogQuery { text: Some("%".to_owned()), ..base.clone() },
        LogQuery { origin: Some(LogOrigin::System), code: Some("BUSY".to_owned()), ..base.clone() },
        LogQuery { from: Some(WallMs(NOW.0 + 100)), to: Some(WallMs(NOW.0 + 140)), ..base.clone() },
        LogQuery { task: None, level: LogLevel::Warn, limit: 7, ..base },
    ];
    for query in queries {
        let wanted = |line: &&DataLogLine| {
            query.task.is_none_or(|task| line.shard.task == task)
                && line.line.level >= query.level
                && query.index.is_none_or(|index| line.line.index == Some(index))
                && query.text.as_ref().is_none_or(|text| line.line.message.to_lowercase().contains(text))
                && query.origin.is_none_or(|origin| line.origin == origin)
                && query.code.as_ref().is_none_or(|code| line.code.as_ref() == Some(code))
                && query.from.is_none_or(|from| line.at >= from)
                && query.to.is_none_or(|to| line.at < to)
        };
        let expected = lines.iter().rev().filter(wanted).map(|line| (line.at.0 - NOW.0).cast_unsigned());
        let (found, pages) = all(&harness, &query).await;
        assert!(found.iter().copied().eq(expected), "{query:?}");
        assert!(pages <= 2_500 / query.limit + 2, "{pages} pages for {query:?}");
    }
}

pub async fn a_business_finds_the_lines_of_its_own_tasks(harness: Harness) {
    let own = harness.created(&task(10)).await;
    harness.store.append(&[line(own.id, 1), line(TaskId(own.id.0 + 1), 2)]).await.unwrap();
    let query = LogQuery { business: Some(BUSINESS.to_owned()), ..LogQuery::newest(None, 10) };
    assert_eq!(all(&harness, &query).await.0, [1]);
    let other = LogQuery { business: Some("others".to_owned()), ..query };
    assert_eq!(all(&harness, &other).await.0, [0_u64; 0]);
}

pub async fn lines_come_oldest_first_after_a_number(harness: Harness) {
    let lines: Vec<DataLogLine> = (0..25_u64).map(|n| line(TaskId(1 + (n % 2).cast_signed()), n)).collect();
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
    let lines: Vec<DataLogLine> = (0..100_u64).map(|n| line(TaskId(1 + (n % 2).cast_signed()), n)).collect();
    harness.store.append(&lines).await.unwrap();
    let retention = LogRetention { keep_from: WallMs(NOW.0 + 31), max_per_task: 1_000 };
    assert_eq!(harness.store.expire(retention).await.unwrap(), 31);
    assert_eq!(harness.store.expire(retention).await.unwrap(), 0);
    assert_eq!(harness.store.dropped(TaskId(1)).await.unwrap(), [(DropReason::Age, 16)]);
    assert_eq!(harness.store.dropped(TaskId(2)).await.unwrap(), [(DropReason::Age, 15)]);
    assert_eq!(harness.store.tail(TaskId(1), LogLevel::Debug, 999).await.unwrap().len(), 34);
}

pub async fn of_too_many_lines_the_oldest_of_little_weight_go_first(harness: Harness) {
    let many = EXPIRE_MAX * 2 + 40;
    let lines: Vec<DataLogLine> = (0..many).map(|n| line(TaskId(1), n)).collect();
    harness.store.append(&lines).await.unwrap();
    harness.store.append(&[line(TaskId(2), 0)]).await.unwrap();
    let retention = LogRetention { keep_from: WallMs(0), max_per_task: 100 };
    let mut rounds = Vec::new();
    loop {
        match harness.store.expire(retention).await.unwrap() {
            0 => break,
            removed => rounds.push(removed),
        }
    }
    assert_eq!(rounds, [EXPIRE_MAX, many - 100 - EXPIRE_MAX], "so many at a time");
    harness.store.count_dropped(TaskId(1), DropReason::Queue, 3).await.unwrap();
    harness.store.count_dropped(TaskId(1), DropReason::Queue, 4).await.unwrap();
    let expected = [(DropReason::MaxPerTask, many - 100), (DropReason::Queue, 7)];
    assert_eq!(harness.store.dropped(TaskId(1)).await.unwrap(), expected);
    let kept = harness.store.tail(TaskId(1), LogLevel::Debug, 999).await.unwrap();
    assert_eq!(kept.len(), 100);
    assert!(kept.iter().all(|line| line.line.level >= LogLevel::Warn), "half of all lines are of weight");
    let heavy = lines.iter().rev().filter(|line| line.line.level >= LogLevel::Warn).take(100);
    assert!(kept.iter().eq(heavy));
    assert_eq!(harness.store.tail(TaskId(2), LogLevel::Debug, 9).await.unwrap().len(), 1);
}
