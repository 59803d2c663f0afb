//! Output members selected as columns, with a check that any output has them. Until the first output arrives nothing
//! is known about its members, so a typing error shows only then.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use crate::input::nearest::nearest;

/// Largest number of members remembered. At most `TOLD_MAX` are printed.
const KEPT_MAX: usize = 200;
const TOLD_MAX: usize = 8;

/// Selected members and the members that outputs really have.
#[derive(Clone, Debug)]
pub(crate) struct OutputMembers {
    /// Selected members that no output has had so far.
    unseen: Vec<String>,
    /// Members found in outputs, up to `KEPT_MAX`.
    seen: BTreeSet<String>,
    outputs: u64,
}

impl OutputMembers {
    /// Starts with the selected names, separated by commas.
    pub(crate) fn new(columns: &str) -> OutputMembers {
        OutputMembers {
            unseen: columns.split(',').map(|name| name.trim().to_owned()).collect(),
            seen: BTreeSet::new(),
            outputs: 0,
        }
    }

    /// Records the members of an output.
    pub(crate) fn see(&mut self, json: &str) {
        self.outputs += 1;
        if self.unseen.is_empty() {
            return;
        }
        let all: BTreeMap<String, &RawValue> = serde_json::from_str(json).unwrap_or_default();
        self.unseen.retain(|name| !all.contains_key(name));
        let room = KEPT_MAX.saturating_sub(self.seen.len());
        let new = all.into_keys().filter(|name| !self.seen.contains(name));
        let new: Vec<String> = new.take(room).collect();
        self.seen.extend(new);
    }

    /// Returns the selected members that no output had, or `None` if there was no output.
    pub(crate) fn missing(self) -> Option<Missing> {
        let is_known = self.outputs > 0 && !self.unseen.is_empty();
        is_known.then_some(Missing {
            names: self.unseen,
            there: self.seen,
        })
    }
}

/// Selected members that no output had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    names: Vec<String>,
    there: BTreeSet<String>,
}

impl Missing {
    /// Returns a sentence such as `no output has a member foo: its column stays empty; members: email, id`.
    pub(crate) fn of_all(&self) -> String {
        self.told("no output has")
    }

    /// Returns the sentence for the case that only the first `outputs` were examined.
    pub(crate) fn of_first(&self, outputs: u64) -> String {
        self.told(&format!("none of the first {outputs} outputs has"))
    }

    fn told(&self, none_has: &str) -> String {
        let names = self.names.join(", ");
        let known = || self.there.iter().map(String::as_str);
        let meant = match &self.names[..] {
            [name] => nearest(name, known()),
            _ => None,
        };
        let there = match (meant, self.there.len()) {
            (_, 0) => "they have no members".to_owned(),
            (Some(meant), _) => format!("did you mean {meant}?"),
            (None, count) => {
                let told: Vec<&str> = known().take(TOLD_MAX).collect();
                let more = if count > TOLD_MAX { " and more" } else { "" };
                format!("members: {}{more}", told.join(", "))
            }
        };
        format!("{none_has} a member {names}: its column stays empty; {there}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(columns: &str, outputs: &[&str]) -> Option<String> {
        let mut members = OutputMembers::new(columns);
        outputs.iter().for_each(|output| members.see(output));
        members.missing().map(|missing| missing.of_all())
    }

    #[test]
    fn a_column_that_no_output_has_is_told_with_what_was_meant_or_what_there_is() {
        assert_eq!(told("foo", &[]), None, "nothing is known yet");
        let outputs = [r#"{"score":1}"#, r#"{"email":"a","score":2}"#];
        assert_eq!(told("email, score", &outputs), None);
        let text = |columns| told(columns, &outputs).unwrap_or_default();
        assert_eq!(
            text("foo"),
            "no output has a member foo: its column stays empty; members: email, score"
        );
        assert!(
            text("scoer").ends_with("; did you mean score?"),
            "{}",
            text("scoer")
        );
        assert!(text("email,a,b").starts_with("no output has a member a, b:"));
        let plain = told("foo", &["1", "[2]"]).unwrap_or_default();
        assert!(plain.ends_with("; they have no members"), "{plain}");
    }
}
