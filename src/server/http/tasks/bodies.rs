//! What is sent.

use serde_json::value::RawValue;

use crate::http::datasets::PublishMembers;
use crate::http::guard::time_option;
use crate::http::tasks::source::read_source;
use crate::service::ServiceError;
use crate::service::tasks::change::TaskChange;
use crate::service::tasks::create::TaskPlan;
use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_core::life::TaskEdit;
use windrow_core::task::Canary;
use windrow_engine::ports::sources::resolver::SourceRequest;

pub(crate) fn read_canary(body: api::NewCanary) -> Result<Canary, ServiceError> {
    use windrow_core::task::CanaryThen;
    let items = std::num::NonZeroU64::new(body.items);
    let then = match body.then {
        Some(api::CanaryThen::Continue) => CanaryThen::Continue,
        Some(api::CanaryThen::Stop) | None => CanaryThen::Stop,
    };
    let none = || ServiceError::invalid("/canary/items", "a canary has at least one item");
    Ok(Canary {
        items: items.ok_or_else(none)?,
        then,
    })
}

/// The same, and settings.
pub(crate) type CreateBody = api::WithSettings<api::CreateTask>;

/// The same, and settings.
pub(crate) type CloneBody = api::WithSettings<api::CloneTask>;

/// The same, and settings.
pub(crate) type EditBody = api::WithSettings<api::EditTask>;

/// Where its items come from: a source, or what is appended.
pub(crate) fn take_source(body: &mut api::CreateTask) -> Result<SourceRequest, ServiceError> {
    match (body.source.take(), body.open.unwrap_or(false)) {
        (Some(source), false) => read_source(source),
        (None, true) => Ok(SourceRequest::Appended),
        (Some(_), true) => Err(ServiceError::invalid(
            "/source",
            "an open task has none: its items are appended",
        )),
        (None, false) => Err(ServiceError::invalid(
            "/source",
            "say where its items come from, or `open`: they are appended later",
        )),
    }
}

fn raw(value: Option<&RawValue>) -> Option<String> {
    value.map(|value| value.get().to_owned())
}

/// The plan; the source is read apart.
pub(super) fn plan(body: &CreateBody, key: Option<String>) -> Result<TaskPlan, ServiceError> {
    Ok(TaskPlan {
        name: body.name.clone(),
        labels: body.labels.clone(),
        skip_first: body.skip_first.map(ItemIndex),
        params: raw(body.params.as_deref()),
        send_params: body.send_params,
        limits: body.limits.clone(),
        tuning: body.tuning.clone(),
        shards: body.shards,
        priority: body.priority,
        start_at: time_option("/start_at", body.start_at.as_ref())?,
        deadline: time_option("/deadline", body.deadline.as_ref())?,
        canary: body.canary.map(read_canary).transpose()?,
        start: body.start.unwrap_or(false),
        strict: false,
        key,
        refuses_empty: body.if_empty == Some(api::IfEmpty::Error),
        publish: PublishMembers {
            publish: body.publish.as_ref(),
            publish_if: body.publish_if.as_ref(),
            publish_key: body.publish_key.as_ref(),
            reduce: body.reduce.as_ref(),
        }
        .read()?,
        fire: None,
    })
}

/// The plan.
pub(super) fn clone_plan(body: &CloneBody, key: Option<String>) -> Result<TaskPlan, ServiceError> {
    Ok(TaskPlan {
        name: body.name.clone(),
        labels: body.labels.clone(),
        skip_first: body.skip_first.map(ItemIndex),
        params: raw(body.params.as_deref()),
        send_params: body.send_params,
        limits: body.limits.clone(),
        tuning: body.tuning.clone(),
        shards: body.shards,
        priority: body.priority,
        start_at: time_option("/start_at", body.start_at.as_ref())?,
        deadline: time_option("/deadline", body.deadline.as_ref())?,
        canary: body.canary.map(read_canary).transpose()?,
        start: body.start.unwrap_or(false),
        strict: false,
        key,
        refuses_empty: false,
        publish: PublishMembers {
            publish: body.publish.as_ref(),
            publish_if: body.publish_if.as_ref(),
            publish_key: body.publish_key.as_ref(),
            reduce: body.reduce.as_ref(),
        }
        .read()?,
        fire: None,
    })
}

/// The change, and why.
pub(super) fn change_of(body: EditBody) -> Result<(TaskChange, Option<String>), ServiceError> {
    let api::WithSettings { own, tuning } = body;
    let deadline = match &own.deadline {
        None => None,
        Some(text) => Some(time_option("/deadline", text.as_ref())?),
    };
    let edit = TaskEdit {
        name: own.name.map(Option::unwrap_or_default),
        labels: own.labels,
        priority: own.priority,
        deadline,
        params: raw(own.params.as_deref()),
        total: own.total.map(ItemCount),
        skip_first: own.skip_first.map(ItemIndex),
        shards: own.shards,
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

    #[test]
    fn a_create_reads_settings_and_keeps_parameters_as_they_were_written() {
        let text = r#"{"business":"push","source":{"type":"range","total":3},"rate":"500/s","concurrency":256,
"retry":{"max_attempts":5,"backoff":"1s..60s"},"params":{"b":1,"a":12345678901234567890123},
"canary":{"items":100,"then":"continue"},"start_at":"2026-11-20T18:02:11.5+01:00"}"#;
        let body: CreateBody = serde_json::from_str(text).expect("a sound body");
        let plan = plan(&body, None).expect("a sound plan");
        assert_eq!(
            plan.params.as_deref(),
            Some(r#"{"b":1,"a":12345678901234567890123}"#)
        );
        assert_eq!(plan.start_at, Some(windrow_core::ids::WallMs(1_795_194_131_500)));
        assert_eq!(plan.tuning.max_attempts.map(std::num::NonZeroU32::get), Some(5));
        assert_eq!(plan.canary.map(|canary| canary.items.get()), Some(100));
        assert!(!plan.start && plan.name.is_none());
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
            change_of(body).expect("sound").0.edit
        };
        let silent = change("{}");
        assert_eq!((silent.name, silent.deadline), (None, None));
        let taken = change(r#"{"name":null,"deadline":null}"#);
        assert_eq!((taken.name.as_deref(), taken.deadline), (Some(""), Some(None)));
    }
}
