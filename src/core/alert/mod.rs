//! Alerts: events that may need a person, who is to be told of them, and in which form.

mod form;
mod notice;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use form::{Form, Wording, check_template};
pub use notice::Notice;

/// Maximum number of alerts in a store: each event is held against all of them.
pub const ALERTS_MAX: u32 = 100;

crate::slugs! {
    /// Kind of an event that people can be told of.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AlertKind {
        /// A task stopped, and nobody requested it; also after its canary.
        Stopped = "stopped",
        /// A task finished with failed items.
        Failed = "failed",
        /// A task finished, with or without failed items.
        Finished = "finished",
        /// A handler has been down for half a minute; at most once an hour for each business.
        HandlerDown = "handler_down",
        /// A task ended without publishing its results.
        Withheld = "withheld",
        /// Fires of a schedule were missed, or made no task.
        ScheduleMissed = "schedule_missed",
        /// 80 % of a total, or of an allowance in its period, of a named limit are used.
        #[serde(rename = "limit_80")]
        Limit80 = "limit_80",
    }
}

/// Alert as people declare it, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlertSpec {
    /// Kinds of events that are told.
    pub on: BTreeSet<AlertKind>,
    /// Business whose events are told; `None` tells those of all, and those of no business.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business: Option<String>,
    /// Receiver of the notices.
    pub target: AlertTarget,
    /// Form of the notices.
    #[serde(default)]
    pub form: Form,
    /// JSON with placeholders, sent instead of a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

impl AlertSpec {
    /// Returns true if the alert tells this event.
    pub fn wants(&self, kind: AlertKind, business: Option<&str>) -> bool {
        let is_own = self.business.is_none() || self.business.as_deref() == business;
        is_own && self.on.contains(&kind)
    }
}

/// Place that notices are sent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertTarget {
    /// URL of this origin, called with `POST`. The whole URL may be a credential and is among the secrets.
    Url(String),
    /// Command named in `[handler.command.commands]`, which reads the notice.
    Command(String),
}

/// Secrets of an alert, stored sealed. The serde form is for the vault only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlertSecrets {
    /// URL that is called.
    pub url: String,
    /// Key that signs the calls, `whsec_…`.
    pub signing: String,
}

impl AlertSecrets {
    /// Returns the place that the secrets of an alert are sealed for.
    pub fn place(alert: &str) -> String {
        format!("alert:{alert}")
    }
}

impl fmt::Debug for AlertSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AlertSecrets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> AlertSpec {
        serde_json::from_str(text).expect("a spec")
    }

    #[test]
    fn an_alert_of_a_business_is_silent_about_others_and_about_no_business() {
        let own = spec(r#"{"on":["stopped","limit_80"],"business":"push","target":{"command":"page"}}"#);
        let all = AlertSpec {
            business: None,
            ..own.clone()
        };
        for (kind, business, by_own, by_all) in [
            (AlertKind::Stopped, Some("push"), true, true),
            (AlertKind::Stopped, Some("mail"), false, true),
            (AlertKind::Limit80, None, false, true),
            (AlertKind::Failed, Some("push"), false, false),
        ] {
            assert_eq!(own.wants(kind, business), by_own, "{kind} {business:?}");
            assert_eq!(all.wants(kind, business), by_all, "{kind} {business:?}");
        }
    }

    #[test]
    fn kinds_read_back_as_they_are_written() {
        for kind in AlertKind::ALL {
            let text = serde_json::to_string(&kind).expect("JSON");
            assert_eq!(text, format!("\"{kind}\""));
        }
    }
}
