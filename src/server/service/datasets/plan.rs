//! What a task that is made is to publish: whether it can.

use windrow_config::Config;
use windrow_core::business::{HandlerSpec, HookKind, is_slug};
use windrow_core::dataset::{KEY_BYTES_MAX, Publish, Reduce};
use windrow_core::settings::Results;
use windrow_core::settings::table::TuningPatch;
use windrow_core::task::Tuning;
use windrow_engine::ports::access::business_store::Business;

use crate::service::{FieldFault, ServiceError};

/// Checks what a task is to publish, and has it keep its results.
///
/// # Errors
/// `Unprocessable` names what can't be.
pub(in crate::service) fn check(
    publish: Option<&Publish>,
    (said, tuning): (&TuningPatch, &mut Tuning),
    business: &Business,
    config: &Config,
) -> Result<(), ServiceError> {
    let Some(publish) = publish else { return Ok(()) };
    let mut faults = Vec::new();
    if !is_slug(&publish.dataset) {
        let fault = FieldFault::new("/publish", "must be 1 to 40 lowercase letters, digits and -");
        faults.push(fault.advise("team-board"));
    }
    if said.results == Some(Results::Off) {
        let fault = FieldFault::new(
            "/results",
            "what is published are results, which the task doesn't keep",
        );
        faults.push(fault.advise("results = keep, or leave it out"));
    }
    if publish
        .key
        .as_ref()
        .is_some_and(|key| !(1..=KEY_BYTES_MAX).contains(&key.len()))
    {
        let what = format!("must have 1 to {KEY_BYTES_MAX} bytes");
        faults.push(FieldFault::new("/publish_key", what));
    }
    faults.extend(reduce_fault(&publish.reduce, business, config));
    ServiceError::refuse(faults)?;
    tuning.results = Results::Keep;
    Ok(())
}

fn reduce_fault(reduce: &Reduce, business: &Business, config: &Config) -> Option<FieldFault> {
    match reduce {
        Reduce::None => None,
        Reduce::Hook => {
            let own = business.spec.hooks.get(HookKind::Reduce);
            let has_url = own.is_some_and(|hook| hook.url.is_some())
                || matches!(business.spec.handler, HandlerSpec::Http(_));
            let fault = FieldFault::new("/reduce", "the business has no url that could be called");
            (!has_url).then(|| fault.advise("hooks.reduce.url of the business, or a command"))
        }
        Reduce::Command(name) => {
            let commands = &config.command_handler;
            let known = commands.commands.get(name).filter(|_| commands.enabled);
            if known.is_some_and(|command| !command.cmd.is_empty()) {
                return None;
            }
            let fault = FieldFault::new("/reduce", format!("this node has no command {name} with a cmd"));
            Some(fault.advise(format!(
                "[handler.command.commands.{name}] in its config.toml, on every node"
            )))
        }
    }
}
