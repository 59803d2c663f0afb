//! Redrives: new tasks for the failures of other tasks. Nothing is copied, so a redrive of a million failures is
//! created as quickly as one of ten, even while the other task runs. Only if there were earlier redrives is each item
//! examined, because items that they recovered or are working on aren't redriven again.

use crate::service::ServiceError;
use crate::service::tasks::Tasks;
use crate::service::tasks::create::{TaskPlan, new_task};
use windrow_core::task::Tuning;
use windrow_core::task::spec::{self, TaskSpec};
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec, SourceRequest};
use windrow_engine::ports::tasks::store::{Making, TaskView, Write};

/// Attempts to select failures when concurrent redrives interfere.
const TRIES_MAX: u32 = 20;

/// Request for a redrive.
#[derive(Clone, Debug, Default)]
pub struct RedriveRequest {
    /// Only failures of these groups; empty for all groups.
    pub codes: Vec<String>,
    /// Only these items, written as `5,9-20`.
    pub indexes: Option<String>,
    /// Only unconfirmed failures among them.
    pub unconfirmed: bool,
    /// True if the items get keys of the new task, so that the business treats them as new.
    pub new_keys: bool,
    /// True if items are included that earlier redrives recovered or are working on.
    pub again: bool,
    /// Members of the new task that differ from the original.
    pub plan: TaskPlan,
}

impl Tasks {
    /// Creates a redrive and starts it if requested.
    ///
    /// # Errors
    /// `Unprocessable` if nothing is selected, a code is unknown, or the settings contradict each other; otherwise
    /// the same as [`Tasks::create`].
    pub async fn redrive(
        &self,
        origin: &TaskView,
        request: RedriveRequest,
        write: &Write,
    ) -> Result<TaskView, ServiceError> {
        // Two concurrent redrives would select the same items. On one node they wait for each other; of two nodes,
        // the store lets one proceed, and the other selects again.
        let _turn = self.turns.turn(origin.id).await;
        for _ in 0..TRIES_MAX {
            match self.redrive_once(origin, request.clone(), write).await {
                Err(ServiceError::Overtaken(_)) => {}
                done => return done,
            }
        }
        Err(ServiceError::Overtaken(origin.id))
    }

    async fn redrive_once(
        &self,
        origin: &TaskView,
        request: RedriveRequest,
        write: &Write,
    ) -> Result<TaskView, ServiceError> {
        let checked = self.checked(&request.plan, origin, write).await?;
        let failures = &self.failures;
        let parts = self.selected(origin, &request).await?;
        let (parts, beside) = match request.again {
            true => (parts, None),
            false => {
                let seen = failures.family(origin).await?;
                (failures.left_of(origin, parts).await?, Some(seen))
            }
        };
        let keys_of = if request.new_keys {
            None
        } else {
            Some(failures.keys_of(origin)?)
        };
        let spec = RedriveSpec {
            origin: origin.id,
            keys_of,
            parts,
            is_replay: false,
        };
        let how = Making {
            beside: beside.as_ref(),
            ..Making::default()
        };
        self.make_redrive(origin, spec, (request.plan, checked), how, write)
            .await
    }

    /// Creates the task for these items of another one, with its business and settings already checked.
    pub(super) async fn make_redrive(
        &self,
        origin: &TaskView,
        spec: RedriveSpec,
        (plan, (business, tuning)): (TaskPlan, (Business, Tuning)),
        how: Making<'_>,
        write: &Write,
    ) -> Result<TaskView, ServiceError> {
        let source = self
            .sources
            .resolve(&SourceRequest::Redrive(spec), &origin.business, write)
            .await?;
        let (starts, strict) = (plan.start, plan.strict);
        let plan = TaskPlan {
            spec: plan.spec.inherit(&origin.spec, spec::Request::Redrive),
            ..plan
        };
        let mut task = new_task(&business, plan, tuning, source, TaskSpec::default());
        task.parent = Some(origin.id);
        let how = Making { starts, ..how };
        self.make(&business, task, how, strict, write).await
    }

    /// Returns the requested failures, regardless of later redrives.
    async fn selected(
        &self,
        origin: &TaskView,
        request: &RedriveRequest,
    ) -> Result<Vec<RedrivePart>, ServiceError> {
        let (failures, codes, unconfirmed) = (&self.failures, &request.codes, request.unconfirmed);
        match &request.indexes {
            Some(text) => failures.by_index(origin, text, codes, unconfirmed).await,
            None if unconfirmed => failures.unconfirmed(origin, codes).await,
            None => failures.by_group(origin, codes).await,
        }
    }
}
