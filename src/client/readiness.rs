//! What a node says of itself, asked where it answered nothing else in time.

use std::fmt;

use serde_json::Value;

/// The reason of a node that can't use its database.
const STORE: &str = "store";

/// Whether a node can take work, by its own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// What keeps it from it, as reasons and sentences; nothing where it is ready.
    reasons: Vec<(String, String)>,
}

impl Readiness {
    /// Reads an answer of `/readyz`; none where it is another one.
    pub(super) fn read(told: &Value) -> Option<Readiness> {
        told["ready"].as_bool()?;
        let text = |reason: &Value, member: &str| reason[member].as_str().unwrap_or_default().to_owned();
        let reasons = told["reasons"].as_array()?.iter();
        let reasons = reasons.map(|reason| (text(reason, "reason"), text(reason, "text")));
        Some(Readiness {
            reasons: reasons.collect(),
        })
    }

    /// Whether it can.
    pub fn is_ready(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Whether it can't use its database.
    pub fn lacks_its_database(&self) -> bool {
        self.reasons.iter().any(|(reason, _)| reason == STORE)
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ready() {
            return f.write_str("it says of itself that it is ready");
        }
        let texts: Vec<&str> = self.reasons.iter().map(|(_, text)| text.as_str()).collect();
        write!(f, "it says of itself: {}", texts.join("; "))
    }
}
