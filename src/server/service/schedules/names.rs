//! Names of the tasks of fires: computing them, detecting duplicates, and detecting misspelt placeholders.

use serde_json::Value;

use super::Schedules;
use crate::service::tasks::outlook::Warning;
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::WallMs;
use windrow_core::schedule::cron::in_zone;
use windrow_core::schedule::names::{self, SameName};
use windrow_core::schedule::placeholders::{FireTimes, UnknownPlaceholder, filled, unknown};
use windrow_engine::ports::schedules::store::{Fire, FireKind, FireOutcome, Schedule};

/// Warning code for two fires with the same task name.
const SAME_NAME: &str = "fires_share_names";
/// Warning code for text in braces that looks like a misspelt placeholder.
const MISSPELT: &str = "placeholder_misspelt";
/// Start of the placeholder that is known only once the previous fire is.
const PREVIOUS: &str = "{previous_fire_time";
const ADVICE_NONE: &str = "leave out the name";

/// Returns the task name for a fire; `None` if the schedule sets none.
pub fn of_task(schedule: &Schedule, kind: FireKind, times: &FireTimes<'_>) -> Option<String> {
    let template = of_template(&schedule.template)?;
    let name = match kind {
        FireKind::Triggered => names::by_hand(&template, times),
        FireKind::Scheduled | FireKind::Backfilled => filled(&template, times),
    };
    name.ok()
}

/// Returns the task name of a fire that has no task yet; `None` if the name depends on the previous fire.
pub fn foretold(schedule: &Schedule, fire: &Fire) -> Option<String> {
    let is_open = matches!(fire.outcome, FireOutcome::Pending | FireOutcome::Queued);
    if !is_open || of_template(&schedule.template)?.contains(PREVIOUS) {
        return None;
    }
    let times = FireTimes {
        fire: fire.time,
        previous: None,
        zone: schedule.spec.timing.zone(),
    };
    of_task(schedule, fire.kind, &times)
}

/// Rejects a name with braces that aren't a placeholder: no handler uses them, and all tasks would have the same
/// name.
///
/// # Errors
/// `Unprocessable`, with the intended placeholder if it can be guessed.
pub fn refuse_misspelt(template: &str) -> Result<(), ServiceError> {
    let name = of_template(template).unwrap_or_default();
    match unknown(&name).next() {
        Some(wrong) => Err(fault("/task/name", &wrong).into()),
        None => Ok(()),
    }
}

impl Schedules {
    /// Returns warnings about fires that won't work as intended.
    ///
    /// # Errors
    /// If the database's clock can't be read.
    pub async fn warnings(&self, schedule: &Schedule) -> Result<Vec<Warning>, ServiceError> {
        let mut found = misspelt(&schedule.template);
        let Some(template) = of_template(&schedule.template) else {
            return Ok(found);
        };
        let (spec, now) = (&schedule.spec, self.store.database_time().await?);
        let same = names::of_fires(&template, spec, now);
        found.extend(same.map(|same| fires_share(&same, spec.timing.zone())));
        Ok(found)
    }
}

/// Returns the task name in a template.
fn of_template(template: &str) -> Option<String> {
    let template: Value = serde_json::from_str(template).ok()?;
    template["name"].as_str().map(str::to_owned)
}

fn fires_share(same: &SameName, zone: &str) -> Warning {
    let at = |time: WallMs| in_zone(time, zone).unwrap_or_default();
    let text = format!(
        "the fires of {} and {} would both create {}: the second one fails because the name is already taken",
        at(same.first),
        at(same.second),
        same.name
    );
    let advice = same.finer.clone().unwrap_or_else(|| ADVICE_NONE.to_owned());
    Warning {
        code: SAME_NAME,
        fault: FieldFault::new("/task/name", text).advise(advice),
    }
}

/// Returns warnings about misspelt placeholders in text that may be meant for somebody else.
fn misspelt(template: &str) -> Vec<Warning> {
    let template: Value = serde_json::from_str(template).unwrap_or_default();
    let mut found = Vec::new();
    look_through("/task", &template, &mut |pointer, text| {
        let slips = unknown(text).filter(UnknownPlaceholder::is_slip);
        found.extend(slips.map(|wrong| Warning {
            code: MISSPELT,
            fault: FieldFault {
                pointer: pointer.to_owned(),
                detail: wrong.to_string(),
                advice: wrong.meant.map(|meant| format!("{{{meant}}}")),
                missing: None,
            },
        }));
    });
    found
}

fn look_through(pointer: &str, value: &Value, found: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => found(pointer, text),
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                look_through(&format!("{pointer}/{at}"), value, found);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                look_through(&format!("{pointer}/{name}"), value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the error for an unknown placeholder.
pub(crate) fn fault(pointer: &str, wrong: &UnknownPlaceholder) -> FieldFault {
    let fault = FieldFault::new(pointer, wrong.to_string());
    match wrong.advice() {
        Some(advice) => fault.advise(advice),
        None => fault,
    }
}
