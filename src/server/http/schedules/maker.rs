//! Creates the tasks of fires, as if the schedule's template had been submitted at that moment.

use std::sync::Weak;

use async_trait::async_trait;

use super::template::{Filling, request};
use crate::service::schedules::names;
use crate::service::tasks::create::TaskPlan;
use crate::service::{Service, ServiceError};
use windrow_core::ids::TaskId;
use windrow_core::schedule::placeholders::FireTimes;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::actor::Actor;
use windrow_engine::ports::schedules::maker::{FireFault, FireMaker};
use windrow_engine::ports::schedules::store::TakenFire;
use windrow_engine::ports::tasks::store::FireKey;

/// Advice for a fire whose task name is already taken.
const FINER: &str =
    "use {fire_time:unix} in the name to make it unique per fire, or {fire_time:time} per minute";

/// Creator of tasks for fires. Holds the service weakly, because the node's actors, which the service owns, hold
/// this.
pub struct Maker {
    service: Weak<Service>,
}

impl Maker {
    /// Creates a maker that works as long as the service exists.
    pub fn new(service: Weak<Service>) -> Maker {
        Maker { service }
    }
}

#[async_trait]
impl FireMaker for Maker {
    async fn make(&self, fire: &TakenFire) -> Result<TaskId, FireFault> {
        let Some(service) = self.service.upgrade() else {
            let text = "the node is shutting down; another one creates the task".to_owned();
            return Err(StoreError::Unavailable(text).into());
        };
        made(&service, fire).await.map_err(fault)
    }
}

async fn made(service: &Service, fire: &TakenFire) -> Result<TaskId, ServiceError> {
    let schedule = &fire.schedule;
    let key = FireKey {
        schedule: schedule.id,
        time: fire.time,
    };
    let times = FireTimes {
        fire: fire.time,
        previous: fire.previous,
        zone: schedule.spec.timing.zone(),
    };
    let filling = Filling {
        business: &schedule.business,
        is_guarded: schedule.is_guarded,
        times,
        now: service.now(),
    };
    let mut request = request(&schedule.template, &filling)?;
    // Backfilled tasks normally don't publish: they would get the highest number, so old data would become current.
    let publish = request.plan.publish.filter(|_| fire.publishes);
    request.plan.spec.name = Some(names::of_task(schedule, fire.kind, &times));
    request.plan = TaskPlan {
        fire: Some(key),
        publish,
        ..request.plan
    };
    let write = author(fire).writes();
    let task = service.tasks.create(request, &write).await?;
    Ok(task.id)
}

/// Returns the author for the audit log: the schedule, limited to the rights of a business if a business wrote it.
fn author(fire: &TakenFire) -> Actor {
    let schedule = &fire.schedule;
    Actor {
        name: format!("schedule {}", schedule.name),
        source: if schedule.is_guarded { "business" } else { "system" },
        reason: Some(format!(
            "{} by {} for {}",
            fire.kind,
            schedule.id,
            fire.time.to_rfc3339()
        )),
        ..Actor::windrow(None)
    }
}

fn fault(error: ServiceError) -> FireFault {
    match error {
        ServiceError::StoreUnavailable | ServiceError::StoreFull | ServiceError::Draining => {
            FireFault::Store(StoreError::Unavailable(error.to_string()))
        }
        ServiceError::FireOver => FireFault::Over,
        ServiceError::NameTaken(text) => FireFault::NameTaken(format!("{text}; {FINER}")),
        ServiceError::Internal(cause) => FireFault::Bug(cause),
        other => FireFault::Refused(other.to_string()),
    }
}
