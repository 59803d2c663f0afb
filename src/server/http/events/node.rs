//! What happens on a node: how much of it is taken, how many run.

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::topic::{Kind, Watcher};
use crate::http::App;
use crate::http::nodes;
use crate::service::ServiceError;

/// A node's numbers; of one that can't be asked, what is stored.
pub(super) async fn node_picture(app: &App, name: &str) -> Result<Value, ServiceError> {
    let mut picture = nodes::one(app, name).await?.numbers();
    if name == app.front.node {
        picture["actors"] = json!(app.service.supervisor().tree().view().len());
    }
    Ok(picture)
}

/// The numbers of all nodes, the one that answers first.
pub(super) async fn node_pictures(app: &App) -> Result<Vec<Value>, ServiceError> {
    let mut pictures: Vec<Value> = nodes::all(app)
        .await?
        .iter()
        .map(nodes::NodeBody::numbers)
        .collect();
    if let Some(here) = pictures.first_mut() {
        here["actors"] = json!(app.service.supervisor().tree().view().len());
    }
    Ok(pictures)
}

/// See the module.
pub(super) struct NodeWatcher {
    app: App,
    name: String,
    told: Value,
    looked_at: Option<Instant>,
}

impl NodeWatcher {
    pub(super) fn new(app: App, name: String) -> NodeWatcher {
        NodeWatcher {
            app,
            name,
            told: Value::Null,
            looked_at: None,
        }
    }
}

#[async_trait]
impl Watcher for NodeWatcher {
    async fn look(&mut self) -> Vec<(Kind, Value)> {
        if self.looked_at.is_some_and(|at| at.elapsed().as_secs() < 1) {
            return Vec::new();
        }
        self.looked_at = Some(Instant::now());
        let now = match node_picture(&self.app, &self.name).await {
            Ok(now) => now,
            Err(error) => {
                tracing::debug!(%error, node = self.name, "a node was not looked at for a stream");
                return Vec::new();
            }
        };
        if self.told == now {
            return Vec::new();
        }
        self.told = now.clone();
        vec![(Kind::Node, now)]
    }
}
