//! Creating and cloning tasks.

use std::num::NonZeroU32;

use serde_json::{Value, json};

use crate::service::datasets;
use crate::service::tasks::Tasks;
use crate::service::tasks::metered::settle;
use crate::service::tasks::outlook::Outlook;
use crate::service::tasks::supply::{open, refuse_empty};
use crate::service::{FieldFault, ServiceError};
use windrow_config::TaskDefaults;
use windrow_core::dataset::Publish;
use windrow_core::execution::shared_faults;
use windrow_core::ids::{ItemCount, TaskId};
use windrow_core::settings::Auto;
use windrow_core::settings::check::TuningFault;
use windrow_core::settings::table::TuningPatch;
use windrow_core::task::Tuning;
use windrow_core::task::meaning::{Meaning, MeaningChange, changed};
use windrow_core::task::spec::{self, JsonText, Shards, SpecPatch, TaskSpec};
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::sources::resolver::{ResolvedSource, SourceRequest};
use windrow_engine::ports::tasks::store::{FireKey, Making, NewTask, TaskView, Write};

/// Request to create a task.
#[derive(Clone, Debug)]
pub struct TaskRequest {
    /// Slug of the business.
    pub business: String,
    /// Source of the items.
    pub source: SourceRequest,
    /// All other members of the request.
    pub plan: TaskPlan,
}

/// Members of a request besides business and items; `None` means the default or, for a clone, the original's value.
#[derive(Clone, Debug, Default)]
pub struct TaskPlan {
    /// Attributes to set, such as name and labels.
    pub spec: SpecPatch,
    /// Settings to change from the defaults.
    pub tuning: TuningPatch,
    /// True if the task starts immediately.
    pub start: bool,
    /// True if warnings are treated as errors.
    pub strict: bool,
    /// Idempotency key: a repeated request returns the first one's task.
    pub key: Option<String>,
    /// True if a source without items is rejected. Otherwise a task with 0 items is created and finishes immediately.
    pub refuses_empty: bool,
    /// Publication of its results when it finishes.
    pub publish: Option<Publish>,
    /// Fire of a schedule that creates the task.
    pub fire: Option<FireKey>,
}

impl TaskPlan {
    /// Returns true if the request limits or counts what calls use.
    pub(super) fn is_metered(&self) -> bool {
        self.spec
            .metering
            .as_ref()
            .is_some_and(|metering| !metering.is_empty())
    }
}

impl Tasks {
    /// Creates a task and starts it if the plan says so.
    ///
    /// # Errors
    /// `Unprocessable` names the invalid members; `BusinessRejected`, `NameTaken`, `KeyReused`.
    pub async fn create(&self, request: TaskRequest, write: &Write) -> Result<TaskView, ServiceError> {
        let business = self.businesses.open(&request.business).await?;
        self.check_plan(&request.plan, &TaskSpec::default(), write)?;
        self.limits.check(&request.plan, &business, write).await?;
        let mut tuning = self.settings(&business, &request.plan.tuning)?;
        let (publish, said) = (request.plan.publish.as_ref(), &request.plan.tuning);
        let by = (&business, write);
        datasets::check_plan(publish, (said, &mut tuning), by, &self.node.config())?;
        self.check_fill(&business, &request.source).await?;
        let source = self
            .sources
            .resolve(&request.source, &request.business, write)
            .await?;
        refuse_empty(source.total, &request.plan)?;
        let (starts, strict) = (request.plan.start, request.plan.strict);
        let is_open = matches!(request.source, SourceRequest::Appended);
        let is_whole = tuning.ordered || is_open || request.plan.is_metered();
        let defaults = defaults(&self.node.config().task_defaults, is_whole);
        let how = Making {
            starts,
            fire: request.plan.fire,
            ..Making::default()
        };
        let mut task = new_task(&business, request.plan, tuning, source, defaults);
        if is_open {
            open(&mut task)?;
        }
        self.make(&business, task, how, strict, write).await
    }

    /// Checks a request to create a task, as far as possible without reading its source.
    ///
    /// # Errors
    /// Same as [`Tasks::create`].
    pub(crate) async fn check_request(
        &self,
        request: TaskRequest,
        write: &Write,
    ) -> Result<(), ServiceError> {
        let is_fetched = matches!(request.source, SourceRequest::Url { .. });
        if !is_fetched {
            let tried = Write {
                dry_run: true,
                ..write.clone()
            };
            return self.create(request, &tried).await.map(drop);
        }
        let business = self.businesses.open(&request.business).await?;
        self.check_plan(&request.plan, &TaskSpec::default(), write)?;
        self.limits.check(&request.plan, &business, write).await?;
        let mut tuning = self.settings(&business, &request.plan.tuning)?;
        let (publish, said) = (request.plan.publish.as_ref(), &request.plan.tuning);
        let by = (&business, write);
        datasets::check_plan(publish, (said, &mut tuning), by, &self.node.config())
    }

    /// Clones a task, with new keys and no progress. Members in the plan override those of the original; the name is
    /// not copied.
    ///
    /// # Errors
    /// Same as [`Tasks::create`]; `NotFound`.
    pub async fn clone_task(
        &self,
        id: TaskId,
        plan: TaskPlan,
        write: &Write,
    ) -> Result<TaskView, ServiceError> {
        let origin = self.get(id).await?;
        let (business, mut tuning) = self.checked(&plan, &origin, write).await?;
        let (starts, strict) = (plan.start, plan.strict);
        let published = || origin.publishing.as_ref().map(|it| it.publish.clone());
        let publish = plan.publish.clone().or_else(published);
        let said = (&plan.tuning, &mut tuning);
        datasets::check_plan(publish.as_ref(), said, (&business, write), &self.node.config())?;
        let source = ResolvedSource {
            json: origin.source.clone(),
            // Items appended to the original aren't copied.
            total: origin.intake.map_or(origin.total, |_| ItemCount(0)),
            meaning: origin.meaning,
        };
        let plan = TaskPlan {
            spec: plan.spec.inherit(&origin.spec, spec::Request::Clone),
            publish,
            ..plan
        };
        let mut task = new_task(&business, plan, tuning, source, TaskSpec::default());
        task.parent = origin.parent;
        if origin.intake.is_some() {
            open(&mut task)?;
        }
        let how = Making {
            starts,
            ..Making::default()
        };
        self.make(&business, task, how, strict, write).await
    }

    /// Returns the business and settings of a task that is derived from another one.
    pub(super) async fn checked(
        &self,
        plan: &TaskPlan,
        origin: &TaskView,
        write: &Write,
    ) -> Result<(Business, Tuning), ServiceError> {
        let business = self.businesses.open(&origin.business).await?;
        self.check_plan(plan, &origin.spec, write)?;
        self.limits.check(plan, &business, write).await?;
        let tuning = self.checked_settings(plan.tuning.apply(&origin.tuning), &business)?;
        Ok((business, tuning))
    }

    /// Rejects invalid attributes, or attributes that the caller may not set; `origin` provides the values that the
    /// plan doesn't set.
    pub(crate) fn check_plan(
        &self,
        plan: &TaskPlan,
        origin: &TaskSpec,
        write: &Write,
    ) -> Result<(), ServiceError> {
        let spec = &plan.spec;
        self.check_spec(spec)?;
        let times = spec.start_at.flatten().zip(spec.deadline.flatten());
        if times.is_some_and(|(start, end)| end <= start) {
            return Err(ServiceError::unprocessable(
                "/deadline",
                "must be later than `start_at`",
            ));
        }
        self.check_start(spec.start_at.flatten())?;
        self.check_deadline(spec.deadline.flatten())?;
        self.check_line(&spec.clone().apply(origin), None, write)
    }

    pub(crate) async fn make(
        &self,
        business: &Business,
        mut task: NewTask,
        how: Making<'_>,
        strict: bool,
        write: &Write,
    ) -> Result<TaskView, ServiceError> {
        settle(&mut task, business)?;
        check_shared(&task.tuning, task.spec.shards.0)?;
        if let Some(total) = self.validate(business, picture(&task)?).await? {
            resize(&mut task, total)?;
        }
        if task.spec.skip_first.0 > task.total.0 {
            let text = format!(
                "{} is more than the {} items",
                task.spec.skip_first.0, task.total.0
            );
            return Err(ServiceError::unprocessable("/skip_first", text));
        }
        if strict {
            self.refuse_foreseen(&Outlook::of_new(&task, how.starts), business)
                .await?;
        }
        let made = self.store.make(&task, how, write, self.node.now()).await?;
        if how.starts && !write.dry_run {
            self.node.look_at(made.id);
        }
        Ok(made)
    }
}

/// Returns the default attributes of a new task: those of the node, but only one shard if it can't be divided.
pub(crate) fn defaults(of_node: &TaskDefaults, is_whole: bool) -> TaskSpec {
    let shards = if is_whole {
        Shards::default()
    } else {
        Shards(of_node.shards)
    };
    TaskSpec {
        send_params: of_node.send_params,
        shards,
        ..TaskSpec::default()
    }
}

/// Checks that settings can be divided among a fixed number of shards.
pub(crate) fn check_shared(tuning: &Tuning, shards: Auto<NonZeroU32>) -> Result<(), ServiceError> {
    let Auto::Fixed(shards) = shards else {
        return Ok(());
    };
    let faults = shared_faults(tuning, shards.get());
    let said =
        |fault: TuningFault| FieldFault::new(format!("/{}", fault.key), fault.what).advise(fault.advice);
    if faults.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Unprocessable(
            faults.into_iter().map(said).collect(),
        ))
    }
}

pub(crate) fn new_task(
    business: &Business,
    plan: TaskPlan,
    tuning: Tuning,
    source: ResolvedSource,
    defaults: TaskSpec,
) -> NewTask {
    NewTask {
        business: business.slug.clone(),
        spec: plan.spec.apply(&defaults),
        total: source.total,
        tuning,
        source: source.json,
        meaning: source.meaning,
        idempotency_key: plan.key,
        parent: None,
        publish: plan.publish,
        is_open: false,
    }
}

/// Builds the new task as sent to the `validate` hook.
fn picture(task: &NewTask) -> Result<Value, ServiceError> {
    Ok(json!({
        "id": Value::Null, "name": task.spec.name, "total": task.total, "skip_first": task.spec.skip_first,
        "labels": task.spec.labels, "params": task.spec.params.as_ref().map(JsonText::value), "settings": settings(&task.tuning)?,
    }))
}

/// Converts settings to JSON.
pub(crate) fn settings(tuning: &Tuning) -> Result<Value, ServiceError> {
    serde_json::to_value(tuning).map_err(|error| ServiceError::Internal(error.to_string()))
}

/// Sets the number of items requested by the business.
fn resize(task: &mut NewTask, total: ItemCount) -> Result<(), ServiceError> {
    let now = Meaning {
        total: task.total,
        skip_first: task.spec.skip_first,
        source: task.source.clone(),
        shards: task.spec.shards.0,
        has_run: false,
        is_cut: false,
    };
    let change = MeaningChange {
        total: Some(total),
        ..MeaningChange::default()
    };
    let next = changed(&now, &change).map_err(|refusals| {
        let why: Vec<String> = refusals.into_iter().map(|refusal| refusal.why).collect();
        ServiceError::BusinessRejected(format!(
            "the business requires {} items, but {}",
            total.0,
            why.join("; ")
        ))
    })?;
    (task.total, task.source) = (next.total, next.source);
    Ok(())
}
