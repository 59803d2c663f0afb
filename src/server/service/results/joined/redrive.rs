//! Positions of a task's failures within a redrive.

use std::collections::BTreeMap;

use windrow_core::ids::{ItemIndex, TaskId};
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec};
use windrow_engine::ports::tasks::failure_list::RecordedItem;
use windrow_engine::ports::tasks::results::ResultShard;

/// Redrive with the redrives of its own failures.
pub(super) struct Redrive {
    pub(super) task: TaskId,
    /// Shards in index order.
    pub(super) shards: Vec<ResultShard>,
    pub(super) below: Vec<Redrive>,
    /// Stretches of positions, by failure group.
    places: BTreeMap<String, Vec<Stretch>>,
    indexes: Vec<Stretch>,
}

/// Consecutive positions in a group, or consecutive indexes, with the redrive position of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    first: u64,
    count: u64,
    position: u64,
}

impl Redrive {
    pub(super) fn new(
        task: TaskId,
        spec: &RedriveSpec,
        shards: Vec<ResultShard>,
        below: Vec<Redrive>,
    ) -> Redrive {
        let (mut places, mut indexes): (BTreeMap<String, Vec<Stretch>>, Vec<Stretch>) = Default::default();
        let mut position = 0;
        for part in &spec.parts {
            let count = part.count();
            match part {
                RedrivePart::Places { code, first, .. } => {
                    let first = *first;
                    let of_group = places.entry(code.clone()).or_default();
                    of_group.push(Stretch {
                        first,
                        count,
                        position,
                    });
                }
                RedrivePart::Indexes { first, .. } => {
                    let first = *first;
                    indexes.push(Stretch {
                        first,
                        count,
                        position,
                    });
                }
            }
            position += count;
        }
        places.values_mut().for_each(|group| group.sort_unstable());
        indexes.sort_unstable();
        Redrive {
            task,
            shards,
            below,
            places,
            indexes,
        }
    }

    /// Returns the redrive position of a failure; `None` if the redrive doesn't include it.
    pub(super) fn position(&self, item: &RecordedItem) -> Option<ItemIndex> {
        let (group, place) = item.place.as_ref()?;
        let of_group = self.places.get(group).map(Vec::as_slice).unwrap_or_default();
        within(of_group, *place).or_else(|| within(&self.indexes, item.index.0))
    }
}

fn within(stretches: &[Stretch], at: u64) -> Option<ItemIndex> {
    let behind = stretches.partition_point(|stretch| stretch.first <= at);
    let stretch = stretches.get(behind.checked_sub(1)?)?;
    let skip = at - stretch.first;
    (skip < stretch.count).then(|| ItemIndex(stretch.position + skip))
}

#[cfg(test)]
mod tests {
    use windrow_core::ids::WallMs;
    use windrow_engine::ports::tasks::failure_list::RecordedState;

    use super::*;

    fn failure(index: u64, group: &str, place: u64) -> RecordedItem {
        RecordedItem {
            index: ItemIndex(index),
            shard: 0,
            state: RecordedState::Failed,
            attempts: 1,
            charged: 1,
            is_unconfirmed: false,
            others_answered: Some(0),
            due_at: None,
            code: Some(group.to_owned()),
            message: None,
            output: None,
            first_at: WallMs(0),
            last_at: WallMs(0),
            history: None,
            place: Some((group.to_owned(), place)),
        }
    }

    #[test]
    fn a_failure_stands_where_its_place_or_its_index_is_counted_to() {
        let places = |code: &str, first, count| RedrivePart::Places {
            code: code.to_owned(),
            first,
            count,
        };
        let spec = RedriveSpec {
            origin: TaskId(1),
            keys_of: None,
            parts: vec![
                places("BUSY", 10, 3),
                places("BOOM", 0, 2),
                RedrivePart::Indexes { first: 70, count: 2 },
                places("BUSY", 2, 1),
            ],
            is_replay: false,
        };
        let redrive = Redrive::new(TaskId(2), &spec, Vec::new(), Vec::new());
        let at = |index, group, place| redrive.position(&failure(index, group, place)).map(|at| at.0);
        assert_eq!([10, 12].map(|place| at(5, "BUSY", place)), [Some(0), Some(2)]);
        assert_eq!([1, 2].map(|place| at(5, "BOOM", place)), [Some(4), None]);
        assert_eq!(
            [2, 3, 9, 13].map(|place| at(5, "BUSY", place)),
            [Some(7), None, None, None]
        );
        assert_eq!(
            [69, 70, 71, 72].map(|index| at(index, "LATE", 0)),
            [None, Some(5), Some(6), None]
        );
    }
}
