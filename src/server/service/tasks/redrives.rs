//! Redrives: a new task over failures of another. Nothing is copied, so a redrive of a million failures is made as
//! quickly as one of ten, and while the other task runs. Only where redrives of the task went before, each item is looked
//! at: what one of them recovered, or has under way, isn't done again.

use crate::service::ServiceError;
use crate::service::tasks::Tasks;
use crate::service::tasks::create::{TaskPlan, new_task};
use windrow_core::task::spec::{self, TaskSpec};
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec, SourceRequest};
use windrow_engine::ports::tasks::store::{Making, TaskView, Write};

/// How often a selection is made anew because another redrive was made meanwhile.
const TRIES_MAX: u32 = 20;

/// What a redrive shall be.
#[derive(Clone, Debug, Default)]
pub struct RedriveRequest {
    /// Failures of these groups; empty is all.
    pub codes: Vec<String>,
    /// Only these items, written `5,9-20`.
    pub indexes: Option<String>,
    /// Only those of them that are unconfirmed.
    pub unconfirmed: bool,
    /// Whether the items get keys of the new task, so that the business takes them for new ones.
    pub new_keys: bool,
    /// Whether it also takes what earlier redrives recovered or have under way.
    pub again: bool,
    /// What the new task has that the other doesn't.
    pub plan: TaskPlan,
}

impl Tasks {
    /// Makes a task over failures of another one, and starts it if wanted.
    ///
    /// # Errors
    /// `Unprocessable` when nothing is selected, a code is unknown, or the settings contradict one another; and as
    /// [`Tasks::create`].
    pub async fn redrive(
        &self,
        origin: &TaskView,
        request: RedriveRequest,
        write: &Write,
    ) -> Result<TaskView, ServiceError> {
        // Two at once would each take what the other is about to. On this node they follow one another; of two nodes the
        // store lets one make it, and the other looks again.
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
        let (business, tuning) = self.checked(&request.plan, origin, write).await?;
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
        };
        let source = self
            .sources
            .resolve(&SourceRequest::Redrive(spec), &origin.business, write)
            .await?;
        let (starts, strict) = (request.plan.start, request.plan.strict);
        let plan = TaskPlan {
            spec: request.plan.spec.inherit(&origin.spec, spec::Request::Redrive),
            ..request.plan
        };
        let mut task = new_task(&business, plan, tuning, source, TaskSpec::default());
        task.parent = Some(origin.id);
        let how = Making {
            fire: None,
            starts,
            beside: beside.as_ref(),
        };
        self.make(&business, task, how, strict, write).await
    }

    /// The failures that are asked for, whatever became of them since.
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
