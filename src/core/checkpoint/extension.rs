//! Extension section of a checkpoint: JSON with members that older programs ignore.

use serde::{Deserialize, Serialize};

use crate::execution::Found;
use crate::ids::WallMs;
use crate::pilot::Knowledge;

/// Members of the extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extension {
    /// Limits that the autopilot found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    autopilot: Option<Saved>,
}

/// Limits with the time at which they were found, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Saved {
    at: i64,
    #[serde(flatten)]
    knowledge: Knowledge,
}

impl Extension {
    /// Creates an extension.
    pub fn new(found: Option<Found>) -> Extension {
        let saved = |found: Found| Saved {
            at: found.at.0,
            knowledge: found.knowledge,
        };
        Extension {
            autopilot: found.map(saved),
        }
    }

    /// Returns the bytes of the section; none if there is nothing to say.
    pub fn bytes(&self) -> Vec<u8> {
        match self.autopilot {
            Some(_) => serde_json::to_vec(self).unwrap_or_default(),
            None => Vec::new(),
        }
    }

    /// Reads the section. One that can't be read says nothing: all of it can be found anew.
    pub fn of(bytes: &[u8]) -> Extension {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// Returns the limits that the autopilot found.
    pub fn found(&self) -> Option<Found> {
        self.autopilot.map(|saved| Found {
            knowledge: saved.knowledge,
            at: WallMs(saved.at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_back_and_what_is_unknown_is_left_out() {
        let knowledge = Knowledge {
            in_flight: 8.5,
            rate: Some(5.1),
            top: Some(5.2),
            base: None,
            refused_above: Some(20),
        };
        let found = Some(Found {
            knowledge,
            at: WallMs(1_800_000_000_000),
        });
        assert_eq!(Extension::of(&Extension::new(found).bytes()).found(), found);
        assert_eq!(Extension::new(None).bytes(), [0; 0]);
        for bytes in [
            &b""[..],
            b"{}",
            b"{\"later\":1}",
            b"\xff",
            b"{\"autopilot\":{\"at\":\"x\"}}",
        ] {
            assert_eq!(Extension::of(bytes).found(), None, "{bytes:?}");
        }
    }
}
