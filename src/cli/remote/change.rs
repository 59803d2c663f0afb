//! Changes: sent, or only tried; and what was changed, member by member.

use serde_json::{Map, Value};

use super::args::Write;
use super::link::Link;
use crate::cli::exit::Exit;
use crate::cli::fault::Fault;
use crate::client::{Answer, Request};

/// Members that grow with every change and say nothing of what was changed.
const COUNTED: [&str; 2] = ["revision", "updated_at"];

/// A member that is another now.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Which, with dots between the levels.
    pub member: String,
    /// What it was; null where it wasn't there.
    pub from: Value,
    /// What it is; null where it is gone.
    pub to: Value,
}

impl Difference {
    /// `defaults.rate  500/s → 1000/s`.
    pub fn line(&self) -> String {
        format!("{}  {} → {}", self.member, text(&self.from), text(&self.to))
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Every member that isn't the same, in the order of the names.
pub fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", before, after, &mut found);
    found.retain(|one| !COUNTED.contains(&one.member.as_str()));
    found
}

fn compare(member: &str, before: &Value, after: &Value, found: &mut Vec<Difference>) {
    if before == after {
        return;
    }
    let empty = Map::new();
    let levels = match (before, after) {
        (Value::Object(before), Value::Object(after)) => Some((before, after)),
        (Value::Object(before), Value::Null) => Some((before, &empty)),
        (Value::Null, Value::Object(after)) => Some((&empty, after)),
        _ => None,
    };
    let Some((before_all, after_all)) = levels.filter(|(a, b)| !(a.is_empty() && b.is_empty())) else {
        found.push(Difference { member: member.to_owned(), from: before.clone(), to: after.clone() });
        return;
    };
    let names: std::collections::BTreeSet<&String> = before_all.keys().chain(after_all.keys()).collect();
    for name in names {
        let inner = if member.is_empty() { name.clone() } else { format!("{member}.{name}") };
        let of = |all: &Map<String, Value>| all.get(name).cloned().unwrap_or(Value::Null);
        compare(&inner, &of(before_all), &of(after_all), found);
    }
}

impl Link<'_> {
    /// Sends a change. None is the answer to a dry run, which is printed then.
    ///
    /// # Errors
    /// As [`Link::send`]; `Failed` when a change was only to be tried, and the node made it.
    pub async fn change(&self, write: &Write, request: Request) -> Result<Option<Answer>, Fault> {
        let answer = self.send(request).await?;
        if !write.dry_run {
            return Ok(Some(answer));
        }
        if self.show_plan(&answer)? {
            return Ok(None);
        }
        Err(Fault::new(Exit::Failed, "the change was made", "this node can't try changes, and didn't say so")
            .hint("look at what it is now; leave --dry-run out with this version of the node"))
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
        let lines: Vec<String> = differences(&before, &after).iter().map(Difference::line).collect();
        assert_eq!(lines, ["defaults.batch  – → 2", "defaults.rate  5/s → –", "hooks.validate  – → {}"]);
        assert_eq!(differences(&before, &before), []);
    }
}
