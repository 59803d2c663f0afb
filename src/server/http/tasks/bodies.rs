//! Conversion of request bodies for tasks.

use crate::http::datasets::PublishMembers;
use crate::http::tasks::source::read_source;
use crate::service::ServiceError;
use crate::service::tasks::change::TaskChange;
use crate::service::tasks::create::TaskPlan;
use windrow_core::ids::ItemCount;
use windrow_core::life::TaskEdit;
use windrow_engine::ports::sources::resolver::SourceRequest;

pub(crate) type CreateBody = api::Body<api::CreateTask>;
pub(crate) type CloneBody = api::Body<api::CloneTask>;
pub(crate) type EditBody = api::Body<api::EditTask>;

/// Takes the item source out of a body: a given source, or later appends.
pub(crate) fn take_source(body: &mut api::CreateTask) -> Result<SourceRequest, ServiceError> {
    match (body.source.take(), body.open.unwrap_or(false)) {
        (Some(source), false) => read_source(source),
        (None, true) => Ok(SourceRequest::Appended),
        (Some(_), true) => Err(ServiceError::invalid(
            "/source",
            "an open task has no source: its items are appended",
        )),
        (None, false) => Err(ServiceError::invalid(
            "/source",
            "set a source, or `open` to append items later",
        )),
    }
}

/// Builds the plan of a new task. The source is read separately.
pub(super) fn plan(body: &CreateBody, key: Option<String>) -> Result<TaskPlan, ServiceError> {
    let publish = PublishMembers {
        publish: body.publish.as_ref(),
        publish_if: body.publish_if.as_ref(),
        publish_key: body.publish_key.as_ref(),
        reduce: body.reduce.as_ref(),
    };
    Ok(TaskPlan {
        publish: publish.read()?,
        start: body.start.unwrap_or(false),
        refuses_empty: body.if_empty == Some(api::IfEmpty::Error),
        spec: body.spec.clone(),
        tuning: body.tuning.clone(),
        key,
        ..TaskPlan::default()
    })
}

/// Builds the plan of a clone.
pub(super) fn clone_plan(body: &CloneBody, key: Option<String>) -> Result<TaskPlan, ServiceError> {
    let publish = PublishMembers {
        publish: body.publish.as_ref(),
        publish_if: body.publish_if.as_ref(),
        publish_key: body.publish_key.as_ref(),
        reduce: body.reduce.as_ref(),
    };
    Ok(TaskPlan {
        publish: publish.read()?,
        start: body.start.unwrap_or(false),
        spec: body.spec.clone(),
        tuning: body.tuning.clone(),
        key,
        ..TaskPlan::default()
    })
}

/// Splits a change request into the change and its reason.
pub(super) fn change_of(body: EditBody) -> Result<(TaskChange, Option<String>), ServiceError> {
    let api::Body { own, spec, tuning } = body;
    let edit = TaskEdit {
        spec,
        total: own.total.map(ItemCount),
        ..TaskEdit::default()
    };
    let change = TaskChange {
        edit,
        tuning,
        source: own.source.map(read_source).transpose()?,
        strict: false,
    };
    Ok((change, own.reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::task::spec::TaskSpec;

    #[test]
    fn a_create_reads_settings_and_keeps_parameters_as_they_were_written() {
        let text = r#"{"business":"push","source":{"type":"range","total":3},"rate":"500/s","concurrency":256,
"retry":{"max_attempts":5,"backoff":"1s..60s"},"params":{"b":1,"a":12345678901234567890123},
"canary":{"items":100,"then":"continue"},"start_at":"2026-11-20T18:02:11.5+01:00"}"#;
        let body: CreateBody = serde_json::from_str(text).expect("a sound body");
        let plan = plan(&body, None).expect("a sound plan");
        let spec = plan.spec.apply(&TaskSpec::default());
        assert_eq!(
            spec.params.as_deref(),
            Some(r#"{"b":1,"a":12345678901234567890123}"#)
        );
        assert_eq!(spec.start_at, Some(windrow_core::ids::WallMs(1_795_194_131_500)));
        assert_eq!(plan.tuning.max_attempts.map(std::num::NonZeroU32::get), Some(5));
        assert_eq!(spec.canary.map(|canary| canary.items.get()), Some(100));
        assert!(!plan.start && spec.name.is_none());
        for wrong in [
            r#"{"business":"push","source":{"type":"range","total":3},"recover":{}}"#,
            "{}",
        ] {
            assert!(serde_json::from_str::<CreateBody>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn null_takes_away_and_silence_leaves() {
        let change = |text| {
            let body = serde_json::from_str::<EditBody>(text).expect("sound");
            change_of(body).expect("sound").0.edit.spec
        };
        let silent = change("{}");
        assert_eq!((silent.name, silent.deadline), (None, None));
        let taken = change(r#"{"name":null,"deadline":null}"#);
        assert_eq!((taken.name, taken.deadline), (Some(None), Some(None)));
    }
}
