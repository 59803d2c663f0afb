//! Hooks: calls of a business besides its items, signed and guarded like those.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hyper::Request;
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderValue, USER_AGENT};
use serde_json::Value;

use super::HttpOptions;
use super::client::{CallbackClient, GatedBody, Reads};
use super::fault::Fault;
use super::options::Checked;
use super::request::lossy;
use super::transport::{Lease, Transports};
use crate::classify::{Answer, needs_body};
use crate::deadline::Deadline;
use crate::rust::InProcess;
use crate::wire::quote;
use windrow_config::{CommandHandler, HttpHandler};
use windrow_core::alert::{AlertSecrets, Wording};
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::business::{HandlerSpec, HookKind};
use windrow_core::dataset::SUMMARY_BYTES_MAX;
use windrow_core::items::verdict::{MESSAGE_BYTES_MAX, cut};
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::access::vault::Vault;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{CallFailure, OpenError};
use windrow_engine::ports::handling::hook::{HookCall, HookCaller, HookReply};

/// Maximum size of a hook's reply, in bytes.
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// Subject of sentences about answers to hooks.
const BUSINESS: &str = "the business";

/// Client for hooks, and for checks of handlers.
pub struct HookClient {
    /// Settings of `[handler.http]`, for every call.
    pub http: HttpHandler,
    /// Settings of `[handler.command]`, for checks.
    pub commands: CommandHandler,
    /// Handlers in this process, which need no check.
    pub in_process: InProcess,
    /// Environment that commands would inherit, for checks.
    pub environment: Vec<(OsString, OsString)>,
    /// Name of this node, for `user-agent`.
    pub node: String,
    /// Vault that opens the secrets of businesses.
    pub vault: Arc<dyn Vault>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Connections, shared with runs.
    pub transports: Arc<Transports>,
}

impl HookClient {
    /// Returns the options for calling a business at a url now.
    ///
    /// # Errors
    /// A sentence, if its secrets can't be opened.
    pub(super) fn options(&self, business: &Business, url: &str) -> Result<HttpOptions, String> {
        let secrets = match &business.sealed {
            None => BusinessSecrets::default(),
            Some(sealed) => {
                let place = BusinessSecrets::place(&business.slug);
                let opened = self.vault.open(&place, sealed).map_err(|why| why.to_string())?;
                BusinessSecrets::from_bytes(&opened).ok_or("the stored secrets are not readable")?
            }
        };
        let now = self.clock.wall();
        let mut options = HttpOptions::for_business(&self.http, url, &business.spec, &secrets, now);
        options.node = self.node.clone();
        options.reply_bytes_max = REPLY_BYTES_MAX;
        Ok(options)
    }

    /// Creates a caller with these options and shared connections.
    fn client(&self, options: &HttpOptions) -> Result<Caller, OpenError> {
        let checked = options.check()?;
        let lease = self.transports.lease(&options.outbound, checked.is_https)?;
        Ok(self.caller(options, checked, lease))
    }

    /// Sends a notice to the URL of an alert, signed with its key.
    pub async fn tell(
        &self,
        secrets: &AlertSecrets,
        id: &str,
        wording: &Wording,
        timeout: Duration,
    ) -> HookReply {
        let options = HttpOptions {
            secrets: vec![secrets.signing.clone()],
            node: self.node.clone(),
            reply_bytes_max: REPLY_BYTES_MAX,
            ..HttpOptions::of(&self.http, &secrets.url)
        };
        match self.client(&options) {
            Err(why) => HookReply::Failed(why.to_string()),
            Ok(caller) => {
                let caller = Caller {
                    media: wording.media,
                    ..caller
                };
                caller.ask("the receiver", id, &wording.body, timeout).await
            }
        }
    }

    pub(super) fn caller(&self, options: &HttpOptions, checked: Checked, lease: Lease) -> Caller {
        Caller {
            client: CallbackClient::new(
                lease,
                &options.outbound,
                options.reply_bytes_max,
                checked.scrubber.clone(),
            ),
            checked,
            media: "application/json",
            node: self.node.clone(),
            clock: self.clock.clone(),
        }
    }
}

/// Caller of one url, with checked settings.
pub(super) struct Caller {
    pub(super) client: CallbackClient,
    pub(super) checked: Checked,
    /// Media type of the bodies.
    media: &'static str,
    node: String,
    clock: Arc<dyn Clock>,
}

impl Caller {
    /// Sends a body, signed with the business's secrets, and reads the response.
    pub(super) async fn post(&self, id: &str, body: &str, timeout: Duration) -> Result<Answer, Fault> {
        let timestamp = self.clock.wall().0.div_euclid(1000);
        let signature = self.checked.signer.signature(id, timestamp, body.as_bytes());
        self.post_signed(id, body, timestamp, signature, timeout).await
    }

    /// Sends a body and judges the response of `whom`.
    async fn ask(&self, whom: &str, id: &str, body: &str, timeout: Duration) -> HookReply {
        match self.post(id, body, timeout).await {
            Err(fault) => HookReply::Failed(sentence(fault)),
            Ok(answer) => reply(whom, &answer, &self.checked),
        }
    }

    pub(super) async fn post_signed(
        &self,
        id: &str,
        body: &str,
        timestamp: i64,
        signature: Option<String>,
        timeout: Duration,
    ) -> Result<Answer, Fault> {
        let request = || self.request(id, body, timestamp, signature.as_deref());
        let mut deadline = Deadline::new(&self.clock, self.clock.now().plus(timeout));
        self.client
            .send(
                request(),
                || Some(request()),
                &mut deadline,
                timeout,
                |status| Reads::decisive(needs_body(status)),
            )
            .await
    }

    fn request(&self, id: &str, body: &str, timestamp: i64, signature: Option<&str>) -> Request<GatedBody> {
        let mut request = Request::new(GatedBody::free(Bytes::from(body.to_owned())));
        *request.method_mut() = self.checked.method.clone();
        *request.uri_mut() = self.checked.uri.clone();
        let headers = request.headers_mut();
        *headers = self.checked.headers.clone();
        let agent = format!("windrow/{} (+{})", env!("CARGO_PKG_VERSION"), self.node);
        headers.entry(USER_AGENT).or_insert_with(|| lossy(&agent));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert("windrow-protocol", HeaderValue::from_static("1"));
        headers.insert("webhook-id", lossy(id));
        headers.insert("webhook-timestamp", HeaderValue::from(timestamp));
        if let Some(signature) = signature {
            headers.insert("webhook-signature", lossy(signature));
        }
        request
    }
}

#[async_trait]
impl HookCaller for HookClient {
    async fn call(&self, business: &Business, call: &HookCall) -> HookReply {
        let own = business
            .spec
            .hooks
            .get(call.kind)
            .and_then(|hook| hook.url.clone());
        let url = own.or_else(|| match &business.spec.handler {
            HandlerSpec::Http(http) => Some(http.url.clone()),
            HandlerSpec::Command(_) | HandlerSpec::Request(_) => None,
        });
        let Some(url) = url else {
            let text = format!(
                "{} has no url for {}; set one in its hooks",
                business.slug,
                call.kind.as_str()
            );
            return HookReply::Refused(text);
        };
        let caller = self.options(business, &url).and_then(|options| {
            let reply_bytes_max = match call.kind {
                HookKind::Reduce => SUMMARY_BYTES_MAX,
                _ => options.reply_bytes_max,
            };
            let options = HttpOptions {
                reply_bytes_max,
                ..options
            };
            self.client(&options).map_err(|why| why.to_string())
        });
        match caller {
            Err(why) => HookReply::Failed(why),
            Ok(caller) => caller.ask(BUSINESS, &call.id, &call.body, call.timeout).await,
        }
    }
}

/// Describes a fault in words.
pub(super) fn sentence(fault: Fault) -> String {
    match CallFailure::from(fault) {
        CallFailure::Failed { failure, .. }
        | CallFailure::Final(failure)
        | CallFailure::Unsendable(failure)
        | CallFailure::BadReply(failure)
        | CallFailure::Rejected(failure)
        | CallFailure::Unstarted(failure)
        | CallFailure::Gone(failure)
        | CallFailure::BackPressure { failure, .. } => failure.message,
        CallFailure::Fenced | CallFailure::NotSent => "the call was not sent".to_owned(),
    }
}

fn reply(whom: &str, answer: &Answer, checked: &Checked) -> HookReply {
    let described = |answer| described_of(whom, answer);
    let found = || checked.pointer.find(&answer.body).ok();
    let body = || found().and_then(|part| serde_json::from_slice::<Value>(part).ok());
    match answer.status.as_u16() {
        202 => HookReply::Later,
        200..=299 => HookReply::Done(body()),
        408 | 425 | 429 => HookReply::Failed(described(answer)),
        400..=499 => HookReply::Refused(words(body().as_ref()).unwrap_or_else(|| described(answer))),
        300..=399 => HookReply::Failed(format!(
            "{}; redirects are not followed: use the final URL",
            described(answer)
        )),
        _ => HookReply::Failed(described(answer)),
    }
}

/// Returns the business's own words: `message`, or the `detail` of a problem.
fn words(body: Option<&Value>) -> Option<String> {
    let text = ["message", "detail"]
        .iter()
        .find_map(|name| body?.get(name)?.as_str());
    text.filter(|text| !text.trim().is_empty())
        .map(|text| cut(text, MESSAGE_BYTES_MAX))
}

/// Formats the status and the beginning of a business's answer.
pub(super) fn described(answer: &Answer) -> String {
    described_of(BUSINESS, answer)
}

fn described_of(whom: &str, answer: &Answer) -> String {
    let reason = answer.status.canonical_reason().unwrap_or_default();
    let said = if answer.body.is_empty() {
        String::new()
    } else {
        format!(" {}", quote(&answer.body))
    };
    format!("{whom} answered {} {reason}{said}", answer.status.as_str())
}
