//! Parsing of parts of URLs and headers.

use hyper::header::{HeaderName, HeaderValue};

/// Returns true for an empty text, or `:` and a port; the URL parser accepts any number and then drops it.
pub fn is_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .and_then(|port| port.parse::<u16>().ok())
            .is_some_and(|port| port > 0)
}

/// Returns true if a header can have this name and value.
pub fn is_header(name: &str, value: &str) -> bool {
    HeaderName::try_from(name).is_ok() && HeaderValue::from_str(value).is_ok()
}
