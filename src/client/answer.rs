//! What a node answered.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, DATE, HeaderMap};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ClientError;

/// An answer that is no problem, with its whole body.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, verbatim.
    pub body: Bytes,
    /// Who answered, for errors.
    pub(super) server: String,
}

impl Answer {
    /// The body as text; what isn't UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The same in one line, for a list of bodies.
    pub fn line(&self) -> String {
        self.text().replace(['\n', '\r'], " ")
    }

    /// The body as JSON; null where there is none.
    ///
    /// # Errors
    /// [`ClientError::NotWindrow`] when it isn't JSON.
    pub fn json(&self) -> Result<Value, ClientError> {
        if self.body.is_empty() {
            Ok(Value::Null)
        } else {
            self.read()
        }
    }

    /// The body as a type.
    ///
    /// # Errors
    /// [`ClientError::NotWindrow`] when it isn't one.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let kind = self.header(CONTENT_TYPE.as_str()).unwrap_or("no type");
            let why = format!(
                "it answered {} with {kind}, which can't be read: {error}",
                self.status
            );
            ClientError::NotWindrow {
                server: self.server.clone(),
                why,
            }
        })
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// When it was written, by the node's clock. Unit: milliseconds since 1970.
    pub fn date_ms(&self) -> Option<i64> {
        let date = httpdate::parse_http_date(self.header(DATE.as_str())?).ok()?;
        let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    }
}
