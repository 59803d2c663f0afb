//! Everything that keeps a request from its answer.

use std::error::Error;
use std::time::Duration;

use super::problem::Problem;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address isn't one; nothing was sent.
    #[error("{server:?} is no address of a node: {why}")]
    Address {
        /// What was given.
        server: String,
        /// What is wrong.
        why: String,
    },
    /// The token can't be sent as one.
    #[error("the token can't be used: {0}")]
    Token(String),
    /// There are no certificates to trust.
    #[error("{0}")]
    Trust(String),
    /// The request can't be sent: its path or a header is wrong.
    #[error("{0}")]
    Request(String),
    /// What was to be sent can't be read.
    #[error("what was to be uploaded can't be read: {0}")]
    Input(String),
    /// Nobody listens there, or the connection broke off.
    #[error("{server} can't be reached: {why}")]
    Unreachable {
        /// The node.
        server: String,
        /// What was seen.
        why: String,
    },
    /// The other side isn't who it should be, or speaks no TLS.
    #[error("no trusted connection to {server}: {why}")]
    Tls {
        /// The node.
        server: String,
        /// What was seen.
        why: String,
    },
    /// No answer in time; whether it was done is not known, but for requests with a key it may be asked again.
    #[error("{server} gave no answer within {}", humantime::format_duration(*.after))]
    Timeout {
        /// The node.
        server: String,
        /// How long was waited.
        after: Duration,
    },
    /// The node refused.
    #[error("{}: {}", .0.title, .0.detail)]
    Problem(Box<Problem>),
    /// Something answers there that is no node, or a proxy between answers itself.
    #[error("{server} doesn't answer as a node does: {why}")]
    NotWindrow {
        /// The node.
        server: String,
        /// What was seen.
        why: String,
    },
}

impl ClientError {
    /// What a failed exchange means.
    pub(super) fn of_exchange(server: &str, error: &(dyn Error + 'static)) -> ClientError {
        let server = server.to_owned();
        if let Some(why) = find_tls(error) {
            return ClientError::Tls { server, why };
        }
        ClientError::Unreachable { server, why: root(error) }
    }

    /// Whether the same request may find a node later.
    pub fn is_passing(&self) -> bool {
        match self {
            ClientError::Unreachable { .. } | ClientError::Timeout { .. } => true,
            ClientError::Problem(problem) => matches!(problem.status, 429 | 503),
            _ => false,
        }
    }
}

/// The TLS fault among the causes.
fn find_tls(error: &(dyn Error + 'static)) -> Option<String> {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(tls.to_string());
        }
        // An io::Error hides what it wraps from `source`.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(inner) = inner {
            let inner: &(dyn Error + 'static) = inner;
            return find_tls(inner);
        }
        at = error.source();
    }
    None
}

/// The last cause, which says most.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}
