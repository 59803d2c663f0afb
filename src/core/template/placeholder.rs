//! Placeholders: the source of a value, and its conversion.

use super::item::{Member, Roots};
use super::{Place, TemplateFault};
use windrow_words::request as say;

/// Placeholder of the form `{name}` or `{name:conversion}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    /// Source of the value.
    pub source: Source,
    /// Conversion that is applied first, if any.
    pub conversion: Option<Conversion>,
}

/// Source of a placeholder's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Column or member of the item's data, or a deeper part of it.
    Member(Member),
    /// Only value of a row that has one; the index if there are no rows.
    Only,
    /// Index of the item.
    Index,
    /// Key of the item: the same for each attempt.
    Key,
    /// Attempt number, starting at 1.
    Attempt,
    /// Parameter of the task with this name.
    Param(String),
    /// Secret with this name.
    Secret(String),
}

/// Conversion of a value before it is written. (Values of a CSV are texts.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// To a number, also from a text that contains one.
    Number,
    /// To true or false, also from a text that contains one.
    Boolean,
    /// To JSON: that in a text, or any other value as its JSON.
    Json,
    /// To text; any other value becomes its JSON text.
    Text,
}

impl Conversion {
    /// All conversions with their names.
    pub const ALL: [(&'static str, Conversion); 4] = [
        ("number", Conversion::Number),
        ("boolean", Conversion::Boolean),
        ("json", Conversion::Json),
        ("text", Conversion::Text),
    ];
}

impl Placeholder {
    /// Parses the text between the braces. The word after the last colon is a conversion if it is the name of one;
    /// otherwise the colon is part of the name.
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
            Source::Param(_) | Source::Secret(_) if place == Place::Argument => {
                Err(TemplateFault(say::public_argument(format!("{{{inside}}}"))))
            }
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
