//! Construction of handlers from a user's description. Checks if a handler is usable before anything starts.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::runtimes::CallThreads;
use windrow_config::{CommandHandler, Config};
use windrow_core::business::LimitsFrom;
use windrow_core::business::request::RequestSpec;
use windrow_core::ids::{Epoch, RunNo, ShardId, StoreId, TaskId};
use windrow_core::items::trace::Sampling;
use windrow_core::template::Secrets;
use windrow_core::template::program::Recipe;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{
    BoxFuture, Call, Handler, HandlerFactory, Mode, OpenError, Reply, RunContext, Workers,
};
use windrow_engine::ports::ownership::gate::Gate;
pub use windrow_handlers::command::{COMMAND_NOT_STARTED, Sink};
use windrow_handlers::command::{CommandHandlerFactory, Environment, Inherit, Settings};
use windrow_handlers::exec::{self, ExecHandlerFactory, Records};
use windrow_handlers::http::{HttpHandlerFactory, HttpOptions};
use windrow_handlers::request::{RequestHandlerFactory, RequestOptions};
use windrow_net::Outbound;
use windrow_net::environment::EnvironmentProxies;

/// A handler as described by the user.
pub enum HandlerChoice<'a> {
    /// HTTP endpoint that is called with items.
    Url {
        /// URL of the endpoint.
        url: &'a str,
        /// Headers sent with each call.
        headers: Vec<(String, String)>,
        /// Secrets that sign calls, newest first.
        secrets: Vec<String>,
        /// Number of items per call.
        batch: NonZeroU32,
        /// Source of the limits that the handler describes; `None` is the default.
        limits_from: Option<LimitsFrom>,
    },
    /// HTTP request sent for each item.
    Request {
        /// Request template, with the meaning of its responses.
        spec: &'a RequestSpec,
        /// Secrets used by the template.
        secrets: &'a Secrets,
        /// Number of items per call; must be 1.
        batch: NonZeroU32,
        /// Source of the limits that the API describes; `None` is the default.
        limits_from: Option<LimitsFrom>,
    },
    /// Command kept running as a worker.
    Worker {
        /// Program and its arguments.
        argv: Vec<OsString>,
        /// Number of worker processes.
        workers: NonZeroU32,
    },
    /// Program started for each item.
    Exec {
        /// Program, and the use of an item's values.
        recipe: Recipe,
        /// Maximum number of processes at once; `None` leaves it to the job's concurrency.
        processes: Option<NonZeroU32>,
        /// Exit codes, besides 75, with which a program reports that a dependency is unavailable.
        unavailable_exits: Vec<u8>,
    },
}

/// Shared parts needed to build handlers.
pub struct HandlerParts<'a> {
    /// Configuration of the node.
    pub config: &'a Config,
    /// Connect timeout until the handler has responded for the first time; `None` uses the timeout of a call.
    pub first_contact: Option<Duration>,
    /// Environment of this process, passed on to workers.
    pub environment: Vec<(OsString, OsString)>,
    /// Clock used by handlers.
    pub clock: Arc<dyn Clock>,
    /// Sink for the log lines of workers.
    pub sink: Sink,
    /// Record of live workers; `None` for `try`.
    pub leftovers: Option<PathBuf>,
    /// Threads that supervise workers and make calls.
    pub calls: CallThreads,
}

impl HandlerParts<'_> {
    fn outbound(&self) -> Outbound {
        let variable = |wanted: &str| {
            let found = self.environment.iter().find(|(name, _)| name == wanted);
            found.and_then(|(_, value)| value.to_str())
        };
        Outbound {
            first_contact: self.first_contact,
            environment: Some(EnvironmentProxies::read(variable)),
            ..Outbound::to_handlers(&self.config.http_handler)
        }
    }
}

/// Builds a handler factory after checking that its handler is usable. Starts nothing and calls nothing.
///
/// # Errors
/// Fails if no call could ever succeed.
pub fn factory(
    wanted: &HandlerChoice<'_>,
    making: HandlerParts<'_>,
) -> Result<Arc<dyn HandlerFactory>, OpenError> {
    let calls = making.calls.clone();
    let inner: Arc<dyn HandlerFactory> = match wanted {
        HandlerChoice::Url {
            url,
            headers,
            secrets,
            batch,
            limits_from,
        } => {
            let mut options = HttpOptions::of(&making.config.http_handler, *url);
            options.outbound = making.outbound();
            options.headers = headers.clone();
            options.secrets = secrets.clone();
            options.batch = batch.get();
            options.limits_from = limits_from.unwrap_or(options.limits_from);
            let factory = HttpHandlerFactory::new(options, making.clock);
            factory.open(Arc::new(preview_context()))?;
            Arc::new(factory)
        }
        HandlerChoice::Request {
            spec,
            secrets,
            batch,
            limits_from,
        } => {
            let usual = RequestOptions::new((*spec).clone());
            let options = RequestOptions {
                secrets: (*secrets).clone(),
                outbound: making.outbound(),
                batch: batch.get(),
                limits_from: limits_from.unwrap_or(usual.limits_from),
                ..usual
            };
            let factory = RequestHandlerFactory::sharing(options, making.clock, Arc::default());
            factory.open(Arc::new(preview_context()))?;
            Arc::new(factory)
        }
        HandlerChoice::Worker { argv, workers } => worker_factory(argv, *workers, making)?,
        HandlerChoice::Exec {
            recipe,
            processes,
            unavailable_exits,
        } => exec_factory(recipe, *processes, unavailable_exits.clone(), making)?,
    };
    Ok(Arc::new(OnThread { inner, calls }))
}

fn worker_factory(
    argv: &[OsString],
    workers: NonZeroU32,
    making: HandlerParts<'_>,
) -> Result<Arc<dyn HandlerFactory>, OpenError> {
    let environment = Environment {
        inherit: Inherit::All(making.environment),
        variables: Vec::new(),
    };
    let commands = &making.config.command_handler;
    let mut settings = command_settings(commands, argv.to_vec(), environment, making.clock, making.sink);
    settings.workers = workers;
    settings.leftovers = making.leftovers;
    let factory = CommandHandlerFactory::new(settings);
    factory.check()?;
    Ok(Arc::new(factory))
}

fn exec_factory(
    recipe: &Recipe,
    processes: Option<NonZeroU32>,
    unavailable_exits: Vec<u8>,
    making: HandlerParts<'_>,
) -> Result<Arc<dyn HandlerFactory>, OpenError> {
    let environment = Environment {
        inherit: Inherit::All(making.environment),
        variables: Vec::new(),
    };
    let factory = ExecHandlerFactory::new(exec::Settings {
        recipe: recipe.clone(),
        processes,
        unavailable_exits,
        environment,
        cwd: None,
        records: making.leftovers.as_deref().map(Records::beside),
        clock: making.clock,
        sink: making.sink,
    });
    factory.check()?;
    Ok(Arc::new(factory))
}

/// Returns the number of cores as the number of processes, as GNU parallel does; 1 if unknown.
pub fn cores() -> NonZeroU32 {
    let cores = available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX));
    NonZeroU32::new(cores).unwrap_or(NonZeroU32::MIN)
}

/// Builds the settings of a command from the common configuration.
pub(super) fn command_settings(
    config: &CommandHandler,
    argv: Vec<OsString>,
    environment: Environment,
    clock: Arc<dyn Clock>,
    sink: Sink,
) -> Settings {
    Settings {
        startup_timeout: config.startup_timeout,
        kill_grace: config.kill_grace,
        max_line: usize::try_from(config.max_line.0).unwrap_or(usize::MAX),
        ..Settings::new(argv, environment, clock, sink)
    }
}

/// Returns a run context for calls that are not recorded.
pub fn preview_context() -> RunContext {
    RunContext {
        shard: ShardId {
            task: TaskId(0),
            no: 0,
        },
        task_name: None,
        task_revision: 1,
        business: "try".to_owned(),
        params: None,
        run: RunNo(1),
        epoch: Epoch(1),
        store: StoreId("try".to_owned()),
        keys_of: None,
        is_proven: false,
        keeps_results: true,
        mode: Mode::Preview,
        sampling: Sampling::default(),
        metering: Arc::default(),
        gate: Arc::new(Gate::always_open()),
    }
}

/// Factory that opens each handler on a call thread, so that its tasks run beside its lane and never on the actors'
/// thread.
pub(super) struct OnThread {
    pub(super) inner: Arc<dyn HandlerFactory>,
    pub(super) calls: CallThreads,
}

impl HandlerFactory for OnThread {
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let thread = self.calls.next();
        let _entered = thread.enter();
        let inner = self.inner.open(context)?;
        Ok(Arc::new(Placed { inner, thread }))
    }

    fn service(&self) -> Option<String> {
        self.inner.service()
    }

    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn is_proven(&self) -> bool {
        self.inner.is_proven()
    }
}

/// A handler with its thread.
struct Placed {
    inner: Arc<dyn Handler>,
    thread: Handle,
}

impl Handler for Placed {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        self.inner.process(call)
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.inner.slots()
    }

    fn answers_at_once(&self) -> bool {
        self.inner.answers_at_once()
    }

    fn request_bytes(&self, call: &Call) -> Option<u64> {
        self.inner.request_bytes(call)
    }

    fn workers(&self) -> Option<Workers> {
        self.inner.workers()
    }

    fn thread(&self) -> Option<Handle> {
        Some(self.thread.clone())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
