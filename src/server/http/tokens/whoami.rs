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
    /// viewer, operator, admin, business or reader.
    role: &'static str,
    /// The business, for the role business; of a reader that whose datasets it reads, null is all.
    business: Option<String>,
}

/// Who am I?
#[utoipa::path(
    get, path = "/v1/whoami", tag = "access", security(("bearer" = ["viewer", "business", "reader"])),
    responses((status = 200, body = Whoami))
)]
pub(crate) async fn whoami(caller: Caller) -> Json<Whoami> {
    Json(Whoami {
        name: caller.name,
        role: caller.role.as_str(),
        business: caller.business,
    })
}
