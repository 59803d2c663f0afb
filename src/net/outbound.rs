//! Settings for the connections that a node makes (`[handler.http]`, and a business's own settings).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::HttpsConnectorBuilder;
use rustls::ClientConfig;

use super::connect::Connector;
use super::egress::Egress;
use super::environment::EnvironmentProxies;
use super::identity::ClientCertificate;
use super::line::Lines;
use super::proxy::Proxy;
use windrow_config::HttpHandler;

/// Settings for making connections.
#[derive(Clone)]
pub struct Outbound {
    /// Timeout for making a connection, within the call's own time.
    pub connect_timeout: Duration,
    /// Timeout for everything before a request, including TLS, until the first response has ever arrived; `None`
    /// means the call's own time.
    pub first_contact: Option<Duration>,
    /// Time for which an unused connection is kept.
    pub pool_idle: Duration,
    /// True if HTTP/2 may be negotiated over https.
    pub http2: bool,
    /// File with certificates (PEM) that are trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Certificates as text; overrides `ca_file`.
    pub ca_pem: Option<String>,
    /// Certificate presented to servers that demand one.
    pub client_cert: Option<ClientCertificate>,
    /// True to trust any certificate, for test systems only.
    pub insecure_skip_verify: bool,
    /// Forward proxy, `http://host:port`; `None` connects directly, or as the environment says.
    pub proxy: Option<String>,
    /// Proxies of the environment, for programs that follow it: a node has its own settings.
    pub environment: Option<EnvironmentProxies>,
    /// Addresses that may and may not be connected to.
    pub egress: Egress,
}

impl Default for Outbound {
    /// Returns the defaults of `config.toml`.
    fn default() -> Outbound {
        Outbound {
            connect_timeout: Duration::from_secs(2),
            first_contact: None,
            pool_idle: Duration::from_secs(90),
            http2: true,
            ca_file: None,
            ca_pem: None,
            client_cert: None,
            insecure_skip_verify: false,
            proxy: None,
            environment: None,
            egress: Egress::default(),
        }
    }
}

impl Outbound {
    /// Returns the configuration's settings for calls to handlers, with the node's certificate.
    pub fn to_handlers(config: &HttpHandler) -> Outbound {
        let files = config
            .client_cert_file
            .clone()
            .zip(config.client_key_file.clone());
        Outbound {
            client_cert: files.map(|(cert, key)| ClientCertificate::Files { cert, key }),
            ..Outbound::of(config)
        }
    }

    /// Returns the configuration's settings for all connections. They present no certificate: the URLs of sources
    /// are chosen by businesses, which don't act in the node's name.
    pub fn of(config: &HttpHandler) -> Outbound {
        Outbound {
            connect_timeout: config.connect_timeout,
            first_contact: None,
            pool_idle: config.pool_idle,
            http2: config.http2,
            ca_file: config.ca_file.clone(),
            ca_pem: None,
            client_cert: None,
            insecure_skip_verify: config.insecure_skip_verify,
            proxy: config.proxy.clone(),
            environment: None,
            egress: Egress {
                allow: config.allow_networks.clone(),
                deny: config.deny_networks.clone(),
                private: None,
            },
        }
    }

    /// Returns the rule for which calls use which proxy.
    ///
    /// # Errors
    /// A sentence for people if the configured proxy is invalid.
    pub fn proxies(&self) -> Result<Proxies, String> {
        Ok(match (&self.proxy, &self.environment) {
            (Some(proxy), _) => Proxies::All(Proxy::parse(proxy)?),
            (None, Some(environment)) => Proxies::Environment(environment.clone()),
            (None, None) => Proxies::None,
        })
    }

    /// Creates connections to handlers under these rules, and counts them in `made`.
    ///
    /// # Errors
    /// A sentence for people if the proxy is invalid.
    pub fn lines(&self, tls: ClientConfig, made: Arc<AtomicUsize>) -> Result<Lines, String> {
        let tcp = Connector::new(self.egress.clone(), self.connect_timeout, self.proxies()?, made);
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1();
        let made = if self.http2 {
            https.enable_http2().wrap_connector(tcp.clone())
        } else {
            https.wrap_connector(tcp.clone())
        };
        Ok(Lines::new(made, tcp))
    }
}

/// Rule for which calls use a proxy.
#[derive(Clone, Debug)]
pub enum Proxies {
    /// No call uses a proxy.
    None,
    /// All calls, through this proxy.
    All(Proxy),
    /// Calls for which the environment names a proxy.
    Environment(EnvironmentProxies),
}

impl Proxies {
    /// Returns the proxy for a URL; `None` if it is called directly.
    ///
    /// # Errors
    /// A sentence for people if the proxy that the environment names can't be used.
    pub fn of(&self, url: &Uri) -> Result<Option<&Proxy>, String> {
        match self {
            Proxies::None => Ok(None),
            Proxies::All(proxy) => Ok(Some(proxy)),
            Proxies::Environment(proxies) => proxies.of(url),
        }
    }
}
