//! Events of a node: its load and the number of running tasks.

use serde_json::{Value, json};

use crate::http::front::App;
use crate::http::nodes;
use crate::service::ServiceError;

/// Returns a node's numbers; stored ones if it can't be reached.
pub(super) async fn node_picture(app: &App, name: &str) -> Result<Value, ServiceError> {
    let mut picture = nodes::body::numbers(&nodes::one(app, name).await?);
    if name == app.front.node {
        picture["actors"] = json!(app.service.supervisor().tree().view().len());
    }
    Ok(picture)
}

/// Returns the numbers of all nodes, this node first.
pub(super) async fn node_pictures(app: &App) -> Result<Vec<Value>, ServiceError> {
    let mut pictures: Vec<Value> = nodes::all(app).await?.iter().map(nodes::body::numbers).collect();
    if let Some(here) = pictures.first_mut() {
        here["actors"] = json!(app.service.supervisor().tree().view().len());
    }
    Ok(pictures)
}
