//! Use of a task's meters: that of its runs, and the saved one of the shards that don't run.

use crate::service::stats::live::Lives;
use windrow_core::checkpoint;
use windrow_core::execution::{Extension, MeterPicture};
use windrow_core::ids::ShardId;
use windrow_engine::ports::tasks::report_store::{ReportStore, SavedWindow};
use windrow_engine::ports::tasks::store::TaskView;

/// Returns the use that the live runs report.
pub(super) fn live(lives: &Lives) -> Vec<MeterPicture> {
    let shards = lives.shards.iter();
    MeterPicture::sum(shards.flat_map(|(_, live)| live.costs.iter().cloned()))
}

/// Returns the use in the last checkpoints of a task's shards, without those of `running`. Empty if nothing is metered,
/// or if the store can't be read: numbers for people aren't worth an error.
pub async fn saved(reports: &dyn ReportStore, task: &TaskView, running: &[ShardId]) -> Vec<MeterPicture> {
    if task.spec.metering.is_empty() || running.len() >= task.shards.len().max(1) {
        return Vec::new();
    }
    let windows = reports.saved_windows(task.id).await.unwrap_or_else(|error| {
        tracing::debug!(task = %task.id, %error, "saved use not available");
        Vec::new()
    });
    let saved = windows.iter().filter(|saved| !running.contains(&saved.shard));
    MeterPicture::sum(saved.flat_map(|saved| of_window(saved, task)))
}

/// Reads the use that a checkpoint holds; nothing if it is damaged, or none was saved.
pub(super) fn of_window(saved: &SavedWindow, task: &TaskView) -> Vec<MeterPicture> {
    let snapshot = match saved.blob.is_empty() {
        true => Ok(checkpoint::Snapshot::default()),
        false => checkpoint::decode(&saved.blob, saved.watermark),
    };
    let extension = snapshot.and_then(|snapshot| Extension::of(&snapshot.extension));
    match extension {
        Ok(extension) => extension.meters.picture(&task.spec.metering),
        Err(error) => {
            tracing::warn!(shard = %saved.shard, %error, "checkpoint can't be read");
            Vec::new()
        }
    }
}
