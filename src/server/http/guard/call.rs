//! Common arguments of handlers with an authenticated caller.

use std::sync::Arc;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::http::front::App;
use crate::http::guard::body::Params;
use crate::http::guard::caller::Caller;
use crate::http::guard::dry_run::{self, DryRunQuery};
use crate::http::guard::headers;
use crate::http::problem::Problem;
use crate::service::{Service, ServiceError};
use windrow_engine::ports::tasks::store::Write;

/// Request of an authenticated caller, possibly a dry run.
pub(crate) struct Call {
    pub(crate) app: App,
    pub(crate) service: Arc<Service>,
    pub(crate) caller: Caller,
    pub(crate) is_dry: bool,
}

impl FromRequestParts<App> for Call {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Call, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let Params(DryRunQuery { dry_run }) = Params::from_request_parts(parts, app).await?;
        Ok(Call {
            app: app.clone(),
            service: app.service.clone(),
            caller,
            is_dry: dry_run == Some(true),
        })
    }
}

impl Call {
    /// Returns the context of the write that this request makes.
    pub(crate) fn write(&self, reason: Option<String>) -> Write {
        self.caller.write(reason, self.is_dry)
    }

    /// Builds the response to a change; for a dry run, the result that the change would have.
    pub(crate) fn changed<T: Serialize, R: IntoResponse>(
        &self,
        body: T,
        done: impl FnOnce(Json<T>) -> R,
    ) -> Result<Response, ServiceError> {
        match self.is_dry {
            true => dry_run::would(&body, false),
            false => Ok(done(Json(body)).into_response()),
        }
    }

    /// Builds the 201 response with its location; for a dry run, the object that would be created.
    pub(crate) fn made<T: Serialize>(
        &self,
        place: impl Into<Option<String>>,
        etag: Option<u64>,
        body: T,
    ) -> Result<Response, ServiceError> {
        if self.is_dry {
            return dry_run::would(&body, true);
        }
        let mut response = (StatusCode::CREATED, Json(body)).into_response();
        let place = place.into().and_then(|place| HeaderValue::try_from(place).ok());
        response
            .headers_mut()
            .extend(place.map(|place| (LOCATION, place)));
        response.headers_mut().extend(etag.map(headers::tag));
        Ok(response)
    }

    /// Builds the response to a deletion. A dry run returns an empty result.
    pub(crate) fn deleted(&self) -> Result<Response, ServiceError> {
        self.changed((), |_| StatusCode::NO_CONTENT)
    }
}
