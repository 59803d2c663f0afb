//! Validation of a business before it is stored. Reports all errors at once.

use std::num::NonZeroU32;
use std::time::Duration;

use super::written::BusinessBody;
use crate::service::FieldFault;
use windrow_config::Config;
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::business::{HandlerSpec, HookKind, is_slug};
use windrow_core::settings::check;
use windrow_core::settings::{Auto, RateLimit};
use windrow_core::text::names;
use windrow_engine::ports::handling::hook::HandlerChecker;

/// Longest display name, in characters; the width of the column.
pub const DISPLAY_NAME_MAX: usize = 190;
/// Longest timeout of a hook, beyond any download that a `prepare` may wait for.
pub const HOOK_TIMEOUT_MAX: Duration = Duration::from_secs(7 * 86_400);

/// Returns all errors of a business; empty if it is valid.
pub(super) fn faults(
    body: &BusinessBody,
    secrets: &BusinessSecrets,
    config: &Config,
    checker: &dyn HandlerChecker,
) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    check_names(body, &mut faults);
    check_handler(body, config, checker, &mut faults);
    check_hooks(body, &mut faults);
    check_defaults(body, config, &mut faults);
    check_limits(body, config, &mut faults);
    let of_checker = checker.faults(&body.spec(), secrets);
    faults.extend(
        of_checker
            .into_iter()
            .map(|fault| FieldFault::new(fault.pointer, fault.what)),
    );
    faults
}

fn check_names(body: &BusinessBody, faults: &mut Vec<FieldFault>) {
    for (pointer, text) in [("/name", &body.name), ("/pool", &body.pool)] {
        if !is_slug(text) {
            let what = "must be 1 to 40 lowercase letters, digits and -";
            faults.push(FieldFault::new(pointer, what).advise("push-campaign"));
        }
    }
    let shown = body.display_name.as_deref().unwrap_or("-");
    let length = shown.chars().count();
    if length == 0 || length > DISPLAY_NAME_MAX || shown.chars().any(char::is_control) {
        let what = format!("must be 1 to {DISPLAY_NAME_MAX} characters without control characters");
        faults.push(FieldFault::new("/display_name", what));
    } else if let Some(why) = names::fault(shown) {
        faults.push(FieldFault::new("/display_name", format!("it {why}")));
    }
}

fn check_handler(
    body: &BusinessBody,
    config: &Config,
    handlers: &dyn HandlerChecker,
    faults: &mut Vec<FieldFault>,
) {
    // An empty URL can't be called.
    let has_none = body.url.as_deref().is_none_or(str::is_empty);
    match (&body.url, &body.command, &body.request) {
        (_, None, None) if has_none => {
            let what = "one of `url`, `command` and `request` is required";
            faults.push(FieldFault::new("/url", what).advise("http://127.0.0.1:9000/windrow"));
        }
        (_, None, None) => check_no_request(body, faults),
        (None, Some(command), None) => {
            faults.extend(command_fault(command, config, handlers));
            check_no_http(body, "command", faults);
            check_no_request(body, faults);
        }
        (None, None, Some(_)) => {
            check_no_http(body, "request", faults);
            check_batch(body, config, faults);
        }
        (_, command, _) => {
            let pointer = if command.is_some() { "/command" } else { "/request" };
            let what = "`url`, `command` and `request` exclude each other";
            faults.push(FieldFault::new(pointer, what).advise("set the others to null"));
        }
    }
}

/// Checks the batch size, since a templated request carries only one item.
fn check_batch(body: &BusinessBody, config: &Config, faults: &mut Vec<FieldFault>) {
    let tuning = body.defaults.apply(&config.task_defaults.tuning);
    if tuning.batch != NonZeroU32::MIN {
        let what = "must be 1: a request carries one item";
        faults.push(FieldFault::new("/defaults/batch", what).advise("1"));
    }
}

fn check_no_request(body: &BusinessBody, faults: &mut Vec<FieldFault>) {
    if !body.request_secrets.is_empty() {
        let what = "only applies to a `request`, and this business has none";
        faults.push(FieldFault::new("/request_secrets", what));
    }
}

/// Returns the fault of a command that this node can't run.
pub(crate) fn command_fault(
    command: &str,
    config: &Config,
    handlers: &dyn HandlerChecker,
) -> Option<FieldFault> {
    let commands = &config.command_handler;
    let mut names = handlers.in_process();
    if commands.enabled {
        names.extend(commands.commands.keys().cloned());
    }
    if names.iter().any(|name| name == command) {
        return None;
    }
    let unknown = "no command with this name on this node";
    let (what, advice) = match names.as_slice() {
        [] if !commands.enabled => (
            "commands are disabled on this node",
            "set handler.command.enabled = true in its config.toml".to_owned(),
        ),
        [] => (
            unknown,
            format!("add [handler.command.commands.{command}] to its config.toml"),
        ),
        names => (unknown, format!("one of {}", names.join(", "))),
    };
    Some(FieldFault::new("/command", what).advise(advice))
}

/// Rejects URL settings for a command or request; a request may still have the connection settings.
fn check_no_http(body: &BusinessBody, kind: &str, faults: &mut Vec<FieldFault>) {
    let connects = kind == "request";
    for (pointer, is_said) in [
        ("/headers", !body.headers.is_empty()),
        ("/secret_headers", !body.secret_headers.is_empty()),
        ("/response_pointer", !body.response_pointer.is_empty()),
        ("/require_signature", body.require_signature),
        ("/proxy", body.proxy.is_some() && !connects),
        ("/ca_pem", body.ca_pem.is_some() && !connects),
        ("/client_cert_pem", body.client_cert_pem.is_some() && !connects),
        ("/client_key_pem", body.client_key_pem.is_some() && !connects),
        ("/insecure_skip_verify", body.insecure_skip_verify && !connects),
        ("/limits_from", body.limits_from.is_some() && !connects),
    ] {
        if is_said {
            let what = format!("only applies to a `url`, and this business has a `{kind}`");
            faults.push(FieldFault::new(pointer, what));
        }
    }
}

fn check_hooks(body: &BusinessBody, faults: &mut Vec<FieldFault>) {
    let urlless = match body.spec().handler {
        HandlerSpec::Http(_) => None,
        HandlerSpec::Command(_) => Some("command"),
        HandlerSpec::Request(_) => Some("request"),
    };
    for kind in HookKind::ALL {
        let Some(hook) = body.hooks.get(kind) else {
            continue;
        };
        let name = kind.as_str().trim_start_matches("task.");
        if let (Some(handler), None) = (urlless, &hook.url) {
            let what = format!("required: a business with a `{handler}` has no URL for the hook");
            faults.push(FieldFault::new(format!("/hooks/{name}/url"), what));
        }
        if hook
            .timeout
            .is_some_and(|span| span.is_zero() || span > HOOK_TIMEOUT_MAX)
        {
            let what = "must be more than 0 and at most 7 days";
            faults.push(FieldFault::new(format!("/hooks/{name}/timeout"), what).advise("30m"));
        }
    }
}

fn check_defaults(body: &BusinessBody, config: &Config, faults: &mut Vec<FieldFault>) {
    let tuning = body.defaults.apply(&config.task_defaults.tuning);
    for fault in check::faults(&tuning) {
        faults.push(FieldFault::new(format!("/defaults/{}", fault.key), fault.what).advise(fault.advice));
    }
    if body.defaults.rate == Some(RateLimit::Unlimited) && !config.node.allow_unlimited {
        let what = "unlimited tasks are not allowed on this node";
        faults.push(
            FieldFault::new("/defaults/rate", what)
                .advise("500/s or auto, or set node.allow_unlimited = true"),
        );
    }
}

/// Checks that a task with default settings fits within the limits.
fn check_limits(body: &BusinessBody, config: &Config, faults: &mut Vec<FieldFault>) {
    let tuning = body.defaults.apply(&config.task_defaults.tuning);
    if let Some(limit) = body.limits.rate {
        // A task at `auto` without a ceiling gets the limit as its ceiling.
        let fits = match tuning.rate.most() {
            None => tuning.rate.is_auto(),
            Some(rate) => !rate.is_faster_than(limit),
        };
        if !fits {
            let what = format!("its tasks start with {}, which exceeds {limit}", tuning.rate);
            let advice = format!("set \"defaults\":{{\"rate\":\"{limit}\"}}, or a higher limit");
            faults.push(FieldFault::new("/limits/rate", what).advise(advice));
        }
    }
    if let Some(limit) = body.limits.concurrency {
        let least = match tuning.concurrency {
            Auto::Fixed(number) => number.max(tuning.batch),
            Auto::Auto => tuning.batch.max(NonZeroU32::MIN),
        };
        if least > limit {
            let what = format!("its tasks start with {least} items in flight, which exceeds {limit}");
            faults.push(FieldFault::new("/limits/concurrency", what).advise(format!("at least {least}")));
        }
    }
}
