//! Members of the API's bodies, read with patience: what is missing or of another kind is empty.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// The member that has a thing as the node wrote it.
const AS_WRITTEN: &str = "as_written";

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

/// A thing; one that may carry what an item carries keeps how it is written.
///
/// # Errors
/// When it is no JSON.
pub fn read(raw: &str) -> serde_json::Result<Value> {
    let mut thing: Value = serde_json::from_str(raw)?;
    let carries = ["data", "example_data"]
        .iter()
        .any(|name| thing.get(name).is_some());
    if let Some(members) = thing.as_object_mut().filter(|_| carries) {
        members.insert(AS_WRITTEN.to_owned(), raw.into());
    }
    Ok(thing)
}

/// A thing that was [`read`], as the node wrote it.
pub fn line(thing: &Value) -> String {
    let written = thing[AS_WRITTEN].as_str();
    written.map_or_else(|| thing.to_string(), |raw| raw.replace(['\n', '\r'], " "))
}

/// A member of a thing that was [`read`], as it is written: a value has its members in the order of their names. None
/// where it is null.
pub fn member(thing: &Value, name: &str) -> Option<String> {
    let present = Some(&thing[name]).filter(|value| !value.is_null())?;
    let members = thing[AS_WRITTEN].as_str();
    let members = members.and_then(|raw| serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(raw).ok());
    let written = members.and_then(|mut members| members.remove(name));
    Some(written.map_or_else(|| present.to_string(), |raw| raw.get().to_owned()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_item_carries_is_told_as_it_is_written() {
        let raw = r#"{"index":3,"data":{"name":"ann","id":1},"code":null}"#;
        let thing = read(raw).expect("JSON");
        assert_eq!(
            member(&thing, "data").as_deref(),
            Some(r#"{"name":"ann","id":1}"#)
        );
        assert_eq!((member(&thing, "code"), line(&thing).as_str()), (None, raw));
        let plain = read(r#"{"b":1,"a":{"d":1,"c":2}}"#).expect("JSON");
        assert_eq!(
            plain,
            serde_json::json!({"a": {"c": 2, "d": 1}, "b": 1}),
            "nothing is added"
        );
        assert_eq!(member(&plain, "a").as_deref(), Some(r#"{"c":2,"d":1}"#));
    }
}
