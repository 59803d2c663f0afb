//! Who may do what: the roles and what each includes.

use serde::{Deserialize, Serialize};

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks.
    Viewer,
    /// Looks, and steers tasks: create, start, stop, change, redrive.
    Operator,
    /// All of it: businesses, tokens, nodes.
    Admin,
    /// A business: sees and steers the tasks of its own, tells that it is ready, writes data logs.
    Business,
    /// Reads datasets, all of them or those of one business, and nothing else.
    Reader,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 5] = [
        Role::Viewer,
        Role::Operator,
        Role::Admin,
        Role::Business,
        Role::Reader,
    ];

    /// The word in the API and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
            Role::Business => "business",
            Role::Reader => "reader",
        }
    }

    /// The role of a word; none when there is no such role.
    pub fn parse(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// Whether one that has this role may do what asks for `needed`. A business's own things ask for
    /// [`Role::Business`]; whose they are is a second question.
    pub fn allows(self, needed: Role) -> bool {
        let rank = |role| match role {
            Role::Viewer => 1,
            Role::Operator => 2,
            Role::Admin => 3,
            Role::Business | Role::Reader => 0,
        };
        match (self, needed) {
            (Role::Business | Role::Reader, needed) => needed == self,
            // Whoever looks at everything reads what was published.
            (_, Role::Reader) => true,
            // What a business may do to its own tasks, an operator may do to all.
            (_, Role::Business) => self.allows(Role::Operator),
            _ => rank(self) >= rank(needed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_allows_what_the_lower_ones_do_and_a_business_only_its_own() {
        let allowed = |role: Role| Role::ALL.map(|needed| role.allows(needed));
        assert_eq!(allowed(Role::Viewer), [true, false, false, false, true]);
        assert_eq!(allowed(Role::Operator), [true, true, false, true, true]);
        assert_eq!(allowed(Role::Admin), [true, true, true, true, true]);
        assert_eq!(allowed(Role::Business), [false, false, false, true, false]);
        assert_eq!(allowed(Role::Reader), [false, false, false, false, true]);
        assert!(
            Role::ALL
                .iter()
                .all(|role| Role::parse(role.as_str()) == Some(*role))
        );
    }
}
