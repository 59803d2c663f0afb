//! What the façade knows of the process around it: whether it ends, and since when it is there.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::events::Hub;
use crate::domain::ids::{Moment, WallMs};

/// See the module. Shared by every request; changed by whoever runs the process.
pub struct Front {
    /// The node's name, as it is in paths of actors and of `/v1/nodes`.
    pub node: String,
    /// When the process began to serve.
    pub since: Moment,
    pub(super) hub: Hub,
    ending: watch::Sender<bool>,
    drained: AtomicBool,
}

impl Front {
    /// A façade that serves from now on.
    pub fn new(node: impl Into<String>, since: Moment, now: WallMs) -> Front {
        // Ids of events grow through restarts: a node tells fewer than a thousand in a millisecond.
        let hub = Hub::new(now.0.unsigned_abs().saturating_mul(1000));
        Front {
            node: node.into(),
            since,
            hub,
            ending: watch::Sender::new(false),
            drained: AtomicBool::new(false),
        }
    }

    /// `serving`, `drained` or `draining`.
    pub fn state(&self) -> &'static str {
        match (self.is_ending(), self.is_drained()) {
            (true, _) => "draining",
            (false, true) => "drained",
            (false, false) => "serving",
        }
    }

    /// From now on changes are refused, streams say goodbye, and the node isn't ready.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Whether the process ends.
    pub fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Waits until the process ends. Cancel safe.
    pub async fn ended(&self) {
        let mut ending = self.ending.subscribe();
        if ending.wait_for(|ending| *ending).await.is_err() {
            // The sender is ours, so this can't be; a stream that never hears of the end would hold it up.
            tracing::error!("the end of the process can't be heard of");
        }
    }

    /// Remembers that an administrator drained the node, or took that back.
    pub(super) fn set_drained(&self, drained: bool) {
        self.drained.store(drained, Ordering::Release);
    }

    /// Whether an administrator drained the node: it takes no tasks, and goes on to serve.
    pub fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Acquire)
    }
}
