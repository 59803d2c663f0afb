//! Forwarding of other nodes' hints to the supervisor, for as long as the tree lives. It is not an actor: it holds no
//! state, and without it polling finds the same, later.

use std::sync::Arc;

use tokio::sync::watch;

use crate::actors::runtime::address::Address;
use crate::actors::runtime::context::NodeContext;
use crate::actors::supervisor::Msg;
use crate::ports::ownership::hints::{Hint, Hints};

/// Listens until the supervisor is gone.
pub(crate) async fn listen(
    source: Arc<dyn Hints>,
    supervisor: Address<Msg>,
    mut over: watch::Receiver<bool>,
) {
    loop {
        let hints = tokio::select! {
            heard = source.heard() => heard,
            // A dropped sender means the end as well.
            _ = over.wait_for(|over| *over) => return,
        };
        supervisor.tell(Msg::Hints(hints));
    }
}

impl NodeContext {
    /// Sends a hint to the other nodes, if hints are available.
    pub(crate) fn hint(&self, hint: Hint) {
        if let Some(hints) = &self.hints {
            hints.send(hint);
        }
    }
}
