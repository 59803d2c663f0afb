//! Makes tasks: new ones, and clones of old ones.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde_json::{Value, json};

use crate::service::datasets;
use crate::service::tasks::Tasks;
use crate::service::tasks::outlook::Outlook;
use crate::service::tasks::supply::{open, refuse_empty};
use crate::service::{FieldFault, ServiceError};
use windrow_config::TaskDefaults;
use windrow_core::dataset::Publish;
use windrow_core::execution::shared_faults;
use windrow_core::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use windrow_core::settings::Auto;
use windrow_core::settings::check::TuningFault;
use windrow_core::settings::table::TuningPatch;
use windrow_core::shards::SHARDS_MAX;
use windrow_core::task::meaning::{Meaning, MeaningChange, changed};
use windrow_core::task::{Canary, Tuning};
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::sources::resolver::{ResolvedSource, SourceRequest};
use windrow_engine::ports::tasks::store::{FireKey, Making, NewTask, TaskView, Write};

/// A task that somebody asks for.
#[derive(Clone, Debug)]
pub struct TaskRequest {
    /// The business's slug.
    pub business: String,
    /// Where its items come from.
    pub source: SourceRequest,
    /// The rest.
    pub plan: TaskPlan,
}

/// What a request says of a task beside business and items; what is none is the default, or as the cloned task has it.
#[derive(Clone, Debug, Default)]
pub struct TaskPlan {
    /// The name.
    pub name: Option<String>,
    /// The labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Items left out at the head.
    pub skip_first: Option<ItemIndex>,
    /// The parameters as JSON text.
    pub params: Option<String>,
    /// Whether they go with each call.
    pub send_params: Option<bool>,
    /// The settings.
    pub tuning: TuningPatch,
    /// The named limits that its items count against, beside those of its business.
    pub limits: Option<Vec<String>>,
    /// Into how many parts it is cut, that different nodes can own.
    pub shards: Option<Auto<NonZeroU32>>,
    /// Higher goes first.
    pub priority: Option<i32>,
    /// Not before.
    pub start_at: Option<WallMs>,
    /// Not after.
    pub deadline: Option<WallMs>,
    /// The first items, run before any other.
    pub canary: Option<Canary>,
    /// Whether it starts at once.
    pub start: bool,
    /// Whether it is refused where it would only be warned of.
    pub strict: bool,
    /// A repeat with this key returns the first one's task.
    pub key: Option<String>,
    /// Whether a source without items is refused. Else the task of 0 items is made, and finishes at once.
    pub refuses_empty: bool,
    /// What becomes of its results when it is finished.
    pub publish: Option<Publish>,
    /// The fire of a schedule that makes it.
    pub fire: Option<FireKey>,
}

impl TaskPlan {
    /// The same with what another task has where it says nothing.
    pub(crate) fn inheriting(self, origin: &TaskView) -> TaskPlan {
        TaskPlan {
            labels: self.labels.or_else(|| Some(origin.labels.clone())),
            params: self.params.or_else(|| origin.params.clone()),
            limits: self.limits.or_else(|| Some(origin.limits.clone())),
            priority: self.priority.or(Some(origin.priority)),
            ..self
        }
    }
}

impl Tasks {
    /// Makes a task, and starts it if the plan says so.
    ///
    /// # Errors
    /// `Unprocessable` names what can't be; `BusinessRejected`, `NameTaken`, `KeyReused`.
    pub async fn create(&self, request: TaskRequest, write: &Write) -> Result<TaskView, ServiceError> {
        let business = self.businesses.open(&request.business).await?;
        self.check_plan(&request.plan)?;
        self.check_priority(request.plan.priority.unwrap_or_default(), write)?;
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
        let mut defaults = Defaults::of(&self.node.config().task_defaults, &tuning);
        if matches!(request.source, SourceRequest::Appended) {
            defaults.shards = Auto::Fixed(NonZeroU32::MIN);
        }
        let (starts, strict) = (request.plan.start, request.plan.strict);
        let is_open = matches!(request.source, SourceRequest::Appended);
        let how = Making {
            starts,
            beside: None,
            fire: request.plan.fire,
        };
        let mut task = new_task(&business, request.plan, tuning, source, defaults);
        if is_open {
            open(&mut task)?;
        }
        self.make(&business, task, how, strict, write).await
    }

    /// Whether a task could be made so, as far as that is known before its source is read.
    ///
    /// # Errors
    /// As [`Tasks::create`].
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
        self.check_plan(&request.plan)?;
        self.check_priority(request.plan.priority.unwrap_or_default(), write)?;
        self.limits.check(&request.plan, &business, write).await?;
        let mut tuning = self.settings(&business, &request.plan.tuning)?;
        let (publish, said) = (request.plan.publish.as_ref(), &request.plan.tuning);
        let by = (&business, write);
        datasets::check_plan(publish, (said, &mut tuning), by, &self.node.config())
    }

    /// Makes a task like another one: new keys, nothing done yet. The plan overrides what it names; its name is its own.
    ///
    /// # Errors
    /// As [`Tasks::create`]; `NotFound`.
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
            // What was appended to it is its own.
            total: origin.intake.map_or(origin.total, |_| ItemCount(0)),
            meaning: origin.meaning,
        };
        let plan = TaskPlan {
            skip_first: plan.skip_first.or(Some(origin.skip_first)),
            canary: plan.canary.or(origin.canary),
            publish,
            ..plan.inheriting(&origin)
        };
        let defaults = Defaults {
            send_params: origin.send_params,
            shards: origin.shards_wanted,
        };
        let mut task = new_task(&business, plan, tuning, source, defaults);
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

    /// The business and the settings of a task that is made from another one by a plan.
    pub(super) async fn checked(
        &self,
        plan: &TaskPlan,
        origin: &TaskView,
        write: &Write,
    ) -> Result<(Business, Tuning), ServiceError> {
        let business = self.businesses.open(&origin.business).await?;
        self.check_plan(plan)?;
        self.check_priority(plan.priority.unwrap_or(origin.priority), write)?;
        self.limits.check(plan, &business, write).await?;
        let tuning = plan.tuning.apply(&origin.tuning);
        self.check_settings(&tuning, &business)?;
        Ok((business, tuning))
    }

    pub(crate) fn check_plan(&self, plan: &TaskPlan) -> Result<(), ServiceError> {
        self.check_words(plan.name.as_ref(), plan.labels.as_ref(), plan.params.as_deref())?;
        check_shards(plan.shards)?;
        if let (Some(start), Some(end)) = (plan.start_at, plan.deadline)
            && end <= start
        {
            return Err(ServiceError::unprocessable(
                "/deadline",
                "must be later than `start_at`",
            ));
        }
        self.check_start(plan.start_at)?;
        self.check_deadline(plan.deadline)
    }

    pub(crate) async fn make(
        &self,
        business: &Business,
        mut task: NewTask,
        how: Making<'_>,
        strict: bool,
        write: &Write,
    ) -> Result<TaskView, ServiceError> {
        check_shared(&task.tuning, task.shards)?;
        if let Some(total) = self.validate(business, picture(&task)?).await? {
            resize(&mut task, total)?;
        }
        if task.skip_first.0 > task.total.0 {
            let text = format!("{} is more than the {} items", task.skip_first.0, task.total.0);
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

/// What a task has of which its plan says nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) send_params: bool,
    pub(crate) shards: Auto<NonZeroU32>,
}

impl Defaults {
    /// Those of the node. An ordered task has one shard, whatever others have.
    pub(crate) fn of(defaults: &TaskDefaults, tuning: &Tuning) -> Defaults {
        let shards = if tuning.ordered {
            Auto::Fixed(NonZeroU32::MIN)
        } else {
            defaults.shards
        };
        Defaults {
            send_params: defaults.send_params,
            shards,
        }
    }
}

/// Whether a task may have so many shards.
pub(crate) fn check_shards(shards: Option<Auto<NonZeroU32>>) -> Result<(), ServiceError> {
    match shards {
        Some(Auto::Fixed(shards)) if shards.get() > SHARDS_MAX => {
            let text = format!("{shards} are more than the {SHARDS_MAX} shards that a task may have");
            Err(ServiceError::unprocessable("/shards", text))
        }
        _ => Ok(()),
    }
}

/// Whether settings can be shared by as many shards as there are, or are asked for.
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
    defaults: Defaults,
) -> NewTask {
    NewTask {
        shards: plan.shards.unwrap_or(defaults.shards),
        business: business.slug.clone(),
        name: plan.name,
        total: source.total,
        skip_first: plan.skip_first.unwrap_or_default(),
        tuning,
        params: plan.params,
        source: source.json,
        meaning: source.meaning,
        idempotency_key: plan.key,
        labels: plan.labels.unwrap_or_default(),
        priority: plan.priority.unwrap_or_default(),
        send_params: plan.send_params.unwrap_or(defaults.send_params),
        limits: plan.limits.unwrap_or_default(),
        canary: plan.canary,
        start_at: plan.start_at,
        deadline: plan.deadline,
        parent: None,
        publish: plan.publish,
        is_open: false,
    }
}

/// The task as the `validate` hook is told.
fn picture(task: &NewTask) -> Result<Value, ServiceError> {
    Ok(json!({
        "id": Value::Null, "name": task.name, "total": task.total.0, "skip_first": task.skip_first.0,
        "labels": task.labels, "params": params(task.params.as_deref())?, "settings": settings(&task.tuning)?,
    }))
}

/// Parameters as JSON.
pub(crate) fn params(text: Option<&str>) -> Result<Value, ServiceError> {
    let value = text.map(serde_json::from_str::<Value>).transpose();
    value
        .map(Option::unwrap_or_default)
        .map_err(|error| ServiceError::Internal(error.to_string()))
}

/// Settings as they are written.
pub(crate) fn settings(tuning: &Tuning) -> Result<Value, ServiceError> {
    serde_json::to_value(tuning).map_err(|error| ServiceError::Internal(error.to_string()))
}

/// The business wants another number of items.
fn resize(task: &mut NewTask, total: ItemCount) -> Result<(), ServiceError> {
    let now = Meaning {
        total: task.total,
        skip_first: task.skip_first,
        source: task.source.clone(),
        shards: task.shards,
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
            "the business wants {} items, but {}",
            total.0,
            why.join("; ")
        ))
    })?;
    (task.total, task.source) = (next.total, next.source);
    Ok(())
}
