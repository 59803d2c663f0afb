//! Signatures of callbacks as in Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, in base64.
//!
//! Holds the secrets and never shows them: neither `Debug` nor an error contains one.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Maximum number of secrets at a time: the new one and, during a rotation, the old one.
pub const SECRETS_MAX: usize = 2;
/// Bounds for the length of a decoded secret, in bytes. (Standard Webhooks: 24 to 64.)
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Error for a text that is not a signing secret; the text is not shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The prefix, the base64 or the length is wrong.
    #[error(
        "signing secret {0} is not `whsec_` followed by 24 to 64 bytes in base64; create one with \
         `openssl rand -base64 32`"
    )]
    Malformed(usize),
    /// There are more than [`SECRETS_MAX`] secrets.
    #[error("there are {0} signing secrets; at most 2 are allowed, the new one and the previous one")]
    TooMany(usize),
}

/// Signer with one or two secrets; without secrets it makes no signatures.
#[derive(Clone)]
pub struct Signer {
    keys: Vec<Hmac<Sha256>>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({} secrets)", self.keys.len())
    }
}

impl Signer {
    /// Creates a signer for secrets as people write them, `whsec_…`, newest first.
    ///
    /// # Errors
    /// See [`SecretError`].
    pub fn new(secrets: &[impl AsRef<str>]) -> Result<Signer, SecretError> {
        if secrets.len() > SECRETS_MAX {
            return Err(SecretError::TooMany(secrets.len()));
        }
        let key = |(at, secret): (usize, _)| key(secret).ok_or(SecretError::Malformed(at + 1));
        let keys = secrets
            .iter()
            .map(AsRef::as_ref)
            .enumerate()
            .map(key)
            .collect::<Result<_, _>>()?;
        Ok(Signer { keys })
    }

    /// Returns the value of `webhook-signature`, with one signature per secret; `None` without secrets. `timestamp`
    /// is in seconds since the Unix epoch.
    pub fn signature(&self, id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
        if self.keys.is_empty() {
            return None;
        }
        let head = format!("{id}.{timestamp}.");
        let one = |key: &Hmac<Sha256>| {
            let mac = key
                .clone()
                .chain_update(&head)
                .chain_update(body)
                .finalize()
                .into_bytes();
            format!("v1,{}", STANDARD.encode(mac))
        };
        Some(self.keys.iter().map(one).collect::<Vec<_>>().join(" "))
    }
}

/// Current signer of a business: its holders sign with new secrets from the moment they are set, however long their
/// runs have been going.
#[derive(Debug)]
pub struct KeyRing(RwLock<Signer>);

impl KeyRing {
    /// Creates a ring with these secrets.
    pub fn new(signer: Signer) -> KeyRing {
        KeyRing(RwLock::new(signer))
    }

    /// Replaces the secrets for all holders.
    pub fn set(&self, signer: Signer) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = signer;
    }

    /// Signs with the current secrets, see [`Signer::signature`].
    pub fn signature(&self, id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .signature(id, timestamp, body)
    }
}

fn key(secret: &str) -> Option<Hmac<Sha256>> {
    let bytes = STANDARD.decode(secret.strip_prefix("whsec_")?.trim_end()).ok()?;
    let bytes = SECRET_BYTES.contains(&bytes.len()).then_some(bytes)?;
    Hmac::new_from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example that the Standard Webhooks libraries of all languages share.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIMESTAMP: i64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn sign(secrets: &[&str]) -> Option<String> {
        Signer::new(secrets)
            .expect("good secrets")
            .signature(ID, TIMESTAMP, BODY)
    }

    #[test]
    fn the_official_example_has_the_official_signature() {
        assert_eq!(sign(&[SECRET]).as_deref(), Some(SIGNATURE));
    }

    #[test]
    fn rotation_signs_with_both_secrets_newest_first() {
        let newer = format!("whsec_{}", STANDARD.encode([7_u8; 32]));
        let both = sign(&[&newer, SECRET]).expect("signed");
        assert_eq!(both, format!("{} {SIGNATURE}", sign(&[&newer]).expect("signed")));
        assert_eq!(sign(&[]), None);
    }

    #[test]
    fn every_signed_part_changes_the_signature() {
        let signer = Signer::new(&[SECRET]).expect("good");
        assert_ne!(
            signer.signature("msg_x", TIMESTAMP, BODY).as_deref(),
            Some(SIGNATURE)
        );
        assert_ne!(
            signer.signature(ID, TIMESTAMP + 1, BODY).as_deref(),
            Some(SIGNATURE)
        );
        for at in 0..BODY.len() {
            let mut body = BODY.to_vec();
            body[at] ^= 1;
            assert_ne!(
                signer.signature(ID, TIMESTAMP, &body).as_deref(),
                Some(SIGNATURE),
                "{at}"
            );
        }
    }

    #[test]
    fn bad_secrets_are_refused_without_being_shown() {
        let long = format!("whsec_{}", STANDARD.encode([1_u8; 65]));
        for bad in [
            "",
            "whsec_",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_geheim!!",
            "whsec_c2hvcnQ=",
            &long,
        ] {
            let why = Signer::new(&[SECRET, bad]).expect_err(bad);
            assert_eq!(why, SecretError::Malformed(2));
            assert!(
                bad.is_empty() || bad == "whsec_" || !why.to_string().contains(bad),
                "{why}"
            );
        }
        assert_eq!(
            Signer::new(&[SECRET; 3]).expect_err("three"),
            SecretError::TooMany(3)
        );
        assert!(!format!("{:?}", Signer::new(&[SECRET])).contains("MfKQ"));
    }
}
