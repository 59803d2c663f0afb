//! Results as rows of NDJSON or CSV.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::csv::push_row;
use crate::service::failures::item_data::ItemData;
use crate::service::results::Keys;
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::tasks::results::ItemOutput;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON object a line.
    Ndjson,
    /// Comma-separated, with a header.
    Csv,
}

/// The columns of a CSV beside index and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// `output`, the JSON as it is.
    Whole,
    /// These members of the outputs.
    Members(Vec<String>),
}

impl Columns {
    /// Names separated by commas.
    pub fn parse(text: &str) -> Columns {
        Columns::Members(text.split(',').map(|name| name.trim().to_owned()).collect())
    }
}

/// Writes rows.
#[derive(Clone, Debug)]
pub struct Rows {
    /// How.
    pub form: Form,
    /// Of a CSV.
    pub columns: Columns,
    /// For the member `key`.
    pub keys: Keys,
    /// Whether each row has what its item carries.
    pub with_data: bool,
}

impl Rows {
    /// The first line of a CSV; nothing for NDJSON.
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.form == Form::Csv {
            let mut cells = vec!["index", "key"];
            match &self.columns {
                Columns::Whole => cells.push("output"),
                Columns::Members(names) => cells.extend(names.iter().map(String::as_str)),
            }
            if self.with_data {
                cells.push("data");
            }
            push_row(&cells, &mut out);
        }
        out
    }

    /// Appends the row of an item, which has this index in the task whose keys are shown.
    pub fn push(&self, index: ItemIndex, output: &ItemOutput, data: Option<&ItemData>, out: &mut Vec<u8>) {
        let key = self.keys.store.item_key(self.keys.task, index);
        match self.form {
            Form::Ndjson => out.extend_from_slice(self.line(index, &key, &output.json, data).as_bytes()),
            Form::Csv => self.push_cells(index, &key, &output.json, data, out),
        }
    }

    fn line(&self, index: ItemIndex, key: &str, json: &str, data: Option<&ItemData>) -> String {
        let index = index.0;
        let data = if self.with_data {
            let data = data.and_then(|data| data.data.as_deref());
            format!(",\"data\":{}", data.map_or("null", RawValue::get))
        } else {
            String::new()
        };
        format!("{{\"index\":{index},\"key\":\"{key}\"{data},\"output\":{json}}}\n")
    }

    fn push_cells(
        &self,
        index: ItemIndex,
        key: &str,
        json: &str,
        data: Option<&ItemData>,
        out: &mut Vec<u8>,
    ) {
        let mut cells = vec![index.0.to_string(), key.to_owned()];
        match &self.columns {
            Columns::Whole => cells.push(json.to_owned()),
            Columns::Members(names) => cells.extend(members(json, names)),
        }
        if self.with_data {
            let data = data.and_then(|data| data.data.as_deref());
            cells.push(data.map_or_else(String::new, |data| data.get().to_owned()));
        }
        push_row(&cells, out);
    }
}

/// Members of an output as cells: texts as they are, all else as JSON, what isn't there empty.
fn members(json: &str, names: &[String]) -> Vec<String> {
    let all: BTreeMap<String, Value> = serde_json::from_str(json).unwrap_or_default();
    let cell = |name: &String| match all.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    names.iter().map(cell).collect()
}
