//! Problems of TLS, if one side speaks it and the other doesn't, or if a handshake fails: judged here once, for
//! handlers, for sources and for the command line's client. The words of the TLS library are for programmers and only
//! in the log, at `debug`. Also the proxies in between, which all three use.

pub mod environment;
pub mod idn;
pub mod proxy;
pub mod stream;

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError, InvalidMessage};

/// Reason why a connection can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsFault {
    /// Plain HTTP was sent to a TLS server.
    #[error("the server speaks TLS")]
    WantsHttps,
    /// TLS was sent to a plain HTTP server.
    #[error("the server speaks plain http")]
    WantsHttp,
    /// The server's certificate can't be trusted.
    #[error("certificate rejected: {0}")]
    Certificate(&'static str),
    /// The server demands a client certificate, or refused the one presented.
    #[error("{0}")]
    ClientCertificate(&'static str),
    /// The TLS handshake with the server failed.
    #[error("{0}")]
    Handshake(&'static str),
}

/// Error for a TLS record in response to plain HTTP.
#[derive(Debug, thiserror::Error)]
#[error("the server speaks TLS")]
struct SpokeTls;

/// Reasons for refusing a certificate that a trusted authority would resolve.
const STRANGE: [&str; 2] = [
    "issued by an authority that isn't trusted here",
    "not signed by an authority trusted here",
];
/// Reason for a certificate that names other hosts.
const ELSEWHERE: &str = "issued for another host";

impl TlsFault {
    /// Returns the remedy for a refused certificate; `trust` tells how to name an authority here.
    pub fn mend_certificate(why: &str, trust: &str) -> String {
        match why {
            _ if STRANGE.contains(&why) => format!("trust the certificate's authority: {trust}"),
            ELSEWHERE => "use a host name that the certificate covers".to_owned(),
            _ => "replace the server's certificate".to_owned(),
        }
    }

    /// Returns the TLS problem among the causes of a failed exchange; `None` if something else is wrong.
    pub fn of(error: &(dyn Error + 'static)) -> Option<TlsFault> {
        causes(error).find_map(|cause| {
            if cause.is::<SpokeTls>() {
                return Some(TlsFault::WantsHttps);
            }
            let tls = cause.downcast_ref::<rustls::Error>().cloned();
            let tls = tls.or_else(|| alert_of(&cause.to_string()))?;
            tracing::debug!(error = %tls, "TLS handshake failed");
            Some(handshake(&tls))
        })
    }
}

/// Returns the alert about a client certificate that has this text. With TLS 1.3 it arrives after the handshake, and
/// HTTP/2 keeps nothing of an error but its text.
fn alert_of(text: &str) -> Option<rustls::Error> {
    let mut alerts = ABOUT_CLIENTS.into_iter().map(rustls::Error::AlertReceived);
    alerts.find(|alert| alert.to_string() == text)
}

/// Alerts about the certificate of a client.
const ABOUT_CLIENTS: [AlertDescription; 8] = [
    AlertDescription::AccessDenied,
    AlertDescription::BadCertificate,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateRequired,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::UnsupportedCertificate,
];

fn handshake(error: &rustls::Error) -> TlsFault {
    use rustls::Error::{AlertReceived, InvalidCertificate, PeerIncompatible};
    match error {
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => TlsFault::WantsHttp,
        InvalidCertificate(why) => TlsFault::Certificate(certificate(why)),
        AlertReceived(alert) => alerted(*alert),
        PeerIncompatible(_) => TlsFault::Handshake(NOTHING_IN_COMMON),
        _ => TlsFault::Handshake("the server sent an invalid TLS message"),
    }
}

const NOTHING_IN_COMMON: &str = "the server and windrow share no TLS version or cipher";

fn alerted(alert: AlertDescription) -> TlsFault {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked,
        CertificateUnknown, HandshakeFailure, InsufficientSecurity, ProtocolVersion, UnknownCA,
        UnrecognisedName, UnsupportedCertificate,
    };
    match alert {
        HandshakeFailure | InsufficientSecurity | ProtocolVersion => TlsFault::Handshake(NOTHING_IN_COMMON),
        CertificateRequired => TlsFault::ClientCertificate("the server requires a client certificate"),
        UnknownCA => TlsFault::ClientCertificate(
            "the server requires a client certificate of an authority that it trusts",
        ),
        CertificateExpired => {
            TlsFault::ClientCertificate("the server says that the client certificate expired")
        }
        BadCertificate | CertificateRevoked | CertificateUnknown | UnsupportedCertificate | AccessDenied => {
            TlsFault::ClientCertificate("the server requires a client certificate that it accepts")
        }
        UnrecognisedName => TlsFault::Handshake("the server has no certificate for the url's host"),
        _ => TlsFault::Handshake("the server aborted the TLS handshake"),
    }
}

/// Describes the problem of a certificate, for those who have to fix it.
fn certificate(why: &CertificateError) -> &'static str {
    use CertificateError::{
        BadEncoding, BadSignature, Expired, ExpiredContext, InvalidPurpose, InvalidPurposeContext,
        NotValidForName, NotValidForNameContext, NotValidYet, NotValidYetContext, Other, Revoked,
        UnhandledCriticalExtension, UnknownIssuer,
    };
    match why {
        UnknownIssuer => STRANGE[0],
        Expired | ExpiredContext { .. } => "it has expired",
        NotValidYet | NotValidYetContext { .. } => "it is not valid yet; check this machine's clock",
        NotValidForName | NotValidForNameContext { .. } => ELSEWHERE,
        Revoked => "it was revoked",
        BadEncoding => "it is damaged",
        // From an authority that only has the name of a trusted one.
        BadSignature => STRANGE[1],
        InvalidPurpose | InvalidPurposeContext { .. } => "it is not a server certificate",
        UnhandledCriticalExtension => "it has a critical extension that windrow doesn't support",
        // (In rustls, webpki has no public name for it.)
        Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is a CA certificate, not a server's; create one with openssl's -addext \
             basicConstraints=critical,CA:FALSE"
        }
        _ => "it can't be verified",
    }
}

/// Returns the error and its causes, outermost first; looks into `io::Error`, whose `source` omits its own cause.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let next = |error: &&'a (dyn Error + 'static)| match (*error).downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as &'a (dyn Error + 'static)),
        None => (*error).source(),
    };
    std::iter::successors(Some(error), next)
}

/// Returns the innermost cause, which is the clearest.
pub fn deepest(error: &(dyn Error + 'static)) -> String {
    causes(error)
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use rustls::OtherError;

    use super::*;

    #[test]
    fn every_refusal_is_said_in_words_for_people() {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct Webpki(&'static str);
        let other = |name| CertificateError::Other(OtherError(std::sync::Arc::new(Webpki(name))));
        let refused = [
            (CertificateError::UnknownIssuer, "isn't trusted here"),
            (CertificateError::Expired, "expired"),
            (CertificateError::NotValidForName, "another host"),
            (CertificateError::InvalidPurpose, "not a server certificate"),
            (other("CaUsedAsEndEntity"), "a CA certificate"),
            (other("SomethingNew"), "can't be verified"),
            (CertificateError::UnknownRevocationStatus, "can't be verified"),
        ];
        let refused = refused.map(|(why, wanted)| (rustls::Error::InvalidCertificate(why), wanted));
        let spoken = [
            (
                rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType),
                "speaks plain http",
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::CertificateRequired),
                "requires a client certificate",
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::ProtocolVersion),
                "no TLS version",
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::InternalError),
                "aborted the TLS handshake",
            ),
            (rustls::Error::DecryptError, "invalid TLS message"),
        ];
        for (error, wanted) in refused.into_iter().chain(spoken) {
            let wrapped = io::Error::other(error);
            let said = TlsFault::of(&wrapped)
                .expect("found below an io::Error")
                .to_string();
            let is_code = |word: &str| word.chars().skip(1).any(char::is_uppercase) && word != "TLS";
            assert!(said.contains(wanted), "{said}");
            let words = said.split(|c: char| !c.is_ascii_alphanumeric());
            let codes: Vec<&str> = words
                .filter(|word| is_code(word) && !["CA", "FALSE"].contains(word))
                .collect();
            assert!(codes.is_empty() || codes == ["basicConstraints"], "{said}");
        }
    }

    #[test]
    fn an_alert_about_a_client_is_found_by_its_text() {
        for alert in ABOUT_CLIENTS {
            let text = io::Error::other(rustls::Error::AlertReceived(alert).to_string());
            let found = TlsFault::of(&text);
            assert!(matches!(found, Some(TlsFault::ClientCertificate(_))), "{alert:?}");
        }
        let other = rustls::Error::AlertReceived(AlertDescription::InternalError).to_string();
        assert_eq!(TlsFault::of(&io::Error::other(other)), None);
    }

    #[test]
    fn other_trouble_is_none_with_tls() {
        assert_eq!(
            TlsFault::of(&io::Error::from(io::ErrorKind::ConnectionReset)),
            None
        );
    }

    #[test]
    fn an_authority_is_named_only_where_one_helps() {
        let mend = |why| TlsFault::mend_certificate(certificate(&why), "--ca FILE");
        assert!(mend(CertificateError::UnknownIssuer).ends_with("--ca FILE"));
        for other in [CertificateError::NotValidForName, CertificateError::Expired] {
            assert!(!mend(other.clone()).contains("--ca"), "{other:?}");
        }
    }
}
