//! Names of the tasks of fires: what each is called, which two would have one, and what is misspelt in the texts that name them.

use serde_json::Value;

use super::Schedules;
use crate::service::tasks::outlook::Warning;
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::WallMs;
use windrow_core::schedule::cron::in_zone;
use windrow_core::schedule::names::{self, SameName};
use windrow_core::schedule::placeholders::{FireTimes, UnknownPlaceholder, filled, unknown};
use windrow_engine::ports::schedules::store::{Fire, FireKind, FireOutcome, Schedule};

/// The code of two fires of one name.
const SAME_NAME: &str = "fires_share_names";
/// The code of braces in a text that are a placeholder but for a slip of the finger.
const MISSPELT: &str = "placeholder_misspelt";
/// The placeholder that nobody can fill in before the fire goes.
const PREVIOUS: &str = "{previous_fire_time";
const ADVICE_NONE: &str = "leave the name out";

/// The name that the task of a fire gets; none where the schedule names none.
pub fn of_task(schedule: &Schedule, kind: FireKind, times: &FireTimes<'_>) -> Option<String> {
    let template = of_template(&schedule.template)?;
    let name = match kind {
        FireKind::Triggered => names::by_hand(&template, times),
        FireKind::Scheduled | FireKind::Backfilled => filled(&template, times),
    };
    name.ok()
}

/// The name that the task of a fire will get that has none yet; none where it depends on what goes before it.
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

/// Refuses a name with braces in it that are no placeholder: no handler reads it, and each fire's task would have it.
///
/// # Errors
/// `Unprocessable` says what was meant, if it can be guessed.
pub fn refuse_misspelt(template: &str) -> Result<(), ServiceError> {
    let name = of_template(template).unwrap_or_default();
    match unknown(&name).next() {
        Some(wrong) => Err(fault("/task/name", &wrong).into()),
        None => Ok(()),
    }
}

impl Schedules {
    /// What of a schedule's fires would not come about as it was wished.
    ///
    /// # Errors
    /// When the database's clock can't be read.
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

/// The name in a template of tasks.
fn of_template(template: &str) -> Option<String> {
    let template: Value = serde_json::from_str(template).ok()?;
    template["name"].as_str().map(str::to_owned)
}

fn fires_share(same: &SameName, zone: &str) -> Warning {
    let at = |time: WallMs| in_zone(time, zone).unwrap_or_default();
    let text = format!(
        "the fires of {} and {} would both make {}: the second finds the name taken and fails",
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

/// What is misspelt in texts that are for somebody else, as far as the node knows.
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

/// What is wrong with a text that has a placeholder which there isn't.
pub(crate) fn fault(pointer: &str, wrong: &UnknownPlaceholder) -> FieldFault {
    let fault = FieldFault::new(pointer, wrong.to_string());
    match wrong.advice() {
        Some(advice) => fault.advise(advice),
        None => fault,
    }
}
