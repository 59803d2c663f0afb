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
    /// Whether each row has its item's position too: of a redrive, whose rows have the indexes of the task that failed.
    pub with_position: bool,
    /// Whether each row has what its item carries.
    pub with_data: bool,
}

impl Rows {
    /// The first line of a CSV; nothing for NDJSON.
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.form == Form::Csv {
            let mut cells = vec!["index", "key"];
            if self.with_position {
                cells.push("position");
            }
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
            Form::Ndjson => out.extend_from_slice(self.line(index, &key, output, data).as_bytes()),
            Form::Csv => self.push_cells(index, key, output, data, out),
        }
    }

    fn line(&self, index: ItemIndex, key: &str, output: &ItemOutput, data: Option<&ItemData>) -> String {
        let (index, json) = (index.0, &output.json);
        let position = match self.with_position {
            true => format!(",\"position\":{}", output.index.0),
            false => String::new(),
        };
        let data = if self.with_data {
            let data = data.and_then(|data| data.data.as_deref());
            format!(",\"data\":{}", data.map_or("null", RawValue::get))
        } else {
            String::new()
        };
        format!("{{\"index\":{index},\"key\":\"{key}\"{position}{data},\"output\":{json}}}\n")
    }

    fn push_cells(
        &self,
        index: ItemIndex,
        key: String,
        output: &ItemOutput,
        data: Option<&ItemData>,
        out: &mut Vec<u8>,
    ) {
        let (mut cells, json) = (vec![index.0.to_string(), key], &*output.json);
        if self.with_position {
            cells.push(output.index.0.to_string());
        }
        match &self.columns {
            Columns::Whole => cells.push(cell(serde_json::from_str(json).ok(), json)),
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
    let all: BTreeMap<String, Box<RawValue>> = serde_json::from_str(json).unwrap_or_default();
    let of_name = |name: &String| {
        let json = all.get(name)?.get();
        Some(cell(serde_json::from_str(json).ok(), json))
    };
    names
        .iter()
        .map(|name| of_name(name).unwrap_or_default())
        .collect()
}

/// A text as it is, `null` as nothing, all else as the JSON that it is.
fn cell(value: Option<Value>, json: &str) -> String {
    match value {
        Some(Value::String(text)) => text,
        Some(Value::Null) => String::new(),
        _ => json.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::ids::{StoreId, TaskId};

    #[test]
    fn a_cell_has_a_text_as_it_is_and_all_else_as_its_json() {
        let rows = |columns| Rows {
            form: Form::Csv,
            columns,
            keys: Keys {
                store: StoreId("s".to_owned()),
                task: TaskId(1),
            },
            with_position: false,
            with_data: false,
        };
        let row = |columns, json: &str| {
            let output = ItemOutput {
                index: ItemIndex(7),
                json: json.into(),
            };
            let mut out = Vec::new();
            rows(columns).push(output.index, &output, None, &mut out);
            String::from_utf8(out).expect("text")
        };
        assert_eq!(
            row(Columns::Whole, r#""one, \"two\"""#),
            "7,s-t1-7,\"one, \"\"two\"\"\"\r\n"
        );
        assert_eq!(
            row(Columns::Whole, r#"{"n":1.50}"#),
            "7,s-t1-7,\"{\"\"n\"\":1.50}\"\r\n"
        );
        let some = || Columns::parse("a, b,c");
        assert_eq!(
            row(some(), r#"{"a":"x","c":1.50,"b":null}"#),
            "7,s-t1-7,x,,1.50\r\n"
        );
        assert_eq!(row(some(), "17"), "7,s-t1-7,,,\r\n");
    }
}
