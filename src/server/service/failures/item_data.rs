//! What items carry, looked up again in the source of their task: so that a failure says who it is about.

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

/// The label of a task that says which columns of its items lists show, separated by commas.
pub const KEY_COLUMN: &str = "key-column";

/// Lists don't show more of an item. Unit: bytes of JSON text.
const DATA_BYTES_MAX: usize = 4096;

/// Which members of an item's data are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// All of it, whatever it is.
    All,
    /// These, in this order; of data without members all.
    These(Vec<String>),
    /// The same, but nobody asks for them now: that rows lack one is no fault of a request.
    Named(Vec<String>),
}

impl Members {
    /// `*`, or names separated by commas.
    pub fn parse(text: &str) -> Members {
        if text == "*" {
            return Members::All;
        }
        Members::These(parse_names(text))
    }

    /// What a list shows of the items of a task where it is asked for everything: what the task's label says.
    pub fn of_list(text: &str, task: &TaskView) -> Members {
        match task.spec.labels.get(KEY_COLUMN) {
            Some(columns) if text == "*" && !columns.is_empty() => Members::Named(parse_names(columns)),
            _ => Members::parse(text),
        }
    }

    /// The first of them that no row has, if rows have columns: what is wrong, and what is meant. Items that are only
    /// counted have none.
    pub fn unknown(&self, has_data: bool, columns: &[String]) -> Option<(String, String)> {
        let Members::These(names) = self else { return None };
        if !has_data {
            let why = "the items carry no data and so have no columns";
            return Some((why.to_owned(), "the same without it".to_owned()));
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

/// What an item carries.
#[derive(Clone, Debug, Default)]
pub struct ItemData {
    /// The data; none for items that are numbers only.
    pub data: Option<Box<RawValue>>,
    /// Why it can't be shown though there is some.
    pub missing: Option<String>,
    /// In a redrive: the index that it has in the task that failed first.
    pub origin: Option<ItemIndex>,
}

/// Looks items up; neighbours share a block of the source.
pub struct Lookup<'a> {
    source: &'a dyn Source,
    members: &'a Members,
    chunk: Option<Arc<RowChunk>>,
}

impl<'a> Lookup<'a> {
    /// Of a source that is open.
    pub fn new(source: &'a dyn Source, members: &'a Members) -> Lookup<'a> {
        Lookup {
            source,
            members,
            chunk: None,
        }
    }

    /// What an item carries. Cheapest in the order of the indexes.
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
            "it has {} bytes, a list shows up to {DATA_BYTES_MAX}; choose members of it",
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

/// The members that have these names, and null for those that aren't there; none where there are no members.
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
    /// What items of a task carry, in the order of `indexes`. A source that can't be read is told with each item, and
    /// fails no list. Few are looked up at once, so that an export doesn't crowd out the runs.
    ///
    /// # Errors
    /// `Invalid` when a member is wanted that is no column of the items.
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
            "did you mean user_id? one of those that there are: user_id, email"
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
