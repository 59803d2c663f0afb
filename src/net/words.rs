//! What errors and URLs say.

use std::error::Error;
use std::io;

/// The error and what caused it, outermost first; looks into `io::Error`, whose `source` leaves its own cause out.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let next = |error: &&'a (dyn Error + 'static)| match (*error).downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as &'a (dyn Error + 'static)),
        None => (*error).source(),
    };
    std::iter::successors(Some(error), next)
}

/// Whether it is nothing or `:` and a port; the parser of urls lets any number pass and then forgets it.
pub fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').and_then(|port| port.parse::<u16>().ok()).is_some_and(|port| port > 0)
}
