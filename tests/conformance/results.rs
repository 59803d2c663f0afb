//! Facts about results: each exactly once, in segments that commit with the checkpoints that settle their items.

use windrow_core::ids::{Epoch, ItemIndex, ShardId, WallMs};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::ownership::run_store::{CheckpointAck, RunClose, ShardCheckpoint};
use windrow_engine::ports::tasks::results::{ItemOutput, ResultShard, ResultSum, Segment, SegmentPlace};
use windrow_engine::ports::tasks::upkeep::Sweep;

use crate::fixture::{Harness, NOW, at, parked, with};

/// No segment at all.
const NONE: [Vec<u64>; 0] = [];

/// A segment of these items; each came to its own index.
pub fn segment(no: u32, indexes: &[u64]) -> Segment {
    let output = |index: &u64| ItemOutput {
        index: ItemIndex(*index),
        json: format!("{{\"n\":{index}}}").into(),
    };
    Segment {
        no,
        outputs: indexes.iter().map(output).collect::<Vec<_>>().into(),
    }
}

pub fn keeping(checkpoint: ShardCheckpoint, kept: u64, results: Vec<Segment>) -> ShardCheckpoint {
    ShardCheckpoint {
        results_kept: kept,
        results,
        ..checkpoint
    }
}

/// The indexes of the segments that a reader finds, from an index on and after a place.
pub async fn found(
    harness: &Harness,
    shard: ShardId,
    from: u64,
    after: Option<SegmentPlace>,
) -> Vec<Vec<u64>> {
    let segments = harness
        .store
        .segments(shard, ItemIndex(from), after, 10)
        .await
        .unwrap();
    let indexes = |outputs: &[ItemOutput]| outputs.iter().map(|output| output.index.0).collect();
    segments.iter().map(|segment| indexes(&segment.outputs)).collect()
}

pub async fn segments_are_found_in_the_order_of_their_first_indexes(harness: Harness) {
    let run = harness.running(100).await;
    let first = vec![segment(0, &[4, 6, 7]), segment(1, &[2])];
    harness.stored(keeping(at(&run, 1, 8), 4, first)).await;
    assert_eq!(
        found(&harness, run.shard, 0, None).await,
        [vec![2], vec![4, 6, 7]]
    );
    assert_eq!(found(&harness, run.shard, 3, None).await, [vec![4, 6, 7]]);
    assert_eq!(found(&harness, run.shard, 7, None).await, [vec![4, 6, 7]]);
    assert_eq!(found(&harness, run.shard, 8, None).await, NONE);
    let place = |first, no| SegmentPlace {
        first: ItemIndex(first),
        epoch: run.epoch,
        no,
    };
    assert_eq!(
        found(&harness, run.shard, 0, Some(place(2, 1))).await,
        [vec![4, 6, 7]]
    );
    assert_eq!(found(&harness, run.shard, 0, Some(place(4, 0))).await, NONE);
}

pub async fn a_segment_that_grew_takes_the_place_of_what_it_was_and_a_repeat_changes_nothing(
    harness: Harness,
) {
    let run = harness.running(100).await;
    harness
        .stored(keeping(at(&run, 1, 8), 2, vec![segment(0, &[5, 7])]))
        .await;
    let grown = keeping(at(&run, 2, 12), 4, vec![segment(0, &[5, 7, 8, 11])]);
    harness.stored(grown.clone()).await;
    harness.stored(grown).await;
    assert_eq!(found(&harness, run.shard, 0, None).await, [vec![5, 7, 8, 11]]);
}

pub async fn a_write_that_is_fenced_leaves_no_result(harness: Harness) {
    let run = harness.running(100).await;
    let mut late = keeping(at(&run, 1, 8), 1, vec![segment(0, &[5])]);
    late.epoch = Epoch(run.epoch.0 + 1);
    let acks = harness.store.checkpoint(&[late]).await.unwrap();
    assert_eq!(acks, [CheckpointAck::Fenced]);
    assert_eq!(found(&harness, run.shard, 0, None).await, NONE);
}

pub async fn an_item_has_its_own_output_or_none(harness: Harness) {
    let run = harness.running(100).await;
    let both = vec![segment(0, &[4, 6]), segment(1, &[5])];
    harness.stored(keeping(at(&run, 1, 8), 3, both)).await;
    let output = |index| harness.store.output(run.shard, ItemIndex(index));
    for index in [4, 5, 6] {
        let json = output(index).await.unwrap().unwrap();
        assert_eq!(*json, *format!("{{\"n\":{index}}}"));
    }
    for index in [3, 7, 99] {
        assert_eq!(output(index).await.unwrap(), None, "{index}");
    }
}

pub async fn results_can_be_read_up_to_the_lowest_item_that_is_not_settled(harness: Harness) {
    let run = harness.running(100).await;
    let shown = |frontier, kept| ResultShard {
        shard: run.shard,
        end: ItemIndex(100),
        frontier: ItemIndex(frontier),
        kept,
    };
    let shards = || harness.store.result_shards(run.shard.task);
    assert_eq!(shards().await.unwrap(), [shown(0, 0)]);
    let waiting = vec![parked(5, NOW), parked(30, NOW)];
    let results = vec![segment(0, &[4, 6])];
    harness
        .stored(keeping(with(at(&run, 1, 40), waiting), 2, results))
        .await;
    assert_eq!(shards().await.unwrap(), [shown(5, 2)]);
    let sum = ResultSum {
        shard: run.shard,
        items: 2,
        bytes: 14,
    };
    assert_eq!(harness.store.result_sums(run.shard.task).await.unwrap(), [sum]);
}

pub async fn the_next_run_goes_on_counting_and_has_segments_of_its_own(harness: Harness) {
    let run = harness.running(100).await;
    let mut last = keeping(at(&run, 1, 8), 1, vec![segment(0, &[5])]);
    last.close = Some(RunClose::Released);
    harness.stored(last).await;
    let session = harness.session().await;
    let next = harness.claimed(run.shard, run.epoch, session).await;
    assert_eq!(next.results_kept, 1);
    harness
        .stored(keeping(at(&next, 1, 10), 2, vec![segment(0, &[8])]))
        .await;
    assert_eq!(found(&harness, run.shard, 0, None).await, [vec![5], vec![8]]);
}

pub async fn a_task_is_not_finished_while_a_result_is_missing(harness: Harness) {
    let run = harness.running(10).await;
    let mut last = keeping(at(&run, 1, 10), 2, vec![segment(0, &[5])]);
    last.close = Some(RunClose::Done);
    harness.stored(last).await;
    let view = harness.store.get(run.shard.task).await.unwrap().unwrap();
    assert_eq!(view.status, Status::Finalizing);
    assert_eq!(
        view.status_text.as_deref(),
        Some("2 results were kept, but 1 are stored")
    );
}

pub async fn results_go_once_they_are_old_and_how_many_they_were_is_kept(harness: Harness) {
    let open = harness.running(10).await;
    harness
        .stored(keeping(at(&open, 1, 5), 1, vec![segment(0, &[3])]))
        .await;
    let run = harness.running(10).await;
    let mut last = keeping(at(&run, 1, 10), 2, vec![segment(0, &[5, 6])]);
    last.close = Some(RunClose::Done);
    harness.stored(last).await;
    let later = WallMs(NOW.0 + 1_000_000);
    harness.store.sweep(Sweep::Results, NOW).await.unwrap();
    assert_eq!(
        found(&harness, run.shard, 0, None).await,
        [vec![5, 6]],
        "not old enough"
    );
    harness.store.sweep(Sweep::Results, later).await.unwrap();
    assert_eq!(found(&harness, run.shard, 0, None).await, NONE);
    assert_eq!(
        found(&harness, open.shard, 0, None).await,
        [vec![3]],
        "it has not ended"
    );
    let shards = harness.store.result_shards(run.shard.task).await.unwrap();
    assert_eq!(shards[0].kept, 2);
}

pub async fn results_go_with_their_task(harness: Harness) {
    let run = harness.running(10).await;
    let results: Vec<Segment> = (0..10).map(|no| segment(no, &[u64::from(no)])).collect();
    let mut last = keeping(at(&run, 1, 10), 10, results);
    last.close = Some(RunClose::Done);
    harness.stored(last).await;
    let task = run.shard.task;
    assert_eq!(
        harness.store.get(task).await.unwrap().unwrap().status,
        Status::Finished
    );
    harness
        .store
        .delete(task, &crate::fixture::write(), NOW)
        .await
        .unwrap();
    assert_eq!(harness.store.result_shards(task).await.unwrap(), []);
    assert_eq!(harness.store.result_sums(task).await.unwrap(), []);
    assert_eq!(found(&harness, run.shard, 0, None).await, NONE);
}

pub async fn as_many_bytes_as_a_run_may_hold_are_one_checkpoint(harness: Harness) {
    let run = harness.running(10_000).await;
    // Texts that don't shrink, so that statements are as large as they get.
    let output = |index: u64| ItemOutput {
        index: ItemIndex(index),
        json: format!("\"{}\"", noise(index, 60_000)).into(),
    };
    let segment = |no: u32| Segment {
        no,
        outputs: (0..5)
            .map(|at| output(u64::from(no) * 5 + at))
            .collect::<Vec<_>>()
            .into(),
    };
    let results: Vec<Segment> = (0..50).map(segment).collect();
    let (first, last) = (results[0].outputs[0].clone(), results[49].outputs[4].clone());
    harness.stored(keeping(at(&run, 1, 250), 250, results)).await;
    for wanted in [first, last] {
        let json = harness.store.output(run.shard, wanted.index).await.unwrap();
        assert_eq!(json, Some(wanted.json));
    }
    let sums = harness.store.result_sums(run.shard.task).await.unwrap();
    assert_eq!((sums[0].items, sums[0].bytes), (250, 250 * 60_002));
}

/// Letters in no order.
fn noise(seed: u64, len: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state % 90) as u8 % 90)
    };
    (0..len)
        .map(|_| letter())
        .filter(|c| *c != '"' && *c != '\\')
        .chain(std::iter::repeat('x'))
        .take(len)
        .collect()
}
