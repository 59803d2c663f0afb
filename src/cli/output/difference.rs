//! Difference between two objects, for people and scripts.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::body::{joined, shown};
use super::table::times::Times;
use super::table::{Cell, clean};
use windrow_core::settings::json::trees;

/// Members left out of a difference: some change with every update, and a new secret is printed separately.
const BESIDE: [&str; 3] = ["revision", "updated_at", "secret"];

/// Member with its value before and after a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Difference {
    /// Path of the member, with dots between the levels.
    pub(crate) member: String,
    /// Value before the change, or null if the member was missing.
    pub(crate) from: Value,
    /// Value after the change, or null if the member is gone.
    pub(crate) to: Value,
}

impl Difference {
    /// Formats the difference as `defaults.rate  500/s → 1000/s`.
    pub(crate) fn line(&self) -> String {
        let text = |value: &Value| match value {
            Value::Null => "–".to_owned(),
            value => shown(value),
        };
        format!("{}  {} → {}", self.member, text(&self.from), text(&self.to))
    }
}

/// Returns every member that differs, in order of the names.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = compare("", before, after, |_| true);
    found.retain(|one| !BESIDE.contains(&one.member.as_str()));
    found
}

/// Returns the differences at and below a member. `opens` selects the members whose own members are compared.
fn compare(member: &str, before: &Value, after: &Value, opens: fn(&str) -> bool) -> Vec<Difference> {
    let empty = Map::new();
    let levels = match (before, after) {
        _ if before == after => return Vec::new(),
        _ if !opens(member) => None,
        (Value::Object(before), Value::Object(after)) => Some((before, after)),
        (Value::Object(before), Value::Null) if !before.is_empty() => Some((before, &empty)),
        (Value::Null, Value::Object(after)) if !after.is_empty() => Some((&empty, after)),
        _ => None,
    };
    let Some((before_all, after_all)) = levels else {
        return vec![Difference {
            member: member.to_owned(),
            from: before.clone(),
            to: after.clone(),
        }];
    };
    let names: BTreeSet<&String> = before_all.keys().chain(after_all.keys()).collect();
    let inside = names.into_iter().flat_map(|name| {
        let inner = match member {
            "" => name.clone(),
            member => format!("{member}.{name}"),
        };
        let [was, is] = [before_all, after_all].map(|all| all.get(name).unwrap_or(&Value::Null));
        compare(&inner, was, is, opens)
    });
    inside.collect()
}

/// Returns the members that differ before and after an audit entry.
pub(crate) fn change(entry: &api::AuditEntry, times: &Times) -> Cell {
    let (before, after) = (&entry.before, &entry.after);
    if !before.is_object() || !after.is_object() {
        return Cell::nothing();
    }
    Cell::new(times.style.within(&difference_but(before, after, &[])))
}

/// Formats the members that differ as `rate 500/s → 1000/s  window auto → 1500`, without those in `but`.
pub(crate) fn difference_but(before: &Value, after: &Value, but: &[&str]) -> String {
    let found = compare("", before, after, |member| {
        ["", "settings", "labels"].contains(&member)
    });
    let changes = found.iter().filter_map(|one| {
        let (outer, inner) = one.member.split_once('.').unwrap_or((&one.member, ""));
        let name = match (outer, inner) {
            (outer, _) if but.contains(&outer) || after.get(outer).is_none() => return None,
            (outer, "") => outer.replace('_', " "),
            ("labels", key) => format!("label {key}"),
            (_, key) => key.replace('_', " "),
        };
        Some(format!("{name} {} → {}", value(&one.from), value(&one.to)))
    });
    joined(&changes.collect::<Vec<_>>(), "  ").unwrap_or_else(|| "unchanged".to_owned())
}

/// Formats the difference between two serializable values. Members that no tree can hold are compared as written.
pub(crate) fn difference_of<T: Serialize>(before: &T, after: &T, but: &[&str]) -> String {
    let [before, after] = [before, after].map(|thing| trees(thing).unwrap_or_default());
    difference_but(&before, &after, but)
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        value => clean(&shown(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_changed_is_said_member_by_member() {
        let before =
            json!({"name": "a", "revision": 1, "updated_at": "x", "defaults": {"rate": "5/s"}, "hooks": {}});
        let after = json!({"name": "a", "revision": 2, "updated_at": "y", "defaults": {"batch": 2}, "hooks": {"validate": {}}});
        let lines: Vec<String> = differences(&before, &after)
            .iter()
            .map(Difference::line)
            .collect();
        assert_eq!(
            lines,
            [
                "defaults.batch  – → 2",
                "defaults.rate  5/s → –",
                "hooks.validate  – → {}"
            ]
        );
        assert_eq!(differences(&before, &before), []);
    }
}
