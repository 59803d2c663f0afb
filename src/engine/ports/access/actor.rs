//! Who changes something, and whether the change is kept.

use windrow_core::life::Author;

/// The name of what Windrow does by itself.
pub const NODE_ACTOR: &str = "windrow";

/// Who changes something, for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// From the token; `cli` runs say the operating system's user.
    pub name: String,
    /// `cli`, `api`, `ui`, `business` or `system`.
    pub source: &'static str,
    /// Why, in their words.
    pub reason: Option<String>,
    /// The request that asked for it, for who looks in logs.
    pub request_id: Option<String>,
}

impl Actor {
    /// Windrow itself, whom nobody told, and why.
    pub fn windrow(reason: Option<String>) -> Actor {
        Actor {
            name: NODE_ACTOR.to_owned(),
            source: "system",
            reason,
            request_id: None,
        }
    }

    /// Who an audit entry names: `caller` gave the command, if anybody did.
    pub fn of(author: Author, caller: Option<&Actor>) -> Actor {
        match (author, caller) {
            (Author::Caller, Some(caller)) => caller.clone(),
            (Author::Windrow(reason), _) => Actor::windrow(reason.map(|reason| reason.to_string())),
            (Author::Caller, None) => Actor::windrow(None),
        }
    }

    /// A write of theirs that is kept.
    pub fn writes(self) -> Write {
        Write {
            actor: self,
            dry_run: false,
        }
    }
}

/// A write that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Who asks.
    pub actor: Actor,
    /// Whether nothing is kept: all is checked and answered as without it.
    pub dry_run: bool,
}
