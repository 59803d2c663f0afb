//! Changes of what a task is called, when it goes, and what it means.

use serde_json::{Value, json};

use super::{CommandRefusal, Life, TaskEdit};
use crate::ids::TaskId;
use crate::items::stretches::Stretches;
use crate::task::meaning::{Meaning, changed};

impl Life {
    /// Applies an edit; tells what was and what is, as JSON text.
    pub(super) fn edit(
        &mut self,
        edit: &TaskEdit,
        name_holder: Option<TaskId>,
    ) -> Result<(String, String), CommandRefusal> {
        if let (Some(holder), Some(name)) = (name_holder, edit.name.clone()) {
            return Err(CommandRefusal::NameTaken(name, holder));
        }
        let before = self.described(edit);
        if let Some(name) = &edit.name {
            self.name = Some(name.clone()).filter(|name| !name.is_empty());
        }
        if let Some(labels) = &edit.labels {
            self.labels.clone_from(labels);
        }
        self.priority = edit.priority.unwrap_or(self.priority);
        self.deadline = edit.deadline.unwrap_or(self.deadline);
        if let Some(params) = &edit.params {
            self.params = Some(params.clone());
        }
        if let Some(tuning) = &edit.tuning {
            self.tune(tuning);
        }
        if !edit.meaning().is_empty() {
            self.mean(edit)?;
        }
        Ok((before, self.described(edit)))
    }

    fn mean(&mut self, edit: &TaskEdit) -> Result<(), CommandRefusal> {
        self.refuse_new_meaning(&edit.meaning())?;
        let now = Meaning {
            total: self.total,
            skip_first: self.skip_first,
            source: self.source.clone(),
            shards: self.shards_wanted,
            has_run: self.has_run(),
            is_cut: self.is_cut(),
        };
        let next = changed(&now, &edit.meaning()).map_err(CommandRefusal::Fields)?;
        (self.total, self.skip_first) = (next.total, next.skip_first);
        (self.source, self.shards_wanted) = (next.source, next.shards);
        if let Some((_, meaning)) = edit.source {
            self.meaning = meaning;
            // The indexes name other items now.
            self.skips = Stretches::default();
        }
        if now.has_run {
            self.extend_shards()
        } else {
            self.join_shards()
        }
        Ok(())
    }

    /// The members that an edit names, as they are; a source by its kind, for it may be long.
    fn described(&self, edit: &TaskEdit) -> String {
        let read = |text: Option<&str>| -> Value {
            text.and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default()
        };
        let labels = if self.labels.is_empty() {
            Value::Null
        } else {
            json!(self.labels)
        };
        let members = [
            ("settings", edit.tuning.is_some(), json!(self.tuning)),
            ("name", edit.name.is_some(), json!(self.name)),
            ("labels", edit.labels.is_some(), labels),
            ("priority", edit.priority.is_some(), json!(self.priority)),
            (
                "deadline_ms",
                edit.deadline.is_some(),
                json!(self.deadline.map(|at| at.0)),
            ),
            ("params", edit.params.is_some(), read(self.params.as_deref())),
            ("total", edit.total.is_some(), json!(self.total.0)),
            ("skip_first", edit.skip_first.is_some(), json!(self.skip_first.0)),
            (
                "source",
                edit.source.is_some(),
                read(Some(self.source.as_str()))["kind"].take(),
            ),
            ("shards", edit.shards.is_some(), json!(self.shards_wanted)),
        ];
        let named = members.into_iter().filter(|(_, is_named, _)| *is_named);
        Value::Object(named.map(|(name, _, value)| (name.to_owned(), value)).collect()).to_string()
    }
}
