//! The router of a node of jobs.

use axum::extract::Request;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tower::ServiceExt;

/// Where a node says which jobs it runs: an array of [`BegunJob`].
pub const PATH: &str = "/jobs";

/// A job that a process has begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BegunJob {
    /// Its task, `t42`.
    pub task: String,
    /// Its name.
    pub name: String,
}

/// [`PATH`] answers `jobs`; all else is the façade, which is asked for when the first such request comes.
pub fn router<J, F>(jobs: J, facade: F) -> Router
where
    J: Fn() -> Vec<BegunJob> + Clone + Send + Sync + 'static,
    F: Fn() -> Router + Clone + Send + Sync + 'static,
{
    let list = move || {
        let jobs = jobs();
        async { Json(jobs) }
    };
    let other = move |request: Request| {
        let answer = facade().oneshot(request);
        async {
            let Ok(response): Result<Response, std::convert::Infallible> = answer.await;
            response
        }
    };
    Router::new().route(PATH, get(list)).fallback(other)
}
