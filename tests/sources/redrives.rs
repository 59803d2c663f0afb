//! A redrive's items against a naive list of what each position has to be.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use windrow_core::ids::{ItemCount, ItemIndex, TaskId};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec};
use windrow_engine::ports::sources::source::{Source, SourceError};
use windrow_engine::ports::tasks::failure_list::{FailureList, FailurePage, RecordedItem, WaitingCode};
use windrow_engine::ports::tasks::store::FailureGroup;
use windrow_sources::{Format, RangeSource, RedriveSource};

use crate::common::{TINY, file_source, runtime};

/// Failures by group, in the order of their places.
struct Places(Vec<(&'static str, Vec<u64>)>);

#[async_trait]
impl FailureList for Places {
    async fn groups(&self, _: TaskId) -> Result<Vec<FailureGroup>, StoreError> {
        unreachable!("a source doesn't ask for groups")
    }

    async fn waiting(&self, _: TaskId) -> Result<Vec<WaitingCode>, StoreError> {
        unreachable!("a source doesn't ask for what waits")
    }

    async fn page(&self, _: TaskId, _: &FailurePage, _: u32) -> Result<Vec<RecordedItem>, StoreError> {
        unreachable!("a source doesn't ask for pages")
    }

    async fn places(
        &self,
        _: TaskId,
        group: &str,
        first: u64,
        count: u32,
    ) -> Result<Vec<ItemIndex>, StoreError> {
        let all = self
            .0
            .iter()
            .find(|(code, _)| *code == group)
            .map(|(_, indexes)| indexes.as_slice());
        let wanted = all
            .unwrap_or_default()
            .iter()
            .skip(first as usize)
            .take(count as usize);
        Ok(wanted.map(|index| ItemIndex(*index)).collect())
    }

    async fn among(&self, _: TaskId, _: &[ItemIndex]) -> Result<Vec<RecordedItem>, StoreError> {
        unreachable!("a source doesn't look for indexes")
    }

    async fn unconfirmed(
        &self,
        _: TaskId,
        _: &[String],
        _: Option<ItemIndex>,
        _: u32,
    ) -> Result<Vec<ItemIndex>, StoreError> {
        unreachable!("a source doesn't ask for unconfirmed failures")
    }

    async fn item(&self, _: TaskId, _: ItemIndex) -> Result<Option<RecordedItem>, StoreError> {
        unreachable!("a source doesn't look for one item")
    }
}

/// Numbers that look random and are the same each time.
fn scattered(seed: u64, count: usize, below: u64) -> Vec<u64> {
    let mut state = seed;
    let mut seen = std::collections::HashSet::new();
    let mut numbers = Vec::new();
    while numbers.len() < count {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let number = (state >> 33) % below;
        if seen.insert(number) {
            numbers.push(number);
        }
    }
    numbers
}

fn places(code: &str, first: u64, count: u64) -> RedrivePart {
    RedrivePart::Places {
        code: code.to_owned(),
        first,
        count,
    }
}

fn redrive(parts: Vec<RedrivePart>, failures: Places, origin: Arc<dyn Source>) -> RedriveSource {
    let spec = RedriveSpec {
        origin: TaskId(1),
        keys_of: Some(TaskId(1)),
        parts,
        is_replay: false,
    };
    RedriveSource::new(spec, Arc::new(failures), origin)
}

/// The index in the first task and the data of each position.
async fn items(source: &dyn Source) -> Vec<(u64, Option<Value>)> {
    let mut found = Vec::new();
    let mut chunk = source.read(ItemIndex(0)).await.expect("nothing changed");
    for at in 0..source.total().0 {
        if ItemIndex(at) >= chunk.end() {
            chunk = source.read(ItemIndex(at)).await.expect("nothing changed");
        }
        let origin = chunk.origin(ItemIndex(at)).expect("each row says what it was");
        let row = chunk
            .row(ItemIndex(at))
            .map(|text| serde_json::from_str(text).expect("a row is JSON"));
        found.push((origin.0, row));
    }
    found
}

fn numbered(rows: u64) -> Vec<u8> {
    (0..rows)
        .flat_map(|n| format!("{{\"n\":{n}}}\n").into_bytes())
        .collect()
}

#[test]
fn positions_are_the_failures_of_the_groups_one_after_the_other() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let origin = Arc::new(file_source(dir.path(), &numbered(5_000), &Format::Ndjson, TINY));
    let (busy, late) = (scattered(1, 700, 5_000), scattered(2, 333, 5_000));
    let failures = Places(vec![("BUSY", busy.clone()), ("LATE", late.clone())]);
    let parts = vec![
        places("BUSY", 0, 600),
        places("LATE", 3, 330),
        RedrivePart::Indexes {
            first: 4_000,
            count: 5,
        },
        RedrivePart::Indexes { first: 17, count: 1 },
    ];
    let expected: Vec<u64> = busy[..600]
        .iter()
        .chain(&late[3..])
        .copied()
        .chain(4_000..4_005)
        .chain([17])
        .collect();
    let source = redrive(parts, failures, origin);
    assert_eq!((source.total(), source.has_data()), (ItemCount(936), true));
    let found = runtime().block_on(items(&source));
    assert_eq!(found.len(), expected.len());
    for (at, ((origin, row), index)) in found.into_iter().zip(expected).enumerate() {
        assert_eq!((origin, row), (index, Some(json!({"n": index}))), "position {at}");
    }
}

#[test]
fn failures_of_a_range_have_no_data_and_still_say_what_they_were() {
    let failures = Places(vec![("BUSY", vec![9, 2, 400])]);
    let origin = Arc::new(RangeSource::new(ItemCount(1_000)));
    let source = redrive(vec![places("BUSY", 1, 2)], failures, origin);
    assert_eq!(runtime().block_on(items(&source)), [(2, None), (400, None)]);
}

#[test]
fn a_redrive_of_a_redrive_leads_to_the_first_task() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let origin = Arc::new(file_source(dir.path(), &numbered(1_000), &Format::Ndjson, TINY));
    let first_places = scattered(3, 500, 1_000);
    let parts = vec![places("BUSY", 100, 400)];
    let first = Arc::new(redrive(
        parts,
        Places(vec![("BUSY", first_places.clone())]),
        origin,
    ));
    // Positions of the first redrive failed again.
    let again = scattered(4, 50, 400);
    let second = redrive(
        vec![places("LATE", 0, 50)],
        Places(vec![("LATE", again.clone())]),
        first,
    );
    let found = runtime().block_on(items(&second));
    let expected = again.iter().map(|at| first_places[100 + *at as usize]);
    let expected: Vec<_> = expected.map(|index| (index, Some(json!({"n": index})))).collect();
    assert_eq!(found, expected);
}

#[test]
fn failures_that_are_gone_and_positions_that_never_were_are_refused() {
    let failures = || Places(vec![("BUSY", vec![9, 2])]);
    let origin = || Arc::new(RangeSource::new(ItemCount(10)));
    let short = redrive(vec![places("BUSY", 0, 3)], failures(), origin());
    assert!(matches!(
        runtime().block_on(short.read(ItemIndex(0))),
        Err(SourceError::Changed(_))
    ));
    let whole = redrive(vec![places("BUSY", 0, 2)], failures(), origin());
    assert!(matches!(
        runtime().block_on(whole.read(ItemIndex(2))),
        Err(SourceError::BadRow(_))
    ));
}
