//! Handlers and sources for the tasks of registered businesses.
//!
//! A business is looked up for each run, so that its changes (URL, secrets, limits, TLS) apply from the next run on.
//! All runs of the node share connections, trusted certificates and the list of live workers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::runtime::Handle as Runtime;

use super::handler_log;
use super::handlers::{OnThread, Sink, command_settings, cores};
use super::runtimes::CallThreads;
use super::sources::{OriginView, StoredSources, open_stored, origin_view, proven_origin};
use super::traces::Tracing;
use windrow_config::{Command, Config};
use windrow_core::business::HandlerSpec;
use windrow_core::business::request::RequestHandlerSpec;
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::limit::key::LimitKey;
use windrow_core::meter::metering::Metering;
use windrow_core::template::program::Recipe;
use windrow_engine::ports::access::business_store::{Business, BusinessStore};
use windrow_engine::ports::access::named_limit_store::NamedLimitStore;
use windrow_engine::ports::access::vault::{Unopenable, Vault};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::data_log::DataLog;
use windrow_engine::ports::handling::handler::{Handler, HandlerFactory, Mode, OpenError, RunContext};
use windrow_engine::ports::sources::provision::{
    BusinessHandlers, LimitOf, Provider, Provision, ProvisionError, TaskItems,
};
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::store::TaskView;
use windrow_handlers::command::{CommandHandlerFactory, Environment};
use windrow_handlers::exec::{self, ExecHandlerFactory};
use windrow_handlers::http::{HttpHandlerFactory, HttpOptions};
use windrow_handlers::request::{RequestHandlerFactory, RequestOptions};
use windrow_handlers::rust::InProcess;

pub(crate) use windrow_handlers::command::Leftovers;
pub(crate) use windrow_handlers::exec::Records;
pub(crate) use windrow_handlers::http::{HookClient, Transports};
pub(crate) use windrow_host::vault::KeyVault;

/// Provider of handlers and sources for a serving node.
pub(crate) struct ServiceProvider {
    pub(crate) businesses: Arc<dyn BusinessStore>,
    /// Named limits, of which those in units say what calls cost.
    pub(crate) limits: Arc<dyn NamedLimitStore>,
    /// Opens the encrypted secrets of businesses.
    pub(crate) vault: Arc<dyn Vault>,
    pub(crate) config: Arc<Config>,
    /// Handlers of the program that embeds the node.
    pub(crate) in_process: InProcess,
    /// Name of the node, passed to handlers.
    pub(crate) node: String,
    /// Environment of this process, of which commands get `PATH`, `HOME` and `LANG`.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Destination of handlers' own log lines.
    pub(crate) data_log: Arc<dyn DataLog>,
    /// Connections shared by all runs.
    pub(crate) transports: Arc<Transports>,
    /// Record of live workers.
    pub(crate) workers: Arc<Leftovers>,
    /// Record of live item processes.
    pub(crate) processes: Arc<Records>,
    pub(crate) sources: Arc<StoredSources>,
    /// Recording of runs and calls.
    pub(crate) tracing: Tracing,
    /// Runtime of in-process handlers, and of writing log lines.
    pub(crate) work: Runtime,
    /// Threads of all other handlers.
    pub(crate) calls: CallThreads,
}

#[async_trait]
impl Provider for ServiceProvider {
    async fn provide(&self, task: &TaskView) -> Result<Provision, ProvisionError> {
        let business = self.business(task).await?;
        let limits = self.limits(&business, task).await?;
        let view = match origin_view(task)? {
            Some(view) => Some(view.proven(proven_origin(&self.sources, task).await?)),
            None => None,
        };
        Ok(Provision {
            handler: self.handlers(&business, task.tuning.batch.get(), view)?,
            source: self.source(task).await?,
            limits,
        })
    }
}

impl BusinessHandlers for ServiceProvider {
    fn handler_of(&self, business: &Business) -> Result<Arc<dyn HandlerFactory>, ProvisionError> {
        self.handlers(business, 1, None)
    }
}

#[async_trait]
impl TaskItems for ServiceProvider {
    async fn source(&self, task: &TaskView) -> Result<Arc<dyn Source>, ProvisionError> {
        // With a database server, another node may have the file that is missing here.
        let is_alone = self.config.store.url.is_file();
        open_stored(&self.sources, task, (!is_alone).then_some(self.node.as_str())).await
    }
}

/// Fails if answers of the handler can't say what the limit wants to know of a call.
fn check_measured(name: &str, metering: &Metering, handler: &HandlerSpec) -> Result<(), ProvisionError> {
    match metering.unmeasured_in(name, handler.has_answers()) {
        None => Ok(()),
        Some(reason) => Err(ProvisionError::HandlerUnusable(reason.to_string())),
    }
}

/// Builds the factory of a run's handler, given a sink for the handler's log lines.
type Maker = Box<dyn Fn(Sink) -> Arc<dyn HandlerFactory> + Send + Sync>;

impl ServiceProvider {
    /// Returns the limits of a task's items: its business's own (even if empty now, since it can change), those that the
    /// business names, and those that the task names.
    async fn limits(&self, business: &Business, task: &TaskView) -> Result<Vec<LimitOf>, ProvisionError> {
        let own = &business.spec.limits;
        let is_limited = own.rate.is_some() || own.concurrency.is_some();
        let names: BTreeSet<String> = own.named.iter().chain(&task.spec.limits).cloned().collect();
        let mut limits = vec![LimitOf {
            name: LimitKey::Business(&business.slug).text(),
            is_limited,
            metering: None,
        }];
        if names.is_empty() {
            return Ok(limits);
        }
        let found = self.limits.named_limits(Some(&names), None, u32::MAX).await;
        let found = found.map_err(|error| ProvisionError::Unavailable(error.to_string()))?;
        for name in names {
            let metering = found.iter().find(|limit| limit.name == name);
            let metering = metering.map(|limit| limit.metering.clone());
            let metering = metering.filter(|metering| !metering.is_empty());
            if let Some(metering) = &metering {
                check_measured(&name, metering, &business.spec.handler)?;
            }
            // A named limit always has a bound.
            limits.push(LimitOf {
                name: LimitKey::Named(&name).text(),
                is_limited: true,
                metering,
            });
        }
        Ok(limits)
    }

    async fn business(&self, task: &TaskView) -> Result<Business, ProvisionError> {
        let found = self.businesses.business(&task.business).await;
        let found = found.map_err(|error| ProvisionError::Unavailable(error.to_string()))?;
        found.ok_or_else(|| {
            let text = format!(
                "{} has no handler; register the business with a url, a command or a request",
                task.business
            );
            ProvisionError::HandlerUnusable(text)
        })
    }

    /// Returns a factory for handlers of a business. Each runs on a call thread, unless it is in-process.
    fn handlers(
        &self,
        business: &Business,
        batch: u32,
        view: Option<OriginView>,
    ) -> Result<Arc<dyn HandlerFactory>, ProvisionError> {
        let handlers = RunHandlers {
            make: self.maker(business, batch)?,
            view,
            service: business.spec.handler.origin(),
            kind: match &business.spec.handler {
                HandlerSpec::Http(_) => "http",
                HandlerSpec::Request(_) => "request",
                HandlerSpec::Command(name) if self.in_process.contains_key(name) => "rust",
                HandlerSpec::Command(name) if self.starts_each(name) => "exec",
                HandlerSpec::Command(_) => "command",
            },
            data_log: self.data_log.clone(),
            clock: self.clock.clone(),
            work: self.work.clone(),
            tracing: self.tracing.clone(),
        };
        let is_in_process = handlers.kind == "rust";
        let inner: Arc<dyn HandlerFactory> = Arc::new(handlers);
        if is_in_process {
            return Ok(inner);
        }
        let calls = self.calls.clone();
        Ok(Arc::new(OnThread { inner, calls }))
    }

    fn maker(&self, business: &Business, batch: u32) -> Result<Maker, ProvisionError> {
        match &business.spec.handler {
            HandlerSpec::Http(http) => self.http(business, &http.url, batch),
            HandlerSpec::Request(own) => self.request(business, own, batch),
            HandlerSpec::Command(name) => match self.in_process.get(name).cloned() {
                Some(factory) => Ok(Box::new(move |_| factory.clone())),
                None => self.command(name),
            },
        }
    }

    fn http(&self, business: &Business, url: &str, batch: u32) -> Result<Maker, ProvisionError> {
        let secrets = self.secrets(business)?;
        let config = &self.config.http_handler;
        let now = self.clock.wall();
        let mut options = HttpOptions::for_business(config, url, &business.spec, &secrets, now);
        let ring = self.transports.ring(&business.slug, &options.secrets);
        options.ring = Some(ring.map_err(|why| ProvisionError::HandlerUnusable(why.to_string()))?);
        options.node = self.node.clone();
        options.batch = batch;
        let factory = HttpHandlerFactory::sharing(options, self.clock.clone(), self.transports.clone());
        factory.check().map_err(unusable)?;
        let factory = Arc::new(factory);
        Ok(Box::new(move |_| factory.clone()))
    }

    fn request(
        &self,
        business: &Business,
        own: &RequestHandlerSpec,
        batch: u32,
    ) -> Result<Maker, ProvisionError> {
        let secrets = self.secrets(business)?;
        let mut options = RequestOptions::for_business(&self.config.http_handler, own, &secrets);
        options.node = self.node.clone();
        options.batch = batch;
        let factory = RequestHandlerFactory::sharing(options, self.clock.clone(), self.transports.clone());
        factory.check().map_err(unusable)?;
        let factory = Arc::new(factory);
        Ok(Box::new(move |_| factory.clone()))
    }

    fn secrets(&self, business: &Business) -> Result<BusinessSecrets, ProvisionError> {
        let Some(sealed) = &business.sealed else {
            return Ok(BusinessSecrets::default());
        };
        let place = BusinessSecrets::place(&business.slug);
        let opened = self.vault.open(&place, sealed);
        let opened = opened.map_err(|why| match why {
            Unopenable::OtherKey { sealed, own } => ProvisionError::KeyMissing(format!(
                "node {} can't open the secrets of {}: sealed with another key ({sealed}; auth.key_file of \
                 {0} is {own}); a node that has it takes the task over",
                self.node, business.slug
            )),
            Unopenable::Damaged => ProvisionError::HandlerUnusable(why.to_string()),
        })?;
        BusinessSecrets::from_bytes(&opened)
            .ok_or_else(|| ProvisionError::HandlerUnusable("the stored secrets can't be read".to_owned()))
    }

    fn command(&self, name: &str) -> Result<Maker, ProvisionError> {
        let config = &self.config.command_handler;
        let found = config.commands.get(name).filter(|_| config.enabled);
        let command = found.cloned().ok_or_else(|| {
            let text = format!(
                "command {name} is not configured on this node, or commands are disabled; check \
                 [handler.command]"
            );
            ProvisionError::HandlerUnusable(text)
        })?;
        let recipe = command
            .recipe()
            .map_err(|why| ProvisionError::HandlerUnusable(why.to_string()))?;
        if let Some(recipe) = recipe {
            return self.exec(recipe, &command);
        }
        let settings = {
            let (config, clock, given) = (config.clone(), self.clock.clone(), self.environment.clone());
            move |sink: Sink| {
                let environment = Environment::of(&command, &given);
                let argv = command.cmd.iter().map(OsString::from).collect();
                let mut settings = command_settings(&config, argv, environment, clock.clone(), sink);
                settings.workers = command.workers.unwrap_or(NonZeroU32::MIN);
                settings
            }
        };
        CommandHandlerFactory::new(settings(Arc::new(|_| {})))
            .check()
            .map_err(unusable)?;
        let workers = self.workers.clone();
        Ok(Box::new(move |sink| {
            Arc::new(CommandHandlerFactory::sharing(settings(sink), workers.clone()))
        }))
    }
}

impl ServiceProvider {
    /// True if the command is started for each item.
    fn starts_each(&self, name: &str) -> bool {
        let command = self.config.command_handler.commands.get(name);
        command.is_some_and(|command| matches!(command.recipe(), Ok(Some(_))))
    }

    fn exec(&self, recipe: Recipe, command: &Command) -> Result<Maker, ProvisionError> {
        let settings = {
            let (clock, cwd) = (self.clock.clone(), command.cwd.clone());
            let environment = Environment::of(command, &self.environment);
            let processes = command.processes.unwrap_or_else(cores);
            let unavailable_exits = command.unavailable_exits.clone();
            move |sink: Sink| exec::Settings {
                recipe: recipe.clone(),
                processes: Some(processes),
                unavailable_exits: unavailable_exits.clone(),
                environment: environment.clone(),
                cwd: cwd.clone(),
                records: None,
                clock: clock.clone(),
                sink,
            }
        };
        ExecHandlerFactory::new(settings(Arc::new(|_| {})))
            .check()
            .map_err(unusable)?;
        let records = self.processes.clone();
        Ok(Box::new(move |sink| {
            Arc::new(ExecHandlerFactory::sharing(settings(sink), records.clone()))
        }))
    }
}

fn unusable(error: OpenError) -> ProvisionError {
    ProvisionError::HandlerUnusable(error.to_string())
}

/// Factory of the handlers of a task's runs.
struct RunHandlers {
    make: Maker,
    /// View of the original task; only for a redrive.
    view: Option<OriginView>,
    kind: &'static str,
    service: Option<String>,
    data_log: Arc<dyn DataLog>,
    clock: Arc<dyn Clock>,
    work: Runtime,
    tracing: Tracing,
}

impl HandlerFactory for RunHandlers {
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let sink = self.sink(&context);
        match self.view.as_ref().map(OriginView::afresh) {
            Some(view) => {
                let inner = self.tracing.wrap((self.make)(view.sink(sink)));
                view.wrap(inner).open(context)
            }
            None => self.tracing.wrap((self.make)(sink)).open(context),
        }
    }

    fn service(&self) -> Option<String> {
        self.service.clone()
    }

    fn kind(&self) -> &'static str {
        self.kind
    }

    fn is_proven(&self) -> bool {
        self.view.as_ref().is_some_and(OriginView::is_proven)
    }
}

impl RunHandlers {
    /// Returns the sink for the handler's log lines. A preview records nothing.
    fn sink(&self, context: &RunContext) -> Sink {
        if context.mode == Mode::Preview {
            return Arc::new(|line| tracing::debug!(target: "windrow::handler", "{}", line.message));
        }
        let (sink, log) = handler_log::open(
            self.data_log.clone(),
            context.shard,
            self.clock.clone(),
            &self.work,
        );
        log.detach(&self.work);
        sink
    }
}

#[cfg(test)]
mod tests;
