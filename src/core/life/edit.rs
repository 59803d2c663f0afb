//! Edits of a task's name, attributes and meaning.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{CommandRefusal, Life, TaskEdit};
use crate::ids::TaskId;
use crate::items::stretches::Stretches;
use crate::task::meaning::{Meaning, changed};
use crate::task::spec::Shards;

impl Life {
    /// Applies an edit. Returns the edited members before and after, as JSON text.
    pub(super) fn edit(
        &mut self,
        edit: &TaskEdit,
        name_holder: Option<TaskId>,
    ) -> Result<(String, String), CommandRefusal> {
        if let (Some(holder), Some(Some(name))) = (name_holder, edit.spec.name.clone()) {
            return Err(CommandRefusal::NameTaken(name, holder));
        }
        let before = self.described(edit);
        if let Some(tuning) = &edit.tuning {
            self.tune(tuning);
        }
        if !edit.meaning().is_empty() {
            self.mean(edit)?;
        }
        self.spec = edit.spec.clone().apply(&self.spec);
        Ok((before, self.described(edit)))
    }

    fn mean(&mut self, edit: &TaskEdit) -> Result<(), CommandRefusal> {
        self.refuse_new_meaning(&edit.meaning())?;
        let now = Meaning {
            total: self.total,
            skip_first: self.spec.skip_first,
            source: self.source.clone(),
            shards: self.spec.shards.0,
            has_run: self.has_run(),
            is_cut: self.is_cut(),
        };
        let next = changed(&now, &edit.meaning()).map_err(CommandRefusal::Fields)?;
        (self.total, self.source) = (next.total, next.source);
        (self.spec.skip_first, self.spec.shards) = (next.skip_first, Shards(next.shards));
        if let Some((_, meaning)) = edit.source {
            self.meaning = meaning;
            // The same indexes now refer to other items.
            self.skips = Stretches::default();
        }
        if now.has_run {
            self.extend_shards()
        } else {
            self.join_shards()
        }
        Ok(())
    }

    /// Returns the current values of the members that an edit names. A source is given by its kind, because it may be
    /// long.
    fn described(&self, edit: &TaskEdit) -> String {
        let kind = || {
            let source: Option<Value> = serde_json::from_str(&self.source).ok();
            source.map(|mut source| source["kind"].take())
        };
        let mut members = self.spec.members(|attribute| edit.spec.names(attribute.name));
        let mut beside = |name, is_named: bool, value: Value| {
            if is_named {
                members.insert(name, to_raw_value(&value).unwrap_or_default());
            }
        };
        beside("settings", edit.tuning.is_some(), json!(self.tuning));
        beside("total", edit.total.is_some(), json!(self.total));
        beside("source", edit.source.is_some(), json!(kind()));
        serde_json::to_string(&members).unwrap_or_default()
    }
}
