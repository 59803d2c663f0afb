//! What a person may set for the connections that a node makes (`[handler.http]`, and a business's own settings).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use rustls::ClientConfig;

use super::connect::Connector;
use super::egress::Egress;
use super::proxy::Proxy;
use windrow_config::HttpHandler;

/// How connections are made.
#[derive(Clone)]
pub struct Outbound {
    /// How long a connection may take to be made, within the call's own time.
    pub connect_timeout: Duration,
    /// How long a connection may take with all that comes before a request, TLS too, until somebody answered for the first
    /// time; none is the call's own time.
    pub first_contact: Option<Duration>,
    /// How long an unused connection is kept.
    pub pool_idle: Duration,
    /// Whether HTTP/2 may be agreed upon over https.
    pub http2: bool,
    /// Certificates (PEM) that are trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The same as text; wins over `ca_file`.
    pub ca_pem: Option<String>,
    /// Trusts any certificate. For a test system only.
    pub insecure_skip_verify: bool,
    /// A forward proxy, `http://host:port`; none connects directly.
    pub proxy: Option<String>,
    /// Addresses that may and may not be connected to.
    pub egress: Egress,
}

impl Default for Outbound {
    /// The defaults of `config.toml`.
    fn default() -> Outbound {
        Outbound {
            connect_timeout: Duration::from_secs(2),
            first_contact: None,
            pool_idle: Duration::from_secs(90),
            http2: true,
            ca_file: None,
            ca_pem: None,
            insecure_skip_verify: false,
            proxy: None,
            egress: Egress::default(),
        }
    }
}

impl Outbound {
    /// What the configuration says of all handlers.
    pub fn of(config: &HttpHandler) -> Outbound {
        Outbound {
            connect_timeout: config.connect_timeout,
            first_contact: None,
            pool_idle: config.pool_idle,
            http2: config.http2,
            ca_file: config.ca_file.clone(),
            ca_pem: None,
            insecure_skip_verify: config.insecure_skip_verify,
            proxy: config.proxy.clone(),
            egress: Egress {
                allow: config.allow_networks.clone(),
                deny: config.deny_networks.clone(),
                private: None,
            },
        }
    }

    /// The proxy, parsed.
    ///
    /// # Errors
    /// A sentence for people when it is none.
    pub fn proxy(&self) -> Result<Option<Proxy>, String> {
        self.proxy.as_deref().map(Proxy::parse).transpose()
    }

    /// Connects to handlers under these rules, and counts the connections in `made`.
    ///
    /// # Errors
    /// A sentence for people when the proxy is none.
    pub fn connector(
        &self,
        tls: ClientConfig,
        made: Arc<AtomicUsize>,
    ) -> Result<HttpsConnector<Connector>, String> {
        let tcp = Connector::new(self.egress.clone(), self.connect_timeout, self.proxy()?, made);
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1();
        Ok(if self.http2 {
            https.enable_http2().wrap_connector(tcp)
        } else {
            https.wrap_connector(tcp)
        })
    }
}
