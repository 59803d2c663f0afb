//! JSON merge patch (RFC 7396): named members are set, `null` removes a member, all others stay.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// Applies a patch. A patch that isn't an object replaces the whole value.
pub fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, change) in patch {
        if change.is_null() {
            target.remove(name);
        } else {
            apply(target.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}

/// Applies a patch to raw JSON, which keeps numbers of any length exactly.
///
/// # Errors
/// If either isn't valid JSON.
pub fn apply_raw(target: Option<&RawValue>, patch: &RawValue) -> serde_json::Result<Box<RawValue>> {
    type Members = BTreeMap<String, Box<RawValue>>;
    let is_object = |value: &RawValue| value.get().starts_with('{');
    if !is_object(patch) {
        return Ok(patch.to_owned());
    }
    let mut merged = match target.filter(|target| is_object(target)) {
        Some(target) => serde_json::from_str::<Members>(target.get())?,
        None => Members::new(),
    };
    for (name, change) in serde_json::from_str::<Members>(patch.get())? {
        if change.get() == "null" {
            merged.remove(&name);
        } else {
            let changed = apply_raw(merged.get(&name).map(AsRef::as_ref), &change)?;
            merged.insert(name, changed);
        }
    }
    to_raw_value(&merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7396, appendix A.
    const EXAMPLES: [(&str, &str, &str); 15] = [
        (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
        (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
        (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
        (
            r#"{"a":{"b":"c"}}"#,
            r#"{"a":{"b":"d","c":null}}"#,
            r#"{"a":{"b":"d"}}"#,
        ),
        (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
        (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
        (r#"{"a":"foo"}"#, "null", "null"),
        (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
        (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
        ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
        ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
    ];

    #[test]
    fn the_examples_of_the_standard_come_out_as_it_says() {
        let read = |text: &str| serde_json::from_str::<Value>(text).expect(text);
        for (before, patch, after) in EXAMPLES {
            let mut target = read(before);
            apply(&mut target, &read(patch));
            assert_eq!(target, read(after), "{before} with {patch}");
            let raw = |text: &str| serde_json::from_str::<Box<RawValue>>(text).expect(text);
            let merged = apply_raw(Some(&raw(before)), &raw(patch)).expect("JSON");
            assert_eq!(read(merged.get()), read(after), "{before} with {patch}, unread");
        }
    }

    #[test]
    fn what_a_patch_does_not_name_stays_as_it_was_written() {
        let raw = |text: &str| serde_json::from_str::<Box<RawValue>>(text).expect(text);
        let before = raw(r#"{"a":{"id":123456789012345678901234567890,"b":1.50},"c":2}"#);
        let merged = apply_raw(Some(&before), &raw(r#"{"a":{"b":null},"c":3.0}"#)).expect("JSON");
        assert_eq!(
            merged.get(),
            r#"{"a":{"id":123456789012345678901234567890},"c":3.0}"#
        );
    }
}
