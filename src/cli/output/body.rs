//! Members of the API's bodies, read with patience: what is missing or of another kind is empty.

use serde_json::Value;

/// A text.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A number.
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// A list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A list of texts.
pub fn texts(value: &Value) -> Vec<&str> {
    list(value).iter().filter_map(Value::as_str).collect()
}

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
pub fn labels(value: &Value) -> Option<String> {
    let pairs = value.as_object()?.iter();
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{key}:{}", text(value)))
        .collect();
    joined(&pairs, "  ")
}
