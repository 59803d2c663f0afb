//! Batching of the system's data log lines. They arrive through a bounded queue: when it is full, lines are dropped
//! and counted, so that a chatty handler never slows the items. Lines of replies go with checkpoints (`reply_lines`).

use std::sync::Arc;

use ractor::ActorProcessingErr;
use tokio::sync::{Mutex, mpsc};

use crate::actors::executor::reply_lines::{LineRoom, ReplyLines};
use crate::actors::executor::run_cell::LogSink;
use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::Address;
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::tree::Activity;
use crate::ports::handling::data_log::{DataLog, DataLogLine};
use crate::ports::handling::dropped_lines::DroppedLines;

/// Maximum number of lines that may wait in the queue.
const QUEUE_MAX: usize = 10_000;
/// Maximum number of lines per write (`config.toml`, `data_log.batch`).
const BATCH_MAX: usize = 200;

/// Queue of log lines; it outlives restarts of the writer.
#[derive(Clone)]
pub(crate) struct LogQueue {
    sender: mpsc::Sender<DataLogLine>,
    receiver: Arc<Mutex<mpsc::Receiver<DataLogLine>>>,
    dropped: Arc<DroppedLines>,
    room: Arc<LineRoom>,
}

impl LogQueue {
    pub(crate) fn new() -> LogQueue {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let room = Arc::new(LineRoom::new());
        LogQueue {
            sender,
            receiver: Arc::new(Mutex::new(receiver)),
            dropped: Arc::default(),
            room,
        }
    }

    /// Returns the buffer that holds the lines of a run's replies until a checkpoint takes them.
    pub(crate) fn of_replies(&self, log: Arc<dyn DataLog>) -> ReplyLines {
        ReplyLines::new(Arc::new(move |level| log.keeps(level)), self.room.clone())
    }

    /// Returns the callback with which lanes add lines.
    pub(crate) fn sink(&self) -> LogSink {
        let queue = self.clone();
        Arc::new(move |line| {
            let task = line.shard.task;
            if queue.sender.try_send(line).is_err() {
                queue.dropped.add(task, 1);
            }
        })
    }
}

pub(crate) enum Msg {
    Flush,
    Flushed,
}

pub(crate) struct DataLogWriter {
    node: Arc<NodeContext>,
    queue: LogQueue,
    me: Address<Msg>,
    writing: bool,
}

impl TreeActor for DataLogWriter {
    type Msg = Msg;
    type Arguments = (Arc<NodeContext>, LogQueue);

    async fn begin(me: Address<Msg>, (node, queue): Self::Arguments) -> Result<Self, ActorProcessingErr> {
        me.tell_after(node.times.data_log_flush, Msg::Flush);
        Ok(DataLogWriter {
            node,
            queue,
            me,
            writing: false,
        })
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Flush => {
                self.flush();
                self.me.tell_after(self.node.times.data_log_flush, Msg::Flush);
            }
            Msg::Flushed => self.writing = false,
        }
        Ok(())
    }

    /// Writes the waiting lines before the actor ends.
    async fn end(&mut self) {
        write_all(&self.node, &self.queue).await;
    }
}

impl DataLogWriter {
    fn flush(&mut self) {
        let dropped = self.queue.dropped.total();
        let waiting = QUEUE_MAX - self.queue.sender.capacity();
        self.me
            .leaf
            .say(Activity::Ok, format!("{waiting} waiting, {dropped} dropped"));
        if self.writing || (waiting == 0 && self.queue.dropped.is_stored()) {
            return;
        }
        self.writing = true;
        let (node, queue, me) = (self.node.clone(), self.queue.clone(), self.me.clone());
        tokio::spawn(self.me.guard(async move {
            write_all(&node, &queue).await;
            me.tell(Msg::Flushed);
        }));
    }
}

async fn write_all(node: &NodeContext, queue: &LogQueue) {
    let mut receiver = queue.receiver.lock().await;
    let mut lines = Vec::with_capacity(BATCH_MAX);
    while let Ok(line) = receiver.try_recv() {
        lines.push(line);
        if lines.len() == BATCH_MAX {
            write(node, queue, &mut lines).await;
        }
    }
    if !lines.is_empty() {
        write(node, queue, &mut lines).await;
    }
    queue.dropped.store(&*node.data_log).await;
}

/// Writes lines. They are not worth delaying items: after one more try they are dropped and counted.
async fn write(node: &NodeContext, queue: &LogQueue, lines: &mut Vec<DataLogLine>) {
    let mut written = node.data_log.append(lines).await;
    if written.is_err() {
        written = node.data_log.append(lines).await;
    }
    if let Err(error) = written {
        lines
            .iter()
            .for_each(|line| queue.dropped.add(line.shard.task, 1));
        tracing::warn!(%error, lines = lines.len(), "data log lines dropped");
    }
    lines.clear();
}
