//! Values and lists of the API's bodies, as people read them.

use std::collections::BTreeMap;

use serde_json::Value;

/// A value as people read it: a text without its quotes.
pub fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The words with this between them; none where there are no words.
pub fn joined(words: &[impl AsRef<str>], between: &str) -> Option<String> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    (!words.is_empty()).then(|| words.join(between))
}

/// `team:growth  day:5`; none where there are none.
pub fn labels(labels: &BTreeMap<String, String>) -> Option<String> {
    let pairs = labels.iter().map(|(key, value)| format!("{key}:{value}"));
    let pairs: Vec<String> = pairs.collect();
    joined(&pairs, "  ")
}
