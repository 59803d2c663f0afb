//! One item's values in the places of a template.

use super::row::{Row, text_of};
use super::{Argument, Part, Place};
use crate::ids::{Attempt, ItemIndex};

/// What an item carries.
#[derive(Clone, Copy, Debug)]
pub struct ItemFacts<'a> {
    /// Its position.
    pub index: ItemIndex,
    /// The same for every attempt and run.
    pub key: &'a str,
    /// Which attempt this is.
    pub attempt: Attempt,
    /// Its row as JSON; none where items are only counted.
    pub data: Option<&'a str>,
}

/// An item's value doesn't fit its place: the item is abandoned unsent, the others go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The row has no such member.
    #[error("the row has no {0}")]
    Missing(String),
    /// There is nothing to put there.
    #[error("{0} is null")]
    Null(String),
    /// `{}` of a row with several members, or none.
    #[error("{{}} is the only member of a row, and this one has {0}; name one: {{column}}")]
    NotOne(usize),
    /// `{}` of a row that is an array.
    #[error("{{}} is the only member of a row, and this one is an array; name one: {{/0}}")]
    Array,
    /// It could be taken for an option.
    #[error(
        "the value of {0} would begin an argument with \"-\" and be taken for an option; put ./ or -- before it, or allow it"
    )]
    Dash(String),
    /// No program can be given it.
    #[error("the value of {0} has a NUL character")]
    Nul(String),
    /// Two columns share a variable.
    #[error("several columns are called {0} as variables of a shell")]
    Ambiguous(String),
}

impl Argument {
    pub(super) fn fill(
        &self,
        item: &ItemFacts<'_>,
        row: &Row<'_>,
        may_begin_with_dash: bool,
    ) -> Result<String, Unfit> {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Value(place) => {
                    let value = place.value(item, row)?;
                    if value.contains('\0') {
                        return Err(Unfit::Nul(place.to_string()));
                    }
                    if !may_begin_with_dash && filled.is_empty() && value.starts_with('-') {
                        return Err(Unfit::Dash(place.to_string()));
                    }
                    filled.push_str(&value);
                }
            }
        }
        Ok(filled)
    }
}

impl Place {
    fn value(&self, item: &ItemFacts<'_>, row: &Row<'_>) -> Result<String, Unfit> {
        match self {
            Place::Index => Ok(item.index.0.to_string()),
            Place::Key => Ok(item.key.to_owned()),
            Place::Attempt => Ok(item.attempt.get().to_string()),
            Place::Only => match row.data() {
                None => Ok(item.index.0.to_string()),
                Some(data) => only(data, row),
            },
            Place::Member(path) => {
                let found = row.find(path).ok_or_else(|| Unfit::Missing(self.to_string()))?;
                text_of(found).ok_or_else(|| Unfit::Null(self.to_string()))
            }
        }
    }
}

/// The only member of a row; a row that is a text or a number is its own.
fn only(data: &str, row: &Row<'_>) -> Result<String, Unfit> {
    let json = match row.members() {
        Some(members) if members.len() == 1 => members.values().next().map_or("null", |only| only.get()),
        Some(members) => return Err(Unfit::NotOne(members.len())),
        None if data.trim_start().starts_with('[') => return Err(Unfit::Array),
        None => data,
    };
    text_of(json).ok_or_else(|| Unfit::Null("{}".to_owned()))
}
