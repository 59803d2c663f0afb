//! Values and lists of API bodies, formatted for people.

use std::collections::BTreeMap;

use serde_json::Value;

/// Formats a value for people: a text without its quotes.
pub fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Joins words with a separator. Returns `None` if there are no words.
pub fn joined(words: &[impl AsRef<str>], between: &str) -> Option<String> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    (!words.is_empty()).then(|| words.join(between))
}

/// Formats labels as `team:growth  day:5`. Returns `None` if there are no labels.
pub fn labels(labels: &BTreeMap<String, String>) -> Option<String> {
    let pairs = labels.iter().map(|(key, value)| format!("{key}:{value}"));
    let pairs: Vec<String> = pairs.collect();
    joined(&pairs, "  ")
}
