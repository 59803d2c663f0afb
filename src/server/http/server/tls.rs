//! TLS certificate and key of the API server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Error for an unusable certificate or key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: can't use {}: {cause}", path.display())]
pub struct BadTls {
    /// Configuration key that names the file.
    pub key: &'static str,
    /// Path of the file.
    pub path: PathBuf,
    /// Reason, which never contains file contents.
    pub cause: String,
}

/// Builds an acceptor for TLS 1.2 and 1.3, with HTTP/2 if the client offers it.
///
/// # Errors
/// If a file can't be read or isn't PEM, or if the two don't belong together.
pub fn acceptor(certificates: &Path, key: &Path) -> Result<TlsAcceptor, BadTls> {
    let fault = |name: &'static str, path: &Path, cause: String| BadTls {
        key: name,
        path: path.to_owned(),
        cause,
    };
    let of_certificates = |cause: String| fault("http.tls_cert_file", certificates, cause);
    let of_key = |cause: String| fault("http.tls_key_file", key, cause);
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect)
        .map_err(|error| of_certificates(error.to_string()))?;
    if chain.is_empty() {
        return Err(of_certificates("it contains no certificate".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| of_key(error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| of_certificates(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, secret);
    let mut config = config.map_err(|error| of_key(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
