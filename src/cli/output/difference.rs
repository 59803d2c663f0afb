//! The difference of two objects, for people.

use serde_json::Value;

use super::body::{joined, shown};
use super::table::times::Times;
use super::table::{Cell, clean};

/// The members that differ before and after an entry of the audit.
pub(crate) fn change(entry: &Value, times: &Times) -> Cell {
    let (before, after) = (&entry["before"], &entry["after"]);
    if !before.is_object() || !after.is_object() {
        return Cell::nothing();
    }
    Cell::new(times.style.within(&difference_but(before, after, &[])))
}

/// `rate 500/s → 1000/s  window auto → 1500`: the members that differ of two objects, without those of `but`.
pub(crate) fn difference_but(before: &Value, after: &Value, but: &[&str]) -> String {
    let mut changes = Vec::new();
    for (name, is) in after.as_object().into_iter().flatten() {
        let was = &before[name];
        if was != is && !but.contains(&name.as_str()) {
            add(&mut changes, name, was, is);
        }
    }
    joined(&changes, "  ").unwrap_or_else(|| "unchanged".to_owned())
}

fn add(changes: &mut Vec<String>, name: &str, was: &Value, is: &Value) {
    let (Value::Object(was), Value::Object(is), "settings" | "labels") = (was, is, name) else {
        changes.push(format!(
            "{} {} → {}",
            name.replace('_', " "),
            value(was),
            value(is)
        ));
        return;
    };
    for key in was.keys().chain(is.keys().filter(|key| !was.contains_key(*key))) {
        let (was, is) = (
            was.get(key).unwrap_or(&Value::Null),
            is.get(key).unwrap_or(&Value::Null),
        );
        let name = match name {
            "labels" => format!("label {key}"),
            _ => key.replace('_', " "),
        };
        if was != is {
            changes.push(format!("{name} {} → {}", value(was), value(is)));
        }
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        value => clean(&shown(value)),
    }
}
