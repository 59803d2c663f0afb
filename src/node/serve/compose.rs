//! The parts of a node that serves: adapters behind the ports, the tree over them, and what the service works with.

use std::ffi::OsString;
use std::sync::Arc;

use super::{ServeError, capacity};
use crate::min_level::{MinLevel, Sieve};
use crate::provider::{HookClient, KeyVault, Leftovers, ServiceProvider, Transports};
use crate::sources::{Desk, Fetcher, Guard, StoredSources};
use crate::{Beside, Node, NodeOptions, Runtimes, StateDir, Store, SystemClock};
use windrow_config::Config;
use windrow_engine::actors::runtime::context::{HookParts, Keep, NodePlace, Serving, Times};
use windrow_engine::actors::runtime::tree::Printed;
use windrow_engine::ports::access::vault::Vault;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::data_log::DataLog;
use windrow_engine::ports::handling::hook::HookCaller;
use windrow_engine::ports::ownership::peers::PeerSeal;
use windrow_engine::ports::sources::provision::Provider;
use windrow_net::Outbound;
use windrow_net::peers::{PeerClient, PeerKey, PeerTls, Shared};
use windrow_server::service::Parts;
use windrow_server::service::cluster::ClusterParts;

/// What a node is composed of.
pub(super) struct Ingredients<'a> {
    pub(super) config: &'a Config,
    pub(super) name: &'a str,
    /// What command handlers inherit.
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) runtimes: Arc<Runtimes>,
    pub(super) state: Arc<StateDir>,
    pub(super) store: Arc<Store>,
    /// The port of the façade.
    pub(super) port: u16,
    /// The base of its URL.
    pub(super) address: String,
    /// Which lines of the data log are kept.
    pub(super) min_level: MinLevel,
}

impl Ingredients<'_> {
    fn data_log(&self) -> Arc<dyn DataLog> {
        Arc::new(Sieve {
            inner: self.store.clone(),
            min_level: self.min_level.clone(),
            meters: self.store.meters().clone(),
        })
    }
}

/// Composes a node and starts its tree.
///
/// # Errors
/// When the key that seals secrets can't be used, or the tree doesn't come up.
pub(super) async fn compose(from: Ingredients<'_>) -> Result<(Node, Parts), ServeError> {
    let config = from.config;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let key = KeyVault::open(config.auth.key_file.as_deref(), from.state.path())?;
    let cluster = cluster(&from, &clock, &key)?;
    let vault: Arc<dyn Vault> = Arc::new(key);
    let transports = Arc::new(Transports::default());
    let provider = Arc::new(provider(&from, &clock, &vault, &transports));
    let calls = Arc::new(HookClient {
        http: config.http_handler.clone(),
        commands: config.command_handler.clone(),
        environment: from.environment.clone(),
        node: from.name.to_owned(),
        vault: vault.clone(),
        clock: clock.clone(),
        transports,
    });
    let fetcher = Fetcher::new(Outbound::of(&config.http_handler), guard(&from));
    let store = from.store.clone();
    let desk = Desk {
        sources: store.clone(),
        uploads: store.clone(),
        fetcher,
    };
    let caller: Arc<dyn HookCaller> = calls.clone();
    let node = start(&from, provider.clone(), caller).await?;
    let parts = Parts {
        tasks: store.clone(),
        lists: store.clone(),
        businesses: store.clone(),
        limits: store.clone(),
        tokens: store.clone(),
        responses: store.clone(),
        data_log: from.data_log(),
        failures: store.clone(),
        reports: store.clone(),
        uploads: store.clone(),
        resolver: Arc::new(desk),
        hooks: calls.clone(),
        handlers: calls,
        vault,
        items: provider.clone(),
        provider,
        meters: store.meters().clone(),
        node_audit: store,
        cluster,
        supervisor: node.supervisor().clone(),
        clock,
    };
    Ok((node, parts))
}

/// What a source of a business may not be.
fn guard(from: &Ingredients<'_>) -> Guard {
    let public = from.config.http.public_url.clone();
    Guard {
        networks: from.config.http_handler.source_networks.clone(),
        own_port: from.port,
        own_urls: public.into_iter().chain([from.address.clone()]).collect(),
    }
}

/// How other nodes of the store are known and asked.
fn cluster(
    from: &Ingredients<'_>,
    clock: &Arc<dyn Clock>,
    key: &KeyVault,
) -> Result<ClusterParts, ServeError> {
    let seal: Arc<dyn PeerSeal> = Arc::new(PeerKey::new(key.peers_key()));
    let tls = PeerTls {
        ca_file: from.config.cluster.ca_file.clone(),
    };
    let client =
        PeerClient::new(from.name, seal.clone(), clock.clone(), tls).map_err(ServeError::PeerTrust)?;
    Ok(ClusterParts {
        node: from.name.to_owned(),
        began: clock.wall(),
        is_shared: from.config.store.url.is_server(),
        address: Some(from.address.clone()),
        database: from.config.store.url.engine(),
        sessions: from.store.clone(),
        shards: from.store.clone(),
        peers: Arc::new(Shared::new(Arc::new(client))),
        seal,
    })
}

fn provider(
    from: &Ingredients<'_>,
    clock: &Arc<dyn Clock>,
    vault: &Arc<dyn Vault>,
    transports: &Arc<Transports>,
) -> ServiceProvider {
    let (store, spool) = (from.store.clone(), from.state.spool());
    let sources = StoredSources::new(
        store.clone(),
        store.clone(),
        store.clone(),
        store,
        spool,
        clock.clone(),
    );
    ServiceProvider {
        businesses: from.store.clone(),
        vault: vault.clone(),
        config: Arc::new(from.config.clone()),
        node: from.name.to_owned(),
        environment: from.environment.clone(),
        clock: clock.clone(),
        data_log: from.data_log(),
        transports: transports.clone(),
        workers: Arc::new(Leftovers::take_over(Some(from.state.workers()))),
        sources: Arc::new(sources),
        work: from.runtimes.work().clone(),
    }
}

async fn start(
    from: &Ingredients<'_>,
    provider: Arc<dyn Provider>,
    caller: Arc<dyn HookCaller>,
) -> Result<Node, ServeError> {
    let config = from.config;
    let options = NodeOptions {
        name: from.name.to_owned(),
        state: from.state.clone(),
        store: from.store.clone(),
        provider,
        capacity: capacity(config),
        unlimited_reserves: config.node.unlimited_reserves,
        times: times(config),
        runtimes: from.runtimes.clone(),
        exclusive: !config.store.url.is_server(),
        only: None,
    };
    Ok(Node::start_with(options, beside(from, caller)).await?)
}

fn beside(from: &Ingredients<'_>, caller: Arc<dyn HookCaller>) -> Beside {
    let (config, store) = (from.config, from.store.clone());
    let shown = config.log.actor_tree;
    Beside {
        serving: Serving::new(config.node.run_tasks, Some(config.node.pools.clone())),
        place: NodePlace {
            address: Some(from.address.clone()),
            labels: config.node.labels.clone(),
        },
        hooks: Some(HookParts {
            outbox: store.clone(),
            businesses: store.clone(),
            caller,
        }),
        uploads: Some(store),
        keep: Some(Keep {
            failures: config.retention.failures,
            tasks: config.retention.tasks,
            log: config.data_log.retention,
            log_lines: config.data_log.max_per_task,
        }),
        cluster: Some(config.cluster.clone()),
        data_log: Some(from.data_log()),
        printed: Printed {
            start: shown.start,
            restart: shown.restart,
            stop: shown.stop,
        },
    }
}

fn times(config: &Config) -> Times {
    let cluster = &config.cluster;
    Times {
        lease_ttl: cluster.lease_ttl,
        lease_renew: cluster.lease_renew,
        heartbeat: Times::default().heartbeat,
        restore_scan: cluster.restore_scan,
        restore_window: cluster.restore_window,
        restore_max: cluster.restore_max,
        restore_backoff: (cluster.restore_backoff.first, cluster.restore_backoff.max),
        data_log_flush: config.data_log.flush,
        drain_timeout: config.node.drain_timeout,
        takeover_without_leases: cluster.takeover_without_redis,
        first_contact: None,
    }
}
