//! Hints among nodes: "look at that row now". They save the wait for the next poll and decide nothing: one that is
//! lost costs the rest of a poll's interval, one that is forged costs a look.

use async_trait::async_trait;

use windrow_core::ids::{SessionId, TaskId};

/// What another node should look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hint {
    /// A task's wish or settings were changed, or it was started: its runs read their control, others look for work.
    Task(TaskId),
    /// A shard was given back: whoever has room looks for work.
    Work,
    /// A session was fenced, or its node was told something: its heart beats at once, which finds out.
    Session(SessionId),
}

/// Carries hints from a node to all others. A node never hears its own.
#[async_trait]
pub trait Hints: Send + Sync {
    /// Tells the other nodes, some time soon. Never waits: what doesn't fit into the bounded queue is dropped and
    /// counted, since polling finds it anyway.
    fn send(&self, hint: Hint);

    /// The next hints of other nodes, each once; waits until there are some. There is one listener. Cancel safe.
    async fn heard(&self) -> Vec<Hint>;
}
