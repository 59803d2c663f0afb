//! Lookup of item data in a task's source, so that a failure shows who it is about.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::service::FieldFault;
use crate::service::ServiceError;
use crate::service::failures::Failures;
use crate::service::tasks::settings::one_of;
use windrow_core::ids::ItemIndex;
use windrow_core::text::quoted;
use windrow_engine::ports::sources::source::{RowChunk, Source};
use windrow_engine::ports::tasks::store::TaskView;

/// Task label with the columns that lists of its items show, separated by commas.
pub const KEY_COLUMN: &str = "key-column";

/// Largest item data shown in lists, in bytes of JSON text.
const DATA_BYTES_MAX: usize = 4096;

/// Requested members of an item's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// All members, or the whole value if it isn't an object.
    All,
    /// Only these members, in this order; a value that isn't an object is shown whole.
    These(Vec<String>),
    /// Same as `These`, but from the task's label, so an unknown column isn't an error of the request.
    Named(Vec<String>),
}

impl Members {
    /// Parses `*` or a comma-separated list of names.
    pub fn parse(text: &str) -> Members {
        if text == "*" {
            return Members::All;
        }
        Members::These(parse_names(text))
    }

    /// Parses the members for a list; `*` means the columns in the task's label, if it has one.
    pub fn of_list(text: &str, task: &TaskView) -> Members {
        match task.spec.labels.get(KEY_COLUMN) {
            Some(columns) if text == "*" && !columns.is_empty() => Members::Named(parse_names(columns)),
            _ => Members::parse(text),
        }
    }

    /// Returns what is wrong and what to use instead, for the first requested member that no row has. Checks only
    /// rows with columns; items that are just numbers have none.
    pub fn unknown(&self, has_data: bool, columns: &[String]) -> Option<(String, String)> {
        let Members::These(names) = self else { return None };
        if !has_data {
            let why = "the items carry no data and so have no columns";
            return Some((why.to_owned(), "leave it out".to_owned()));
        }
        let name = names
            .iter()
            .find(|name| !columns.is_empty() && !columns.contains(name))?;
        Some((
            format!("the items have no column {}", quoted(name)),
            one_of(name, columns),
        ))
    }
}

/// Data of an item from the source.
#[derive(Clone, Debug, Default)]
pub struct ItemData {
    /// Data as raw JSON; `None` for items that are just numbers.
    pub data: Option<Box<RawValue>>,
    /// Reason why existing data can't be shown.
    pub missing: Option<String>,
    /// In a redrive, the item's index in the original task.
    pub origin: Option<ItemIndex>,
}

/// Reader of item data; neighbouring items share a block of the source.
pub struct Lookup<'a> {
    source: &'a dyn Source,
    members: &'a Members,
    chunk: Option<Arc<RowChunk>>,
}

impl<'a> Lookup<'a> {
    /// Creates a reader for an open source.
    pub fn new(source: &'a dyn Source, members: &'a Members) -> Lookup<'a> {
        Lookup {
            source,
            members,
            chunk: None,
        }
    }

    /// Returns the data of an item. Cheapest in index order.
    pub async fn item(&mut self, index: ItemIndex) -> ItemData {
        if !self.source.has_data() {
            return ItemData::default();
        }
        let holds = |chunk: &Arc<RowChunk>| chunk.first() <= index && index < chunk.end();
        if !self.chunk.as_ref().is_some_and(holds) {
            match self.source.read(index).await {
                Ok(chunk) => self.chunk = Some(chunk),
                Err(error) => return missing(error.to_string()),
            }
        }
        let Some(chunk) = &self.chunk else {
            return ItemData::default();
        };
        let told = chunk
            .row(index)
            .map(|row| shown(row, self.members))
            .unwrap_or_default();
        ItemData {
            origin: chunk.origin(index),
            ..told
        }
    }
}

fn parse_names(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_owned()).collect()
}

fn missing(why: String) -> ItemData {
    ItemData {
        missing: Some(why),
        ..ItemData::default()
    }
}

fn shown(row: &str, members: &Members) -> ItemData {
    let picked = match members {
        Members::All => None,
        Members::These(names) | Members::Named(names) => pick(row, names),
    };
    let text = picked.unwrap_or_else(|| row.to_owned());
    if text.len() > DATA_BYTES_MAX {
        let why = format!(
            "{} bytes, but a list shows up to {DATA_BYTES_MAX}; select some members",
            text.len()
        );
        return missing(why);
    }
    match RawValue::from_string(text) {
        Ok(data) => ItemData {
            data: Some(data),
            ..ItemData::default()
        },
        Err(error) => missing(error.to_string()),
    }
}

/// Returns an object with only these members, `null` for missing ones; `None` if the row isn't an object.
fn pick(row: &str, names: &[String]) -> Option<String> {
    let all: BTreeMap<String, Box<RawValue>> = serde_json::from_str(row).ok()?;
    let member = |name: &String| {
        let value = all.get(name).map_or("null", |value| value.get());
        serde_json::to_string(name).map(|name| format!("{name}:{value}"))
    };
    let members: Result<Vec<String>, _> = names.iter().map(member).collect();
    members.ok().map(|members| format!("{{{}}}", members.join(",")))
}

impl Failures {
    /// Returns the data of items in the order of `indexes`. If the source can't be read, each item has the reason
    /// instead of failing the list. Concurrent lookups are limited so that an export doesn't crowd out the runs.
    ///
    /// # Errors
    /// `Invalid` if a requested member is not a column of the items.
    pub async fn item_data(
        &self,
        task: &TaskView,
        members: &Members,
        indexes: &[ItemIndex],
    ) -> Result<Vec<ItemData>, ServiceError> {
        let _turn = self.item_readers.acquire().await;
        let source = match self.items.source(task).await {
            Ok(source) => source,
            Err(error) => return Ok(indexes.iter().map(|_| missing(error.to_string())).collect()),
        };
        if let Some((why, there_are)) = members.unknown(source.has_data(), source.columns()) {
            return Err(ServiceError::Invalid(vec![
                FieldFault::new("data", why).advise(there_are),
            ]));
        }
        let mut order: Vec<usize> = (0..indexes.len()).collect();
        order.sort_unstable_by_key(|at| indexes[*at]);
        let (mut found, mut lookup) = (
            vec![ItemData::default(); indexes.len()],
            Lookup::new(&*source, members),
        );
        for at in order {
            found[at] = lookup.item(indexes[at]).await;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(row: &str, members: &Members) -> String {
        shown(row, members).data.expect("short").get().to_owned()
    }

    #[test]
    fn members_are_picked_in_the_order_asked_for() {
        let row = r#"{"id": 7, "name":"Ada", "note":{"a":[1]}}"#;
        assert_eq!(text(row, &Members::All), row);
        assert_eq!(
            text(row, &Members::parse("note, id")),
            r#"{"note":{"a":[1]},"id":7}"#
        );
        assert_eq!(text(row, &Members::parse("nobody")), r#"{"nobody":null}"#);
        assert_eq!(
            text("[1, 2]", &Members::parse("id")),
            "[1, 2]",
            "it has no members"
        );
    }

    #[test]
    fn a_column_that_no_row_has_is_told_with_those_that_there_are() {
        let columns = ["user_id".to_owned(), "email".to_owned()];
        let (why, there_are) = Members::parse("email,userid")
            .unknown(true, &columns)
            .expect("there is no userid");
        assert_eq!(why, "the items have no column \"userid\"");
        assert_eq!(
            there_are,
            "did you mean user_id? one of the existing ones: user_id, email"
        );
        assert_eq!(Members::parse("email").unknown(true, &columns), None);
        assert_eq!(Members::All.unknown(true, &columns), None);
        assert_eq!(
            Members::parse("any").unknown(true, &[]),
            None,
            "rows of NDJSON need not have the same"
        );
        assert!(
            Members::parse("any")
                .unknown(false, &[])
                .is_some_and(|(why, _)| why.contains("carry no data"))
        );
        assert_eq!(Members::All.unknown(false, &[]), None);
    }

    #[test]
    fn long_data_is_not_shown_but_its_members_are() {
        let row = format!(r#"{{"id":7,"text":"{}"}}"#, "x".repeat(5000));
        let all = shown(&row, &Members::All);
        assert!(all.data.is_none() && all.missing.is_some_and(|why| why.contains("5018 bytes")));
        assert_eq!(text(&row, &Members::parse("id")), r#"{"id":7}"#);
    }
}
