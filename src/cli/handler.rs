//! Makes the handler that a command line names, and looks before anything begins whether it can be used at all.

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use tokio::runtime::Handle as Runtime;

use super::args::HttpArgs;
use super::exit::Exit;
use super::fault::Fault;
use crate::adapters::handler::command::{CommandHandlerFactory, Environment, Inherit, Settings, Sink};
use crate::adapters::handler::egress::Egress;
use crate::adapters::handler::http::{HttpHandlerFactory, HttpOptions};
use crate::config::{CommandHandler, Config, HttpHandler};
use crate::domain::ids::{Epoch, RunNo, ShardId, StoreId, TaskId};
use crate::ports::clock::Clock;
use crate::ports::gate::Gate;
use crate::ports::handler::{Handler, HandlerFactory, Mode, OpenError, RunContext};

/// What a command line says of its handler.
pub(super) enum Wanted<'a> {
    /// A URL to call.
    Url {
        /// The URL.
        url: &'a str,
        /// Headers and secrets.
        http: &'a HttpArgs,
        /// Items of one call.
        batch: NonZeroU32,
    },
    /// A command to keep running.
    Worker {
        /// The program and its arguments.
        argv: Vec<OsString>,
        /// How many processes.
        workers: NonZeroU32,
    },
}

/// What handlers are made with.
pub(super) struct Making<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// This process's environment, passed on to workers.
    pub environment: Vec<(OsString, OsString)>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where lines of workers go.
    pub sink: Sink,
    /// Where live workers are written down; none for `try`.
    pub leftovers: Option<std::path::PathBuf>,
    /// Where workers are tended and calls are made.
    pub work: Runtime,
}

/// Makes the factory after looking whether its handler can be used at all; nothing is started or called.
///
/// # Errors
/// `Rejected` when no call can ever succeed.
pub(super) fn factory(wanted: &Wanted<'_>, making: Making<'_>) -> Result<Arc<dyn HandlerFactory>, Fault> {
    let inner: Arc<dyn HandlerFactory> = match wanted {
        Wanted::Url { url, http, batch } => {
            let options = http_options(url, http, *batch, &making.config.http_handler)?;
            let factory = HttpHandlerFactory::new(options, making.clock);
            factory.open(Arc::new(preview_context()))?;
            Arc::new(factory)
        }
        Wanted::Worker { argv, workers } => {
            let environment =
                Environment { inherit: Inherit::All(making.environment), variables: Vec::new() };
            let mut settings = Settings::new(argv.clone(), environment, making.clock, making.sink);
            let CommandHandler { startup_timeout, kill_grace, max_line, .. } = &making.config.command_handler;
            settings.workers = *workers;
            settings.startup_timeout = *startup_timeout;
            settings.kill_grace = *kill_grace;
            settings.max_line = usize::try_from(max_line.0).unwrap_or(usize::MAX);
            settings.leftovers = making.leftovers;
            let factory = CommandHandlerFactory::new(settings);
            factory.check()?;
            Arc::new(factory)
        }
    };
    Ok(Arc::new(OnWork { inner, work: making.work }))
}

/// What a handler is told when nothing is recorded.
pub(super) fn preview_context() -> RunContext {
    RunContext {
        shard: ShardId { task: TaskId(0), no: 0 },
        task_name: None,
        task_revision: 1,
        business: "try".to_owned(),
        params: None,
        run: RunNo(1),
        epoch: Epoch(1),
        store: StoreId("try".to_owned()),
        mode: Mode::Preview,
        gate: Arc::new(Gate::always_open()),
    }
}

/// Opens handlers on the runtime for work: whatever opens them, their tasks never load the actors' thread.
struct OnWork {
    inner: Arc<dyn HandlerFactory>,
    work: Runtime,
}

impl HandlerFactory for OnWork {
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let _entered = self.work.enter();
        self.inner.open(context)
    }
}

fn http_options(
    url: &str,
    http: &HttpArgs,
    batch: NonZeroU32,
    config: &HttpHandler,
) -> Result<HttpOptions, Fault> {
    if config.proxy.is_some() {
        let because = "calls through a forward proxy are not possible yet";
        return Err(Fault::new(Exit::Config, "the configuration can't be used", because)
            .hint("set handler.http.proxy = \"\""));
    }
    let mut options = HttpOptions::new(url);
    options.headers = http.headers.iter().map(|text| header(text)).collect::<Result<_, _>>()?;
    options.secrets = match &http.secret_file {
        Some(path) => secrets(path)?,
        None => Vec::new(),
    };
    options.connect_timeout = config.connect_timeout;
    options.pool_idle = config.pool_idle;
    options.http2 = config.http2;
    options.ca_file = config.ca_file.clone();
    options.insecure_skip_verify = config.insecure_skip_verify;
    options.egress = egress(config)?;
    options.batch = batch.get();
    Ok(options)
}

fn egress(config: &HttpHandler) -> Result<Egress, Fault> {
    let networks = |listed: &[crate::domain::network::Network]| {
        let parsed: Result<Vec<_>, _> = listed.iter().map(|network| network.to_string().parse()).collect();
        parsed.map_err(|error| Fault::bug(format!("a checked network can't be read: {error}")))
    };
    Ok(Egress { allow: networks(&config.allow_networks)?, deny: networks(&config.deny_networks)? })
}

fn header(text: &str) -> Result<(String, String), Fault> {
    let parts = text.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    parts.ok_or_else(|| {
        // Its text isn't shown: it may be a secret.
        Fault::new(Exit::Usage, "a --header can't be used", "it has no colon")
            .hint("--header 'authorization: Bearer …'")
    })
}

fn secrets(path: &Path) -> Result<Vec<String>, Fault> {
    let what = format!("{} can't be used as --secret-file", path.display());
    let text = fs::read_to_string(path).map_err(|error| {
        Fault::new(Exit::Rejected, what.clone(), error.to_string()).hint("check the path")
    })?;
    let secrets: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if secrets.is_empty() {
        return Err(Fault::new(Exit::Rejected, what, "it is empty").hint("one secret whsec_… a line"));
    }
    Ok(secrets)
}
