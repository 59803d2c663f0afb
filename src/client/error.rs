//! Everything that keeps a request from its answer.

use std::error::Error;
use std::io;
use std::time::Duration;

use windrow_api::{Problem, Readiness};
use windrow_tls::{Trouble, causes, deepest};

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
    /// A connection over plain HTTP was closed before an answer came: who listens there may speak TLS.
    #[error("{server} closed the connection without an answer: {why}; does it speak TLS (use {secure})?")]
    Closed {
        /// The node.
        server: String,
        /// What was seen.
        why: String,
        /// The node's address with https.
        secure: String,
    },
    /// The other side isn't who it should be.
    #[error("no trusted connection to {server}: {why}")]
    Tls {
        /// The node.
        server: String,
        /// What was seen.
        why: String,
    },
    /// One side speaks TLS, and the other doesn't.
    #[error("{why}: use {wanted}")]
    Scheme {
        /// What was seen.
        why: &'static str,
        /// The node's address as it would do.
        wanted: String,
    },
    /// No answer in time; whether it was done is not known, but for requests with a key it may be asked again.
    #[error("{server} gave no answer within {}{}", humantime::format_duration(*.after), heard(.node.as_ref()))]
    Timeout {
        /// The node.
        server: String,
        /// How long was waited.
        after: Duration,
        /// What the node says of itself, if it was asked and says anything.
        node: Option<Readiness>,
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
        match Trouble::of(error) {
            Some(Trouble::WantsHttps) => ClientError::wants_https(server),
            Some(Trouble::WantsHttp) => ClientError::Scheme {
                why: "the node speaks plain http",
                wanted: server.replacen("https:", "http:", 1),
            },
            Some(trouble) => ClientError::Tls {
                server: server.to_owned(),
                why: trouble.to_string(),
            },
            None if server.starts_with("http:") && is_closed(error) => ClientError::Closed {
                server: server.to_owned(),
                why: deepest(error),
                secure: server.replacen("http:", "https:", 1),
            },
            None => ClientError::Unreachable {
                server: server.to_owned(),
                why: deepest(error),
            },
        }
    }

    /// It was spoken to in plain HTTP, and speaks TLS.
    pub(super) fn wants_https(server: &str) -> ClientError {
        ClientError::Scheme {
            why: "the node speaks TLS",
            wanted: server.replacen("http:", "https:", 1),
        }
    }

    /// Whether the same request may find a node later.
    pub fn is_passing(&self) -> bool {
        match self {
            ClientError::Unreachable { .. } | ClientError::Closed { .. } | ClientError::Timeout { .. } => {
                true
            }
            ClientError::Problem(problem) => matches!(problem.status, 429 | 503),
            _ => false,
        }
    }
}

/// What a node says of itself, behind what it didn't say.
fn heard(node: Option<&Readiness>) -> String {
    let Some(node) = node else {
        return String::new();
    };
    if node.reasons.is_empty() {
        return "; it says of itself that it is ready".to_owned();
    }
    let texts: Vec<&str> = node.reasons.iter().map(|reason| reason.text.as_str()).collect();
    format!("; it says of itself: {}", texts.join("; "))
}

/// Whether the other side closed a connection that it had accepted.
fn is_closed(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let http = cause.downcast_ref::<hyper::Error>();
        kind == Some(io::ErrorKind::ConnectionReset) || http.is_some_and(hyper::Error::is_incomplete_message)
    })
}
