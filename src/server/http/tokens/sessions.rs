//! `/v1/sessions`: browsers that are signed in. Only for administrators.

use axum::extract::{Path, State};
use windrow_core::text::quoted;

use crate::http::answer::Of;
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::{Call, DryRunQuery, Params, ReasonQuery};
use crate::http::problem::HttpResult;
use crate::service::ServiceError;
use windrow_engine::ports::access::sign_in_store::SignInView;

impl Of<SignInView> for api::SignIn {
    fn of(view: SignInView) -> Self {
        api::SignIn {
            id: view.id,
            token: view.token.id,
            role: view.token.role.as_str().to_owned(),
            name: view.token.name,
            address: view.address,
            created_at: rfc3339(view.created_at),
            expires_at: rfc3339(view.expires_at),
        }
    }
}

/// List browser sessions in order of sign-in.
#[utoipa::path(
    get, path = "/v1/sessions", operation_id = "list_sessions", tag = "access", params(PageQuery),
    security(("bearer" = ["admin"])), responses((status = 200, body = api::Page<api::SignIn>))
)]
pub(crate) async fn list(State(app): State<App>, paging: Paging<i64>) -> HttpResult {
    let access = &app.service.access;
    let found = access.sign_ins.sign_ins(paging.after, paging.to_read()).await?;
    let api::Page {
        mut items,
        next_cursor,
    } = paging.page(found, |one| one.id);
    // An expired session keeps its row until the next sign-in with its token.
    items.retain(|one| one.is_live(app.service.now()));
    Ok(paging.answer(api::Page { items, next_cursor }.map(api::SignIn::of)))
}

/// Sign a browser out immediately.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", operation_id = "end_session", tag = "access",
    params(("id" = i64, Path, description = "Session number", minimum = 1), ReasonQuery, DryRunQuery),
    security(("bearer" = ["admin"])), responses((status = 204, description = "Ended; its cookie is no longer valid"))
)]
pub(crate) async fn end(
    call: Call,
    Path(id): Path<String>,
    Params(query): Params<ReasonQuery>,
) -> HttpResult {
    let number = id.parse::<i64>().ok().filter(|number| *number > 0);
    let fault = || ServiceError::invalid("id", format!("{} is not a session number", quoted(&id)));
    let number = number.ok_or_else(fault)?;
    let write = call.write(query.reason);
    call.service.access.end_sign_in(number, &write).await?;
    Ok(call.deleted()?)
}
