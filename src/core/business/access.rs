//! Roles and the permissions that each one includes.

use serde::{Deserialize, Serialize};

/// Role of a caller of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read access to everything.
    Viewer,
    /// Read access, and control of tasks: create, start, stop, change, redrive.
    Operator,
    /// Everything, including businesses, tokens and nodes.
    Admin,
    /// A business: reads and controls its own tasks, reports that it is ready, writes data logs.
    Business,
    /// Reads datasets, either all or those of one business, and nothing else.
    Reader,
}

impl Role {
    /// All roles, in declaration order.
    pub const ALL: [Role; 5] = [
        Role::Viewer,
        Role::Operator,
        Role::Admin,
        Role::Business,
        Role::Reader,
    ];

    /// Returns the name of the role in the API and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
            Role::Business => "business",
            Role::Reader => "reader",
        }
    }

    /// Returns the role with this name, or `None` if the name is unknown.
    pub fn parse(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// True if a caller with this role may perform an action that requires `needed`. Actions on objects of a business
    /// require [`Role::Business`]; ownership is checked separately.
    pub fn allows(self, needed: Role) -> bool {
        let rank = |role| match role {
            Role::Viewer => 1,
            Role::Operator => 2,
            Role::Admin => 3,
            Role::Business | Role::Reader => 0,
        };
        match (self, needed) {
            (Role::Business | Role::Reader, needed) => needed == self,
            // Any role that can read everything can read published datasets.
            (_, Role::Reader) => true,
            // An operator may do to any task what a business may do to its own.
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
