//! What the tasks of a schedule are made from: the body of a create, without what a fire says itself. Kept as it was sent,
//! and read again with each fire, its placeholders filled in.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::document::schema::NumberOrAuto;
use crate::http::tasks::bodies::CanaryBody;
use crate::http::tasks::settings::WithSettings;
use crate::http::tasks::source::SourceBody;
use crate::service::schedules::TEMPLATE_BYTES_MAX;
use crate::service::tasks::create::{TaskPlan, TaskRequest};
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::{ItemIndex, WallMs};
use windrow_core::schedule::placeholders::{FireTimes, filled};
use windrow_core::settings::Auto;
use windrow_core::settings::text::parse_span;
use windrow_engine::ports::sources::resolver::SourceRequest;

/// The task of each fire. Its texts may have `{fire_time}` and `{previous_fire_time}` in them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ScheduledTask)]
pub(crate) struct TemplateMembers {
    /// Where its items come from; an address is fetched anew with each fire. (No upload: a task takes it.)
    #[serde(deserialize_with = "windrow_core::settings::json::object")]
    source: SourceBody,
    /// Its name, unique within the business, so with a placeholder: `board-{fire_time:time}`.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^\s/]+$")]
    name: Option<String>,
    /// Labels, to find it by.
    #[serde(default, deserialize_with = "windrow_core::settings::json::few_texts")]
    labels: Option<BTreeMap<String, String>>,
    /// Items left out at the head.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    skip_first: Option<u64>,
    /// What the handler is given, any JSON.
    #[schema(value_type = Option<serde_json::Value>)]
    params: Option<Box<RawValue>>,
    /// Whether it goes with each call.
    send_params: Option<bool>,
    /// Named limits that its items count against, beside those of its business.
    #[schema(max_items = 4)]
    limits: Option<Vec<String>>,
    /// Parts that different nodes can own: a number, or `auto`.
    #[schema(value_type = Option<NumberOrAuto>)]
    shards: Option<Auto<NonZeroU32>>,
    /// Higher goes first.
    priority: Option<i32>,
    /// Stopped so long after it was made: `25m`.
    #[schema(max_length = 80)]
    deadline_after: Option<String>,
    /// The first items, run before any other.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    canary: Option<CanaryBody>,
}

/// The same, and settings.
pub(crate) type Template = WithSettings<TemplateMembers>;

/// What a template is filled in with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling<'a> {
    /// The business's slug.
    pub(crate) business: &'a str,
    /// Whether only as the business itself may.
    pub(crate) is_guarded: bool,
    /// The times of the fire.
    pub(crate) times: FireTimes<'a>,
    /// When the task is made.
    pub(crate) now: WallMs,
}

/// The request for a task that a template is with a fire.
///
/// # Errors
/// `Invalid` or `Unprocessable` with what is wrong.
pub(crate) fn request(template: &str, filling: &Filling<'_>) -> Result<TaskRequest, ServiceError> {
    if template.len() > TEMPLATE_BYTES_MAX {
        let text = format!("the description of its tasks has more than {TEMPLATE_BYTES_MAX} bytes");
        return Err(FieldFault::new("/task", text)
            .advise("items in a file at a URL")
            .into());
    }
    let text = filled(template, &filling.times)
        .map_err(|error| ServiceError::unprocessable("/task", error.to_string()))?;
    let mut reader = serde_json::Deserializer::from_str(&text);
    let read: Result<Template, _> = serde_path_to_error::deserialize(&mut reader);
    let read = read.map_err(|error| {
        let pointer = format!("/task{}", crate::http::guard::body::pointer(error.path()));
        ServiceError::Invalid(vec![FieldFault::new(pointer, error.into_inner().to_string())])
    })?;
    plan(read, filling)
}

fn plan(template: Template, filling: &Filling<'_>) -> Result<TaskRequest, ServiceError> {
    let WithSettings { own, tuning } = template;
    let deadline = own.deadline_after.as_deref().map(span).transpose()?;
    let mut source = own.source.read()?;
    if let SourceRequest::Url { is_guarded, .. } = &mut source {
        *is_guarded = filling.is_guarded;
    }
    if matches!(source, SourceRequest::Upload { .. }) {
        let text = "a task takes an upload for itself, and each fire makes a task";
        let fault = FieldFault::new("/task/source/type", text);
        return Err(fault
            .advise("a file at a URL, which is fetched with each fire; or range, inline")
            .into());
    }
    let plan = TaskPlan {
        name: own.name,
        labels: own.labels,
        skip_first: own.skip_first.map(ItemIndex),
        params: own.params.map(|params| params.get().to_owned()),
        send_params: own.send_params,
        tuning,
        limits: own.limits,
        shards: own.shards,
        priority: own.priority,
        start_at: None,
        deadline: deadline.map(|after| filling.now.plus(after)),
        canary: own.canary.map(CanaryBody::read).transpose()?,
        start: true,
        strict: false,
        key: None,
        fire: None,
    };
    Ok(TaskRequest {
        business: filling.business.to_owned(),
        source,
        plan,
    })
}

fn span(text: &str) -> Result<Duration, ServiceError> {
    parse_span(text).map_err(|error| ServiceError::invalid("/task/deadline_after", error.to_string()))
}

/// A name that is the same with each fire is taken by the first task.
///
/// # Errors
/// `Unprocessable` where it has no placeholder.
pub(crate) fn refuse_same_name(first: &TaskRequest, second: &TaskRequest) -> Result<(), ServiceError> {
    match &first.plan.name {
        Some(name) if second.plan.name.as_ref() == Some(name) => {
            let text = format!("every fire's task would be called {name}, and only one may");
            let fault = FieldFault::new("/task/name", text);
            Err(fault
                .advise(format!("{name}-{{fire_time:time}}, or leave it out"))
                .into())
        }
        _ => Ok(()),
    }
}
