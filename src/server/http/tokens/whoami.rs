//! `GET /v1/whoami`: identity of the caller and of the node.

use axum::Json;
use axum::extract::State;

use crate::http::answer::Of;
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::Caller;
use crate::service::access::sign_ins::SignIn;

impl Of<SignIn> for api::OwnSession {
    fn of(sign_in: SignIn) -> Self {
        api::OwnSession {
            id: sign_in.id,
            expires_at: rfc3339(sign_in.expires_at),
        }
    }
}

/// Get the caller's identity
#[utoipa::path(
    get, path = "/v1/whoami", tag = "access", security(("bearer" = ["viewer", "business", "reader"])),
    responses((status = 200, body = api::Whoami))
)]
pub(crate) async fn whoami(State(app): State<App>, caller: Caller) -> Json<api::Whoami> {
    Json(api::Whoami {
        name: caller.name,
        role: caller.role.as_str().to_owned(),
        role_from: caller.role_from,
        business: caller.business,
        auth: app.service.config().auth.mode.to_string(),
        session: caller.sign_in.map(api::OwnSession::of),
        node: app.front.node.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: rfc3339(app.service.now()),
    })
}
