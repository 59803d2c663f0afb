//! The `request` handler: any HTTP API, one templated request for each item.
//!
//! | part | does |
//! |---|---|
//! | `options` | what a person may set, and its check |
//! | `build` | the request of an item, from templates that were bound when the run began |
//! | `answer` | what an answer means, by its status alone; what of it is the output |
//!
//! Connections, time limits, the gate and faults are those of the `http` handler (`http::client`, `http::transport`,
//! `http::fault`). An item whose data can't fill the templates fails and is never sent.

mod answer;
mod build;
mod options;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hyper::http::StatusCode;
use tokio::sync::watch;

use self::answer::Reader;
use self::build::Requests;
use crate::classify::Answer;
use crate::deadline::Deadline;
use crate::http::Transports;
use crate::http::client::{CallbackClient, Reads, leaves_until};
use crate::http::fault::Fault;
use crate::scrub::Scrubber;
use crate::usage::{UseReader, Used};
use windrow_core::ids::{Attempt, ItemIndex};
use windrow_core::items::verdict::Failure;
use windrow_core::template::TEMPLATE_VALUE;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{
    Call, CallFailure, CallItems, Handler, HandlerFactory, OpenError, Reply, RunContext,
};

pub use options::RequestOptions;
pub(crate) use options::faults;

/// Code of a call with several items.
const ONE_ITEM: &str = "ONE_ITEM";
/// Advice for a call with several items.
const ONE_ITEM_WHY: &str = "a templated request carries one item; set `batch` to 1";

/// Factory of `request` handlers, one for each run.
pub struct RequestHandlerFactory {
    options: RequestOptions,
    clock: Arc<dyn Clock>,
    transports: Arc<Transports>,
}

impl fmt::Debug for RequestHandlerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHandlerFactory").finish_non_exhaustive()
    }
}

impl RequestHandlerFactory {
    /// Creates a factory with connections that other factories may use too. The options are checked when a run is
    /// opened.
    pub fn sharing(
        options: RequestOptions,
        clock: Arc<dyn Clock>,
        transports: Arc<Transports>,
    ) -> RequestHandlerFactory {
        RequestHandlerFactory {
            options,
            clock,
            transports,
        }
    }

    /// Checks that a request can be made at all, without making one.
    ///
    /// # Errors
    /// If no request can ever succeed.
    pub fn check(&self) -> Result<(), OpenError> {
        self.options.check().map(drop)
    }
}

impl HandlerFactory for RequestHandlerFactory {
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let checked = self.options.check()?;
        let lease = self.transports.lease(&self.options.outbound, checked.is_https)?;
        let reader = Reader::new(&self.options, checked.pointer.clone(), &context);
        let requests = Requests::new(checked, &self.options, context.clone(), self.clock.clone())?;
        let secrets = self.options.secrets.0.values();
        let scrubber = Arc::new(Scrubber::new(secrets.map(String::as_str)));
        let (slots, _) = watch::channel(None);
        Ok(Arc::new(RequestHandler {
            requests,
            reader,
            client: CallbackClient::new(
                lease,
                &self.options.outbound,
                self.options.reply_bytes_max,
                scrubber.clone(),
            ),
            scrubber,
            usage: UseReader::of_service(&context.metering),
            context,
            clock: self.clock.clone(),
            slots,
        }))
    }

    fn kind(&self) -> &'static str {
        "request"
    }
}

/// Handler of one run, with its client.
struct RequestHandler {
    context: Arc<RunContext>,
    clock: Arc<dyn Clock>,
    requests: Requests,
    reader: Reader,
    client: CallbackClient,
    /// Scrubber shared with the client, so that every response is clean.
    scrubber: Arc<Scrubber>,
    /// Reader of what calls used; `None` if nothing that responses say is counted.
    usage: Option<UseReader>,
    slots: watch::Sender<Option<u32>>,
}

impl RequestHandler {
    async fn call(&self, call: Call) -> Result<Reply, Fault> {
        let until = leaves_until(&self.context, &self.clock, &call)?;
        let Some((index, attempt)) = only(&call.items) else {
            let failure = Failure::new(ONE_ITEM, ONE_ITEM_WHY);
            return Ok(failed(CallFailure::Rejected(failure)));
        };
        let build = || self.requests.build(call.rows.data(index), index, attempt);
        let request = match build() {
            Ok(request) => request,
            Err(why) => {
                let failure = Failure::new(TEMPLATE_VALUE, self.scrubber.text(&why.to_string()));
                return Ok(failed(CallFailure::Unsendable(failure)));
            }
        };
        let request_bytes = request.body().len();
        let again = || build().ok();
        let mut deadline = Deadline::new(&self.clock, until);
        let reads = |status| self.reads(status);
        let answered = self
            .client
            .send(request, again, &mut deadline, call.timeout, reads)
            .await;
        match answered {
            Ok(answer) => Ok(self.read(&call, &answer, request_bytes, index)),
            // Only the body of a success is read in full.
            Err(Fault::TooBig(bytes_max)) => self.reader.too_big(index, bytes_max),
            Err(fault) => Err(fault),
        }
    }

    fn reads(&self, status: StatusCode) -> Reads {
        let is_decisive = self.reader.needs_body(status);
        match &self.usage {
            Some(usage) if !is_decisive && usage.reads_body(status) => Reads::UpToMax,
            _ => Reads::decisive(is_decisive),
        }
    }

    fn read(&self, call: &Call, answer: &Answer, request_bytes: u64, index: ItemIndex) -> Reply {
        let reply = self.reader.read(answer, index, self.clock.wall());
        let Some(usage) = &self.usage else {
            return reply;
        };
        let used = Used {
            call,
            request_bytes,
            answer,
            result: None,
        };
        let reply = usage.tell(reply, used);
        match self.reader.end(answer.status) {
            Some(end) => reply.with_end(end),
            None => reply,
        }
    }
}

/// Returns the item of a call that has only one.
fn only(items: &CallItems) -> Option<(ItemIndex, Attempt)> {
    let mut all = items.iter();
    all.next().filter(|_| all.next().is_none())
}

fn failed(failure: CallFailure) -> Reply {
    Reply::Failed(Box::new(failure))
}

impl Handler for RequestHandler {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            self.call(call)
                .await
                .unwrap_or_else(|fault| failed(self.scrubber.failure(CallFailure::from(fault))))
        })
    }

    fn is_service(&self) -> bool {
        true
    }

    fn request_bytes(&self, call: &Call) -> Option<u64> {
        let (index, attempt) = only(&call.items)?;
        let request = self.requests.build(call.rows.data(index), index, attempt);
        // A call without a request fails when it is made, and says why.
        Some(request.map_or(0, |request| request.body().len()))
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.slots.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.client.close();
        Box::pin(std::future::ready(()))
    }
}
