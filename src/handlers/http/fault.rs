//! Faults of requests without a usable response.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hyper::http::Extensions;
use hyper_util::client::legacy;

use super::client::{GateShut, HEADER_BYTES_MAX, HEADERS_MAX};
use crate::wire::BAD_REPLY;
use windrow_core::items::verdict::{Failure, FailureClass};
use windrow_engine::ports::handling::handler::CallFailure;
use windrow_net::connect::ConnectError;
use windrow_net::line::LastRequest;
use windrow_tls::{TlsFault, causes, deepest};

/// Guess for plain HTTP that never got a response.
const MAY_SPEAK_TLS: &str = "is an HTTP server listening there? It may expect TLS: try https://";

/// Reason why a request has no usable response.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The gate shut before the body could be sent, or the handler was closed.
    NotSent,
    /// The call's time ran out.
    Late(String),
    /// The call's time ran out before a connection was established.
    Unsent(String),
    /// No connection could be made.
    Unconnected(ConnectError),
    /// One side speaks TLS and the other doesn't, or the TLS handshake failed.
    Tls(TlsFault),
    /// The connection ended before the TLS session was established.
    NoSession(String),
    /// The connection broke before the response was complete.
    Reset(String),
    /// The response is not HTTP, or its headers are too large.
    Garbled(String),
    /// The response is larger than this limit, in bytes.
    TooBig(usize),
}

/// Reason why no response to a request began.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("the URL has no host")]
    NoHost,
    #[error("no connection")]
    Unconnected(#[source] Box<dyn Error + Send + Sync>),
    #[error("the connection broke")]
    Broken(#[source] hyper::Error),
    /// A kept connection ended before any byte of the response.
    #[error("the kept connection was closed")]
    Unheard(#[source] hyper::Error),
    /// The same for a client that negotiates the protocol, or a server said over HTTP/2 that it did nothing.
    #[error("the server did not process the request")]
    NotTaken(#[source] legacy::Error),
    #[error("no response")]
    Negotiated(#[source] legacy::Error),
}

impl RequestError {
    /// Converts the error of a client that negotiates the protocol.
    pub(super) fn negotiated(why: legacy::Error) -> RequestError {
        let is_not_taken = match why.connect_info() {
            Some(line) if line.is_negotiated_h2() => causes(&why)
                .filter_map(|cause| cause.downcast_ref::<h2::Error>())
                .any(is_not_processed),
            Some(line) => {
                let mut extras = Extensions::new();
                line.get_extras(&mut extras);
                let last = extras.get::<Arc<LastRequest>>();
                last.is_some_and(|last| last.is_unheard())
            }
            None => false,
        };
        match is_not_taken {
            true => RequestError::NotTaken(why),
            false => RequestError::Negotiated(why),
        }
    }

    /// Returns true if the request may be sent again: the server did nothing with it, or ended a kept connection
    /// before any byte of its response.
    pub(super) fn is_to_be_sent_again(&self) -> bool {
        matches!(self, RequestError::Unheard(_) | RequestError::NotTaken(_))
    }

    fn cause(&self) -> &(dyn Error + 'static) {
        match self {
            RequestError::NoHost => self,
            RequestError::Unconnected(why) => &**why,
            RequestError::Broken(why) | RequestError::Unheard(why) => why,
            RequestError::NotTaken(why) | RequestError::Negotiated(why) => why,
        }
    }

    fn is_connect(&self) -> bool {
        match self {
            RequestError::Unconnected(_) => true,
            RequestError::Negotiated(why) => why.is_connect(),
            RequestError::NoHost
            | RequestError::Broken(_)
            | RequestError::Unheard(_)
            | RequestError::NotTaken(_) => false,
        }
    }
}

/// Returns true if the server says that it did nothing with the stream (RFC 9113 §8.7).
fn is_not_processed(error: &h2::Error) -> bool {
    let is_refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    let is_behind_last = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
    error.is_remote() && (is_refused || is_behind_last)
}

impl Fault {
    pub(crate) fn late(timeout: Duration, stage: &str) -> Fault {
        let timeout = humantime::format_duration(timeout);
        Fault::Late(format!(
            "no complete response within {timeout}: {stage}; raise the call timeout (`timeout`) or make the handler faster"
        ))
    }

    /// Adds a guess about TLS, for plain HTTP to a server that never responded.
    pub(crate) fn guessing_tls(self) -> Fault {
        match self {
            Fault::Late(message) => Fault::Late(format!("{message}; {MAY_SPEAK_TLS}")),
            other => other,
        }
    }

    pub(crate) fn unsent(timeout: Duration) -> Fault {
        let timeout = humantime::format_duration(timeout);
        Fault::Unsent(format!(
            "no connection within {timeout}, so nothing was sent; is a handler listening there, with TLS \
             if the URL is https?"
        ))
    }

    /// Returns the fault of a request that failed before its response began.
    pub(crate) fn of_request(failed: &RequestError) -> Fault {
        let error = failed.cause();
        if let Some(why) = causes(error).find_map(|cause| cause.downcast_ref::<ConnectError>()) {
            return Fault::Unconnected(why.clone());
        }
        if causes(error).any(|cause| cause.is::<GateShut>()) {
            return Fault::NotSent;
        }
        if let Some(tls_fault) = TlsFault::of(error) {
            return Fault::Tls(tls_fault);
        }
        if failed.is_connect() {
            return Fault::NoSession(deepest(error));
        }
        match causes(error).find_map(|cause| cause.downcast_ref::<hyper::Error>()) {
            Some(why) if why.is_parse_too_large() => Fault::Garbled(format!(
                "it has more than {HEADERS_MAX} headers, or more than {HEADER_BYTES_MAX} bytes of them"
            )),
            Some(why) if why.is_parse() => {
                Fault::Garbled(format!("{why}; is an HTTP server listening there?"))
            }
            _ => Fault::Reset(deepest(error)),
        }
    }

    /// Returns the fault of a response whose body broke off.
    pub(crate) fn of_body(error: &hyper::Error) -> Fault {
        Fault::Reset(deepest(error))
    }
}

impl From<Fault> for CallFailure {
    fn from(fault: Fault) -> CallFailure {
        let failed = |class, code: &'static str, message: String| CallFailure::Failed {
            class,
            failure: Failure::new(code, message),
            after: None,
        };
        let unreached = |code, message| failed(FailureClass::Unreachable, code, message);
        match fault {
            Fault::NotSent => CallFailure::NotSent,
            Fault::Late(message) => failed(FailureClass::Unclear, "TIMEOUT", message),
            Fault::Unsent(message) => unreached("CONNECT", message),
            Fault::Unconnected(why @ ConnectError::Denied(..)) => {
                CallFailure::Rejected(Failure::new("DENIED_ADDRESS", why.to_string()))
            }
            Fault::Unconnected(why @ ConnectError::Unresolved(..)) => unreached("DNS", why.to_string()),
            Fault::Unconnected(why @ ConnectError::Unreachable(..)) => unreached("CONNECT", why.to_string()),
            Fault::Unconnected(why @ (ConnectError::Proxy(..) | ConnectError::NoProxy(_))) => {
                unreached("PROXY", why.to_string())
            }
            Fault::Tls(tls_fault) => unreached("TLS", tls_words(&tls_fault)),
            Fault::NoSession(why) => unreached(
                "TLS",
                format!("no secure connection: {why}; check the URL's host and port"),
            ),
            Fault::Reset(why) => {
                // Questions first: a line that is cut keeps its beginning.
                let message = format!(
                    "the connection broke before the reply was complete; did the handler crash, or close \
                     a keep-alive connection? ({why})"
                );
                failed(FailureClass::Unclear, "RESET", message)
            }
            Fault::Garbled(why) => {
                CallFailure::BadReply(Failure::new(BAD_REPLY, format!("the reply can't be read: {why}")))
            }
            Fault::TooBig(bytes_max) => {
                let message = format!(
                    "the reply is larger than {bytes_max} bytes; answer with results only, not with data"
                );
                CallFailure::BadReply(Failure::new("REPLY_TOO_BIG", message))
            }
        }
    }
}

/// Ways to name an authority: for all handlers of a node, for those of this machine, for those of a business.
const TRUST: &str = "`ca_file` under [handler.http] (`windrow run` and `try`: --handler-ca-file FILE; of a business: \
     `windrow biz register --handler-ca-file FILE`)";
/// Ways to trust all certificates, whatever they say.
const TRUST_ANY: &str = "`insecure_skip_verify` there (or --insecure-skip-verify)";

/// Ways to present a client certificate.
const PRESENT: &str = "`client_cert_file` under [handler.http] (`windrow run`, `try` and `biz register`: --client-cert \
     FILE --client-key FILE)";

/// Describes a TLS problem, and what to try.
fn tls_words(tls_fault: &TlsFault) -> String {
    match tls_fault {
        TlsFault::WantsHttps => format!("{tls_fault}: use https in the URL"),
        TlsFault::WantsHttp => {
            format!("no secure connection: {tls_fault}; use http in the URL, or serve TLS there")
        }
        TlsFault::Certificate(why) => format!(
            "the handler's certificate is refused: {why}; {}; or on a test system trust any: {TRUST_ANY}",
            TlsFault::mend_certificate(why, TRUST)
        ),
        TlsFault::ClientCertificate(why) => format!("no secure connection: {why}; {PRESENT}"),
        TlsFault::Handshake(why) => format!("no secure connection: {why}; check the URL's host and port"),
    }
}
