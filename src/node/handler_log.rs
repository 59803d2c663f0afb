//! What workers print and log beside their answers: to the data log of the task, and to our log at `debug`.
//!
//! Never holds a worker back: what doesn't fit the queue is dropped, counted, and told at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::handlers::Sink;
use crate::domain::ids::ShardId;
use crate::ports::clock::Clock;
use crate::ports::data_log::{DataLog, DataLogLine, LogOrigin};
use crate::ports::handler::LogLine;

/// Lines that may wait.
const QUEUE_MAX: usize = 10_000;
/// Lines of one write. (`config.toml`, `data_log.batch`.)
const BATCH_MAX: usize = 200;
/// How long the last lines may take to be written.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// Stores lines until it is closed.
pub struct HandlerLog {
    writer: JoinHandle<()>,
    dropped: Arc<AtomicU64>,
}

/// A sink for a shard's lines, and what stores them. The writer ends when the sink is gone.
pub fn open(
    log: Arc<dyn DataLog>,
    shard: ShardId,
    clock: Arc<dyn Clock>,
    work: &tokio::runtime::Handle,
) -> (Sink, HandlerLog) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let dropped = Arc::new(AtomicU64::new(0));
    let writer = work.spawn(write_on(log, receiver, dropped.clone()));
    let lost = dropped.clone();
    let sink = move |line: LogLine| {
        tracing::debug!(target: "windrow::handler", index = line.index.map(|index| index.0), "{}", line.message);
        let line = DataLogLine { shard, at: clock.wall(), origin: LogOrigin::Business, code: None, line };
        if sender.try_send(line).is_err() {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    };
    (Arc::new(sink), HandlerLog { writer, dropped })
}

impl HandlerLog {
    /// Leaves the writer to itself: it ends when the sink is gone, and then tells what was lost.
    pub fn detach(self, work: &tokio::runtime::Handle) {
        work.spawn(async move {
            if let Err(error) = self.writer.await {
                tracing::error!(%error, "the writer of the handler's lines failed");
            }
            tell_dropped(&self.dropped);
        });
    }

    /// Waits for the last lines; the sink must be gone.
    pub async fn close(mut self) {
        if tokio::time::timeout(CLOSE_PATIENCE, &mut self.writer).await.is_err() {
            self.writer.abort();
        }
        tell_dropped(&self.dropped);
    }
}

fn tell_dropped(dropped: &AtomicU64) {
    let dropped = dropped.load(Ordering::Relaxed);
    if dropped > 0 {
        tracing::warn!(dropped, "the handler printed more than could be kept");
    }
}

async fn write_on(log: Arc<dyn DataLog>, mut lines: mpsc::Receiver<DataLogLine>, dropped: Arc<AtomicU64>) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while lines.recv_many(&mut batch, BATCH_MAX).await > 0 {
        if let Err(error) = log.append(&batch).await {
            tracing::debug!(%error, "lines of the handler were not kept");
            dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
        batch.clear();
    }
}
