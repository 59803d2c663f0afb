//! Trust in TLS certificates.

use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme, WantsVerifier,
};

use super::Outbound;

/// Returns the TLS settings for these options; reads the system's or the given certificates from disk.
///
/// # Errors
/// A message for people if there are no certificates to trust.
pub fn config(options: &Outbound) -> Result<ClientConfig, String> {
    if options.insecure_skip_verify {
        let verifier = Arc::new(TrustAnyone(Arc::new(ring::default_provider())));
        return Ok(builder()
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth());
    }
    if let Some(pem) = &options.ca_pem {
        return Ok(builder()
            .with_root_certificates(authorities(pem)?)
            .with_no_client_auth());
    }
    if let Some(path) = &options.ca_file {
        let bad = |why: String| format!("can't use `ca_file` {}: {why}; {PEM_HINT}", path.display());
        let found = CertificateDer::pem_file_iter(path).map_err(|why| bad(why.to_string()))?;
        let roots = roots(found).map_err(bad)?;
        return Ok(builder().with_root_certificates(roots).with_no_client_auth());
    }
    let trusted = builder().with_native_roots().map_err(|why| {
        format!("this machine has no trusted certificates: {why}; install ca-certificates or set `ca_file`")
    })?;
    Ok(trusted.with_no_client_auth())
}

/// Parses the certificates of a `ca_pem`.
///
/// # Errors
/// A message for people if there is none, or one is damaged.
pub fn authorities(pem: &str) -> Result<RootCertStore, String> {
    let found = CertificateDer::pem_slice_iter(pem.as_bytes());
    roots(found).map_err(|why| format!("can't use `ca_pem`: {why}; {PEM_HINT}"))
}

const PEM_HINT: &str = "certificates must be in PEM form";

fn roots(
    found: impl Iterator<Item = Result<CertificateDer<'static>, pem::Error>>,
) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in found {
        let certificate = certificate.map_err(|why| why.to_string())?;
        roots.add(certificate).map_err(|why| why.to_string())?;
    }
    if roots.is_empty() {
        Err("it contains no certificate".into())
    } else {
        Ok(roots)
    }
}

/// Returns settings for clients that never speak TLS.
pub fn trusting_nobody() -> ClientConfig {
    builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

fn builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has ciphers for TLS 1.2 and 1.3")
}

/// Verifier for `insecure_skip_verify`: accepts any certificate, but the other side must own its key.
#[derive(Debug)]
struct TrustAnyone(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
