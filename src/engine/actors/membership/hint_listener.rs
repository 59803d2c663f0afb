//! Passes what other nodes hint at to the supervisor, for as long as the tree lives. No actor: it holds nothing, and
//! without it polling finds the same, later.

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
            // The sender going away is the end as well.
            _ = over.wait_for(|over| *over) => return,
        };
        supervisor.tell(Msg::Hints(hints));
    }
}

impl NodeContext {
    /// Tells the other nodes, where there is a way to.
    pub(crate) fn hint(&self, hint: Hint) {
        if let Some(hints) = &self.hints {
            hints.send(hint);
        }
    }
}
