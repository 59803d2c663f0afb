//! Limits in units of a task: the shards, the batches and the handlers that they fit.

use std::num::NonZeroU32;

use crate::service::{FieldFault, ServiceError};
use windrow_core::business::HandlerSpec;
use windrow_core::meter::amount::Amount;
use windrow_core::meter::expr::{Expr, Source};
use windrow_core::meter::limit::Limit;
use windrow_core::meter::metering::Metering;
use windrow_core::settings::Auto;
use windrow_core::task::Tuning;
use windrow_core::task::spec::Shards;
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::tasks::store::{NewTask, TaskEdit, TaskView};
use windrow_words::meter as say;

/// Places in which a kind of handler says what a call costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers {
    /// True if calls are requests, whose length and responses expressions may name.
    pub are_responses: bool,
    /// True if its results may name costs, in the member `costs` of Windrow's protocol.
    pub name_costs: bool,
}

impl Answers {
    /// Answers of a handler of which nothing is known here.
    pub const ANY: Answers = Answers {
        are_responses: true,
        name_costs: true,
    };

    /// Returns the places of a registered handler.
    pub(crate) fn of(handler: &HandlerSpec) -> Answers {
        Answers {
            are_responses: matches!(handler, HandlerSpec::Http(_) | HandlerSpec::Request(_)),
            name_costs: matches!(handler, HandlerSpec::Http(_) | HandlerSpec::Command(_)),
        }
    }
}

/// Returns what is wrong with limits for calls of this size to a handler with these answers.
pub fn metering_faults(metering: &Metering, batch: NonZeroU32, answers: Answers) -> Vec<FieldFault> {
    batch_fault(metering, batch)
        .into_iter()
        .chain(answer_faults(metering, answers))
        .collect()
}

fn answer_faults(metering: &Metering, answers: Answers) -> impl Iterator<Item = FieldFault> {
    let faults = [
        answer_fault(metering, answers.are_responses),
        request_fault(metering, answers.are_responses),
        unsaid_fault(metering, answers.name_costs),
    ];
    faults.into_iter().flatten()
}

fn unsaid_fault(metering: &Metering, name_costs: bool) -> Option<FieldFault> {
    let unit = metering.unsaid().filter(|_| !name_costs)?;
    Some(FieldFault::new(
        "/metering/limits",
        say::no_cost(unit.as_str()).to_string(),
    ))
}

fn batch_fault(metering: &Metering, batch: NonZeroU32) -> Option<FieldFault> {
    let items = Amount::units(u64::from(batch.get()));
    let is_too_low = |limit: &&Limit| is_items(limit) && limit.is_too_large(items);
    let limit = metering.limits.iter().find(is_too_low)?;
    let detail = format!("a call of {batch} items never fits the limit of {limit}");
    Some(FieldFault::new("/batch", detail).advise("use a smaller batch, or a higher limit"))
}

fn is_items(limit: &Limit) -> bool {
    limit
        .amount()
        .is_some_and(|(_, unit)| unit.is_built_in() && !unit.is_calls())
}

fn answer_fault(metering: &Metering, has_answers: bool) -> Option<FieldFault> {
    let unit = metering.unmeasured(has_answers)?;
    let detail = format!(
        "the answers of a program don't say what a call cost in {unit}: only those of a URL or a request do"
    );
    let advice = "use `cost`, which is computed from the item before the call";
    Some(FieldFault::new("/metering/cost_from", detail).advise(advice))
}

fn request_fault(metering: &Metering, has_requests: bool) -> Option<FieldFault> {
    let names_request = |cost: &Expr| cost.sources().any(|source| *source == Source::Request);
    let mut costs = metering.cost.iter().filter(|_| !has_requests);
    let (unit, _) = costs.find(|(_, cost)| names_request(cost))?;
    let detail = format!("a program is sent no request, which the cost in {unit} is computed from");
    let advice = "use the item's columns, such as {prompt:bytes}";
    Some(FieldFault::new("/metering/cost", detail).advise(advice))
}

/// Checks the limits of a new task, and gives it the one shard that counts them.
///
/// # Errors
/// `Unprocessable` names the members that don't fit together.
pub(super) fn settle(task: &mut NewTask, business: &Business) -> Result<(), ServiceError> {
    let metering = &*task.spec.metering;
    if metering.is_empty() {
        return Ok(());
    }
    let answers = Answers::of(&business.spec.handler);
    let mut faults = metering_faults(metering, task.tuning.batch, answers);
    faults.extend(shard_fault(task.spec.shards.0, "/shards"));
    ServiceError::refuse(faults)?;
    task.spec.shards = Shards::default();
    Ok(())
}

/// Checks the limits of a task after an edit; `shards` is the number that it will have then.
///
/// # Errors
/// Same as [`settle`].
pub(super) fn settle_edit(
    task: &TaskView,
    edit: &mut TaskEdit,
    (tuning, shards): (&Tuning, Auto<NonZeroU32>),
    business: &Business,
) -> Result<(), ServiceError> {
    let metering = edit.spec.metering.as_ref().unwrap_or(&task.spec.metering);
    if metering.is_empty() {
        return Ok(());
    }
    let mut faults: Vec<FieldFault> = Vec::new();
    if edit.spec.metering.is_some() {
        // The job of a command has no registered handler; the command checks its own.
        let answers = match business.id {
            0 => Answers::ANY,
            _ => Answers::of(&business.spec.handler),
        };
        faults.extend(answer_faults(metering, answers));
    }
    faults.extend(batch_fault(metering, tuning.batch));
    let names_shards = edit.spec.shards.is_some();
    let place = if names_shards { "/shards" } else { "/metering" };
    if names_shards || edit.spec.metering.is_some() {
        faults.extend(shard_fault(shards, place));
    }
    ServiceError::refuse(faults)?;
    if shards == Auto::Auto {
        edit.spec.shards = Some(Shards::default()).filter(|shards| *shards != task.spec.shards);
    }
    Ok(())
}

fn shard_fault(shards: Auto<NonZeroU32>, place: &str) -> Option<FieldFault> {
    let Auto::Fixed(shards) = shards else { return None };
    let detail = format!("a task with limits in units has 1 shard, not {shards}");
    (shards.get() > 1).then(|| FieldFault::new(place, detail).advise("`shards`: 1, or auto"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(metering: &str, batch: u32, are_responses: bool) -> Vec<String> {
        let answers = Answers {
            are_responses,
            name_costs: !are_responses,
        };
        let metering = serde_json::from_str(metering).expect("it is sound");
        let batch = NonZeroU32::new(batch).expect("not zero");
        let faults = metering_faults(&metering, batch, answers);
        faults.into_iter().map(|fault| fault.pointer).collect()
    }

    #[test]
    fn a_program_says_nothing_after_the_call() {
        let from = r#"{"limits":["9 tokens"],"cost_from":["tokens = {answer./n}"]}"#;
        assert_eq!(faults(from, 1, false), ["/metering/cost_from"]);
        let request = r#"{"limits":["9 tokens"],"cost":["tokens = {request:bytes}/4"]}"#;
        assert_eq!(faults(request, 1, false), ["/metering/cost"]);
        assert!(faults(request, 1, true).is_empty());
        assert_eq!(faults(from, 1, true), [""; 0]);
        let before = r#"{"limits":["9 tokens"],"cost":["tokens = 2"]}"#;
        assert_eq!(faults(before, 1, false), [""; 0]);
    }

    #[test]
    fn a_unit_that_nothing_says_is_left_to_handlers_whose_results_name_costs() {
        let unsaid = r#"{"limits":["5 eur"]}"#;
        assert_eq!(faults(unsaid, 1, true), ["/metering/limits"]);
        assert_eq!(faults(unsaid, 1, false), [""; 0]);
    }

    #[test]
    fn a_batch_above_a_limit_of_items_is_refused() {
        let items = r#"{"limits":["50 items/s"]}"#;
        assert_eq!(faults(items, 51, true), ["/batch"]);
        assert_eq!(faults(items, 50, true), [""; 0]);
        assert_eq!(faults(r#"{"limits":["50 calls/s"]}"#, 51, true), [""; 0]);
    }

    #[test]
    fn only_one_shard_counts() {
        let fixed = |number| Auto::Fixed(NonZeroU32::new(number).expect("not zero"));
        assert!(shard_fault(fixed(2), "/shards").is_some());
        assert_eq!(shard_fault(fixed(1), "/shards"), None);
        assert_eq!(shard_fault(Auto::Auto, "/shards"), None);
    }
}
