//! The `http` handler: one POST per call, read by the table of `classify`.
//!
//! | part | does |
//! |---|---|
//! | `options` | what a person may set, and its check |
//! | `request` | headers and body of a call, from a head that is built once per run |
//! | `client` | sends it within the deadline; the only place that knows how connections are kept |
//! | `transport` | pools of connections, shared by runs |
//! | `direct` | connections over HTTP/1.1, each driven by the call that uses it |
//! | `hook`, `contract`, `callable` | hooks; whether a handler keeps to the protocol; what can't be called at all |
//! | `fault` | what a request without a usable answer means |
//!
//! `client`, `transport` and `fault` serve the `request` handler too.
//!
//! Invariants: nothing is sent once the gate is shut; a call ends by its deadline whatever the other side does;
//! dropping the future of a call closes its connection.

mod callable;
pub(crate) mod client;
mod contract;
mod direct;
pub(crate) mod fault;
mod hook;
pub(crate) mod options;
mod packed;
pub(crate) mod request;
pub(crate) mod transport;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hyper::http::StatusCode;
use tokio::sync::watch;

use self::client::{CallbackClient, Reads, leaves_until};
use self::fault::Fault;
use self::request::Requests;
use super::classify::{Asked, Pointer, classify, needs_body};
use super::deadline::Deadline;
use super::usage::{UseReader, Used};
use windrow_core::business::LimitsFrom;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{
    Call, CallFailure, Handler, HandlerFactory, OpenError, Reply, RunContext,
};

pub use hook::HookClient;
pub use options::{HttpOptions, REPLY_BYTES_MAX_DEFAULT};
pub use transport::Transports;

/// Factory of `http` handlers, one for each run.
pub struct HttpHandlerFactory {
    options: HttpOptions,
    clock: Arc<dyn Clock>,
    transports: Arc<Transports>,
}

impl fmt::Debug for HttpHandlerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpHandlerFactory")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl HttpHandlerFactory {
    /// Creates a factory for one business's handler. The options are checked when a run is opened.
    pub fn new(options: HttpOptions, clock: Arc<dyn Clock>) -> HttpHandlerFactory {
        HttpHandlerFactory::sharing(options, clock, Arc::default())
    }

    /// Creates a factory with connections that other factories may use too.
    pub fn sharing(
        options: HttpOptions,
        clock: Arc<dyn Clock>,
        transports: Arc<Transports>,
    ) -> HttpHandlerFactory {
        HttpHandlerFactory {
            options,
            clock,
            transports,
        }
    }

    /// Checks that a call can be made at all, without making one.
    ///
    /// # Errors
    /// If no call can ever succeed.
    pub fn check(&self) -> Result<(), OpenError> {
        self.options.check().map(drop)
    }
}

impl HandlerFactory for HttpHandlerFactory {
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let checked = self.options.check()?;
        let lease = self.transports.lease(&self.options.outbound, checked.is_https)?;
        let (pointer, scrubber) = (checked.pointer.clone(), checked.scrubber.clone());
        let reply_bytes_max = self.options.reply_bytes_max;
        let client = CallbackClient::new(lease, &self.options.outbound, reply_bytes_max, scrubber);
        let requests = Requests::new(checked, &self.options, context.clone(), self.clock.clone());
        let (slots, _) = watch::channel(None);
        Ok(Arc::new(HttpHandler {
            usage: UseReader::of_handler(&context.metering),
            context,
            clock: self.clock.clone(),
            requests,
            client,
            pointer,
            limits_from: self.options.limits_from,
            slots,
        }))
    }
}

/// Handler of one run, with its client.
struct HttpHandler {
    context: Arc<RunContext>,
    clock: Arc<dyn Clock>,
    requests: Requests,
    client: CallbackClient,
    pointer: Pointer,
    limits_from: LimitsFrom,
    usage: Option<UseReader>,
    slots: watch::Sender<Option<u32>>,
}

impl HttpHandler {
    async fn call(&self, call: Call) -> Result<Reply, Fault> {
        let until = leaves_until(&self.context, &self.clock, &call)?;
        let request = self.requests.build(&call);
        let request_bytes = request.body().len();
        let again = || Some(self.requests.build(&call));
        let mut deadline = Deadline::new(&self.clock, until);
        let answer = self
            .client
            .send(request, again, &mut deadline, call.timeout, |status| {
                self.reads(status)
            })
            .await?;
        let single = self.requests.single(&call.items);
        let asked = Asked {
            items: &call.items,
            single,
            pointer: &self.pointer,
            limits_from: self.limits_from,
            now: self.clock.wall(),
        };
        let reply = classify(&answer, asked);
        let Some(usage) = &self.usage else {
            return Ok(reply);
        };
        let used = Used {
            call: &call,
            request_bytes,
            answer: &answer,
            result: Some(&self.pointer),
        };
        Ok(usage.tell(reply, used))
    }

    fn reads(&self, status: StatusCode) -> Reads {
        match &self.usage {
            Some(usage) if !needs_body(status) && usage.reads_body(status) => Reads::UpToMax,
            _ => Reads::decisive(needs_body(status)),
        }
    }
}

impl Handler for HttpHandler {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            self.call(call)
                .await
                .unwrap_or_else(|fault| Reply::Failed(Box::new(CallFailure::from(fault))))
        })
    }

    fn is_service(&self) -> bool {
        true
    }

    fn request_bytes(&self, call: &Call) -> Option<u64> {
        Some(self.requests.build(call).body().len())
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.slots.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.client.close();
        Box::pin(std::future::ready(()))
    }
}
