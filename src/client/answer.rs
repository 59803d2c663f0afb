//! Response of a node.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, DATE, HeaderMap};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ClientError;

/// Complete response, with the whole body in memory.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status of the response.
    pub status: u16,
    /// Headers of the response.
    pub headers: HeaderMap,
    /// Body, exactly as received.
    pub body: Bytes,
    /// Address of the node, for error messages.
    pub(super) server: String,
}

impl Answer {
    /// Returns the body as text, with invalid UTF-8 replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body as text on a single line, for lists of bodies.
    pub fn line(&self) -> String {
        self.text().replace(['\n', '\r'], " ")
    }

    /// Parses the body as JSON; an empty body is null.
    ///
    /// # Errors
    /// [`ClientError::NotWindrow`] if it isn't JSON.
    pub fn json(&self) -> Result<Value, ClientError> {
        if self.body.is_empty() {
            Ok(Value::Null)
        } else {
            self.read()
        }
    }

    /// Parses the body as JSON of type `T`.
    ///
    /// # Errors
    /// [`ClientError::NotWindrow`] if it doesn't match the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let kind = self.header(CONTENT_TYPE.as_str()).unwrap_or("no content type");
            let why = format!(
                "it answered {} with {kind}, which can't be parsed: {error}",
                self.status
            );
            ClientError::NotWindrow {
                server: self.server.clone(),
                why,
            }
        })
    }

    /// Returns the text of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the time of the response by the node's clock, in milliseconds since 1970.
    pub fn date_ms(&self) -> Option<i64> {
        let date = httpdate::parse_http_date(self.header(DATE.as_str())?).ok()?;
        let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    }
}
