//! Checks of the publication that a new task plans.

use windrow_config::Config;
use windrow_core::business::{HandlerSpec, HookKind};
use windrow_core::dataset::{KEY_BYTES_MAX, NAME_BYTES_MAX, Publish, Reduce, is_name, is_own_name};
use windrow_core::settings::Results;
use windrow_core::settings::table::TuningPatch;
use windrow_core::task::Tuning;
use windrow_engine::ports::access::actor::Write;
use windrow_engine::ports::access::business_store::Business;

use crate::service::{FieldFault, ServiceError};

/// Checks the planned publication of a task and turns on keeping results.
///
/// # Errors
/// `Unprocessable` that names the invalid members.
pub(in crate::service) fn check(
    publish: Option<&Publish>,
    (said, tuning): (&TuningPatch, &mut Tuning),
    (business, write): (&Business, &Write),
    config: &Config,
) -> Result<(), ServiceError> {
    let Some(publish) = publish else { return Ok(()) };
    let mut faults = Vec::new();
    faults.extend(name_fault("/publish", &publish.dataset, &business.slug, write));
    if said.results == Some(Results::Off) {
        let fault = FieldFault::new(
            "/results",
            "only results can be published, and the task doesn't keep them",
        );
        faults.push(fault.advise("results = keep, or no `results` at all"));
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

/// Returns the error of a dataset name in a member. Looks only at the name, so that a business can't learn which names others
/// use.
pub(super) fn name_fault(pointer: &str, name: &str, slug: &str, write: &Write) -> Option<FieldFault> {
    if !is_name(name) {
        let what = format!("must be 1 to {NAME_BYTES_MAX} lowercase letters, digits, - and . between them");
        return Some(FieldFault::new(pointer, what).advise("team-board"));
    }
    if write.actor.source != "business" || is_own_name(name, slug) {
        return None;
    }
    let what = format!("a token of {slug} may only publish to {slug} and names that begin with {slug}.");
    Some(FieldFault::new(pointer, what).advise(format!("{slug}.board, or use an operator's token")))
}

fn reduce_fault(reduce: &Reduce, business: &Business, config: &Config) -> Option<FieldFault> {
    match reduce {
        Reduce::None => None,
        Reduce::Hook => {
            let own = business.spec.hooks.get(HookKind::Reduce);
            let has_url = own.is_some_and(|hook| hook.url.is_some())
                || matches!(business.spec.handler, HandlerSpec::Http(_));
            let fault = FieldFault::new("/reduce", "the business has no url to call");
            (!has_url).then(|| fault.advise("set hooks.reduce.url of the business, or use a command"))
        }
        Reduce::Command(name) => {
            let commands = &config.command_handler;
            let known = commands.commands.get(name).filter(|_| commands.enabled);
            if known.is_some_and(|command| !command.cmd.is_empty()) {
                return None;
            }
            let fault = FieldFault::new("/reduce", format!("no command {name} with a cmd on this node"));
            Some(fault.advise(format!(
                "add [handler.command.commands.{name}] to the config.toml of every node"
            )))
        }
    }
}
