//! Requests of one run: whatever is the same for all items is bound once.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::{Method, Request, Uri};

use super::RequestOptions;
use super::options::Checked;
use crate::http::client::GatedBody;
use crate::http::request::lossy;
use windrow_core::ids::{Attempt, ItemIndex};
use windrow_core::items::verdict::Failure;
use windrow_core::template::request::RequestTemplate;
use windrow_core::template::{Constants, ValueFault};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{OpenError, RunContext};
use windrow_net::idn::with_ascii_host;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Builder of the requests of one run.
pub(super) struct Requests {
    template: RequestTemplate,
    method: Method,
    /// Headers that all requests have.
    fixed: HeaderMap,
    /// Names of the headers that vary, in the template's order.
    names: Vec<HeaderName>,
    /// True if the item key is sent as `idempotency-key`.
    sends_key: bool,
    /// True if a request without a body sends `content-length: 0`: servers may insist on it for methods that have
    /// one.
    says_empty: bool,
    context: Arc<RunContext>,
    clock: Arc<dyn Clock>,
}

impl Requests {
    pub(super) fn new(
        checked: Checked,
        options: &RequestOptions,
        context: Arc<RunContext>,
        clock: Arc<dyn Clock>,
    ) -> Result<Requests, OpenError> {
        let constants = Constants {
            params: context.params.as_deref(),
            secrets: &options.secrets,
            is_masked: false,
        };
        let refuse = |why: ValueFault| OpenError::from(Failure::new("BAD_HANDLER", why.to_string()));
        let mut template = checked.template.bind(constants).map_err(refuse)?;
        let mut fixed = usual_headers(&options.node);
        if let Some((kind, _)) = &template.body {
            fixed.insert(CONTENT_TYPE, HeaderValue::from_static(kind.content_type()));
        }
        let (constant, varying): (Vec<_>, Vec<_>) = std::mem::take(&mut template.headers)
            .into_iter()
            .partition(|(_, value)| value.is_constant());
        for (name, value) in constant {
            let mut text = String::new();
            value
                .render(&template.item(None, 0, "", 1), &mut text)
                .map_err(refuse)?;
            fixed.insert(
                header_name(&name).map_err(refuse)?,
                header_value(&name, &text).map_err(refuse)?,
            );
        }
        let names = varying.iter().map(|(name, _)| header_name(name));
        let names: Vec<HeaderName> = names.collect::<Result<_, _>>().map_err(refuse)?;
        for name in &names {
            fixed.remove(name);
        }
        template.headers = varying;
        Ok(Requests {
            sends_key: !fixed.contains_key(IDEMPOTENCY_KEY) && !names.contains(&IDEMPOTENCY_KEY),
            says_empty: matches!(checked.method, Method::POST | Method::PUT | Method::PATCH),
            template,
            method: checked.method,
            fixed,
            names,
            context,
            clock,
        })
    }

    /// Builds the request of an item with this data.
    pub(super) fn build(
        &self,
        data: Option<&str>,
        index: ItemIndex,
        attempt: Attempt,
    ) -> Result<Request<GatedBody>, ValueFault> {
        let key = self.context.item_key(index);
        let item = self.template.item(data, index.0, &key, attempt.get());
        let rendered = self.template.render(&item)?;
        let url = match rendered.url.is_ascii() {
            true => rendered.url,
            false => with_ascii_host(&rendered.url).into_owned(),
        };
        let uri = Uri::try_from(url).map_err(|why| ValueFault(format!("it is not a valid URL: {why}")))?;
        let mut headers = self.fixed.clone();
        for (name, value) in self.names.iter().zip(&rendered.headers) {
            headers.insert(name.clone(), header_value(name.as_str(), value)?);
        }
        if self.sends_key {
            headers.insert(IDEMPOTENCY_KEY, header_value("idempotency-key", &key)?);
        }
        if rendered.body.is_empty() && self.says_empty {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let body = GatedBody::new(
            Bytes::from(rendered.body),
            self.context.clone(),
            self.clock.clone(),
        );
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// Returns the headers that a template may override.
fn usual_headers(node: &str) -> HeaderMap {
    let agent = format!("windrow/{} (+{node})", env!("CARGO_PKG_VERSION"));
    HeaderMap::from_iter([
        (USER_AGENT, lossy(&agent)),
        // Without it any encoding is acceptable (RFC 9110, 12.5.3).
        (ACCEPT_ENCODING, HeaderValue::from_static("identity")),
    ])
}

fn header_name(name: &str) -> Result<HeaderName, ValueFault> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| ValueFault(format!("{name:?} is not a valid header name")))
}

fn header_value(name: &str, text: &str) -> Result<HeaderValue, ValueFault> {
    let value = HeaderValue::from_bytes(text.as_bytes());
    let mut value = value.map_err(|_| {
        ValueFault(format!(
            "header {name}: it has a character that headers can't contain"
        ))
    })?;
    value.set_sensitive(true);
    Ok(value)
}
