//! Requests to a node.

use bytes::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::error::ClientError;

/// Characters to escape in path segments and queries: all except the unreserved ones of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Header that makes a repeated POST take effect once.
pub(super) const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request, to be sent with `Client::send`.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) method: Method,
    /// Path with its query.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// True if it is never retried: the first response is the one that is wanted.
    pub(super) once: bool,
    /// Fault found while building; reported on sending, so that requests can be written in one chain.
    fault: Option<String>,
}

impl Request {
    /// Creates a request of any method. `path` starts with a slash; escape segments from outside with [`segment`].
    pub fn new(method: Method, path: &str) -> Request {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if method == Method::POST {
            let key = uuid::Uuid::now_v7().to_string();
            headers.extend(HeaderValue::try_from(key).ok().map(|key| (KEY, key)));
        }
        Request {
            method,
            path: path.to_owned(),
            headers,
            body: Bytes::new(),
            once: false,
            fault: None,
        }
    }

    /// Creates a GET request.
    pub fn get(path: &str) -> Request {
        Request::new(Method::GET, path)
    }

    /// Creates a POST request with a new idempotency key.
    pub fn post(path: &str) -> Request {
        Request::new(Method::POST, path)
    }

    /// Creates a PATCH request.
    pub fn patch(path: &str) -> Request {
        Request::new(Method::PATCH, path)
    }

    /// Creates a DELETE request.
    pub fn delete(path: &str) -> Request {
        Request::new(Method::DELETE, path)
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn query(mut self, name: &str, value: impl std::fmt::Display) -> Request {
        let sign = if self.path.contains('?') { '&' } else { '?' };
        self.path += &format!(
            "{sign}{name}={}",
            utf8_percent_encode(&value.to_string(), ESCAPED)
        );
        self
    }

    /// Adds a query parameter if it has a value.
    #[must_use]
    pub fn query_option(self, name: &str, value: Option<impl std::fmt::Display>) -> Request {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Sets a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Request {
        self.body("application/json", body.to_string())
    }

    /// Sets a body with a content type.
    #[must_use]
    pub fn body(mut self, kind: &str, body: impl Into<Bytes>) -> Request {
        self.body = body.into();
        self.header(CONTENT_TYPE.as_str(), kind)
    }

    /// Requests another format than JSON, e.g. `text/plain`.
    #[must_use]
    pub fn accept(self, kind: &str) -> Request {
        self.header(header::ACCEPT.as_str(), kind)
    }

    /// Turns retries off, for callers that want to know the present state.
    #[must_use]
    pub fn once(mut self) -> Request {
        self.once = true;
        self
    }

    /// Sets a header, replacing one of the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Request {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => {
                self.headers.insert(name, value);
            }
            _ => self.fault = Some(format!("{name:?}: {value:?} is not a valid header")),
        }
        self
    }

    /// Returns the HTTP method.
    pub fn method(&self) -> &str {
        self.method.as_str()
    }

    /// Returns the path without its query.
    pub fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// Fails if the path or a header is invalid.
    pub(super) fn check(&self) -> Result<(), ClientError> {
        match &self.fault {
            Some(fault) => Err(ClientError::Request(fault.clone())),
            None if !self.path.starts_with('/') => Err(ClientError::Request(format!(
                "the path {:?} doesn't begin with /",
                self.path
            ))),
            None => Ok(()),
        }
    }

    /// True if it may be sent again when the outcome of the first attempt is unknown.
    pub(super) fn is_repeatable(&self) -> bool {
        let has_key = self.method == Method::POST && self.headers.contains_key(KEY);
        self.method.is_safe() || self.method == Method::PUT || has_key
    }
}

/// Escapes a path segment.
pub fn segment(text: &str) -> String {
    // A segment of dots alone would leave the directory.
    if text.chars().all(|c| c == '.') {
        return text.replace('.', "%2E");
    }
    utf8_percent_encode(text, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_escaped() {
        let request = Request::get("/v1/tasks")
            .query("q", "a&b=ü")
            .query_option("x", Some(3));
        let request = request.query_option("y", None::<u8>);
        assert_eq!(request.path, "/v1/tasks?q=a%26b%3D%C3%BC&x=3");
        assert_eq!(segment("../a/b"), "..%2Fa%2Fb");
        assert_eq!(segment(".."), "%2E%2E");
    }

    #[test]
    fn every_post_has_a_key_of_its_own_and_may_be_repeated() {
        let (one, two) = (Request::post("/v1/tasks"), Request::post("/v1/tasks"));
        assert_ne!(one.headers.get(KEY), two.headers.get(KEY));
        assert!(one.is_repeatable() && Request::get("/x").is_repeatable());
        assert!(!Request::patch("/x").is_repeatable() && !Request::delete("/x").is_repeatable());
    }

    #[test]
    fn what_cant_be_sent_is_told() {
        assert!(Request::get("/x").header("a b", "c").check().is_err());
        assert!(Request::get("/x").header("a", "b\nc").check().is_err());
        assert!(Request::get("x").check().is_err());
        assert!(Request::get("/x").header("a", "b").check().is_ok());
    }
}
