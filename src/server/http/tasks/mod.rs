//! `/v1/tasks`: one pass of a business over its items. Operators steer all tasks, a business its own.

mod bodies;
mod changes;
mod commands;
mod explain;
pub(crate) mod failures;
mod preview;
mod queries;
pub(in crate::http) mod settings;
mod source;
pub(crate) mod view;
mod warnings;

use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::queries::{CountsJson, ListQuery, ShowQuery};
use self::warnings::WarningJson;
use super::App;
use super::problem::Problem;
use crate::http::answer::page;
use crate::http::guard::access::Caller;
use crate::http::guard::body::Params;
use crate::http::guard::dry_run;
use crate::http::guard::etag;
pub(super) use crate::http::tasks::view::handler::{HandlerDownJson, LastErrorJson};
pub(super) use crate::http::tasks::view::history::AuditJson;
pub(super) use crate::http::tasks::view::shown::TaskJson;
use crate::service::ServiceError;
use crate::service::access::tokens::START_TOKEN_PREFIX;
use crate::service::tasks::show::TaskPicture;
use windrow_engine::ports::tasks::store::{TaskView, TokenStart};

/// How far tasks of one status are counted: a number for people, never a walk over all tasks.
const COUNTED_UP_TO: u32 = 10_000;

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, changes::create))
        .routes(routes!(counts))
        .routes(routes!(read, changes::edit, changes::delete))
        .routes(routes!(changes::clone))
        .merge(commands::routes())
        .routes(routes!(failures::abandon::abandon))
        .merge(view::history::routes())
        .routes(routes!(view::stats::stats))
        .routes(routes!(explain::explain))
        .routes(routes!(view::window::window))
        .routes(routes!(preview::preview))
        .routes(routes!(failures::redrives::redrive))
}

type Answer = Result<Response, Problem>;

/// Who steers a task: a caller, and the one start that they may speak of where they hold a start token.
#[derive(Clone, Debug)]
pub(super) struct Steer {
    caller: Caller,
    start: Option<TokenStart>,
}

impl FromRequestParts<App> for Steer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Steer, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let header = parts
            .headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let token = header
            .and_then(|text| text.split_once(' '))
            .map(|(_, token)| token.trim());
        let start = match token.filter(|token| token.starts_with(START_TOKEN_PREFIX)) {
            Some(token) => Some(app.service.start_of_token(token).await?),
            None => None,
        };
        Ok(Steer { caller, start })
    }
}

impl Steer {
    /// The business that the caller is, if it is one.
    pub(super) fn business(&self) -> Option<&str> {
        self.caller.business.as_deref()
    }

    /// A task that the caller may see; any other isn't there.
    pub(super) async fn task(&self, app: &App, text: &str) -> Result<TaskView, Problem> {
        let missing = || ServiceError::no_task(text);
        let id = text.parse().map_err(|_| missing())?;
        if self.start.is_some_and(|start| start.task != id) {
            return Err(missing().into());
        }
        let task = app.service.task(id).await?;
        self.caller.may_see(&task.business, "task", text)?;
        Ok(task)
    }
}

/// A task with its version as the tag.
async fn shown(app: &App, status: StatusCode, task: TaskView) -> Response {
    let tag = etag::tag(task.version);
    (status, [tag], Json(whole(app, task).await)).into_response()
}

/// What a command would have made of a task.
async fn would(app: &App, task: TaskView) -> Result<Response, ServiceError> {
    dry_run::would(&whole(app, task).await)
}

/// A task with its live progress, and what it would not come to.
async fn whole(app: &App, task: TaskView) -> TaskJson {
    let picture = app.service.picture(task).await;
    let warnings = app.service.warnings(&picture.task).await;
    let mut whole = body(app, picture);
    whole.warnings = WarningJson::all(warnings);
    whole
}

/// A task as every surface shows it.
pub(super) fn body(app: &App, picture: TaskPicture) -> TaskJson {
    TaskJson::new(picture, app.service.config().cluster.restore_max)
}

/// List tasks.
///
/// Newest first unless `sort=id`. A page may be short although more follow: go on until `next_cursor` is null.
#[utoipa::path(
    get, path = "/v1/tasks", tag = "tasks", operation_id = "list_tasks", params(ListQuery),
    security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = page::Page<TaskJson>))
)]
async fn list(State(app): State<App>, steer: Steer, uri: Uri, Params(query): Params<ListQuery>) -> Answer {
    let limit = page::limit(query.limit)?;
    let after = page::read::<i64>(query.cursor.as_deref())?.map(windrow_core::ids::TaskId);
    let mut filter = query.filter()?;
    if let Some(own) = steer.caller.business.clone() {
        // A business has its own tasks and no others, whatever it asks for.
        if filter.business.as_ref().is_some_and(|asked| *asked != own) {
            let nothing: page::Page<TaskJson> = page::Page {
                items: Vec::new(),
                next_cursor: None,
            };
            return Ok(page::answer(&uri, nothing));
        }
        filter.business = Some(own);
    }
    let found = app.service.list_tasks(&filter, after, limit).await?;
    let items = found
        .tasks
        .into_iter()
        .map(|picture| body(&app, picture))
        .collect::<Vec<_>>();
    let next_cursor = found.next.map(|id| page::write(&id.0));
    Ok(page::answer(&uri, page::Page { items, next_cursor }))
}

/// Count tasks by status.
///
/// Each number is counted up to `counted_up_to`.
#[utoipa::path(
    get, path = "/v1/tasks/counts", tag = "tasks", operation_id = "count_tasks",
    security(("bearer" = ["viewer"])),
    responses((status = 200, body = CountsJson))
)]
async fn counts(State(app): State<App>) -> Result<Json<CountsJson>, Problem> {
    let counts = app.service.count_tasks(COUNTED_UP_TO).await?;
    Ok(Json(CountsJson::new(COUNTED_UP_TO, &counts)))
}

/// Look at a task.
///
/// With `wait` and `unless` the answer comes as soon as the task's tag is another one, or when the time is over.
#[utoipa::path(
    get, path = "/v1/tasks/{task}", tag = "tasks", operation_id = "show_task",
    params(("task" = String, Path, description = "Its number", pattern = "^t[1-9][0-9]{0,18}$"), ShowQuery),
    security(("bearer" = ["viewer", "business"])),
    responses(
        (status = 200, body = TaskJson, headers(("etag" = String))),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
async fn read(
    State(app): State<App>,
    steer: Steer,
    Path(text): Path<String>,
    Params(query): Params<ShowQuery>,
) -> Answer {
    let (patience, unless) = query.read()?;
    let task = steer.task(&app, &text).await?;
    let task = match unless {
        Some(version) if version == task.version && patience > Duration::ZERO => {
            tokio::select! {
                changed = app.service.await_change(task.id, version, patience) => changed?,
                // Whoever waits would hold up the end of the node, and then hear nothing.
                () = app.front.ended() => task,
            }
        }
        _ => task,
    };
    Ok(shown(&app, StatusCode::OK, task).await)
}
