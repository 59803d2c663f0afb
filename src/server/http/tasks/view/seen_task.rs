//! The task of a path, which is there and which the caller may see.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::http::App;
use crate::http::problem::Problem;
use crate::http::tasks::Steer;
use crate::service::ServiceError;
use windrow_engine::ports::tasks::store::TaskView;

/// The task that `{task}` names. To a business the tasks of others aren't there, to a start token all but its own.
pub(crate) struct SeenTask(pub(crate) TaskView);

impl FromRequestParts<App> for SeenTask {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<SeenTask, Problem> {
        let steer = Steer::from_request_parts(parts, app).await?;
        let text = path_param(parts, app, "task").await?;
        Ok(SeenTask(steer.task(app, &text).await?))
    }
}

/// A parameter of the path, decoded.
pub(crate) async fn path_param(parts: &mut Parts, app: &App, name: &str) -> Result<String, Problem> {
    let found = RawPathParams::from_request_parts(parts, app).await;
    let found = found.map_err(|_| ServiceError::invalid("path", "the path is not UTF-8"))?;
    let value = found
        .iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned());
    Ok(value.ok_or_else(|| ServiceError::Internal(format!("the route has no {name}")))?)
}
