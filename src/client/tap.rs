//! Trace of each exchange for `-v` and `-vv`, with secrets masked.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;

use super::request::Request;

/// Replacement for a secret.
const MASK: &str = "***";
/// Words in the name of a header or member that mark its value as secret.
const SECRET_WORDS: [&str; 7] = [
    "secret",
    "token",
    "authorization",
    "password",
    "cookie",
    "api-key",
    "client_key",
];
/// Maximum length shown of a body that isn't JSON, in characters.
const TEXT_MAX: usize = 4096;

/// Level of detail shown of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Shows nothing of an exchange.
    Nothing,
    /// Method, path, status and time.
    Lines,
    /// Also headers and bodies.
    Everything,
}

/// Observer that is shown each exchange.
#[derive(Clone)]
pub struct Tap {
    depth: Depth,
    show: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tap({:?})", self.depth)
    }
}

impl Tap {
    /// Creates an observer that shows nothing.
    pub fn none() -> Tap {
        Tap {
            depth: Depth::Nothing,
            show: Arc::new(|_| {}),
        }
    }

    /// Creates an observer that passes lines to `show`.
    pub fn new(depth: Depth, show: impl Fn(&str) + Send + Sync + 'static) -> Tap {
        Tap {
            depth,
            show: Arc::new(show),
        }
    }

    pub(super) fn sent(&self, request: &Request, body: Option<&[u8]>) {
        if self.depth == Depth::Everything {
            (self.show)(&format!("> {} {}", request.method, request.path));
            self.insides('>', &request.headers, body);
        }
    }

    pub(super) fn answered(&self, request: &Request, status: u16, took: Duration) {
        if self.depth >= Depth::Lines {
            let (method, path) = (&request.method, &request.path);
            (self.show)(&format!("< {status} {method} {path}  {} ms", took.as_millis()));
        }
    }

    pub(super) fn received(&self, headers: &HeaderMap, body: Option<&[u8]>) {
        if self.depth == Depth::Everything {
            self.insides('<', headers, body);
        }
    }

    /// Shows an event other than a response: an error, or a wait before a retry.
    pub(super) fn note(&self, text: &str) {
        if self.depth >= Depth::Lines {
            (self.show)(&format!("! {text}"));
        }
    }

    fn insides(&self, sign: char, headers: &HeaderMap, body: Option<&[u8]>) {
        for (name, value) in headers {
            let value = if is_secret(name.as_str()) || value.is_sensitive() {
                MASK.into()
            } else {
                String::from_utf8_lossy(value.as_bytes())
            };
            (self.show)(&format!("{sign} {name}: {value}"));
        }
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match body {
            None => (self.show)(&format!("{sign} (a stream)")),
            Some([]) => {}
            Some(bytes) => (self.show)(&format!("{sign} {}", shown(kind.unwrap_or_default(), bytes))),
        }
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

fn shown(kind: &str, bytes: &[u8]) -> String {
    if kind.contains("json")
        && !kind.contains("ndjson")
        && let Ok(mut value) = serde_json::from_slice::<Value>(bytes)
    {
        mask(&mut value);
        return value.to_string();
    }
    String::from_utf8_lossy(bytes).chars().take(TEXT_MAX).collect()
}

/// Masks everything below a member with a secret-sounding name, except true, false and null.
fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if is_secret(name) {
                    hide(member)
                } else {
                    mask(member)
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(mask),
        _ => {}
    }
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(hide),
        Value::Array(values) => values.iter_mut().for_each(hide),
        Value::String(_) | Value::Number(_) => *value = Value::String(MASK.to_owned()),
        Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use hyper::header::AUTHORIZATION;

    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_are() {
        let seen: Arc<Mutex<String>> = Arc::default();
        let sink = seen.clone();
        let tap = Tap::new(Depth::Everything, move |line| {
            sink.lock().expect("no panic").push_str(&format!("{line}\n"));
        });
        let request = Request::post("/v1/businesses").header(AUTHORIZATION.as_str(), "Bearer wrk_x");
        let request = request.header(CONTENT_TYPE.as_str(), "application/json");
        let body =
            br#"{"name":"b","secret_headers":{"a":"s1"},"items":[{"token":"s2"}],"client_key_pem":"s3","require_signature":true}"#;
        tap.sent(&request, Some(body));
        let seen = seen.lock().expect("no panic");
        for secret in ["wrk_x", "s1", "s2", "s3"] {
            assert!(!seen.contains(secret), "{seen}");
        }
        assert!(
            seen.contains("> POST /v1/businesses") && seen.contains(r#""name":"b""#),
            "{seen}"
        );
    }
}
