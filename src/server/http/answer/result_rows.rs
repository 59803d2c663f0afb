//! Result rows as NDJSON or CSV.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::service::failures::item_data::{ItemData, Members};
use crate::service::results::Keys;
use windrow_core::ids::ItemIndex;
use windrow_core::text::csv::Guard;
use windrow_engine::ports::tasks::results::ItemOutput;

/// Output format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated values with a header row.
    Csv,
}

/// CSV columns for one JSON value of each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// One column with the whole JSON.
    Whole,
    /// One column for each of these members.
    Members(Vec<String>),
}

impl Columns {
    /// Parses a comma-separated list of names.
    pub fn parse(text: &str) -> Columns {
        Columns::Members(text.split(',').map(|name| name.trim().to_owned()).collect())
    }

    fn cells(&self, json: &str) -> Vec<String> {
        match self {
            Columns::Whole => vec![cell(serde_json::from_str(json).ok(), json)],
            Columns::Members(names) => members(json, names),
        }
    }
}

impl From<&Members> for Columns {
    fn from(members: &Members) -> Columns {
        match members {
            Members::All => Columns::Whole,
            Members::These(names) | Members::Named(names) => Columns::Members(names.clone()),
        }
    }
}

/// Writer of result rows.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Output format of the rows.
    pub form: Form,
    /// Formula protection of CSV cells.
    pub guard: Guard,
    /// Columns for the output, in CSV.
    pub columns: Columns,
    /// Source of the member `key`.
    pub keys: Keys,
    /// True if each row also has its item's position: for a redrive, whose rows carry the indexes of the original
    /// task.
    pub with_position: bool,
    /// Columns for each item's data, which each row then includes; `None` leaves the data out.
    pub data: Option<Columns>,
}

impl Rows {
    /// Returns the header row of a CSV; empty for NDJSON.
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.form == Form::Csv {
            self.guard.push_row(&self.names(), &mut out);
        }
        out
    }

    /// Returns the column names. A data member whose name is already used is prefixed with `data.`.
    fn names(&self) -> Vec<String> {
        let mut names = vec!["index".to_owned(), "key".to_owned()];
        if self.with_position {
            names.push("position".to_owned());
        }
        match &self.columns {
            Columns::Whole => names.push("output".to_owned()),
            Columns::Members(members) => names.extend_from_slice(members),
        }
        let of_data = match &self.data {
            None => Vec::new(),
            Some(Columns::Whole) => vec!["data".to_owned()],
            Some(Columns::Members(members)) => members
                .iter()
                .map(|name| {
                    if names.contains(name) {
                        format!("data.{name}")
                    } else {
                        name.clone()
                    }
                })
                .collect(),
        };
        names.extend(of_data);
        names
    }

    /// Appends the row of an item; `index` is its index in the task whose keys are shown.
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
        let data = match self.data {
            Some(_) => format!(",\"data\":{}", text_of(data)),
            None => String::new(),
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
        cells.extend(self.columns.cells(json));
        if let Some(columns) = &self.data {
            cells.extend(columns.cells(text_of(data)));
        }
        self.guard.push_row(&cells, out);
    }
}

/// Returns an item's data as JSON, `null` if there is no data.
fn text_of(data: Option<&ItemData>) -> &str {
    let data = data.and_then(|data| data.data.as_deref());
    data.map_or("null", RawValue::get)
}

/// Returns members of a JSON object as cells: strings unquoted, other values as JSON, missing members empty.
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

/// Formats one cell: a string unquoted, `null` as empty, any other value as its JSON.
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

    fn rows(columns: Columns, data: Option<Columns>) -> Rows {
        Rows {
            form: Form::Csv,
            guard: Guard::On,
            columns,
            keys: Keys {
                store: StoreId("s".to_owned()),
                task: TaskId(1),
            },
            with_position: false,
            data,
        }
    }

    fn row(rows: &Rows, json: &str, data: Option<&str>) -> String {
        let output = ItemOutput {
            index: ItemIndex(7),
            json: json.into(),
        };
        let data = data.map(|json| ItemData {
            data: RawValue::from_string(json.to_owned()).ok(),
            ..ItemData::default()
        });
        let mut out = Vec::new();
        rows.push(output.index, &output, data.as_ref(), &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_cell_has_a_text_as_it_is_and_all_else_as_its_json() {
        let whole = rows(Columns::Whole, None);
        assert_eq!(
            row(&whole, r#""one, \"two\"""#, None),
            "7,s-t1-7,\"one, \"\"two\"\"\"\r\n"
        );
        assert_eq!(
            row(&whole, r#"{"n":1.50}"#, None),
            "7,s-t1-7,\"{\"\"n\"\":1.50}\"\r\n"
        );
        let some = rows(Columns::parse("a, b,c"), None);
        assert_eq!(
            row(&some, r#"{"a":"x","c":1.50,"b":null}"#, None),
            "7,s-t1-7,x,,1.50\r\n"
        );
        assert_eq!(row(&some, "17", None), "7,s-t1-7,,,\r\n");
    }

    #[test]
    fn members_of_the_data_are_columns_whose_names_are_told_from_others() {
        let both = rows(Columns::parse("id,status"), Some(Columns::parse("id,email")));
        assert_eq!(both.header(), b"index,key,id,status,data.id,email\r\n");
        let data = Some(r#"{"id":12,"email":"a@b.c","more":true}"#);
        assert_eq!(
            row(&both, r#"{"id":"s1","status":"ok"}"#, data),
            "7,s-t1-7,s1,ok,12,a@b.c\r\n"
        );
        assert_eq!(row(&both, r#"{"id":"s1"}"#, None), "7,s-t1-7,s1,,,\r\n");
        let whole = rows(Columns::Whole, Some(Columns::Whole));
        assert_eq!(whole.header(), b"index,key,output,data\r\n");
        assert_eq!(row(&whole, "1", Some("[2]")), "7,s-t1-7,1,[2]\r\n");
    }
}
