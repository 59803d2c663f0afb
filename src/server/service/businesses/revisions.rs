//! History of a business, as differences between members.

use serde::Deserialize;
use serde_json::Value;

use super::written::BusinessBody;
use windrow_core::business::BusinessSpec;
use windrow_engine::ports::tasks::store::AuditEntry;

/// Single change of a business.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Id of the audit entry; increases.
    pub id: i64,
    /// Revision created by the change; `None` if the entry doesn't contain it.
    pub revision: Option<u64>,
    /// Audit entry with actor, time and reason.
    pub entry: AuditEntry,
    /// Differences of all changed members.
    pub diff: Vec<Difference>,
    /// True if a secret changed.
    pub secrets_changed: bool,
}

/// Changed member with its old and new value.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// JSON pointer to the member in the API form.
    pub pointer: String,
    /// Old value; `None` if the member was added.
    pub from: Option<Value>,
    /// New value; `None` if the member was removed.
    pub to: Option<Value>,
}

#[derive(Deserialize)]
struct AuditedBusiness {
    slug: String,
    revision: u64,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    secrets_changed: bool,
    spec: BusinessSpec,
}

impl AuditedBusiness {
    fn read(text: Option<&String>) -> Option<AuditedBusiness> {
        text.and_then(|text| serde_json::from_str(text).ok())
    }

    fn written(&self) -> Value {
        let mut written = BusinessBody::of(&self.slug, &self.spec).to_json();
        written["archived"] = Value::Bool(self.archived);
        written
    }
}

impl From<(i64, AuditEntry)> for Revision {
    fn from((id, entry): (i64, AuditEntry)) -> Revision {
        let before = AuditedBusiness::read(entry.before.as_ref());
        let after = AuditedBusiness::read(entry.after.as_ref());
        let mut diff = Vec::new();
        if let Some(after) = &after {
            let nothing = || Value::Object(serde_json::Map::new());
            let before = before.as_ref().map_or_else(nothing, AuditedBusiness::written);
            differences("", Some(&before), Some(&after.written()), &mut diff);
        }
        Revision {
            id,
            revision: after.as_ref().map(|after| after.revision),
            entry,
            diff,
            secrets_changed: after.is_some_and(|after| after.secrets_changed),
        }
    }
}

fn differences(pointer: &str, from: Option<&Value>, to: Option<&Value>, found: &mut Vec<Difference>) {
    if from == to {
        return;
    }
    let (Some(Value::Object(before)), Some(Value::Object(after))) = (from, to) else {
        found.push(Difference {
            pointer: pointer.to_owned(),
            from: from.cloned(),
            to: to.cloned(),
        });
        return;
    };
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    for name in after.keys().chain(gone) {
        let below = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        differences(&below, before.get(name), after.get(name), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_diff_names_each_member_that_changed() {
        let before = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
        let after = json!({"a": 1, "b": {"c": 4}, "e": [2], "f/g": true});
        let mut found = Vec::new();
        differences("", Some(&before), Some(&after), &mut found);
        let shown: Vec<String> = found
            .iter()
            .map(|one| format!("{} {:?}→{:?}", one.pointer, one.from, one.to))
            .collect();
        assert_eq!(
            shown,
            [
                "/b/c Some(Number(2))→Some(Number(4))",
                "/b/d Some(Number(3))→None",
                "/e Some(Array [Number(1)])→Some(Array [Number(2)])",
                "/f~1g None→Some(Bool(true))",
            ]
        );
    }
}
