//! `/v1/tokens`: access tokens. Only for administrators.

pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod whoami;

use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::problem::HttpResult;
use crate::http::answer::Of;
use crate::http::answer::page::{PageQuery, Paging};
use crate::http::answer::time::rfc3339;
use crate::http::front::App;
use crate::http::guard::{Body, Call, DryRunQuery, Params, ReasonQuery, time_option};
use crate::service::ServiceError;
use crate::service::access::tokens::TOKEN_PREFIX;
use windrow_core::text::quoted;
use windrow_engine::ports::access::token_store::{TokenGrant, TokenView};

impl Of<TokenView> for api::Token {
    fn of(view: TokenView) -> Self {
        api::Token {
            id: view.id,
            name: view.name,
            prefix: view.prefix,
            role: view.role.as_str().to_owned(),
            business: view.business,
            expires_at: view.expires_at.map(rfc3339),
            revoked_at: view.revoked_at.map(rfc3339),
            created_at: rfc3339(view.created_at),
            created_by: view.created_by,
            token: None,
        }
    }
}

/// Create a token. The response contains it, which is the only time it is shown.
#[utoipa::path(
    post, path = "/v1/tokens", operation_id = "create_token", tag = "access", params(DryRunQuery),
    request_body = api::CreateToken, security(("bearer" = ["admin"])), responses((status = 201, body = api::Token))
)]
pub(crate) async fn create(call: Call, Body(body): Body<api::CreateToken>) -> HttpResult {
    let wish = TokenGrant {
        name: body.name,
        role: body.role,
        business: body.business,
        expires_at: time_option("/expires_at", body.expires_at.as_ref())?,
    };
    let write = call.write(body.reason);
    let made = call.service.access.create(wish, &write).await?;
    let mut json = api::Token::of(made.view);
    if call.is_dry {
        // A dry run creates no token, so not even its prefix is shown.
        json.prefix = TOKEN_PREFIX.to_owned();
    } else {
        json.token = Some(made.token);
    }
    Ok(call.made(None, None, json)?)
}

/// List tokens in order of creation, including revoked ones.
#[utoipa::path(
    get, path = "/v1/tokens", operation_id = "list_tokens", tag = "access", params(PageQuery),
    security(("bearer" = ["admin"])), responses((status = 200, body = api::Page<api::Token>))
)]
pub(crate) async fn list(State(app): State<App>, paging: Paging<i64>) -> HttpResult {
    let tokens = &app.service.access.tokens;
    let found = tokens.tokens(paging.after, paging.to_read()).await?;
    Ok(paging.answer(paging.page(found, |token| token.id).map(api::Token::of)))
}

/// Revoke a token immediately.
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", operation_id = "revoke_token", tag = "access",
    params(("id" = i64, Path, description = "Token number", minimum = 1), ReasonQuery, DryRunQuery),
    security(("bearer" = ["admin"])), responses((status = 204, description = "Revoked"))
)]
pub(crate) async fn revoke(
    call: Call,
    Path(id): Path<String>,
    Params(query): Params<ReasonQuery>,
) -> HttpResult {
    let number = id.parse::<i64>().ok().filter(|number| *number > 0);
    let fault = || ServiceError::invalid("id", format!("{} is not a token number", quoted(&id)));
    let number = number.ok_or_else(fault)?;
    let write = call.write(query.reason);
    let revoked = call.service.access.revoke(number, &write).await?;
    Ok(call.changed(api::Token::of(revoked), |_| StatusCode::NO_CONTENT)?)
}
