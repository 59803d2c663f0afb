//! Client certificates, which handlers may demand (mTLS).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor as verify};
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, ClientConfig, InconsistentKeys, RootCertStore};
use sha2::{Digest, Sha256};

/// Client certificate with its private key, in PEM form. `Debug` shows no key.
#[derive(Clone, PartialEq, Eq)]
pub enum ClientCertificate {
    /// Files, read whenever connections are set up: certificates are renewed in place.
    Files {
        /// File with the certificate, followed by those of its authorities.
        cert: PathBuf,
        /// File with the key, without a password.
        key: PathBuf,
    },
    /// Texts, as a business has them.
    Texts {
        /// Certificate, followed by those of its authorities.
        cert: String,
        /// Key, without a password.
        key: String,
    },
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate")
    }
}

/// Half of a client certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Public half, which the server sees.
    Certificate,
    /// Private half, which proves that the public one is ours.
    Key,
}

/// Reason why a client certificate can't be presented.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct IdentityFault {
    /// Half that is wrong.
    pub half: Half,
    /// Reason and remedy, for people.
    pub why: String,
}

impl IdentityFault {
    fn new(half: Half, why: impl Into<String>) -> IdentityFault {
        IdentityFault {
            half,
            why: why.into(),
        }
    }
}

/// Client certificate that can be presented.
#[derive(Clone, Debug)]
pub struct Identity(Arc<CertifiedKey>);

impl ClientCertificate {
    /// Reads the certificate and checks that it can be presented now.
    ///
    /// # Errors
    /// If a half can't be read, the key belongs to another certificate, or the certificate isn't valid now.
    pub fn load(&self) -> Result<Identity, IdentityFault> {
        match self {
            ClientCertificate::Texts { cert, key } => Identity::of(cert.as_bytes(), key.as_bytes()),
            ClientCertificate::Files { cert, key } => {
                let texts = (read(Half::Certificate, cert)?, read(Half::Key, key)?);
                Identity::of(&texts.0, &texts.1).map_err(|fault| {
                    let file = match fault.half {
                        Half::Certificate => cert,
                        Half::Key => key,
                    };
                    IdentityFault::new(fault.half, format!("can't use {}: {}", file.display(), fault.why))
                })
            }
        }
    }
}

fn read(half: Half, path: &Path) -> Result<Vec<u8>, IdentityFault> {
    std::fs::read(path)
        .map_err(|why| IdentityFault::new(half, format!("can't read {}: {why}", path.display())))
}

impl Identity {
    fn of(cert: &[u8], key: &[u8]) -> Result<Identity, IdentityFault> {
        let chain = chain(cert).map_err(|why| IdentityFault::new(Half::Certificate, why))?;
        let key = private_key(key).map_err(|why| IdentityFault::new(Half::Key, why))?;
        check_validity(&chain[0], UnixTime::now())
            .map_err(|why| IdentityFault::new(Half::Certificate, why))?;
        let found = CertifiedKey::from_der(chain, key, &ring::default_provider());
        let fault = |why| {
            match why {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => (
                Half::Key,
                "it doesn't belong to the certificate; use the key that the certificate was issued for, and put \
                 that certificate before those of its authorities"
                    .to_owned(),
            ),
            rustls::Error::InvalidCertificate(why) => (Half::Certificate, format!("it is damaged: {why}")),
            _ => (
                Half::Key,
                "its type isn't supported; use RSA, ECDSA (P-256, P-384, P-521) or Ed25519".to_owned(),
            ),
        }
        };
        found.map(|one| Identity(Arc::new(one))).map_err(|why| {
            let (half, why) = fault(why);
            IdentityFault::new(half, why)
        })
    }

    /// Returns a digest of the certificate, which also determines its key.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        self.0.cert.iter().for_each(|one| digest.update(one));
        digest.finalize().into()
    }

    /// Makes a client present the certificate to servers that demand one.
    pub fn apply(self, config: &mut ClientConfig) {
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(self.0));
        // The cache of a copied config has the sessions of clients with another certificate, or none.
        config.resumption = Resumption::default();
    }
}

fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err("it contains no certificate; PEM begins with -----BEGIN CERTIFICATE-----".to_owned()),
        Err(why) => Err(format!("it is no PEM file of certificates: {why}")),
    }
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let is_encrypted = String::from_utf8_lossy(pem).contains("ENCRYPTED");
    PrivateKeyDer::from_pem_slice(pem).map_err(|why| match why {
        _ if is_encrypted => {
            "it is encrypted, and there is nobody to ask for its password; decrypt it: openssl pkey -in KEY -out FILE"
                .to_owned()
        }
        pem::Error::NoItemsFound => {
            "it contains no private key; PEM begins with -----BEGIN PRIVATE KEY-----".to_owned()
        }
        why => format!("it is no PEM file of a private key: {why}"),
    })
}

/// Checks the dates of a certificate.
fn check_validity(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), String> {
    let parsed = ParsedCertificate::try_from(certificate)
        .map_err(|why| format!("it is damaged, or not of version 3: {why}"))?;
    let algorithms = ring::default_provider().signature_verification_algorithms;
    // Without an authority the verdict is never good, but the dates are the first that it looks at.
    let verdict = verify(&parsed, &RootCertStore::empty(), &[], now, algorithms.all);
    match verdict {
        Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Err(format!("it expired on {}; renew it", date(not_after)))
        }
        Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before, ..
        })) => {
            let from = date(not_before);
            Err(format!(
                "it is valid from {from} only; check this machine's clock"
            ))
        }
        _ => Ok(()),
    }
}

fn date(at: UnixTime) -> impl fmt::Display {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(at.as_secs()))
}
