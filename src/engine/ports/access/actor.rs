//! Author of a change, and whether the change is kept.

use windrow_core::life::Author;

/// Author of everything that Windrow does on its own.
pub const NODE_ACTOR: &str = "windrow";

/// Author of a change, for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Name from the token; `cli` runs use the operating system's user.
    pub name: String,
    /// Role of a person behind a proxy, with its origin, such as `operator by group ops`.
    pub role: Option<String>,
    /// Source of the change: `cli`, `api`, `ui`, `business` or `system`.
    pub source: &'static str,
    /// Reason for it, in the author's words.
    pub reason: Option<String>,
    /// Request that caused the change, for a search in the logs.
    pub request_id: Option<String>,
}

impl Actor {
    /// Returns Windrow itself as the author, acting without a command, with its reason.
    pub fn windrow(reason: Option<String>) -> Actor {
        Actor {
            name: NODE_ACTOR.to_owned(),
            role: None,
            source: "system",
            reason,
            request_id: None,
        }
    }

    /// Returns the author that an audit entry names: `caller` if the change was commanded by one.
    pub fn of(author: Author, caller: Option<&Actor>) -> Actor {
        match (author, caller) {
            (Author::Caller, Some(caller)) => caller.clone(),
            (Author::Windrow(reason), _) => Actor::windrow(reason.map(|reason| reason.to_string())),
            (Author::Caller, None) => Actor::windrow(None),
        }
    }

    /// Returns a write by this author that is kept.
    pub fn writes(self) -> Write {
        Write {
            actor: self,
            dry_run: false,
        }
    }
}

/// Write that someone requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Author of the write.
    pub actor: Actor,
    /// True if nothing is kept: everything is checked and answered as usual.
    pub dry_run: bool,
}
