//! Alerts: who is told of events that may need a person, and the deliveries of the notices.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use windrow_core::alert::{AlertKind, Form};

/// An alert, without its secrets.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// Name, as used in URLs.
    pub name: String,
    /// Kinds of events that are told.
    pub on: Vec<String>,
    /// Business whose events are told; null tells those of all.
    pub business: Option<String>,
    /// Origin of the URL that is called; the rest of it is secret. Null for a command.
    pub url: Option<String>,
    /// Command of the nodes' configuration that reads the notices; null for a URL.
    pub command: Option<String>,
    /// Form of the notices: `json`, `slack` or `text`.
    pub form: String,
    /// JSON with placeholders that is sent instead; null if there is none.
    pub template: Option<String>,
    /// Revision number, also the ETag; grows with each change.
    pub revision: u64,
    /// Time when it was created.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Key that signs the calls; only in the response that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// An alert to create, with either a URL or a command.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAlert {
    /// Name used in URLs; never changes.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    pub name: String,
    /// Kinds of events to tell.
    #[schema(schema_with = crate::attributes::alert_kinds)]
    pub on: Vec<AlertKind>,
    /// Business whose events are told; all by default.
    #[schema(max_length = 40)]
    pub business: Option<String>,
    /// URL to call, stored sealed.
    #[schema(max_length = 2048)]
    pub url: Option<String>,
    /// Command of the nodes' configuration, run with the notice on its standard input.
    #[schema(max_length = 100)]
    pub command: Option<String>,
    /// Form of the notices: `json` (default), `slack` or `text`.
    #[serde(default)]
    #[schema(value_type = Option<String>, pattern = "^(json|slack|text)$")]
    pub form: Option<Form>,
    /// JSON with placeholders to send instead: `{"message": {title}}`.
    #[schema(max_length = 10000)]
    pub template: Option<String>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Change of an alert: members that are present are set, null removes one, the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditAlert {
    /// Kinds of events to tell, set as a whole.
    #[serde(default)]
    #[schema(schema_with = crate::attributes::alert_kinds)]
    pub on: Option<Vec<AlertKind>>,
    /// Business whose events are told; null tells those of all.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<String>, max_length = 40)]
    pub business: Option<Option<String>>,
    /// URL to call from now on, instead of a command or another URL.
    #[schema(max_length = 2048)]
    pub url: Option<String>,
    /// Command to run from now on, instead of a URL or another command.
    #[schema(max_length = 100)]
    pub command: Option<String>,
    /// Form of the notices: `json`, `slack` or `text`.
    #[serde(default)]
    #[schema(value_type = Option<String>, pattern = "^(json|slack|text)$")]
    pub form: Option<Form>,
    /// JSON with placeholders to send instead; null returns to the form.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<String>, max_length = 10000)]
    pub template: Option<Option<String>>,
    /// Reason, recorded in the audit log.
    #[serde(default, deserialize_with = "crate::read::reason")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Delivery of one notice to one alert.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AlertDelivery {
    /// Number of the delivery.
    pub id: i64,
    /// Id that the receiver sees as `webhook-id`, the same for each attempt.
    pub delivery_id: String,
    /// Notice: `type`, `title`, `text`, `path` and further members by its type.
    #[schema(value_type = Object)]
    pub notice: Value,
    /// State: `pending`, `delivered` or `failed`.
    pub state: String,
    /// Attempts that were made, failed ones included.
    pub attempts: u32,
    /// Error of the last failed attempt.
    pub error: Option<String>,
    /// Time of the event.
    #[schema(format = DateTime)]
    pub at: String,
    /// Earliest time of the next attempt, while pending.
    #[schema(format = DateTime)]
    pub next_at: Option<String>,
}
