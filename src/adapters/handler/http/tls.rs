//! Which certificates are trusted.

use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme, WantsVerifier,
};

use super::HttpOptions;

/// The TLS settings for these options; reads the system's or the given certificates from disk.
///
/// # Errors
/// A message for people when there are no certificates to trust.
pub(in crate::adapters) fn config(options: &HttpOptions) -> Result<ClientConfig, String> {
    if options.insecure_skip_verify {
        let verifier = Arc::new(TrustAnyone(Arc::new(ring::default_provider())));
        return Ok(builder().dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth());
    }
    if let Some(path) = &options.ca_file {
        let bad = |why: String| {
            format!(
                "`ca_file` {} can't be used: {why}; it must hold certificates in PEM form",
                path.display()
            )
        };
        let mut roots = RootCertStore::empty();
        let found = CertificateDer::pem_file_iter(path).map_err(|why| bad(why.to_string()))?;
        for certificate in found {
            let certificate = certificate.map_err(|why| bad(why.to_string()))?;
            roots.add(certificate).map_err(|why| bad(why.to_string()))?;
        }
        if roots.is_empty() {
            return Err(bad("it holds no certificate".into()));
        }
        return Ok(builder().with_root_certificates(roots).with_no_client_auth());
    }
    let trusted = builder().with_native_roots().map_err(|why| {
        format!("this machine has no certificates to trust: {why}; install ca-certificates or set `ca_file`")
    })?;
    Ok(trusted.with_no_client_auth())
}

/// Settings for a handler that never speaks TLS.
pub(super) fn trusting_nobody() -> ClientConfig {
    builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

fn builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has ciphers for TLS 1.2 and 1.3")
}

/// For `insecure_skip_verify`: any certificate will do, but the other side must own its key.
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
