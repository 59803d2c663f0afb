//! What is asked of a node.

use bytes::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::error::ClientError;

/// What stays as it is in a part of a path and in a query. (RFC 3986, unreserved.)
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The header that makes a POST one of its kind.
pub(super) const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request, to be sent with `Client::send`.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) method: Method,
    /// With its query.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// It is sent once: the first answer is the one that is wanted.
    pub(super) once: bool,
    /// What is wrong with it; told when it is sent, so that requests can be written in one line.
    fault: Option<String>,
}

impl Request {
    /// A request of any method. `path` begins with a slash; parts that come from outside belong through [`segment`].
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

    /// A GET.
    pub fn get(path: &str) -> Request {
        Request::new(Method::GET, path)
    }

    /// A POST, with a key of its own.
    pub fn post(path: &str) -> Request {
        Request::new(Method::POST, path)
    }

    /// A PATCH.
    pub fn patch(path: &str) -> Request {
        Request::new(Method::PATCH, path)
    }

    /// A DELETE.
    pub fn delete(path: &str) -> Request {
        Request::new(Method::DELETE, path)
    }

    /// With a parameter.
    #[must_use]
    pub fn query(mut self, name: &str, value: impl std::fmt::Display) -> Request {
        let sign = if self.path.contains('?') { '&' } else { '?' };
        self.path += &format!(
            "{sign}{name}={}",
            utf8_percent_encode(&value.to_string(), ESCAPED)
        );
        self
    }

    /// With a parameter, if there is one.
    #[must_use]
    pub fn query_option(self, name: &str, value: Option<impl std::fmt::Display>) -> Request {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Request {
        self.body("application/json", body.to_string())
    }

    /// With a body of any type.
    #[must_use]
    pub fn body(mut self, kind: &str, body: impl Into<Bytes>) -> Request {
        self.body = body.into();
        self.header(CONTENT_TYPE.as_str(), kind)
    }

    /// Asks for another form than JSON, e.g. `text/plain`.
    #[must_use]
    pub fn accept(self, kind: &str) -> Request {
        self.header(header::ACCEPT.as_str(), kind)
    }

    /// Isn't tried again, whatever comes of it: for who wants to know how it is now.
    #[must_use]
    pub fn once(mut self) -> Request {
        self.once = true;
        self
    }

    /// With a header, instead of one of the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Request {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => {
                self.headers.insert(name, value);
            }
            _ => self.fault = Some(format!("{name:?}: {value:?} is no header")),
        }
        self
    }

    /// Its method.
    pub fn method(&self) -> &str {
        self.method.as_str()
    }

    /// Its path, without the query.
    pub fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// What is wrong with it, if anything.
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

    /// Whether it may be sent again after nobody knows what became of it.
    pub(super) fn is_repeatable(&self) -> bool {
        let has_key = self.method == Method::POST && self.headers.contains_key(KEY);
        self.method.is_safe() || self.method == Method::PUT || has_key
    }
}

/// A part of a path, escaped.
pub fn segment(text: &str) -> String {
    // Dots alone would climb the path.
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
