//! What others hold of the tree: a handle with named methods, never an actor.

use std::sync::Arc;
use std::time::Duration;

use ractor::Actor;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::context::NodeContext;
use super::supervisor::{Arguments, Msg, Supervisor};
use super::tree::{Address, Tree};
use crate::domain::capacity::Ledger;
use crate::domain::execution::Progress;
use crate::domain::ids::{ShardId, TaskId};

/// The supervision tree did not come up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node's actors did not start: {0}")]
pub struct NotStarted(String);

/// The supervision tree of a node, from outside.
pub struct SupervisorHandle {
    node: Arc<NodeContext>,
    address: Address<Msg>,
    ended: JoinHandle<()>,
}

impl SupervisorHandle {
    /// Starts the tree.
    ///
    /// # Errors
    /// When a child can't start, for example since another node of this name lives in the process.
    pub async fn start(node: Arc<NodeContext>, ledger: Ledger) -> Result<SupervisorHandle, NotStarted> {
        let leaf = node.tree.enter(&node.node, super::policy::Kind::Supervisor);
        let arguments = Arguments { node: node.clone(), leaf: leaf.clone(), ledger };
        let (actor, ended) = Actor::spawn(Some(node.node.clone()), Supervisor, arguments)
            .await
            .map_err(|error| NotStarted(error.to_string()))?;
        tracing::info!(node = node.node, tree = %format_args!("\n{}", node.tree.render("")), "node up");
        Ok(SupervisorHandle { address: Address::new(actor, leaf), node, ended })
    }

    /// Something changed in the store: look for work now instead of at the next scan.
    pub fn wake(&self) {
        self.address.tell(Msg::Wake);
    }

    /// A task's wish or settings changed: its runs look at once instead of at the next heartbeat.
    pub fn nudge(&self, task: TaskId) {
        self.address.tell(Msg::Nudge(task));
    }

    /// The tree as people see it.
    pub fn tree(&self) -> &Tree {
        &self.node.tree
    }

    /// The live progress of each shard of a task that runs here.
    pub fn progress(&self, task: TaskId) -> Vec<(ShardId, Progress)> {
        self.node.directory.progress(task)
    }

    /// Whether the tree has ended (drained, or its supervisor failed).
    pub fn is_over(&self) -> bool {
        self.ended.is_finished()
    }

    /// Takes no new work, drains what runs, gives every shard back, ends the tree. Says whether it ended in time.
    pub async fn drain(self, patience: Duration) -> bool {
        let (sender, drained) = oneshot::channel();
        self.address.tell(Msg::Drain(sender));
        let ended = async {
            // The sender is dropped with the supervisor's state, whichever way it ends.
            drained.await.err();
            self.ended.await
        };
        let over = tokio::time::timeout(patience, ended).await.is_ok();
        let alive = self.node.tree.render("");
        if over {
            tracing::info!(node = self.node.node, "node down: every actor ended");
        } else {
            tracing::error!(tree = %format_args!("\n{alive}"), "still alive after the drain");
        }
        over
    }
}
