//! Extractors for the task in a path, which must exist and be visible to the caller.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use crate::http::front::App;
use crate::http::guard::{Caller, headers};
use crate::http::problem::Problem;
use crate::service::ServiceError;
use crate::service::access::tokens::START_TOKEN_PREFIX;
use windrow_engine::ports::tasks::store::{TaskView, TokenStart};

/// Task start that the caller's token belongs to; `None` for any other token.
pub(crate) struct StartToken(pub(crate) Option<TokenStart>);

impl FromRequestParts<App> for StartToken {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<StartToken, Problem> {
        let token = headers::text(&parts.headers, AUTHORIZATION).split_once(' ');
        let token = token.map(|(_, token)| token.trim());
        Ok(StartToken(
            match token.filter(|token| token.starts_with(START_TOKEN_PREFIX)) {
                Some(token) => Some(app.service.access.start_of_token(token).await?),
                None => None,
            },
        ))
    }
}

/// Task named by `{task}` in the path. A business gets a 404 for tasks of others, a start token for any task but its
/// own.
pub(crate) struct PathTask(pub(crate) TaskView);

impl FromRequestParts<App> for PathTask {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<PathTask, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let StartToken(start) = StartToken::from_request_parts(parts, app).await?;
        let text = path_param(parts, app, "task").await?;
        let missing = || ServiceError::no_task(&text);
        let id = text.parse().map_err(|_| missing())?;
        if start.is_some_and(|start| start.task != id) {
            return Err(missing().into());
        }
        let task = app.service.tasks.get(id).await?;
        caller.may_see(&task.business, "task", &text)?;
        Ok(PathTask(task))
    }
}

/// Returns a decoded parameter of the path.
pub(crate) async fn path_param(parts: &mut Parts, app: &App, name: &str) -> Result<String, Problem> {
    let found = RawPathParams::from_request_parts(parts, app).await;
    let found = found.map_err(|_| ServiceError::invalid("path", "the path is not UTF-8"))?;
    let value = found
        .iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned());
    Ok(value.ok_or_else(|| ServiceError::Internal(format!("the route has no {name}")))?)
}
