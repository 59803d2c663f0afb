//! Task template of a schedule: the body of a create request, without the members that a fire sets. Stored as
//! submitted; parsed with its placeholders filled in at each fire.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};

use crate::http::datasets::PublishMembers;
use crate::http::tasks::source::read_source;
use crate::service::schedules::{TEMPLATE_BYTES_MAX, names};
use crate::service::tasks::create::{TaskPlan, TaskRequest};
use crate::service::tasks::merge_patch;
use crate::service::tasks::settings::check_depth;
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::WallMs;
use windrow_core::schedule::placeholders::{FireTimes, filled};
use windrow_core::settings::text::parse_span;
use windrow_engine::ports::sources::resolver::SourceRequest;

pub(crate) use api::Template;

/// Values for filling in a template.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling<'a> {
    /// Slug of the business, which owns the schedule.
    pub(crate) business: &'a str,
    /// True if the task has only the rights of the business itself.
    pub(crate) is_guarded: bool,
    /// Times of the fire, for the placeholders.
    pub(crate) times: FireTimes<'a>,
    /// Creation time of the task.
    pub(crate) now: WallMs,
}

/// Builds the task request of a fire from a template.
///
/// # Errors
/// `Invalid` or `Unprocessable` with the errors in the template.
pub(crate) fn request(template: &str, filling: &Filling<'_>) -> Result<TaskRequest, ServiceError> {
    if template.len() > TEMPLATE_BYTES_MAX {
        let text = format!("the task template has more than {TEMPLATE_BYTES_MAX} bytes");
        return Err(FieldFault::new("/task", text)
            .advise("put the items in a file at a URL")
            .into());
    }
    let text = filled(template, &filling.times).map_err(|wrong| names::fault("/task", &wrong))?;
    let mut reader = serde_json::Deserializer::from_str(&text);
    let read: Result<Template, _> = serde_path_to_error::deserialize(&mut reader);
    let read = read.map_err(|error| {
        let pointer = format!("/task{}", crate::http::guard::body::pointer(error.path()));
        ServiceError::Invalid(vec![FieldFault::new(pointer, error.into_inner().to_string())])
    })?;
    plan(read, filling)
}

fn plan(template: Template, filling: &Filling<'_>) -> Result<TaskRequest, ServiceError> {
    let api::Body {
        own,
        mut spec,
        tuning,
    } = template;
    let deadline = own.deadline_after.as_deref().map(span).transpose()?;
    let mut source = read_source(own.source)?;
    if let SourceRequest::Url { is_guarded, .. } = &mut source {
        *is_guarded = filling.is_guarded;
    }
    if matches!(source, SourceRequest::Upload { .. }) {
        let text = "an upload can be used by one task, and each fire creates a task";
        let fault = FieldFault::new("/task/source/type", text);
        return Err(fault
            .advise("a file at a URL, fetched for each fire; or range, or inline")
            .into());
    }
    let publish = PublishMembers {
        publish: own.publish.as_ref(),
        publish_if: own.publish_if.as_ref(),
        publish_key: own.publish_key.as_ref(),
        reduce: own.reduce.as_ref(),
    }
    .read()?;
    spec.deadline = deadline.map(|after| Some(filling.now.plus(after)));
    let plan = TaskPlan {
        spec,
        tuning,
        start: true,
        refuses_empty: own.if_empty == Some(api::IfEmpty::Error),
        publish,
        ..TaskPlan::default()
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

/// Merges a patch into a task template (RFC 7396). A `source` in the patch replaces the old one entirely, since
/// members of one source mean nothing to another. Unnamed members keep their text. Also returns true if the patch
/// sets the source.
///
/// # Errors
/// `Invalid` or `Unprocessable` if the patch isn't an object that can be merged.
pub(crate) fn patched(before: &str, patch: &RawValue) -> Result<(String, bool), ServiceError> {
    check_depth("/task", patch.get())?;
    let read = |text: &str| serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(text);
    let wrong = |error: serde_json::Error| ServiceError::invalid("/task", error.to_string());
    let mut before = read(before).map_err(wrong)?;
    let is_source_new = read(patch.get()).map_err(wrong)?.contains_key("source");
    if is_source_new {
        before.remove("source");
    }
    let before = to_raw_value(&before).map_err(wrong)?;
    let merged = merge_patch::apply_raw(Some(&before), patch).map_err(wrong)?;
    Ok((merged.get().to_owned(), is_source_new))
}

/// Rejects a task name that is the same for each fire, because the first task would take it.
///
/// # Errors
/// `Unprocessable` if the name has no placeholder.
pub(crate) fn refuse_same_name(first: &TaskRequest, second: &TaskRequest) -> Result<(), ServiceError> {
    match &first.plan.spec.name {
        Some(Some(name)) if second.plan.spec.name.as_ref() == Some(&Some(name.clone())) => {
            let text = format!("every fire's task would be named {name}, and names are unique");
            let fault = FieldFault::new("/task/name", text);
            Err(fault
                .advise(format!("{name}-{{fire_time:time}}, or no name"))
                .into())
        }
        _ => Ok(()),
    }
}
