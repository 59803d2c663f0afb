//! Trusted certificates, and connections that detect if the other side speaks TLS.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper::Uri;
use hyper::http::uri::Scheme;
use hyper_rustls::ConfigBuilderExt;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use tower_service::Service;

use super::error::ClientError;
use windrow_tls::deepest;
use windrow_tls::proxy::{Proxy, tunnel};
use windrow_tls::stream::Stream;

/// Connector to the node or to the proxy in front of it.
#[derive(Clone, Debug)]
pub(super) struct Tcp {
    pub(super) connector: HttpConnector,
    pub(super) proxy: Option<Proxy>,
}

/// The proxy failed to connect to the node.
#[derive(Debug, thiserror::Error)]
#[error("the proxy {0}: {1}")]
struct ProxyError(String, String);

type Failed = Box<dyn Error + Send + Sync>;

impl Service<Uri> for Tcp {
    type Response = Stream;
    type Error = Failed;
    type Future = BoxFuture<'static, Result<Stream, Failed>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.connector.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        let Some(proxy) = self.proxy.clone() else {
            let made = self.connector.call(uri);
            return Box::pin(async move { Ok(Stream::new(made.await?, is_https)) });
        };
        let place = format!("http://{}:{}", proxy.host, proxy.port).parse();
        let mut connector = self.connector.clone();
        Box::pin(async move {
            let failed = |why: String| ProxyError(proxy.told(), why);
            let made = connector.call(place?).await;
            let mut stream = made.map_err(|why| failed(deepest(&why)))?.into_inner();
            if is_https {
                let (host, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(443));
                tunnel(&proxy, &mut stream, host, port).await.map_err(failed)?;
            }
            Ok(Stream::new(TokioIo::new(stream), is_https).proxied(!is_https))
        })
    }
}

/// Builds the TLS settings with the given authorities or the system's. Without `https`, reads nothing from disk.
///
/// # Errors
/// [`ClientError::Trust`] if no authority can be loaded.
pub(super) fn config(is_https: bool, ca_file: Option<&Path>) -> Result<ClientConfig, ClientError> {
    let roots = match (is_https, ca_file) {
        (false, _) => RootCertStore::empty(),
        (true, Some(path)) => authorities(path)?,
        (true, None) => {
            let trusted = builder()?.with_native_roots().map_err(|why| {
                ClientError::Trust(format!("this machine has no trusted certificates: {why}"))
            })?;
            return Ok(trusted.with_no_client_auth());
        }
    };
    Ok(builder()?.with_root_certificates(roots).with_no_client_auth())
}

fn authorities(path: &Path) -> Result<RootCertStore, ClientError> {
    let bad = |why: String| {
        ClientError::Trust(format!(
            "can't read CA certificates from {}: {why}",
            path.display()
        ))
    };
    let mut roots = RootCertStore::empty();
    if !path.exists() {
        return Err(bad("no such file".to_owned()));
    }
    for certificate in CertificateDer::pem_file_iter(path).map_err(|why| bad(why.to_string()))? {
        let certificate = certificate.map_err(|why| bad(why.to_string()))?;
        roots.add(certificate).map_err(|why| bad(why.to_string()))?;
    }
    if roots.is_empty() {
        Err(bad("it contains no certificate in PEM form".to_owned()))
    } else {
        Ok(roots)
    }
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, ClientError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    builder
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::Trust(error.to_string()))
}
