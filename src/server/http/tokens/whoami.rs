//! `GET /v1/whoami`: who the node takes the caller for.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::guard::Caller;

/// Who the node takes the caller for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Whoami {
    /// The token's name.
    name: String,
    /// viewer, operator, admin or business.
    role: &'static str,
    /// The business, for the role business.
    business: Option<String>,
}

/// Who am I?
#[utoipa::path(
    get, path = "/v1/whoami", tag = "access", security(("bearer" = ["viewer", "business"])),
    responses((status = 200, body = Whoami))
)]
pub(crate) async fn whoami(caller: Caller) -> Json<Whoami> {
    Json(Whoami {
        name: caller.name,
        role: caller.role.as_str(),
        business: caller.business,
    })
}
