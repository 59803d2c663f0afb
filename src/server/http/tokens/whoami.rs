//! `GET /v1/whoami`: who the node takes the caller for, and which node that is.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::App;
use crate::http::answer::time::rfc3339;
use crate::http::guard::Caller;
use crate::service::access::sign_ins::SignIn;

/// Who the node takes the caller for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Whoami {
    /// The token's name.
    name: String,
    /// viewer, operator, admin, business or reader.
    role: &'static str,
    /// The business, for the role business; of a reader that whose datasets it reads, null is all.
    business: Option<String>,
    /// How callers are known here, `auth.mode`: token, proxy or off.
    auth: String,
    /// The browser's session; null for who is known by something else.
    session: Option<OwnSession>,
    /// The node that answers.
    node: String,
    /// The version of its program.
    version: &'static str,
    /// The time by its clock.
    #[schema(format = DateTime)]
    now: String,
}

/// The session by which a browser is known.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OwnSession {
    /// Its number.
    id: i64,
    /// When the browser has to sign in again.
    #[schema(format = DateTime)]
    expires_at: String,
}

impl From<SignIn> for OwnSession {
    fn from(sign_in: SignIn) -> OwnSession {
        OwnSession {
            id: sign_in.id,
            expires_at: rfc3339(sign_in.expires_at),
        }
    }
}

/// Who am I?
#[utoipa::path(
    get, path = "/v1/whoami", tag = "access", security(("bearer" = ["viewer", "business", "reader"])),
    responses((status = 200, body = Whoami))
)]
pub(crate) async fn whoami(State(app): State<App>, caller: Caller) -> Json<Whoami> {
    Json(Whoami {
        name: caller.name,
        role: caller.role.as_str(),
        business: caller.business,
        auth: app.service.config().auth.mode.to_string(),
        session: caller.sign_in.map(OwnSession::from),
        node: app.front.node.clone(),
        version: env!("CARGO_PKG_VERSION"),
        now: rfc3339(app.service.now()),
    })
}
