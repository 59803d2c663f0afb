//! What a person may set for the connections that a node makes (`[handler.http]`, and a business's own settings).

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
use super::line::Lines;
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
    /// A forward proxy, `http://host:port`; none connects directly, or as the environment says.
    pub proxy: Option<String>,
    /// The proxies of the environment, for whoever obeys it: a node has its own settings.
    pub environment: Option<EnvironmentProxies>,
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
            environment: None,
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
            environment: None,
            egress: Egress {
                allow: config.allow_networks.clone(),
                deny: config.deny_networks.clone(),
                private: None,
            },
        }
    }

    /// Which calls go through which proxy.
    ///
    /// # Errors
    /// A sentence for people when the one that is set is none.
    pub fn proxies(&self) -> Result<Proxies, String> {
        Ok(match (&self.proxy, &self.environment) {
            (Some(proxy), _) => Proxies::All(Proxy::parse(proxy)?),
            (None, Some(environment)) => Proxies::Environment(environment.clone()),
            (None, None) => Proxies::None,
        })
    }

    /// Connects to handlers under these rules, and counts the connections in `made`.
    ///
    /// # Errors
    /// A sentence for people when the proxy is none.
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

/// Which calls go through a proxy.
#[derive(Clone, Debug)]
pub enum Proxies {
    /// None.
    None,
    /// All, through this one.
    All(Proxy),
    /// Those that the environment says.
    Environment(EnvironmentProxies),
}

impl Proxies {
    /// The proxy of a URL; none where it is called directly.
    ///
    /// # Errors
    /// A sentence for people when the one that the environment names can't be used.
    pub fn of(&self, url: &Uri) -> Result<Option<&Proxy>, String> {
        match self {
            Proxies::None => Ok(None),
            Proxies::All(proxy) => Ok(Some(proxy)),
            Proxies::Environment(proxies) => proxies.of(url),
        }
    }
}
