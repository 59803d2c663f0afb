//! Facts about results whose bytes lie in a folder: those of all results, and that the folder is the store's own.

use std::fs;
use std::path::Path;

use windrow_core::ids::{ItemIndex, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::ShardCheckpoint;
use windrow_engine::ports::tasks::results::{ItemOutput, Segment};
use windrow_engine::ports::tasks::upkeep::Sweep;
use windrow_store::sql::Store;

use crate::fixture::{Harness, at};
use crate::results;

async fn store(place: &Path, folder: &Path) -> Result<Store, StoreError> {
    let mut store = Store::open(&place.join("windrow.db")).await?;
    store.keep_results_in(folder).await?;
    Ok(store)
}

macro_rules! in_a_folder {
    ($($fact:ident),+ $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $fact() {
            let place = tempfile::tempdir().unwrap();
            let store = store(place.path(), &place.path().join("results")).await.unwrap();
            results::$fact(Harness::over(store)).await;
        })+
    };
}

in_a_folder! {
    segments_are_found_in_the_order_of_their_first_indexes,
    a_segment_that_grew_takes_the_place_of_what_it_was_and_a_repeat_changes_nothing,
    a_write_that_is_fenced_leaves_no_result,
    an_item_has_its_own_output_or_none,
    results_can_be_read_up_to_the_lowest_item_that_is_not_settled,
    the_next_run_goes_on_counting_and_has_segments_of_its_own,
    a_task_is_not_finished_while_a_result_is_missing,
    results_go_once_they_are_old_and_how_many_they_were_is_kept,
    results_go_with_their_task,
    as_many_bytes_as_a_run_may_hold_are_one_checkpoint,
}

/// The files below the folders of tasks.
fn files(folder: &Path) -> Vec<String> {
    let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let tasks = folders.filter(|path| path.is_dir());
    let mut found: Vec<String> = tasks
        .flat_map(|task| fs::read_dir(task).unwrap())
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    found
}

fn one(checkpoint: ShardCheckpoint, indexes: std::ops::Range<u64>) -> ShardCheckpoint {
    let outputs: Vec<ItemOutput> = indexes
        .map(|index| ItemOutput {
            index: ItemIndex(index),
            json: index.to_string().into(),
        })
        .collect();
    ShardCheckpoint {
        results_kept: outputs.len() as u64,
        results: vec![Segment {
            no: 0,
            outputs: outputs.into(),
        }],
        ..checkpoint
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_no_row_names_are_swept_once_they_are_old() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("results");
    let harness = Harness::over(store(place.path(), &folder).await.unwrap());
    let run = harness.running(100).await;
    harness.stored(one(at(&run, 1, 2), 0..2)).await;
    harness.stored(one(at(&run, 2, 4), 0..4)).await;
    let name = |seq: u64| format!("0-{}-0-{seq}", run.epoch.0);
    assert_eq!(files(&folder), [name(1), name(2)]);
    assert_eq!(
        harness.store.sweep(Sweep::ResultBytes, WallMs(1)).await.unwrap(),
        0,
        "they are young"
    );
    let later = WallMs(i64::MAX / 2);
    assert_eq!(harness.store.sweep(Sweep::ResultBytes, later).await.unwrap(), 1);
    assert_eq!(files(&folder), [name(2)]);
    assert_eq!(
        harness.store.sweep(Sweep::ResultBytes, later).await.unwrap(),
        0,
        "it looks once an hour"
    );
}

#[tokio::test]
async fn a_folder_that_is_not_the_stores_own_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("results");
    store(place.path(), &folder).await.unwrap();
    store(place.path(), &folder).await.unwrap();
    let refused = |error: StoreError| {
        assert!(matches!(&error, StoreError::Refused(_)), "{error:?}");
        assert!(error.to_string().contains("is not the folder"), "{error}");
    };
    // Not mounted, an empty one, and another store's.
    refused(
        store(place.path(), &place.path().join("elsewhere"))
            .await
            .unwrap_err(),
    );
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    refused(store(place.path(), &empty).await.unwrap_err());
    let other = tempfile::tempdir().unwrap();
    store(other.path(), &other.path().join("results")).await.unwrap();
    refused(
        store(place.path(), &other.path().join("results"))
            .await
            .unwrap_err(),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_folder_is_away_nothing_is_written_and_the_checkpoint_is_tried_again() {
    let place = tempfile::tempdir().unwrap();
    let (folder, away) = (place.path().join("results"), place.path().join("away"));
    let harness = Harness::over(store(place.path(), &folder).await.unwrap());
    let run = harness.running(100).await;
    fs::rename(&folder, &away).unwrap();
    fs::create_dir(&folder).unwrap();
    let checkpoint = one(at(&run, 1, 2), 0..2);
    let failed = harness.store.checkpoint(std::slice::from_ref(&checkpoint)).await;
    assert!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
    fs::remove_dir(&folder).unwrap();
    fs::rename(&away, &folder).unwrap();
    harness.stored(checkpoint).await;
    assert_eq!(files(&folder).len(), 1);
    let output = harness.store.output(run.shard, ItemIndex(1)).await.unwrap();
    assert_eq!(output.as_deref(), Some("1"));
}
