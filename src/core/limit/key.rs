//! What a limit is called where its parts are kept: a business's own has the business's name, a named one a prefix that no
//! name of a business can have.

use std::fmt;

/// No slug has a slash.
const NAMED: &str = "limit/";
/// The most named limits that one list may have: of a task, and of a business.
pub const NAMED_MAX: usize = 4;
/// The most limits that a run is under: its business's own, its business's named ones and its own.
pub const JOINED_MAX: usize = 1 + 2 * NAMED_MAX;

/// Which limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKey<'a> {
    /// The own one of this business.
    Business(&'a str),
    /// The one of this name, which several businesses and tasks may use.
    Named(&'a str),
}

impl<'a> LimitKey<'a> {
    /// Reads a key.
    pub fn parse(key: &'a str) -> LimitKey<'a> {
        key.strip_prefix(NAMED)
            .map_or(LimitKey::Business(key), LimitKey::Named)
    }

    /// The key, as it is stored.
    pub fn text(self) -> String {
        match self {
            LimitKey::Business(slug) => slug.to_owned(),
            LimitKey::Named(name) => format!("{NAMED}{name}"),
        }
    }
}

/// For people.
impl fmt::Display for LimitKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitKey::Business(slug) => write!(f, "the limit of {slug}"),
            LimitKey::Named(name) => write!(f, "the limit {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::business::is_slug;

    #[test]
    fn a_named_limit_is_never_taken_for_that_of_a_business() {
        for key in [
            LimitKey::Business("vendor-x"),
            LimitKey::Named("vendor-x"),
            LimitKey::Business("limit"),
        ] {
            assert_eq!(LimitKey::parse(&key.text()), key);
        }
        assert!(!is_slug(&LimitKey::Named("x").text()));
        assert_eq!(LimitKey::Named("vendor-x").to_string(), "the limit vendor-x");
    }
}
