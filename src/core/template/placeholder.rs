//! What a placeholder names, and what its value is converted to.

use super::item::{Member, Roots};
use super::{Place, TemplateFault};

/// `{name}` or `{name:conversion}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    /// Whose value.
    pub source: Source,
    /// What it becomes first.
    pub conversion: Option<Conversion>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A column or member of the item's data, or a deeper part of it.
    Member(Member),
    /// The only value of a row that has one; the index where there are no rows.
    Only,
    /// The item's index.
    Index,
    /// The item's key: the same for each attempt.
    Key,
    /// The attempt, from 1 on.
    Attempt,
    /// A parameter of the task.
    Param(String),
    /// A secret.
    Secret(String),
}

/// What a value becomes before it is written. (Values of a CSV are texts.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// A number, or the number that a text writes.
    Number,
    /// True or false, or the one that a text writes.
    Boolean,
    /// The JSON that a text holds; any other value as its JSON.
    Json,
    /// A text; any other value as its JSON text.
    Text,
}

impl Conversion {
    /// All, by their words.
    pub const ALL: [(&'static str, Conversion); 4] = [
        ("number", Conversion::Number),
        ("boolean", Conversion::Boolean),
        ("json", Conversion::Json),
        ("text", Conversion::Text),
    ];
}

impl Placeholder {
    /// Reads what is between the braces. What follows the last colon is a conversion if it is one's word; else the colon is
    /// part of the name.
    pub(super) fn parse(inside: &str, place: Place, roots: &mut Roots) -> Result<Placeholder, TemplateFault> {
        let known = |word: &str| Conversion::ALL.into_iter().find(|(known, _)| *known == word);
        let cut = inside
            .rsplit_once(':')
            .and_then(|(name, word)| Some((name, known(word)?.1)));
        let (name, conversion) = match cut {
            Some((name, conversion)) => (name, Some(conversion)),
            None => (inside, None),
        };
        let source = match name {
            "" if place == Place::Argument => Source::Only,
            "index" => Source::Index,
            "key" => Source::Key,
            "attempt" => Source::Attempt,
            _ => named(name, roots)?,
        };
        match source {
            Source::Param(_) | Source::Secret(_) if place == Place::Argument => Err(TemplateFault(format!(
                "{{{inside}}} can't be an argument, which every user of the machine may see; pass it in a variable of the \
                 environment"
            ))),
            source => Ok(Placeholder { source, conversion }),
        }
    }
}

fn named(name: &str, roots: &mut Roots) -> Result<Source, TemplateFault> {
    if let Some(param) = name.strip_prefix("param.") {
        return Ok(Source::Param(param.to_owned()));
    }
    if let Some(secret) = name.strip_prefix("secret.") {
        return Ok(Source::Secret(secret.to_owned()));
    }
    Member::parse(name, roots).map(Source::Member)
}
