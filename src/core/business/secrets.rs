//! Secrets of a business: the keys that sign its calls, and the values of its secret headers.
//!
//! Nothing here reveals a secret, neither `Debug` nor an error. The serde form is for the vault only.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::WallMs;

/// Time for which the previous secret stays valid after a rotation.
pub const ROTATION_OVERLAP: Duration = Duration::from_secs(24 * 3600);

/// Headers whose values are always secret, and parts of the names of others.
const SECRET_HEADERS: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];
const SECRET_PARTS: [&str; 5] = ["token", "secret", "password", "api-key", "apikey"];

/// True if a header of this name carries a secret.
pub fn is_secret_header(name: &str) -> bool {
    // A number of tokens, such as `max_tokens`, is none.
    let name = name.to_ascii_lowercase().replace("_tokens", "");
    SECRET_HEADERS.contains(&name.as_str()) || SECRET_PARTS.iter().any(|part| name.contains(part))
}

/// Strips the byte order mark that some editors put before the text of a secrets file.
pub fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns the scheme, host and port of a URL (RFC 6454), without credentials: secrets given for the URL belong to them.
/// `None` if it is not an HTTP URL.
pub fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let (scheme, host) = (scheme.to_lowercase(), rest.split(['/', '?', '#', '\\']).next()?);
    let usual = match scheme.as_str() {
        "https" => ":443",
        "http" => ":80",
        _ => return None,
    };
    let host = host.rsplit('@').next()?;
    let host = host.strip_suffix(usual).unwrap_or(host).to_lowercase();
    (!host.is_empty()).then(|| format!("{scheme}://{host}"))
}

/// Secrets of one business, stored sealed.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusinessSecrets {
    /// Signing secrets, newest first; at most two.
    signing: Vec<SigningSecret>,
    /// Values of secret headers, by name.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Values of the request's secrets, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub request: BTreeMap<String, String>,
    /// Private key (PEM text) of the client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_key: Option<String>,
}

/// Key that signs calls, and the end of its validity.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SigningSecret {
    /// Key in the form `whsec_…`.
    secret: String,
    /// End of validity, in milliseconds since the Unix epoch; `None` for the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until_ms: Option<i64>,
}

impl fmt::Debug for BusinessSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusinessSecrets")
            .field("signing", &self.signing.len())
            .field("headers", &self.headers.len())
            .field("request", &self.request.len())
            .field("client_key", &self.client_key.is_some())
            .finish()
    }
}

impl BusinessSecrets {
    /// Creates the secrets of a new business.
    pub fn new(secret: String, headers: BTreeMap<String, String>) -> BusinessSecrets {
        BusinessSecrets {
            signing: vec![SigningSecret {
                secret,
                until_ms: None,
            }],
            headers,
            ..BusinessSecrets::default()
        }
    }

    /// True if there is a key to sign with.
    pub fn can_sign(&self) -> bool {
        !self.signing.is_empty()
    }

    /// Returns the secrets that sign a call at this time, newest first: one, or two during a rotation.
    pub fn signing(&self, now: WallMs) -> Vec<String> {
        let is_valid = |one: &&SigningSecret| one.until_ms.is_none_or(|until| now.0 < until);
        self.signing
            .iter()
            .filter(is_valid)
            .map(|one| one.secret.clone())
            .collect()
    }

    /// Returns a copy with other header and request values, and another client key.
    #[must_use]
    pub fn with_values(
        &self,
        headers: BTreeMap<String, String>,
        request: BTreeMap<String, String>,
        client_key: Option<String>,
    ) -> BusinessSecrets {
        BusinessSecrets {
            signing: self.signing.clone(),
            headers,
            request,
            client_key,
        }
    }

    /// Returns a copy with a new secret; the previous one stays valid for [`ROTATION_OVERLAP`].
    #[must_use]
    pub fn rotated(&self, secret: String, now: WallMs) -> BusinessSecrets {
        let until_ms = Some(now.plus(ROTATION_OVERLAP).0);
        let before = self.signing.first().map(|one| SigningSecret {
            until_ms,
            ..one.clone()
        });
        let newest = SigningSecret {
            secret,
            until_ms: None,
        };
        BusinessSecrets {
            signing: std::iter::once(newest).chain(before).collect(),
            ..self.clone()
        }
    }

    /// Returns the context to which the sealed secrets of a business are bound.
    pub fn place(slug: &str) -> String {
        format!("business/{slug}")
    }

    /// Serializes the secrets for sealing.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are always JSON")
    }

    /// Parses the output of [`BusinessSecrets::to_bytes`]; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<BusinessSecrets> {
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let own = origin("https://Push.example/windrow?a=1");
        assert_eq!(own.as_deref(), Some("https://push.example"));
        for (other, is_same) in [
            ("https://push.example:443/hooks", true),
            ("https://push.example", true),
            ("http://push.example/", false),
            ("https://push.example:8443/", false),
            ("https://push.example.evil/", false),
            ("https://push.example@hooks.example/", false),
            ("https://hooks.example\\push.example/", false),
            ("push.example", false),
        ] {
            assert_eq!(origin(other) == own, is_same, "{other}");
        }
    }

    #[test]
    fn during_a_rotation_both_secrets_sign_and_afterwards_only_the_new_one() {
        let first = BusinessSecrets::new("one".to_owned(), BTreeMap::new());
        let second = first.rotated("two".to_owned(), WallMs(1_000));
        let end = WallMs(1_000).plus(ROTATION_OVERLAP);
        assert_eq!(first.signing(WallMs(0)), ["one"]);
        assert_eq!(second.signing(WallMs(end.0 - 1)), ["two", "one"]);
        assert_eq!(second.signing(end), ["two"]);
        let third = second.rotated("three".to_owned(), WallMs(2_000));
        assert_eq!(
            third.signing(WallMs(2_000)),
            ["three", "two"],
            "never more than two"
        );
    }

    #[test]
    fn secrets_read_back_and_are_never_shown() {
        let headers = BTreeMap::from([("authorization".to_owned(), "geheim".to_owned())]);
        let secrets = BusinessSecrets::new("whsec_geheim".to_owned(), headers);
        assert_eq!(
            BusinessSecrets::from_bytes(&secrets.to_bytes()).as_ref(),
            Some(&secrets)
        );
        assert_eq!(BusinessSecrets::from_bytes(b"{}"), None);
        assert!(!format!("{secrets:?}").contains("geheim"));
    }
}
