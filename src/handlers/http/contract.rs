//! Contract check: pings that show if a handler follows the protocol.
//!
//! The check fails if the handler is unreachable, if a ping isn't answered with 2xx, and if an unknown member causes
//! a crash. It warns of an unverified signature, of a response that is none to a ping, of connections that aren't
//! kept and of slow responses. With `require_signature` an unverified signature fails.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::HttpOptions;
use super::callable;
use super::fault::Fault;
use super::hook::{Caller, HookClient, described, sentence};
use crate::classify::{Answer, Pointer, is_page};
use crate::command::{Environment, check_program};
use crate::wire::quote;
use windrow_core::business::request::RequestHandlerSpec;
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::business::{BusinessSpec, HandlerSpec, HookKind, HttpHandlerSpec};
use windrow_core::ids::Moment;
use windrow_core::items::verdict::cut;
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::handling::hook::{CheckLine, CheckResult, HandlerChecker, HandlerFault};

/// Timeout of one ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of pings that show if connections are kept, and measure the latency.
const PINGS: usize = 4;
/// Latency of a ping above which the check warns: even a distant handler is faster.
const SLOW: Duration = Duration::from_secs(1);
/// Signature that no secret makes.
const WRONG_SIGNATURE: &str = "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

#[async_trait]
impl HandlerChecker for HookClient {
    fn faults(&self, spec: &BusinessSpec, secrets: &BusinessSecrets) -> Vec<HandlerFault> {
        callable::faults(spec, secrets)
    }

    fn in_process(&self) -> Vec<String> {
        self.in_process.keys().cloned().collect()
    }

    fn refresh(&self, business: &Business) {
        let renewed = self.options(business, "").and_then(|options| {
            self.transports
                .ring(&business.slug, &options.secrets)
                .map_err(|why| why.to_string())
        });
        if let Err(why) = renewed {
            tracing::error!(
                business = business.slug,
                why,
                "secrets not refreshed; its runs continue with the old ones"
            );
        }
    }

    async fn check(&self, business: &Business) -> Vec<CheckLine> {
        let mut report = Vec::new();
        match &business.spec.handler {
            HandlerSpec::Command(name) => report.push(self.command(name)),
            HandlerSpec::Request(own) => report.push(request(own)),
            HandlerSpec::Http(http) => match self.alone(business, &http.url) {
                Err(why) => report.push(fail("reachable", why, "fix the business's settings")),
                Ok(caller) => {
                    let probe = Probe {
                        client: self,
                        business,
                        caller,
                    };
                    probe.run(http, &mut report).await;
                }
            },
        }
        for kind in HookKind::ALL {
            let own = business.spec.hooks.get(kind).and_then(|hook| hook.url.as_deref());
            if let Some(url) = own {
                report.push(self.hook(business, kind, url).await);
            }
        }
        report
    }
}

impl HookClient {
    /// Creates a caller with connections of its own, so that they can be counted.
    fn alone(&self, business: &Business, url: &str) -> Result<Caller, String> {
        let options: HttpOptions = self.options(business, url)?;
        let checked = options.check().map_err(|why| why.to_string())?;
        let lease = self
            .transports
            .alone(&options.outbound, checked.is_https)
            .map_err(|why| why.to_string())?;
        Ok(self.caller(&options, checked, lease))
    }

    fn command(&self, name: &str) -> CheckLine {
        if self.in_process.contains_key(name) {
            return ok("command", format!("{name} is built into the node's program"));
        }
        let Some(command) = self.commands.commands.get(name).filter(|_| self.commands.enabled) else {
            let hint = "check handler.command in the node's config.toml";
            return fail(
                "command",
                format!("this node has no command {name}, or commands are disabled on it"),
                hint,
            );
        };
        let argv = [command.program().into()];
        let environment = Environment::of(command, &self.environment);
        match check_program(&argv, &environment) {
            Ok(()) => ok(
                "command",
                format!("{} exists and can be started", command.program()),
            ),
            Err(why) => fail(
                "command",
                why.to_string(),
                "check handler.command in the node's config.toml",
            ),
        }
    }

    async fn hook(&self, business: &Business, kind: HookKind, url: &str) -> CheckLine {
        let caller = match self.alone(business, url) {
            Ok(caller) => caller,
            Err(why) => return fail("hook", format!("{}: {why}", kind.as_str()), "fix the hook's URL"),
        };
        let probe = Probe {
            client: self,
            business,
            caller,
        };
        match probe.ping(json!({})).await {
            Ok((answer, _)) if answer.status.is_success() => {
                ok("hook", format!("{} answers ping", kind.as_str()))
            }
            Ok((answer, _)) => {
                let hint = "answer 2xx to type ping, and 204 to any unknown type";
                fail("hook", format!("{}: {}", kind.as_str(), described(&answer)), hint)
            }
            Err(fault) => fail(
                "hook",
                format!("{}: {}", kind.as_str(), sentence(fault)),
                "fix the hook's URL",
            ),
        }
    }
}

/// Business that is being checked.
struct Probe<'a> {
    client: &'a HookClient,
    business: &'a Business,
    caller: Caller,
}

impl Probe<'_> {
    async fn run(&self, http: &HttpHandlerSpec, report: &mut Vec<CheckLine>) {
        let Some(first) = self.reach(report).await else {
            return;
        };
        if http.insecure_skip_verify {
            let hint = "put the CA's certificate into `ca_pem`";
            report.push(warn("certificate", "any certificate is trusted".to_owned(), hint));
        }
        let ping = answers_ping(&first, &http.response_pointer);
        let is_handler = ping.result != CheckResult::Fail;
        report.push(ping);
        if !is_handler {
            return;
        }
        report.push(self.unknown_member().await);
        report.push(self.bad_signature(http.require_signature).await);
        self.pings(report).await;
    }

    /// Formats the body of a ping with more members.
    fn body(&self, more: &Value) -> String {
        let mut body = json!({"type": "ping", "business": self.business.slug});
        if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
            body.extend(more.clone());
        }
        body.to_string()
    }

    fn id() -> String {
        format!("ping-{}", uuid::Uuid::now_v7())
    }

    async fn ping(&self, more: Value) -> Result<(Answer, Duration), Fault> {
        let sent: Moment = self.client.clock.now();
        let answer = self
            .caller
            .post(&Self::id(), &self.body(&more), PING_TIMEOUT)
            .await?;
        Ok((answer, self.client.clock.now().since(sent)))
    }

    async fn reach(&self, report: &mut Vec<CheckLine>) -> Option<Answer> {
        match self.ping(json!({})).await {
            Ok((answer, took)) => {
                let tls = if self.caller.checked.is_https {
                    "TLS ok, "
                } else {
                    ""
                };
                report.push(ok(
                    "reachable",
                    format!("{tls}answered in {} ms", took.as_millis()),
                ));
                Some(answer)
            }
            Err(fault) => {
                // Something is there, and may have broken on what was sent.
                let broke = format!(
                    "answer the ping with 204; it was sent as POST {}",
                    self.body(&json!({}))
                );
                let hint = match fault {
                    Fault::Reset(_) | Fault::Late(_) => broke.as_str(),
                    _ => "start the handler, or check `url`, `proxy` and certificates",
                };
                report.push(fail("reachable", sentence(fault), hint));
                None
            }
        }
    }

    async fn unknown_member(&self) -> CheckLine {
        let hint = "ignore unknown JSON members: protocol 1 adds some over time";
        match self.ping(json!({"x-probe": {"any": [1, null]}})).await {
            Ok((answer, _)) if answer.status.is_success() => {
                ok("unknown_member", "an unknown member was ignored".to_owned())
            }
            Ok((answer, _)) => fail(
                "unknown_member",
                format!("with an unknown member \"x-probe\" {}", described(&answer)),
                hint,
            ),
            Err(fault) => fail(
                "unknown_member",
                format!("with an unknown member \"x-probe\": {}", sentence(fault)),
                hint,
            ),
        }
    }

    async fn bad_signature(&self, is_required: bool) -> CheckLine {
        let timestamp = self.client.clock.wall().0.div_euclid(1000);
        let wrong = Some(WRONG_SIGNATURE.to_owned());
        let body = self.body(&json!({}));
        let answered = self
            .caller
            .post_signed(&Self::id(), &body, timestamp, wrong, PING_TIMEOUT)
            .await;
        let seen = match answered {
            Ok(answer) if answer.status.is_client_error() => {
                return ok(
                    "signature",
                    format!("a bad signature was refused ({})", answer.status.as_str()),
                );
            }
            Ok(answer) if answer.status.is_success() => "a bad signature was accepted".to_owned(),
            Ok(answer) => format!("with a bad signature {}", described(&answer)),
            Err(fault) => format!("with a bad signature: {}", sentence(fault)),
        };
        let hint = "verify `webhook-signature` with a Standard Webhooks library; answer 401 if it is wrong";
        if is_required {
            fail("signature", seen, hint)
        } else {
            warn("signature", seen, hint)
        }
    }

    async fn pings(&self, report: &mut Vec<CheckLine>) {
        let before = self.caller.client.connections();
        let mut slowest = Duration::ZERO;
        for _ in 0..PINGS {
            match self.ping(json!({})).await {
                Ok((_, took)) => slowest = slowest.max(took),
                Err(fault) => {
                    let hint = "answer each ping the same way";
                    report.push(fail("ping", sentence(fault), hint));
                    return;
                }
            }
        }
        // One is allowed: the refusal of a bad signature may have closed the one before.
        let made = self.caller.client.connections() - before;
        report.push(match made {
            0 | 1 => ok("keep_alive", "connections are reused".to_owned()),
            _ => warn(
                "keep_alive",
                format!("{PINGS} calls opened {made} connections"),
                "keep connections open between requests (HTTP/1.1 keep-alive); a new one per call is slow",
            ),
        });
        let shown = format!("the slowest of {PINGS} pings took {} ms", slowest.as_millis());
        let hint = "answer pings at once; a slow handler needs more concurrency for the same rate";
        report.push(if slowest > SLOW {
            warn("latency", shown, hint)
        } else {
            ok("latency", shown)
        });
    }
}

/// Reports on an API that knows nothing of Windrow, and so has nothing that could be called for a test.
fn request(own: &RequestHandlerSpec) -> CheckLine {
    let what = own.request.call.split('{').next().unwrap_or_default();
    let hint = "preview a few items of a task; those are real calls";
    CheckLine {
        advice: Some(hint.to_owned()),
        ..ok(
            "request",
            format!("{}… is valid; a check doesn't call it", cut(what, 200)),
        )
    }
}

/// Checks that a response is one that the protocol has for a ping: nothing, or a name. `pointer` is the location of
/// results.
fn answers_ping(answer: &Answer, pointer: &str) -> CheckLine {
    if !answer.status.is_success() {
        let hint = "answer 2xx to type ping, and 204 to any unknown type";
        return fail("ping", described(answer), hint);
    }
    if is_page(answer) {
        let seen = format!("a web page {}", quote(&answer.body));
        return fail("ping", seen, "check the URL, and whether it is a login page");
    }
    let part = Pointer::new(pointer).map(|pointer| pointer.find(&answer.body));
    let part = part.ok().and_then(Result::ok).unwrap_or(&answer.body);
    let body = serde_json::from_slice::<Value>(part).unwrap_or_default();
    let is_nothing = part.trim_ascii().is_empty() || part == b"null" || part == b"{}";
    match body["name"].as_str() {
        Some(name) => ok("ping", format!("handler {:?}", cut(name, 80))),
        None if is_nothing => ok("ping", "answered".to_owned()),
        None => warn(
            "ping",
            format!(
                "answered with {}, which is not an answer to a ping",
                quote(&answer.body)
            ),
            "check the body's `type`; answer a ping with 204 and no body, or with {\"name\":\"push 1.2\"}",
        ),
    }
}

fn ok(check: &'static str, detail: String) -> CheckLine {
    CheckLine {
        check,
        result: CheckResult::Ok,
        detail,
        advice: None,
    }
}

fn warn(check: &'static str, detail: String, hint: &str) -> CheckLine {
    CheckLine {
        check,
        result: CheckResult::Warn,
        detail,
        advice: Some(hint.to_owned()),
    }
}

fn fail(check: &'static str, detail: String, hint: &str) -> CheckLine {
    CheckLine {
        check,
        result: CheckResult::Fail,
        detail,
        advice: Some(hint.to_owned()),
    }
}
