//! Assembly of a serving node: adapters behind the ports, the tree on top, and the parts of the service.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::{ServeError, ServeOptions, capacity, name, url};
use crate::alerts::Sender;
use crate::min_level::{MinLevel, Sieve};
use crate::provider::{HookClient, KeyVault, Leftovers, Records, ServiceProvider, Transports};
use crate::publish::{Publisher, sink};
use crate::sources::{Fetcher, Guard, Resolver, stored_sources};
use crate::traces::Tracing;
use crate::{Beside, Node, NodeOptions, StateDir, Store, SystemClock, agreement, database, times};
use windrow_config::Config;
use windrow_core::business::access::Role;
use windrow_core::capacity::Ledger;
use windrow_core::settings::Auto;
use windrow_engine::actors::runtime::begin::Asking;
use windrow_engine::actors::runtime::context::{
    AlertParts, HookParts, Keep, NodePlace, ScheduleParts, Serving,
};
use windrow_engine::actors::runtime::tree::Printed;
use windrow_engine::ports::access::vault::Vault;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::data_log::DataLog;
use windrow_engine::ports::handling::hook::HookCaller;
use windrow_engine::ports::ownership::peers::PeerSeal;
use windrow_engine::ports::sources::provision::Provider;
use windrow_engine::ports::tasks::store::TaskStore as _;
use windrow_engine::ports::{ErrorClass, StoreError};
use windrow_net::Outbound;
use windrow_net::peers::{PeerClient, PeerKey, PeerTls, Shared};
use windrow_server::service::Parts;
use windrow_server::service::access::Everybody;
use windrow_server::service::cluster::ClusterParts;

/// Basis on which a node is composed.
pub(super) struct Base<'a> {
    options: &'a ServeOptions,
    name: String,
    pub(super) state: Arc<StateDir>,
    store: Arc<Store>,
    key: Arc<KeyVault>,
    clock: Arc<dyn Clock>,
    /// Address on which the API server listens.
    pub(super) address: SocketAddr,
    /// Base URL of the API server, as other nodes reach it.
    url: String,
    /// Minimum level of stored data log lines.
    pub(super) min_level: MinLevel,
    /// Recording of runs and calls.
    pub(super) tracing: Tracing,
}

impl Base<'_> {
    /// Locks the state directory and opens the key and the store, after agreeing on the witness with the other nodes.
    pub(super) async fn of<'a>(
        options: &'a ServeOptions,
        listener: &TcpListener,
        is_tls: bool,
    ) -> Result<Base<'a>, ServeError> {
        let config = &options.config;
        misdate(options);
        let address = listener.local_addr().map_err(|cause| ServeError::Listen {
            address: config.http.listen,
            cause,
        })?;
        if !options.begins_anew {
            database::refuse_lost(config)?;
        }
        let state = Arc::new(StateDir::lock(&config.node.data_dir)?);
        let mut store = database::open(config).await?;
        place(&mut store, config).await?;
        let key = Arc::new(KeyVault::open(config.auth.key_file.as_deref(), state.path())?);
        let store = Arc::new(store.sealing(key.clone()));
        agreement::agree(&*store, &config.cluster).await?;
        let (name, clock): (_, Arc<dyn Clock>) = (name(config)?, Arc::new(SystemClock::new()));
        let tracing = Tracing::open(config, &name, (&clock, options.runtimes.work()));
        Ok(Base {
            options,
            name,
            state,
            store,
            key,
            clock,
            address,
            url: match &config.http.advertise {
                Auto::Fixed(url) => url.clone(),
                Auto::Auto => url(address, is_tls),
            },
            min_level: MinLevel::new(config.data_log.min_level),
            tracing: tracing.map_err(ServeError::Traces)?,
        })
    }

    fn data_log(&self) -> Arc<dyn DataLog> {
        Arc::new(Sieve {
            inner: self.store.clone(),
            min_level: self.min_level.clone(),
            meters: self.store.meters().clone(),
        })
    }
}

/// Sets the store's directories, retrying while the database is unavailable.
async fn place(store: &mut Store, config: &Config) -> Result<(), ServeError> {
    let mut asking = Asking::default();
    loop {
        let placed = database::place(store, config).await;
        if let Some(placed) = asking.heard(placed).await {
            return placed.map_err(of_folder);
        }
    }
}

/// Classifies a failure to set the directories: if the database is unavailable, they are not at fault.
fn of_folder(error: StoreError) -> ServeError {
    match error.class() {
        ErrorClass::Transient => ServeError::Store(error),
        ErrorClass::Permanent => ServeError::Folder(error),
    }
}

/// Sets a wrong clock for tests; not in release builds.
#[cfg(debug_assertions)]
fn misdate(options: &ServeOptions) {
    for (name, file) in &options.environment {
        if name == "WINDROW_CLOCK_OFFSET_FILE" {
            windrow_host::clock::misdate(file.into());
        }
    }
}

#[cfg(not(debug_assertions))]
fn misdate(_: &ServeOptions) {}

/// Composes a node and starts its tree.
///
/// # Errors
/// Fails if the configured trust in other nodes is unusable, or if the tree doesn't start.
pub(super) async fn compose(from: Base<'_>) -> Result<(Node, Parts<Store>), ServeError> {
    let config = &from.options.config;
    let cluster = cluster(&from)?;
    let vault: Arc<dyn Vault> = from.key.clone();
    let transports = Arc::new(Transports::default());
    let provider = Arc::new(provider(&from, &vault, &transports));
    let calls = Arc::new(HookClient {
        http: config.http_handler.clone(),
        commands: config.command_handler.clone(),
        in_process: from.options.in_process.clone(),
        environment: from.options.environment.clone(),
        node: from.name.clone(),
        vault: vault.clone(),
        clock: from.clock.clone(),
        transports,
    });
    let publisher = Publisher {
        store: from.store.clone(),
        hooks: calls.clone(),
        config: provider.config.clone(),
        environment: from.options.environment.clone(),
        leftovers: provider.workers.clone(),
        clock: from.clock.clone(),
        url: config.http.public_url.clone().unwrap_or_else(|| from.url.clone()),
    };
    let sender = Sender::new((&provider, calls.clone()), publisher.url.clone());
    let beside = beside(&from, (calls.clone(), Arc::new(sender)), publisher);
    let node = start(&from, provider.clone(), beside).await?;
    let store = from.store.clone();
    let parts = Parts {
        data_log: from.data_log(),
        resolver: resolver(&from),
        hooks: calls.clone(),
        handlers: calls,
        vault,
        items: provider.clone(),
        tries: provider.clone(),
        provider,
        meters: store.meters().clone(),
        store,
        cluster,
        supervisor: node.supervisor().clone(),
        clock: from.clock,
        everybody: Everybody {
            name: "local".to_owned(),
            role: Role::Admin,
        },
    };
    Ok((node, parts))
}

/// Returns the resolver, which checks and stores task sources.
fn resolver(from: &Base<'_>) -> Arc<Resolver> {
    let config = &from.options.config;
    let public = config.http.public_url.clone();
    // Limits on the source URLs of a business.
    let guard = Guard {
        networks: config.http_handler.source_networks.clone(),
        own_port: from.address.port(),
        own_urls: public.into_iter().chain([from.url.clone()]).collect(),
    };
    Arc::new(Resolver {
        sources: from.store.clone(),
        uploads: from.store.clone(),
        fetcher: Fetcher::new(Outbound::of(&config.http_handler), guard),
    })
}

/// Builds the parts that find and query other nodes of the store.
fn cluster(from: &Base<'_>) -> Result<ClusterParts, ServeError> {
    let config = &from.options.config;
    let seal: Arc<dyn PeerSeal> = Arc::new(PeerKey::new(from.key.peers_key()));
    let client = PeerClient::new(&from.name, seal.clone(), from.clock.clone(), peer_tls(config))
        .map_err(ServeError::PeerTrust)?;
    Ok(ClusterParts {
        node: from.name.clone(),
        began: from.clock.wall(),
        is_shared: config.store.url.is_server(),
        address: Some(from.url.clone()),
        database: config.store.url.engine(),
        sessions: from.store.clone(),
        shards: from.store.clone(),
        durable: from.store.clone(),
        peers: Arc::new(Shared::new(Arc::new(client))),
        seal,
    })
}

/// Returns the certificates by which other nodes are trusted.
pub(super) fn peer_tls(config: &Config) -> PeerTls {
    PeerTls {
        ca_file: config.cluster.ca_file.clone(),
    }
}

fn provider(from: &Base<'_>, vault: &Arc<dyn Vault>, transports: &Arc<Transports>) -> ServiceProvider {
    ServiceProvider {
        businesses: from.store.clone(),
        limits: from.store.clone(),
        vault: vault.clone(),
        config: Arc::new(from.options.config.clone()),
        in_process: from.options.in_process.clone(),
        node: from.name.clone(),
        environment: from.options.environment.clone(),
        clock: from.clock.clone(),
        data_log: from.data_log(),
        transports: transports.clone(),
        workers: Arc::new(Leftovers::take_over(Some(from.state.workers()))),
        processes: Arc::new(Records::take_over(Some(&Records::beside(&from.state.workers())))),
        sources: Arc::new(stored_sources(&from.store, &from.state, &from.clock)),
        tracing: from.tracing.clone(),
        work: from.options.runtimes.work().clone(),
        calls: from.options.runtimes.calls().clone(),
    }
}

async fn start(from: &Base<'_>, provider: Arc<dyn Provider>, mut beside: Beside) -> Result<Node, ServeError> {
    let config = &from.options.config;
    let options = NodeOptions {
        name: from.name.clone(),
        state: from.state.clone(),
        store: from.store.clone(),
        provider,
        ledger: Ledger::new(capacity(config), config.node.unlimited_reserves),
        times: times(config),
        runtimes: from.options.runtimes.clone(),
        exclusive: !config.store.url.is_server(),
        only: None,
    };
    let id = from.store.store_id().await?;
    beside.sinks = sink::parts(
        &config.datasets,
        (&from.store, id),
        &from.clock,
        from.options.runtimes.work(),
    )?;
    Ok(Node::start_with(options, beside).await?)
}

fn beside(
    from: &Base<'_>,
    (caller, sender): (Arc<dyn HookCaller>, Arc<Sender>),
    publisher: Publisher,
) -> Beside {
    let (config, store) = (&from.options.config, from.store.clone());
    let shown = config.log.actor_tree;
    Beside {
        serving: Serving::new(config.node.run_tasks, Some(config.node.pools.clone())),
        place: NodePlace {
            address: Some(from.url.clone()),
            labels: config.node.labels.clone(),
        },
        hooks: Some(HookParts {
            outbox: store.clone(),
            businesses: store.clone(),
            caller,
            alerts: Some(AlertParts {
                store: store.clone(),
                sender,
            }),
        }),
        uploads: Some(store.clone()),
        schedules: Some(ScheduleParts {
            store,
            maker: Arc::default(),
        }),
        sinks: None,
        keep: Some(Keep {
            failures: config.retention.failures,
            results: config.retention.results,
            tasks: config.retention.tasks,
            fires: config.retention.fires,
            statistics: config.retention.statistics,
            appended: config.retention.appended,
            audit: config.retention.audit,
            log: config.data_log.retention,
            log_lines: config.data_log.max_per_task,
        }),
        cluster: Some(config.cluster.clone()),
        data_log: Some(from.data_log()),
        preparer: Some(Arc::new(publisher)),
        printed: Printed {
            start: shown.start,
            restart: shown.restart,
            stop: shown.stop,
        },
    }
}
