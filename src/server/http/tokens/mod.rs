//! `/v1/tokens`: who may call. For administrators only.

pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod whoami;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::App;
use super::problem::HttpResult;
use crate::http::answer::page::{Page, PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::guard::{Body, Call, DryRunQuery, Params, ReasonQuery, reason, time_option};
use crate::service::ServiceError;
use crate::service::access::tokens::TOKEN_PREFIX;
use windrow_core::business::access::Role;
use windrow_core::text::quoted;
use windrow_engine::ports::access::token_store::{TokenGrant, TokenView};

/// A token to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenBody {
    /// Who will hold it, for the audit.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// What it allows: `viewer`, `operator`, `admin`, `business`, or `reader` (of datasets).
    #[schema(value_type = String, pattern = "^(viewer|operator|admin|business|reader)$")]
    role: Role,
    /// The business, for the roles business and reader only; a reader without one reads the datasets of all.
    #[schema(max_length = 40)]
    business: Option<String>,
    /// Not believed from then on; none is never.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// A token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenJson {
    /// Its number.
    id: i64,
    /// Who holds it.
    name: String,
    /// Its first characters.
    prefix: String,
    /// What it allows.
    role: &'static str,
    /// The business, for the role business.
    business: Option<String>,
    /// Not believed from then on.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Not believed since then.
    #[schema(format = DateTime)]
    revoked_at: Option<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// Who made it.
    created_by: String,
    /// The token itself; only in the answer that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl From<TokenView> for TokenJson {
    fn from(view: TokenView) -> TokenJson {
        TokenJson {
            id: view.id,
            name: view.name,
            prefix: view.prefix,
            role: view.role.as_str(),
            business: view.business,
            expires_at: view.expires_at.map(rfc3339),
            revoked_at: view.revoked_at.map(rfc3339),
            created_at: rfc3339(view.created_at),
            created_by: view.created_by,
            token: None,
        }
    }
}

/// Make a token. The reply holds it, once.
#[utoipa::path(
    post, path = "/v1/tokens", operation_id = "create_token", tag = "access", params(DryRunQuery),
    request_body = TokenBody, security(("bearer" = ["admin"])), responses((status = 201, body = TokenJson))
)]
pub(crate) async fn create(call: Call, Body(body): Body<TokenBody>) -> HttpResult {
    let wish = TokenGrant {
        name: body.name,
        role: body.role,
        business: body.business,
        expires_at: time_option("/expires_at", body.expires_at.as_ref())?,
    };
    let write = call.write(body.reason);
    let made = call.service.access.create(wish, &write).await?;
    let mut json = TokenJson::from(made.view);
    if call.is_dry {
        // The token that was drawn is none, so nobody is shown it.
        json.prefix = TOKEN_PREFIX.to_owned();
    } else {
        json.token = Some(made.token);
    }
    Ok(call.made(None, None, json)?)
}

/// List tokens, revoked ones too, in the order in which they were made.
#[utoipa::path(
    get, path = "/v1/tokens", operation_id = "list_tokens", tag = "access", params(PageQuery),
    security(("bearer" = ["admin"])), responses((status = 200, body = Page<TokenJson>))
)]
pub(crate) async fn list(State(app): State<App>, paging: Paging<i64>) -> HttpResult {
    let tokens = &app.service.access.tokens;
    let found = tokens.tokens(paging.after, paging.to_read()).await?;
    Ok(paging.answer(paging.page(found, |token| token.id).map(TokenJson::from)))
}

/// Take a token's validity away, at once.
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", operation_id = "revoke_token", tag = "access",
    params(("id" = i64, Path, description = "Its number", minimum = 1), ReasonQuery, DryRunQuery),
    security(("bearer" = ["admin"])), responses((status = 204, description = "It is not believed any more"))
)]
pub(crate) async fn revoke(
    call: Call,
    Path(id): Path<String>,
    Params(query): Params<ReasonQuery>,
) -> HttpResult {
    let number = id.parse::<i64>().ok().filter(|number| *number > 0);
    let fault = || ServiceError::invalid("id", format!("{} is not the number of a token", quoted(&id)));
    let number = number.ok_or_else(fault)?;
    let write = call.write(query.reason);
    let revoked = call.service.access.revoke(number, &write).await?;
    Ok(call.changed(TokenJson::from(revoked), |_| StatusCode::NO_CONTENT)?)
}
