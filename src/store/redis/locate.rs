//! Lookup of the server that holds the leases, with a client for it: the host in the URL, the master that Sentinels
//! name, or the host a cluster redirects to. The password is read for each connection, so it can change while the
//! node runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use windrow_words::store as say;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisResult,
    TlsCertificates,
};

use super::fault::explained;
use super::{RedisOptions, Section};
use windrow_config::{RedisHost, RedisServers};
use windrow_engine::ports::StoreError;

/// Timeout for a Sentinel. All are asked at once, so this is also the cost of a dead one.
const SENTINEL_LIMIT: Duration = Duration::from_millis(400);

/// Configured Redis servers, with the current redirect of a cluster.
pub(super) struct Servers {
    options: Arc<RedisOptions>,
    /// Host a cluster redirected to; reset by `forget`.
    moved: Mutex<Option<RedisHost>>,
    turn: AtomicUsize,
}

/// Client for a server, with the server's display name.
pub(super) struct Located {
    pub(super) client: Client,
    pub(super) whom: String,
}

impl Servers {
    /// Returns the configuration section that names this Redis, for messages.
    pub(super) fn section(&self) -> Section {
        self.options.section
    }

    /// Returns the consequence of losing this Redis, for the log.
    pub(super) fn when_lost(&self) -> &str {
        &self.options.when_lost
    }

    pub(super) fn new(options: Arc<RedisOptions>) -> Servers {
        Servers {
            options,
            moved: Mutex::default(),
            turn: AtomicUsize::new(0),
        }
    }

    /// Returns the server that holds the leases, as far as known.
    pub(super) async fn master(&self) -> Result<Located, StoreError> {
        match &self.options.url.servers {
            RedisServers::One(host) => self.at(host),
            RedisServers::Unix(path) => {
                self.located(ConnectionAddr::Unix(path.clone()), path.display().to_string())
            }
            RedisServers::Sentinel { sentinels, master } => self.at(&self.named(sentinels, master).await?),
            RedisServers::Cluster(hosts) => {
                let moved = self.moved().clone();
                self.at(moved.as_ref().unwrap_or_else(|| self.next_of(hosts)))
            }
        }
    }

    /// Returns a server to subscribe to; any will do in a cluster.
    pub(super) async fn listened_to(&self) -> Result<Located, StoreError> {
        match &self.options.url.servers {
            RedisServers::Cluster(hosts) => self.at(self.next_of(hosts)),
            _ => self.master().await,
        }
    }

    /// Records a redirect to `host:port` by a cluster. Returns false if it cannot be parsed. An empty host means the
    /// host of the server that sent it.
    pub(super) fn note_moved(&self, place: &str, whom: &str) -> bool {
        let Some((host, port)) = place.rsplit_once(':') else {
            return false;
        };
        let Ok(port) = port.parse() else { return false };
        let sender = whom.rsplit_once(':').map_or(whom, |(host, _)| host);
        let host = if host.is_empty() { sender } else { host };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        *self.moved() = Some(RedisHost { host, port });
        true
    }

    /// Drops the redirect and moves on to the next host in the URL.
    pub(super) fn forget(&self) {
        self.moved().take();
        self.turn.fetch_add(1, Ordering::Relaxed);
    }

    fn moved(&self) -> MutexGuard<'_, Option<RedisHost>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_of<'a>(&self, hosts: &'a [RedisHost]) -> &'a RedisHost {
        &hosts[self.turn.load(Ordering::Relaxed) % hosts.len()]
    }

    fn at(&self, host: &RedisHost) -> Result<Located, StoreError> {
        self.located(self.address(host), named(host))
    }

    fn address(&self, host: &RedisHost) -> ConnectionAddr {
        let RedisHost { host, port } = host.clone();
        if self.options.url.is_tls {
            ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            }
        } else {
            ConnectionAddr::Tcp(host, port)
        }
    }

    fn located(&self, address: ConnectionAddr, whom: String) -> Result<Located, StoreError> {
        let settings = self.credentials()?.set_db(i64::from(self.options.url.db));
        Ok(Located {
            client: self.client(address, settings, &whom)?,
            whom,
        })
    }

    fn credentials(&self) -> Result<RedisConnectionInfo, StoreError> {
        let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        let user = self.options.url.user.as_deref();
        if let Some(user) = user {
            settings = settings.set_username(user);
        }
        match &self.options.password_file {
            Some(file) => {
                let read = std::fs::read_to_string(file);
                let text = read.map_err(|error| self.unreadable("redis_password_file", file, &error))?;
                settings = settings.set_password(text.trim_end_matches(['\r', '\n']));
            }
            // A user without a password accepts any.
            None if user.is_some() => settings = settings.set_password(""),
            None => {}
        }
        Ok(settings)
    }

    fn client(
        &self,
        address: ConnectionAddr,
        settings: RedisConnectionInfo,
        whom: &str,
    ) -> Result<Client, StoreError> {
        let refused = |error| explained(&error, whom, self.options.section);
        let info = address.into_connection_info().map_err(refused)?;
        let tcp = TcpSettings::default().set_nodelay(true);
        let info = info.set_redis_settings(settings).set_tcp_settings(tcp);
        match self.options.ca_file.as_ref().filter(|_| self.options.url.is_tls) {
            Some(file) => {
                let read = std::fs::read(file);
                let pem = read.map_err(|error| self.unreadable("redis_ca_file", file, &error))?;
                let certificates = TlsCertificates {
                    client_tls: None,
                    root_cert: Some(pem),
                };
                Client::build_with_tls(info, certificates).map_err(refused)
            }
            None => Client::open(info).map_err(refused),
        }
    }

    /// Returns the master that most Sentinels name; an isolated one may still name the old master.
    async fn named(&self, sentinels: &[RedisHost], master: &str) -> Result<RedisHost, StoreError> {
        let mut asked: FuturesUnordered<_> = sentinels.iter().map(|host| self.ask(host, master)).collect();
        let mut votes: HashMap<RedisHost, usize> = HashMap::new();
        let mut fault = None;
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(host) => {
                    let of = votes.entry(host.clone()).or_default();
                    *of += 1;
                    if *of * 2 > sentinels.len() {
                        return Ok(host);
                    }
                }
                Err(error) => fault = Some(error),
            }
        }
        let most = votes
            .into_iter()
            .max_by_key(|(_, votes)| *votes)
            .map(|(host, _)| host);
        let section = self.options.section.name;
        let nobody = || StoreError::Unavailable(say::no_sentinel(section).to_string());
        most.ok_or_else(|| fault.unwrap_or_else(nobody))
    }

    async fn ask(&self, sentinel: &RedisHost, master: &str) -> Result<RedisHost, StoreError> {
        let whom = format!("{} (Sentinel)", named(sentinel));
        let mut outcome = self
            .ask_as(sentinel, master, RedisConnectionInfo::default(), &whom)
            .await?;
        let wants_password = |error: &redis::RedisError| error.to_string().contains("NOAUTH");
        if outcome.as_ref().is_err_and(wants_password) {
            outcome = self.ask_as(sentinel, master, self.credentials()?, &whom).await?;
        }
        match outcome {
            Ok(Some((host, port))) => Ok(RedisHost { host, port }),
            Ok(None) => Err(StoreError::Unavailable(
                say::no_master(whom, format!("{master:?}"), self.options.section.name).to_string(),
            )),
            Err(error) => Err(explained(&error, &whom, self.options.section)),
        }
    }

    fn unreadable(&self, key: &str, file: &std::path::Path, error: &std::io::Error) -> StoreError {
        let section = self.options.section.name;
        StoreError::Unavailable(
            say::unreadable(
                format!("{section}.{key}"),
                file.display().to_string(),
                error.to_string(),
            )
            .to_string(),
        )
    }

    async fn ask_as(
        &self,
        sentinel: &RedisHost,
        master: &str,
        settings: RedisConnectionInfo,
        whom: &str,
    ) -> Result<RedisResult<Option<(String, u16)>>, StoreError> {
        let settings = settings.set_skip_set_lib_name();
        let client = self.client(self.address(sentinel), settings, whom)?;
        let asking = async {
            let config = AsyncConnectionConfig::new();
            let mut connection = client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            let mut ask = redis::cmd("SENTINEL");
            ask.arg("get-master-addr-by-name")
                .arg(master)
                .query_async(&mut connection)
                .await
        };
        tokio::time::timeout(SENTINEL_LIMIT, asking)
            .await
            .map_err(|_| StoreError::Unavailable(say::redis(whom, say::redis_late()).to_string()))
    }
}

fn named(host: &RedisHost) -> String {
    let RedisHost { host, port } = host;
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
