//! Parsing of parts of URLs.

/// Returns true for an empty text, or `:` and a port; the URL parser accepts any number and then drops it.
pub fn is_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .and_then(|port| port.parse::<u16>().ok())
            .is_some_and(|port| port > 0)
}
