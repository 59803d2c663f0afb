//! Lookup keys of a generation: one member of each output, as text.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Returns the key of an output: the value of this member, a string as it is, a number or boolean as its JSON. `None`
/// if it is missing, a list, an object or null.
pub fn key_of(output: &str, member: &str) -> Option<String> {
    let mut parsed = serde_json::Deserializer::from_str(output);
    let found = parsed.deserialize_map(Member(member)).ok().flatten()?;
    match found {
        Value::String(text) => Some(text),
        Value::Number(_) | Value::Bool(_) => Some(found.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Hashes a key, the same on every machine; few different keys collide. (FNV-1a, with the last step of MurmurHash3 so
/// that all bits depend on all bytes.)
pub fn key_hash(key: &str) -> u64 {
    let fnv = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

/// Value of one member; the others are skipped unread. If a name occurs several times the last one counts, as
/// everywhere.
struct Member<'a>(&'a str);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Value>, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_member_as_a_text() {
        let of = |output: &str| key_of(output, "team");
        assert_eq!(
            of(r#"{"n":[{"team":1}],"team":"r\u00e9d \"1\""}"#).as_deref(),
            Some("r\u{e9}d \"1\"")
        );
        assert_eq!(of(r#"{"team":17}"#).as_deref(), Some("17"));
        assert_eq!(of(r#"{"team":true}"#).as_deref(), Some("true"));
        for none in [
            r#"{"team":null}"#,
            r#"{"team":[1]}"#,
            r#"{"teams":1}"#,
            "[1]",
            "\"team\"",
            "{",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn hashes_never_change() {
        assert_eq!(key_hash("a"), key_hash("a"));
        let hashes: std::collections::BTreeSet<u64> =
            (0..10_000).map(|n: u32| key_hash(&n.to_string())).collect();
        assert_eq!(hashes.len(), 10_000);
        // Stored with generations: another one would find nothing.
        assert_eq!(key_hash(""), 0xefd0_1f60_ba99_2926);
    }
}
