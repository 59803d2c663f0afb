//! What is sent.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::settings::WithSettings;
use super::source::SourceBody;
use crate::http::datasets::PublishMembers;
use crate::http::document::schema::NumberOrAuto;
use crate::http::guard::{reason, some, time_option};
use crate::service::ServiceError;
use crate::service::tasks::change::TaskChange;
use crate::service::tasks::create::TaskPlan;
use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_core::life::TaskEdit;
use windrow_core::settings::Auto;
use windrow_core::task::Canary;
use windrow_engine::ports::sources::resolver::SourceRequest;

/// The first items, run and settled before any other leaves.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CanaryBody {
    /// How many.
    #[schema(minimum = 1, maximum = 9223372036854775807_u64)]
    pub(super) items: u64,
    /// `stop` (and wait for a start), or `continue` by itself if none was abandoned.
    then: Option<CanaryThenBody>,
}

/// What follows a canary.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CanaryThenBody {
    /// Stop.
    Stop,
    /// Go on.
    Continue,
}

impl CanaryBody {
    pub(in crate::http) fn read(self) -> Result<Canary, ServiceError> {
        use windrow_core::task::CanaryThen;
        let items = std::num::NonZeroU64::new(self.items);
        let then = match self.then {
            Some(CanaryThenBody::Continue) => CanaryThen::Continue,
            Some(CanaryThenBody::Stop) | None => CanaryThen::Stop,
        };
        let none = || ServiceError::invalid("/canary/items", "a canary has at least one item");
        Ok(Canary {
            items: items.ok_or_else(none)?,
            then,
        })
    }
}

/// What a source without items is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IfEmpty {
    /// Nothing to do.
    Ok,
    /// Refused.
    Error,
}

/// A task to be made. `business` is needed, and `source` or `open`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateBody)]
pub(crate) struct CreateMembers {
    /// The business.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub(super) business: String,
    /// Where its items come from.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub(super) source: Option<SourceBody>,
    /// In place of a source: its items are appended while it runs, until it is sealed. It has one shard.
    pub(super) open: Option<bool>,
    /// Its name, unique within the business.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^\s/]+$")]
    pub(super) name: Option<String>,
    /// Labels, to find it by.
    #[serde(default, deserialize_with = "windrow_core::settings::json::few_texts")]
    pub(super) labels: Option<BTreeMap<String, String>>,
    /// Items left out at the head.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub(super) skip_first: Option<u64>,
    /// What the handler is given, any JSON.
    #[schema(value_type = Option<serde_json::Value>)]
    pub(super) params: Option<Box<RawValue>>,
    /// Whether it goes with each call.
    pub(super) send_params: Option<bool>,
    /// Named limits that its items count against, beside those of its business; they stay as long as the task does.
    #[schema(max_items = 4)]
    pub(super) limits: Option<Vec<String>>,
    /// Parts that different nodes can own: a number, or `auto`.
    #[schema(value_type = Option<NumberOrAuto>)]
    pub(super) shards: Option<Auto<NonZeroU32>>,
    /// Higher goes first.
    pub(super) priority: Option<i32>,
    /// Not run before this time.
    #[schema(format = "date-time")]
    pub(super) start_at: Option<String>,
    /// Stopped at this time.
    #[schema(format = "date-time")]
    pub(super) deadline: Option<String>,
    /// The first items, run before any other.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub(super) canary: Option<CanaryBody>,
    /// The dataset that its results become a generation of, once it is finished; made with its first task. A token
    /// of a business names its own: its slug, or what begins with that and a dot.
    #[schema(max_length = 40, pattern = r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")]
    pub(super) publish: Option<String>,
    /// How many items must have succeeded, or been skipped, for that: `all` (the default), `any`, or such as `99.5%`.
    #[schema(pattern = r"^(all|any|[0-9]{1,3}(\.[0-9]{1,2})?%)$")]
    pub(super) publish_if: Option<String>,
    /// The member of the outputs by which readers look up in the generation.
    #[schema(min_length = 1, max_length = 128)]
    pub(super) publish_key: Option<String>,
    /// What makes the generation's summary of the results: `none`, `hook`, or `command:NAME` with a command of the node.
    #[schema(max_length = 80)]
    pub(super) reduce: Option<String>,
    /// What a source without items is: `ok`, the default (the task has nothing to do, and finishes as soon as it starts), or
    /// `error`.
    pub(super) if_empty: Option<IfEmpty>,
    /// Whether it starts at once.
    pub(super) start: Option<bool>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    pub(super) reason: Option<String>,
}

/// The same, and settings.
pub(crate) type CreateBody = WithSettings<CreateMembers>;

/// What a clone has that its origin doesn't; all else is the same, but for the name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CloneBody)]
pub(crate) struct CloneMembers {
    /// Its name, unique within the business.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^\s/]+$")]
    pub(super) name: Option<String>,
    /// Labels, to find it by.
    #[serde(default, deserialize_with = "windrow_core::settings::json::few_texts")]
    pub(super) labels: Option<BTreeMap<String, String>>,
    /// Items left out at the head.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub(super) skip_first: Option<u64>,
    /// What the handler is given, any JSON.
    #[schema(value_type = Option<serde_json::Value>)]
    pub(super) params: Option<Box<RawValue>>,
    /// Whether it goes with each call.
    pub(super) send_params: Option<bool>,
    /// Named limits that its items count against, beside those of its business; they stay as long as the task does.
    #[schema(max_items = 4)]
    pub(super) limits: Option<Vec<String>>,
    /// Parts that different nodes can own: a number, or `auto`.
    #[schema(value_type = Option<NumberOrAuto>)]
    pub(super) shards: Option<Auto<NonZeroU32>>,
    /// Higher goes first.
    pub(super) priority: Option<i32>,
    /// Not run before this time.
    #[schema(format = "date-time")]
    pub(super) start_at: Option<String>,
    /// Stopped at this time.
    #[schema(format = "date-time")]
    pub(super) deadline: Option<String>,
    /// The first items, run before any other.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub(super) canary: Option<CanaryBody>,
    /// The dataset that its results become a generation of, once it is finished; made with its first task. A token
    /// of a business names its own: its slug, or what begins with that and a dot.
    #[schema(max_length = 40, pattern = r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")]
    pub(super) publish: Option<String>,
    /// How many items must have succeeded, or been skipped, for that: `all` (the default), `any`, or such as `99.5%`.
    #[schema(pattern = r"^(all|any|[0-9]{1,3}(\.[0-9]{1,2})?%)$")]
    pub(super) publish_if: Option<String>,
    /// The member of the outputs by which readers look up in the generation.
    #[schema(min_length = 1, max_length = 128)]
    pub(super) publish_key: Option<String>,
    /// What makes the generation's summary of the results: `none`, `hook`, or `command:NAME` with a command of the node.
    #[schema(max_length = 80)]
    pub(super) reduce: Option<String>,
    /// Whether it starts at once.
    pub(super) start: Option<bool>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    pub(super) reason: Option<String>,
}

/// The same, and settings.
pub(crate) type CloneBody = WithSettings<CloneMembers>;

/// A change of a task: what is named is set, the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EditBody)]
pub(crate) struct EditMembers {
    /// Its name; null takes it away.
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = r"^[^\s/]+$")]
    pub(super) name: Option<Option<String>>,
    /// All its labels.
    #[serde(default, deserialize_with = "windrow_core::settings::json::few_texts")]
    pub(super) labels: Option<BTreeMap<String, String>>,
    /// Higher goes first.
    pub(super) priority: Option<i32>,
    /// Stopped at this time; null takes it away.
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub(super) deadline: Option<Option<String>>,
    /// What the handler is given; only while it doesn't run.
    #[schema(value_type = Option<serde_json::Value>)]
    pub(super) params: Option<Box<RawValue>>,
    /// How many items; only while it doesn't run, and never fewer once it has.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub(super) total: Option<u64>,
    /// Items left out at the head; only before it has run.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    pub(super) skip_first: Option<u64>,
    /// Where its items come from; only before it has run.
    #[serde(default, deserialize_with = "windrow_core::settings::json::object_option")]
    pub(super) source: Option<SourceBody>,
    /// Parts that different nodes can own: a number, or `auto`; only before it has run, and while it isn't queued.
    #[schema(value_type = Option<NumberOrAuto>)]
    pub(super) shards: Option<Auto<NonZeroU32>>,
    /// Why, for the audit.
    #[serde(default, deserialize_with = "reason")]
    #[schema(max_length = 1000)]
    pub(super) reason: Option<String>,
}

/// The same, and settings.
pub(crate) type EditBody = WithSettings<EditMembers>;

impl CreateMembers {
    /// Where its items come from: a source, or what is appended.
    pub(super) fn take_source(&mut self) -> Result<SourceRequest, ServiceError> {
        match (self.source.take(), self.open.unwrap_or(false)) {
            (Some(source), false) => source.read(),
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
}

fn raw(value: Option<&RawValue>) -> Option<String> {
    value.map(|value| value.get().to_owned())
}

impl CreateBody {
    /// The plan; the source is read apart.
    pub(super) fn plan(&self, key: Option<String>) -> Result<TaskPlan, ServiceError> {
        Ok(TaskPlan {
            name: self.name.clone(),
            labels: self.labels.clone(),
            skip_first: self.skip_first.map(ItemIndex),
            params: raw(self.params.as_deref()),
            send_params: self.send_params,
            limits: self.limits.clone(),
            tuning: self.tuning.clone(),
            shards: self.shards,
            priority: self.priority,
            start_at: time_option("/start_at", self.start_at.as_ref())?,
            deadline: time_option("/deadline", self.deadline.as_ref())?,
            canary: self.canary.map(CanaryBody::read).transpose()?,
            start: self.start.unwrap_or(false),
            strict: false,
            key,
            refuses_empty: self.if_empty == Some(IfEmpty::Error),
            publish: PublishMembers {
                publish: self.publish.as_ref(),
                publish_if: self.publish_if.as_ref(),
                publish_key: self.publish_key.as_ref(),
                reduce: self.reduce.as_ref(),
            }
            .read()?,
            fire: None,
        })
    }
}

impl CloneBody {
    /// The plan.
    pub(super) fn plan(&self, key: Option<String>) -> Result<TaskPlan, ServiceError> {
        Ok(TaskPlan {
            name: self.name.clone(),
            labels: self.labels.clone(),
            skip_first: self.skip_first.map(ItemIndex),
            params: raw(self.params.as_deref()),
            send_params: self.send_params,
            limits: self.limits.clone(),
            tuning: self.tuning.clone(),
            shards: self.shards,
            priority: self.priority,
            start_at: time_option("/start_at", self.start_at.as_ref())?,
            deadline: time_option("/deadline", self.deadline.as_ref())?,
            canary: self.canary.map(CanaryBody::read).transpose()?,
            start: self.start.unwrap_or(false),
            strict: false,
            key,
            refuses_empty: false,
            publish: PublishMembers {
                publish: self.publish.as_ref(),
                publish_if: self.publish_if.as_ref(),
                publish_key: self.publish_key.as_ref(),
                reduce: self.reduce.as_ref(),
            }
            .read()?,
            fire: None,
        })
    }
}

impl EditBody {
    /// The change, and why.
    pub(super) fn change(self) -> Result<(TaskChange, Option<String>), ServiceError> {
        let WithSettings { own, tuning } = self;
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
            source: own.source.map(SourceBody::read).transpose()?,
            strict: false,
        };
        Ok((change, own.reason))
    }
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
        let plan = body.plan(None).expect("a sound plan");
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
            serde_json::from_str::<EditBody>(text)
                .expect("sound")
                .change()
                .expect("sound")
                .0
                .edit
        };
        let silent = change("{}");
        assert_eq!((silent.name, silent.deadline), (None, None));
        let taken = change(r#"{"name":null,"deadline":null}"#);
        assert_eq!((taken.name.as_deref(), taken.deadline), (Some(""), Some(None)));
    }
}
