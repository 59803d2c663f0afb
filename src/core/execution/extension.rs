//! Extension section of a checkpoint: JSON with members that older programs ignore.

use serde::{Deserialize, Serialize};

use super::{Found, MetersSaved};
use crate::checkpoint::Corrupt;
use crate::ids::WallMs;
use crate::pilot::Knowledge;

/// Members of the extension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extension {
    /// Limits that the autopilot found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    autopilot: Option<Saved>,
    /// Use of the meters of the shard.
    #[serde(default, skip_serializing_if = "MetersSaved::is_empty")]
    pub meters: MetersSaved,
    /// True in a restored database: what was used since its backup is unknown. No run saves it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_restored: bool,
}

/// Limits with the time at which they were found, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Saved {
    at: i64,
    #[serde(flatten)]
    knowledge: Knowledge,
}

impl Extension {
    /// Creates the extension of a checkpoint.
    pub fn new(found: Option<Found>, meters: MetersSaved) -> Extension {
        let saved = |found: Found| Saved {
            at: found.at.0,
            knowledge: found.knowledge,
        };
        Extension {
            autopilot: found.map(saved),
            meters,
            is_restored: false,
        }
    }

    /// Returns the bytes of the section; none if there is nothing to say.
    pub fn bytes(&self) -> Vec<u8> {
        match *self == Extension::default() {
            true => Vec::new(),
            false => serde_json::to_vec(self).unwrap_or_default(),
        }
    }

    /// Reads the section.
    ///
    /// # Errors
    /// Fails if it is there and can't be read: what was spent must not be forgotten.
    pub fn of(bytes: &[u8]) -> Result<Extension, Corrupt> {
        match bytes {
            [] => Ok(Extension::default()),
            bytes => serde_json::from_slice(bytes).map_err(|_| Corrupt::Extension),
        }
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
    use crate::execution::MeterSaved;
    use crate::meter::amount::Amount;

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
        let meters = MetersSaved(vec![MeterSaved {
            unit: "eur".to_owned(),
            spent: Amount::ONE,
            ..MeterSaved::default()
        }]);
        let extension = Extension::new(found, meters);
        assert_eq!(extension.found(), found);
        assert_eq!(Extension::of(&extension.bytes()), Ok(extension));
        assert_eq!(Extension::new(None, MetersSaved::default()).bytes(), [0; 0]);
        for bytes in [&b""[..], b"{}", b"{\"later\":1}"] {
            assert_eq!(Extension::of(bytes), Ok(Extension::default()), "{bytes:?}");
        }
        for bytes in [&b"\xff"[..], b"{\"autopilot\":{\"at\":\"x\"}}", b"{\"meters\":7}"] {
            assert_eq!(Extension::of(bytes), Err(Corrupt::Extension), "{bytes:?}");
        }
    }
}
