//! Errors of requests to a node.

use std::error::Error;
use std::io;
use std::time::Duration;

use windrow_api::{Problem, Readiness};
use windrow_tls::{TlsFault, causes, deepest};

/// Reason why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is invalid; nothing was sent.
    #[error("{server:?} is not a node's address: {why}")]
    Address {
        /// Address that was given.
        server: String,
        /// Description of the fault.
        why: String,
    },
    /// The token has characters that can't be sent.
    #[error("can't use the token: {0}")]
    Token(String),
    /// No trusted certificates are available.
    #[error("{0}")]
    Trust(String),
    /// The request can't be sent because its path or a header is invalid.
    #[error("{0}")]
    Request(String),
    /// The input to upload can't be read.
    #[error("can't read the upload: {0}")]
    Input(String),
    /// The node isn't listening, or the connection broke.
    #[error("can't reach {server}: {why}")]
    Unreachable {
        /// Address of the node.
        server: String,
        /// Cause of the failure.
        why: String,
    },
    /// A plain HTTP connection was closed before a response arrived; the server may expect TLS.
    #[error("{server} closed the connection without a response: {why}; if it uses TLS, use {secure}")]
    Closed {
        /// Address of the node.
        server: String,
        /// Cause of the failure.
        why: String,
        /// Address of the node with https.
        secure: String,
    },
    /// TLS failed, for example because the certificate isn't trusted.
    #[error("no trusted connection to {server}: {why}")]
    Tls {
        /// Address of the node.
        server: String,
        /// Cause of the failure.
        why: String,
    },
    /// One side speaks TLS and the other doesn't.
    #[error("{why}: use {wanted}")]
    Scheme {
        /// Description of the mismatch.
        why: &'static str,
        /// Address of the node with the right scheme.
        wanted: String,
    },
    /// No response arrived in time. The request may or may not have been executed; with an idempotency key it may be
    /// repeated.
    #[error(
        "{server} didn't respond within {}{}",
        humantime::format_duration(*.after), heard(.node.as_ref())
    )]
    Timeout {
        /// Address of the node.
        server: String,
        /// Timeout that was exceeded.
        after: Duration,
        /// Readiness that the node reports, if it was asked and responded.
        node: Option<Readiness>,
    },
    /// The node refused the request.
    #[error("{}: {}", .0.title, .0.detail)]
    Problem(Box<Problem>),
    /// The response isn't from a node, or comes from a proxy in between.
    #[error("{server} doesn't respond like a windrow node: {why}")]
    NotWindrow {
        /// Address of the node.
        server: String,
        /// Description of the unexpected response.
        why: String,
    },
}

impl ClientError {
    /// Converts the error of a failed exchange.
    pub(super) fn of_exchange(server: &str, error: &(dyn Error + 'static)) -> ClientError {
        match TlsFault::of(error) {
            Some(TlsFault::WantsHttps) => ClientError::wants_https(server),
            Some(TlsFault::WantsHttp) => ClientError::Scheme {
                why: "the node speaks plain http",
                wanted: server.replacen("https:", "http:", 1),
            },
            Some(tls_fault) => ClientError::Tls {
                server: server.to_owned(),
                why: tls_fault.to_string(),
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

    /// Returns the error for a plain HTTP request to a node that speaks TLS.
    pub(super) fn wants_https(server: &str) -> ClientError {
        ClientError::Scheme {
            why: "the node speaks TLS",
            wanted: server.replacen("http:", "https:", 1),
        }
    }

    /// True if the same request may succeed later.
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

/// Formats the node's reported readiness as the end of a timeout message.
fn heard(node: Option<&Readiness>) -> String {
    let Some(node) = node else {
        return String::new();
    };
    if node.reasons.is_empty() {
        return "; it reports that it is ready".to_owned();
    }
    let texts: Vec<&str> = node.reasons.iter().map(|reason| reason.text.as_str()).collect();
    format!("; it reports: {}", texts.join("; "))
}

/// True if the server closed a connection that it had accepted.
fn is_closed(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let http = cause.downcast_ref::<hyper::Error>();
        kind == Some(io::ErrorKind::ConnectionReset) || http.is_some_and(hyper::Error::is_incomplete_message)
    })
}
