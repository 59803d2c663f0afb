//! An item's row, read as far as a template asks for it. Numbers stay as they were written.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The members of an object.
pub(super) type Members<'a> = BTreeMap<String, &'a RawValue>;

/// See the module.
pub(super) struct Row<'a> {
    data: Option<&'a str>,
    members: OnceCell<Option<Members<'a>>>,
}

impl<'a> Row<'a> {
    pub(super) fn of(data: Option<&'a str>) -> Row<'a> {
        Row {
            data,
            members: OnceCell::new(),
        }
    }

    pub(super) fn data(&self) -> Option<&'a str> {
        self.data
    }

    /// The row's members; none where it is no object.
    pub(super) fn members(&self) -> Option<&Members<'a>> {
        let read = || self.data.and_then(|data| serde_json::from_str(data).ok());
        self.members.get_or_init(read).as_ref()
    }

    /// The JSON at the end of these names.
    pub(super) fn find(&self, path: &[String]) -> Option<&'a str> {
        let (first, rest) = path.split_first()?;
        let mut part = match self.members() {
            Some(members) => *members.get(first)?,
            None => child(self.data?, first)?,
        };
        for name in rest {
            part = child(part.get(), name)?;
        }
        Some(part.get())
    }
}

fn child<'a>(json: &'a str, name: &str) -> Option<&'a RawValue> {
    if json.trim_start().starts_with('[') {
        let is_number = name == "0" || (!name.starts_with('0') && name.bytes().all(|b| b.is_ascii_digit()));
        let at: usize = name.parse().ok().filter(|_| is_number)?;
        return serde_json::from_str::<Vec<&RawValue>>(json)
            .ok()?
            .get(at)
            .copied();
    }
    serde_json::from_str::<Members<'_>>(json).ok()?.get(name).copied()
}

/// A value as text: a JSON string's own characters, all else as it is written; none for `null`.
pub(super) fn text_of(json: &str) -> Option<String> {
    let json = json.trim();
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json).ok(),
        _ if json == "null" => None,
        _ => Some(json.to_owned()),
    }
}
