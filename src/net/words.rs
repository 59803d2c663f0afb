//! What URLs say.

/// Whether it is nothing or `:` and a port; the parser of urls lets any number pass and then forgets it.
pub fn is_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .and_then(|port| port.parse::<u16>().ok())
            .is_some_and(|port| port > 0)
}
