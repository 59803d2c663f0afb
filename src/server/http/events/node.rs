//! What happens on a node: how much of it is taken, how many run.

use serde_json::{Value, json};

use crate::http::front::App;
use crate::http::nodes;
use crate::service::ServiceError;

/// A node's numbers; of one that can't be asked, what is stored.
pub(super) async fn node_picture(app: &App, name: &str) -> Result<Value, ServiceError> {
    let mut picture = nodes::body::numbers(&nodes::one(app, name).await?);
    if name == app.front.node {
        picture["actors"] = json!(app.service.supervisor().tree().view().len());
    }
    Ok(picture)
}

/// The numbers of all nodes, the one that answers first.
pub(super) async fn node_pictures(app: &App) -> Result<Vec<Value>, ServiceError> {
    let mut pictures: Vec<Value> = nodes::all(app).await?.iter().map(nodes::body::numbers).collect();
    if let Some(here) = pictures.first_mut() {
        here["actors"] = json!(app.service.supervisor().tree().view().len());
    }
    Ok(pictures)
}
