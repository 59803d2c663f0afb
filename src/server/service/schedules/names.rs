//! Names of the tasks of fires: which two would have one, and whether a fire by hand finds its name taken.

use serde_json::Value;

use super::Schedules;
use crate::service::tasks::outlook::Warning;
use crate::service::{FieldFault, ServiceError};
use windrow_core::schedule::cron::in_zone;
use windrow_core::schedule::names::{self, SameName};
use windrow_engine::ports::schedules::store::Schedule;
use windrow_engine::ports::tasks::store::TaskStore;

/// The code of two fires of one name.
const SAME_NAME: &str = "fires_share_names";
/// The code of a fire by hand that finds its name taken.
const BY_HAND: &str = "triggers_share_names";
const ADVICE_NONE: &str = "leave the name out";

impl Schedules {
    /// What of a schedule's fires would not come about as it was wished.
    ///
    /// # Errors
    /// When the database's clock can't be read.
    pub async fn warnings(&self, schedule: &Schedule) -> Result<Vec<Warning>, ServiceError> {
        let Some(template) = name_of(schedule) else {
            return Ok(Vec::new());
        };
        let (spec, now) = (&schedule.spec, self.store.database_time().await?);
        let found = match names::of_fires(&template, spec, now) {
            Some(same) => Some(fires_share(&same, spec.timing.zone())),
            None => names::by_hand(&template, spec, now).map(|same| triggers_share(&same)),
        };
        Ok(found.into_iter().collect())
    }

    /// Refuses a fire by hand whose task's name is another's.
    ///
    /// # Errors
    /// `NameTaken` says whose, and what would do.
    pub async fn refuse_taken(&self, schedule: &Schedule, tasks: &dyn TaskStore) -> Result<(), ServiceError> {
        let Some(template) = name_of(schedule) else {
            return Ok(());
        };
        let (spec, now) = (&schedule.spec, self.store.database_time().await?);
        let made = self.store.fires(schedule.id, None, None, 1).await?;
        let previous = made.first().map(|fire| fire.time);
        let Some(name) = names::name(&template, spec, now, previous) else {
            return Ok(());
        };
        let Some(task) = tasks.find(&schedule.business, &name).await? else {
            return Ok(());
        };
        let finer = names::by_hand(&template, spec, now).and_then(|same| same.finer);
        let finer = finer.map(|finer| format!("; a name that tells them apart: {finer}"));
        let (schedule, task) = (&schedule.name, task.id);
        Err(ServiceError::NameTaken(format!(
            "a task of {schedule} that is made now is called {name}, and {task} is called so already: no task can be made \
             until {task} is deleted{}",
            finer.unwrap_or_default()
        )))
    }
}

/// The name in a template of tasks.
fn name_of(schedule: &Schedule) -> Option<String> {
    let template: Value = serde_json::from_str(&schedule.template).ok()?;
    template["name"].as_str().map(str::to_owned)
}

fn fires_share(same: &SameName, zone: &str) -> Warning {
    let at = |time| in_zone(time, zone).unwrap_or_default();
    let text = format!(
        "the fires of {} and {} would both make {}: the second finds the name taken and fails",
        at(same.first),
        at(same.second),
        same.name
    );
    warning(SAME_NAME, text, same)
}

fn triggers_share(same: &SameName) -> Warning {
    let text = format!(
        "a fire by hand on the day of another finds the name {} taken, and is refused",
        same.name
    );
    warning(BY_HAND, text, same)
}

fn warning(code: &'static str, text: String, same: &SameName) -> Warning {
    let advice = same.finer.clone().unwrap_or_else(|| ADVICE_NONE.to_owned());
    Warning {
        code,
        fault: FieldFault::new("/task/name", text).advise(advice),
    }
}
