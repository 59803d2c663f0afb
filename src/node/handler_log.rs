//! Log lines that workers write beside their responses. They go to the task's data log, and to the node's own log at
//! `debug`.
//!
//! Never blocks a worker: lines that don't fit the queue are dropped, counted, and reported at the end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::handlers::Sink;
use windrow_core::ids::ShardId;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::data_log::{DataLog, DataLogLine, LogOrigin};
use windrow_engine::ports::handling::dropped_lines::DroppedLines;
use windrow_engine::ports::handling::handler::LogLine;

/// Maximum number of queued lines.
const QUEUE_MAX: usize = 10_000;
/// Maximum lines per write, as `data_log.batch` in `config.toml`.
const BATCH_MAX: usize = 200;
/// Time limit for writing the last lines after all handlers are done.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// Writer of log lines, until it is closed.
pub struct HandlerLog {
    writer: JoinHandle<()>,
    dropped: Arc<DroppedLines>,
    /// Dropped to close the log: the writer then accepts no more lines, even if someone still holds the sink.
    open: oneshot::Sender<()>,
}

/// Returns a sink for a shard's lines, and the log that stores them. The writer ends when the log is closed or the
/// sink is dropped.
pub fn open(
    log: Arc<dyn DataLog>,
    shard: ShardId,
    clock: Arc<dyn Clock>,
    work: &tokio::runtime::Handle,
) -> (Sink, HandlerLog) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let dropped = Arc::new(DroppedLines::default());
    let (open, closed) = oneshot::channel();
    let writer = work.spawn(write_on(log, receiver, dropped.clone(), closed));
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
    let log = HandlerLog {
        writer,
        dropped,
        open,
    };
    (Arc::new(sink), log)
}

impl HandlerLog {
    /// Detaches the writer, which ends when the sink is dropped and then reports lost lines.
    pub fn detach(self, work: &tokio::runtime::Handle) {
        let HandlerLog {
            writer,
            dropped,
            open,
        } = self;
        work.spawn(async move {
            if let Err(error) = writer.await {
                tracing::error!(%error, "writer of the handler's lines failed");
            }
            drop(open);
            tell_dropped(&dropped);
        });
    }

    /// Stores the queued lines and ends. Lines sent afterwards count as dropped.
    pub async fn close(self) {
        let HandlerLog {
            mut writer,
            dropped,
            open,
        } = self;
        drop(open);
        match tokio::time::timeout(CLOSE_PATIENCE, &mut writer).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "writer of the handler's lines failed"),
            Err(_) => {
                writer.abort();
                tracing::warn!("last lines printed by the handler were not stored within {CLOSE_PATIENCE:?}");
            }
        }
        tell_dropped(&dropped);
    }
}

fn tell_dropped(dropped: &DroppedLines) {
    let dropped = dropped.total();
    if dropped > 0 {
        tracing::warn!(dropped, "handler printed more lines than could be stored");
    }
}

async fn write_on(
    log: Arc<dyn DataLog>,
    mut lines: mpsc::Receiver<DataLogLine>,
    dropped: Arc<DroppedLines>,
    mut closed: oneshot::Receiver<()>,
) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    loop {
        tokio::select! {
            received = lines.recv_many(&mut batch, BATCH_MAX) => if received == 0 {
                break;
            },
            _ = &mut closed, if !lines.is_closed() => {
                // Lines already queued are still received.
                lines.close();
                continue;
            }
        }
        if let Err(error) = log.append(&batch).await {
            tracing::debug!(%error, "lines of the handler were not stored");
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
    #[tokio::test(start_paused = true)]
    async fn closing_waits_for_the_last_lines_and_not_for_whoever_holds_the_sink() {
        let store = Arc::new(MemoryStore::new());
        let shard = ShardId {
            task: TaskId(7),
            no: 0,
        };
        let clock = Arc::new(SystemClock::new());
        let (sink, log) = open(store.clone(), shard, clock, &tokio::runtime::Handle::current());
        let line = || LogLine {
            index: None,
            level: LogLevel::Info,
            message: "the last one".to_owned(),
            extra: None,
        };
        sink(line());
        let begun = tokio::time::Instant::now();
        log.close().await;
        assert!(begun.elapsed() < CLOSE_PATIENCE, "{:?}", begun.elapsed());
        assert_eq!(store.after(TaskId(7), 0, 10).await.expect("read").len(), 1);
        sink(line());
    }
}
