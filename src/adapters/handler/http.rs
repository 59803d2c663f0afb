//! The `http` handler: one POST per call, read by the table of `classify` (`ux.md` §2.5).
//!
//! | part | does |
//! |---|---|
//! | `options` | what a person may set, and its check |
//! | `request` | headers and body of a call, from a head that is built once per run |
//! | `client` | sends it within the deadline; the only place that knows how connections are kept |
//! | `connect`, `tls` | connects to a checked address, with TLS |
//! | `fault` | what a request without a usable answer means |
//!
//! What holds: nothing leaves once the gate is shut; a call ends by its deadline whatever the other side does;
//! dropping the future of a call closes its connection.

mod client;
mod connect;
mod fault;
mod options;
mod request;
mod tls;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rustls::ClientConfig;
use tokio::sync::watch;
use tokio::time::Instant;

use self::client::CallbackClient;
use self::fault::Fault;
use self::request::Requests;
use super::classify::{Asked, Pointer, classify};
use crate::domain::verdict::Failure;
use crate::ports::clock::Clock;
use crate::ports::handler::{Call, CallFailure, Handler, HandlerFactory, OpenError, Reply, RunContext};

pub(in crate::adapters) use connect::Connector;
pub use options::{HttpOptions, REPLY_BYTES_MAX_DEFAULT};
pub(in crate::adapters) use tls::config as tls_config;

/// Makes `http` handlers, one for each run. Each has its own connections.
pub struct HttpHandlerFactory {
    options: HttpOptions,
    clock: Arc<dyn Clock>,
    /// Read from disk at the first https run; then the same for all.
    tls: OnceLock<Result<ClientConfig, String>>,
}

impl fmt::Debug for HttpHandlerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpHandlerFactory").field("options", &self.options).finish_non_exhaustive()
    }
}

impl HttpHandlerFactory {
    /// A factory for one business's handler. The options are checked when a run is opened.
    pub fn new(options: HttpOptions, clock: Arc<dyn Clock>) -> HttpHandlerFactory {
        HttpHandlerFactory { options, clock, tls: OnceLock::new() }
    }

    fn tls(&self, is_https: bool) -> Result<ClientConfig, OpenError> {
        if !is_https {
            return Ok(tls::trusting_nobody());
        }
        let config = self.tls.get_or_init(|| tls::config(&self.options));
        config.clone().map_err(|why| OpenError { failure: Failure::new("TLS", why) })
    }
}

impl HandlerFactory for HttpHandlerFactory {
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let checked = self.options.check()?;
        let client = CallbackClient::new(&self.options, self.tls(checked.is_https)?);
        let pointer = checked.pointer.clone();
        let requests = Requests::new(checked, &self.options, context.clone(), self.clock.clone());
        let (slots, _) = watch::channel(None);
        Ok(Arc::new(HttpHandler { context, clock: self.clock.clone(), requests, client, pointer, slots }))
    }
}

/// The handler of one run.
struct HttpHandler {
    context: Arc<RunContext>,
    clock: Arc<dyn Clock>,
    requests: Requests,
    client: CallbackClient,
    pointer: Pointer,
    slots: watch::Sender<Option<u32>>,
}

impl HttpHandler {
    async fn call(&self, call: Call) -> Result<Reply, Fault> {
        let now = self.clock.now();
        if !self.context.gate.is_open(now) {
            return Err(Fault::NotSent);
        }
        let left = call.gate_time.plus(call.timeout).since(now);
        if left == Duration::ZERO {
            return Err(Fault::late(call.timeout, "no time was left when it was to be sent"));
        }
        let request = self.requests.build(&call);
        let answer = self.client.send(request, Instant::now() + left, call.timeout).await?;
        let single = self.requests.single(&call.items);
        let asked = Asked { items: &call.items, single, pointer: &self.pointer, now: self.clock.wall() };
        Ok(classify(&answer, asked))
    }
}

impl Handler for HttpHandler {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            self.call(call).await.unwrap_or_else(|fault| Reply::Failed(Box::new(CallFailure::from(fault))))
        })
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.slots.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.client.close();
        Box::pin(std::future::ready(()))
    }
}
