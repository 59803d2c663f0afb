//! Hints among nodes: "look at that row now". They save the wait for the next poll and decide nothing: a lost one
//! costs the rest of a poll's interval, a forged one costs one check.

use async_trait::async_trait;

use windrow_core::ids::{SessionId, TaskId};

/// Row that another node should check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hint {
    /// A task's desired state or settings were changed, or it was started: its runs read their control, others look
    /// for work.
    Task(TaskId),
    /// A shard was given back: nodes with room look for work.
    Work,
    /// A session was fenced, or there is news for its node: it sends a heartbeat at once, which finds out.
    Session(SessionId),
}

/// Carrier of hints from a node to all others. A node never receives its own.
#[async_trait]
pub trait Hints: Send + Sync {
    /// Sends a hint to the other nodes, some time soon. Never waits: a hint that doesn't fit into the bounded queue
    /// is dropped and counted, since polling finds it anyway.
    fn send(&self, hint: Hint);

    /// Returns the next hints of other nodes, each once; waits until there are some. There is one listener. Cancel
    /// safe.
    async fn heard(&self) -> Vec<Hint>;
}
