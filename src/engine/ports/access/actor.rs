//! Who changes something.

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
    /// Whether they only try what would be: everything is checked and answered as without it, and nothing is kept.
    pub rehearses: bool,
}

impl Actor {
    /// Windrow itself, whom nobody told, and why.
    pub fn windrow(reason: Option<String>) -> Actor {
        Actor {
            name: "windrow".to_owned(),
            source: "system",
            reason,
            request_id: None,
            rehearses: false,
        }
    }
}
