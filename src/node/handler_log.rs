//! What workers print and log beside their answers: to the data log of the task, and to our log at `debug`.
//!
//! Never holds a worker back: what doesn't fit the queue is dropped, counted, and told at the end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::handlers::Sink;
use windrow_core::ids::ShardId;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::data_log::{DataLog, DataLogLine, LogOrigin};
use windrow_engine::ports::handling::dropped_lines::DroppedLines;
use windrow_engine::ports::handling::handler::LogLine;

/// Lines that may wait.
const QUEUE_MAX: usize = 10_000;
/// Lines of one write. (`config.toml`, `data_log.batch`.)
const BATCH_MAX: usize = 200;
/// How long the last lines may take to be written.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// Stores lines until it is closed.
pub struct HandlerLog {
    writer: JoinHandle<()>,
    dropped: Arc<DroppedLines>,
}

/// A sink for a shard's lines, and what stores them. The writer ends when the sink is gone.
pub fn open(
    log: Arc<dyn DataLog>,
    shard: ShardId,
    clock: Arc<dyn Clock>,
    work: &tokio::runtime::Handle,
) -> (Sink, HandlerLog) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let dropped = Arc::new(DroppedLines::default());
    let writer = work.spawn(write_on(log, receiver, dropped.clone()));
    let lost = dropped.clone();
    let sink = move |line: LogLine| {
        tracing::debug!(target: "windrow::handler", index = line.index.map(|index| index.0), "{}", line.message);
        let line = DataLogLine {
            shard,
            at: clock.wall(),
            origin: LogOrigin::Business,
            code: None,
            line,
        };
        if sender.try_send(line).is_err() {
            lost.add(shard.task, 1);
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
        if tokio::time::timeout(CLOSE_PATIENCE, &mut self.writer)
            .await
            .is_err()
        {
            self.writer.abort();
        }
        tell_dropped(&self.dropped);
    }
}

fn tell_dropped(dropped: &DroppedLines) {
    let dropped = dropped.total();
    if dropped > 0 {
        tracing::warn!(dropped, "the handler printed more than could be kept");
    }
}

async fn write_on(log: Arc<dyn DataLog>, mut lines: mpsc::Receiver<DataLogLine>, dropped: Arc<DroppedLines>) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while lines.recv_many(&mut batch, BATCH_MAX).await > 0 {
        if let Err(error) = log.append(&batch).await {
            tracing::debug!(%error, "lines of the handler were not kept");
            batch.iter().for_each(|line| dropped.add(line.shard.task, 1));
        }
        batch.clear();
        dropped.store(&*log).await;
    }
    dropped.store(&*log).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::ids::TaskId;
    use windrow_engine::ports::handling::data_log::DropReason;
    use windrow_engine::ports::handling::handler::LogLevel;
    use windrow_host::clock::SystemClock;
    use windrow_memory::MemoryStore;

    #[tokio::test]
    async fn lines_that_find_no_room_are_counted_where_people_look() {
        let store = Arc::new(MemoryStore::new());
        let shard = ShardId {
            task: TaskId(7),
            no: 0,
        };
        let clock = Arc::new(SystemClock::new());
        // The writer shares this thread: nothing is taken out until the first await.
        let (sink, log) = open(store.clone(), shard, clock, &tokio::runtime::Handle::current());
        for _ in 0..QUEUE_MAX + 3 {
            sink(LogLine {
                index: None,
                level: LogLevel::Info,
                message: "x".to_owned(),
                extra: None,
            });
        }
        drop(sink);
        log.close().await;
        assert_eq!(
            store.dropped(TaskId(7)).await.expect("read"),
            [(DropReason::Queue, 3)]
        );
        assert_eq!(
            store.after(TaskId(7), 0, u32::MAX).await.expect("read").len(),
            QUEUE_MAX
        );
    }
}
