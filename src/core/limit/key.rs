//! Keys under which the shares of limits are stored: a business's own limit has the business's name, a named one a
//! prefix that no business name can have.

use std::fmt;
use windrow_words::business as say;

/// Prefix of named limits; no slug has a slash.
const NAMED: &str = "limit/";
/// Maximum number of named limits in the list of a task, and in that of a business.
pub const NAMED_MAX: usize = 4;
/// Maximum number of limits that a run is under: its business's own, its business's named ones and its own named
/// ones.
pub const JOINED_MAX: usize = 1 + 2 * NAMED_MAX;

/// Key of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKey<'a> {
    /// Own limit of this business.
    Business(&'a str),
    /// Limit with this name, which several businesses and tasks may use.
    Named(&'a str),
}

impl<'a> LimitKey<'a> {
    /// Parses a key as it is stored.
    pub fn parse(key: &'a str) -> LimitKey<'a> {
        key.strip_prefix(NAMED)
            .map_or(LimitKey::Business(key), LimitKey::Named)
    }

    /// Returns the key as it is stored.
    pub fn text(self) -> String {
        match self {
            LimitKey::Business(slug) => slug.to_owned(),
            LimitKey::Named(name) => format!("{NAMED}{name}"),
        }
    }
}

/// Writes the limit's name for people.
impl fmt::Display for LimitKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitKey::Business(slug) => say::own_limit(*slug).fmt(f),
            LimitKey::Named(name) => say::named_limit(*name).fmt(f),
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
