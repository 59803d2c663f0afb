//! Notices: what is told of an event.

use std::time::Duration;

use serde_json::{Map, Value, json};
use windrow_words::{Message, alert as say};

use super::AlertKind;
use crate::dataset::Publishing;
use crate::ids::{ScheduleId, WallMs};
use crate::life::Life;
use crate::limit::units::Use;
use crate::task::lifecycle::{Ending, StopReason};

/// Time for which nothing more is told of a handler that is down.
const DOWN_QUIET: Duration = Duration::from_secs(3600);

/// Event with all that is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Kind of the event.
    pub kind: AlertKind,
    /// Name of the event, unique among all events; of a handler that is down, the same for each time.
    pub about: String,
    /// Time within which another event of this name isn't told; `None` tells each name once.
    pub quiet: Option<Duration>,
    /// Slug of the business, if it concerns one.
    pub business: Option<String>,
    /// Event in a few words.
    pub title: String,
    /// Cause or figures, as a sentence.
    pub text: String,
    /// Path of the dashboard's page about it.
    pub path: String,
    /// Members that only events of this kind have.
    pub more: Map<String, Value>,
}

impl Notice {
    fn new(kind: AlertKind, about: String, title: Message, path: String) -> Notice {
        Notice {
            kind,
            about,
            quiet: None,
            business: None,
            title: title.to_string(),
            text: String::new(),
            path,
            more: Map::new(),
        }
    }

    /// Returns the members of the notice as they are stored and sent.
    pub fn body(&self, now: WallMs) -> Value {
        let mut body = body(self.kind.as_str(), (&self.title, &self.text), &self.path, now);
        body["business"] = json!(self.business);
        if let Value::Object(members) = &mut body {
            members.extend(self.more.clone());
        }
        body
    }

    /// Returns the members of a test of an alert.
    pub fn test(alert: &str, now: WallMs) -> Value {
        let title = say::test(alert).to_string();
        let path = format!("/alerts/{alert}");
        let mut body = body("test", (&title, say::test_text().english()), &path, now);
        body["business"] = Value::Null;
        body
    }

    /// Returns the notices about the end of a task's start.
    pub fn of_end(life: &Life, business: &str) -> Vec<Notice> {
        let (task, id) = (label(life), life.id);
        let counters = life.counters();
        let items = say::items(counters.succeeded, counters.skipped, counters.failed).to_string();
        let finished = || vec![(AlertKind::Finished, say::finished(&*task), items.clone())];
        let found = match life.ending() {
            Some(Ending::Stopped(_)) => vec![(AlertKind::Stopped, say::stopped(&*task), cause(life, items))],
            Some(Ending::ByPeople) if life.stop_reason == Some(StopReason::CanaryDone) => {
                vec![(AlertKind::Stopped, say::stopped(&*task), cause(life, items))]
            }
            Some(Ending::WithFailures) => {
                let title = say::failed(&*task, counters.failed);
                let mut found = finished();
                found.push((AlertKind::Failed, title, items.clone()));
                found
            }
            Some(Ending::Succeeded) => finished(),
            Some(Ending::ByPeople | Ending::Cancelled) | None => Vec::new(),
        };
        let of = |(kind, title, text): (AlertKind, Message, String)| Notice {
            business: Some(business.to_owned()),
            text,
            more: facts(life),
            ..Notice::new(
                kind,
                format!("{kind}-{id}-s{}", life.start_no),
                title,
                format!("/tasks/{id}"),
            )
        };
        found.into_iter().map(of).collect()
    }

    /// Returns the notice that a task did not publish its results.
    pub fn withheld(life: &Life, (business, publishing): (&str, &Publishing), why: &str) -> Notice {
        let dataset = &publishing.publish.dataset;
        let about = format!("{}-{}", AlertKind::Withheld, life.id);
        let title = say::withheld(label(life), dataset.to_string());
        let mut more = facts(life);
        more.insert("dataset".to_owned(), json!(dataset.to_string()));
        Notice {
            business: Some(business.to_owned()),
            text: why.to_owned(),
            more,
            ..Notice::new(AlertKind::Withheld, about, title, format!("/datasets/{dataset}"))
        }
    }

    /// Returns the notice that a business's handler is down for a node.
    pub fn handler_down(business: &str, node: &str) -> Notice {
        let about = format!("{}-{business}", AlertKind::HandlerDown);
        let title = say::handler_down(business);
        Notice {
            quiet: Some(DOWN_QUIET),
            business: Some(business.to_owned()),
            text: say::down_since(node).to_string(),
            ..Notice::new(
                AlertKind::HandlerDown,
                about,
                title,
                format!("/businesses/{business}"),
            )
        }
    }

    /// Returns the notice that fires of a schedule, named `business/name`, were missed from `first` to `last`.
    pub fn missed(
        (id, name, business): (ScheduleId, &str, &str),
        (first, last): (WallMs, WallMs),
        count: u64,
    ) -> Notice {
        Notice {
            text: say::missed_between(first.to_rfc3339(), last.to_rfc3339()).to_string(),
            ..of_schedule((id, business), first, say::missed(name, count))
        }
    }

    /// Returns the notice that a fire of a schedule made no task.
    pub fn fire_failed((id, name, business): (ScheduleId, &str, &str), at: WallMs, why: &str) -> Notice {
        Notice {
            text: why.to_owned(),
            ..of_schedule((id, business), at, say::fire_failed(name))
        }
    }

    /// Returns the notice that most of a limit's total is used.
    pub fn limit_used(name: &str, used: &Use) -> Notice {
        let period = used.next.map(|next| next.to_rfc3339());
        let about = format!(
            "{}-{name}-{}-{}",
            AlertKind::Limit80,
            used.limit,
            period.as_deref().unwrap_or_default()
        );
        let spent = used.spent.plus(used.unsure).decimal();
        let mut more = Map::new();
        more.insert("limit".to_owned(), json!(name));
        more.insert("next".to_owned(), json!(period));
        Notice {
            text: say::used_of(spent, &*used.limit).to_string(),
            more,
            ..Notice::new(
                AlertKind::Limit80,
                about,
                say::limit_used(name),
                format!("/limits/{name}"),
            )
        }
    }
}

fn body(kind: &str, (title, text): (&str, &str), path: &str, now: WallMs) -> Value {
    json!({"type": format!("alert.{kind}"), "at": now.to_rfc3339(), "title": title, "text": text, "path": path})
}

fn of_schedule((id, business): (ScheduleId, &str), at: WallMs, title: Message) -> Notice {
    let about = format!("{}-{id}-{}", AlertKind::ScheduleMissed, at.0);
    Notice {
        business: Some(business.to_owned()),
        ..Notice::new(
            AlertKind::ScheduleMissed,
            about,
            title,
            format!("/schedules/{id}"),
        )
    }
}

fn label(life: &Life) -> String {
    match &life.spec.name {
        Some(name) => format!("{} {name}", life.id),
        None => life.id.to_string(),
    }
}

fn cause(life: &Life, items: String) -> String {
    life.note.as_ref().map_or(items, |note| note.text.clone())
}

fn facts(life: &Life) -> Map<String, Value> {
    let counters = life.counters();
    let reason = life.stop_reason.map(StopReason::as_str);
    let facts = json!({
        "task": life.id.to_string(), "task_name": life.spec.name, "reason": reason, "total": life.total.0,
        "succeeded": counters.succeeded, "skipped": counters.skipped, "failed": counters.failed,
    });
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}
