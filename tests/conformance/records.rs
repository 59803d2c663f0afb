//! Facts about the data log, sources and the store itself.

use windrow_core::ids::{ItemIndex, ShardId, TaskId, WallMs};
use windrow_engine::ports::handling::data_log::{DataLogLine, LogOrigin};
use windrow_engine::ports::handling::handler::{LogLevel, LogLine};
use windrow_engine::ports::sources::store::{IndexedSource, SourceStore};

use crate::fixture::{Harness, NOW};

const LEVELS: [LogLevel; 4] = [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error];

fn line(task: i64, number: u64) -> DataLogLine {
    DataLogLine {
        shard: ShardId {
            task: TaskId(task),
            no: 1,
        },
        at: WallMs(NOW.0 + number.cast_signed()),
        origin: if number.is_multiple_of(2) {
            LogOrigin::Business
        } else {
            LogOrigin::System
        },
        code: (number % 2 == 1).then(|| "BACK_PRESSURE".to_owned()),
        line: LogLine {
            index: (number > 3).then_some(ItemIndex(number)),
            level: LEVELS[(number % 4) as usize],
            message: format!("line {number} 中"),
            extra: Some("{}".to_owned()),
        },
    }
}

pub async fn the_newest_lines_at_or_above_a_level_come_first(harness: Harness) {
    let lines: Vec<DataLogLine> = (0..5_000).map(|number| line(1, number)).collect();
    harness.store.append(&lines).await.unwrap();
    harness.store.append(&[line(2, 3)]).await.unwrap();
    harness.store.append(&[]).await.unwrap();
    let all = harness
        .store
        .tail(TaskId(1), LogLevel::Debug, 5_000)
        .await
        .unwrap();
    assert!(all.iter().eq(lines.iter().rev()));
    let warnings = harness.store.tail(TaskId(1), LogLevel::Warn, 3).await.unwrap();
    let expected = lines
        .iter()
        .rev()
        .filter(|line| line.line.level >= LogLevel::Warn)
        .take(3);
    assert!(warnings.iter().eq(expected));
}

fn source() -> IndexedSource {
    IndexedSource {
        kind: "csv".to_owned(),
        location: "/data/users.csv".to_owned(),
        format: r#"{"delimiter":","}"#.to_owned(),
        bytes: 1 << 40,
        modified_ns: -5,
        checksum: u64::MAX,
        rows: 5_000_000_000,
        columns: vec!["id".to_owned(), "e-mail, \"x\"".to_owned()],
        stride: 65_536,
    }
}

/// Tasks are found by name too, so the port has to be said.
async fn find(harness: &Harness, format: &str) -> Option<(i64, IndexedSource)> {
    SourceStore::find(harness.store.as_ref(), "/data/users.csv", format)
        .await
        .unwrap()
}

pub async fn a_source_and_its_index_read_back(harness: Harness) {
    let parts: Vec<Vec<u8>> = (0..5_u8).map(|part| vec![part; 65_536]).collect();
    let id = harness.store.save(&source(), &parts).await.unwrap();
    let found = find(&harness, &source().format).await;
    assert_eq!(found, Some((id, source())));
    for (number, part) in (0..).zip(&parts) {
        assert_eq!(harness.store.part(id, number).await.unwrap().as_ref(), Some(part));
    }
    assert_eq!(harness.store.part(id, 5).await.unwrap(), None);
    assert_eq!(find(&harness, "{}").await, None);
}

pub async fn a_newer_source_of_the_same_place_replaces_the_older(harness: Harness) {
    let old = harness.store.save(&source(), &[vec![1], vec![2]]).await.unwrap();
    let changed = IndexedSource {
        checksum: 1,
        ..source()
    };
    let new = harness.store.save(&changed, &[vec![3]]).await.unwrap();
    assert_ne!(
        old, new,
        "a reader of the old one must not meet parts of the new one"
    );
    let found = find(&harness, &source().format).await;
    assert_eq!(found, Some((new, changed)));
    assert_eq!(harness.store.part(old, 0).await.unwrap(), None);
    assert_eq!(harness.store.part(new, 0).await.unwrap(), Some(vec![3]));
}

pub async fn the_store_id_is_six_letters_and_stays(harness: Harness) {
    let id = harness.store.store_id().await.unwrap();
    assert!(
        id.0.len() == 6 && id.0.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
        "{id:?}"
    );
    assert_eq!(harness.store.store_id().await.unwrap(), id);
}
