//! What happens on this node: how much of it is taken, how many run.

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::topic::{Kind, Watcher};
use crate::http::App;

/// The node's numbers.
pub(super) fn node_picture(app: &App) -> Value {
    let supervisor = app.service.supervisor();
    let room = supervisor.room();
    json!({
        "id": app.front.node,
        "state": app.front.state(),
        "capacity_rate": room.capacity.map_or_else(|| "unlimited".to_owned(), |load| load.to_string()),
        "reserved_rate": room.reserved.to_string(),
        "runs": room.shards,
        "waiting": room.waiting,
        "actors": supervisor.tree().view().len(),
    })
}

/// See the module.
pub(super) struct NodeWatcher {
    app: App,
    told: Value,
    looked_at: Option<Instant>,
}

impl NodeWatcher {
    pub(super) fn new(app: App) -> NodeWatcher {
        NodeWatcher { app, told: Value::Null, looked_at: None }
    }
}

#[async_trait]
impl Watcher for NodeWatcher {
    async fn look(&mut self) -> Vec<(Kind, Value)> {
        if self.looked_at.is_some_and(|at| at.elapsed().as_secs() < 1) {
            return Vec::new();
        }
        self.looked_at = Some(Instant::now());
        let now = node_picture(&self.app);
        if self.told == now {
            return Vec::new();
        }
        self.told = now.clone();
        vec![(Kind::Node, now)]
    }
}
