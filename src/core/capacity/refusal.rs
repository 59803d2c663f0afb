//! Why a shard may not run here now, in words for people.

use super::Load;
use crate::ids::ShardId;

/// Why a shard may not run here now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Not now; when others have ended it fits.
    Full,
    /// Never: it needs more than the node's whole capacity.
    TooBig,
    /// It would fit, but this one was passed over for too long and goes first.
    Behind(ShardId),
    /// It is booked already.
    Held,
    /// It isn't booked, so there is nothing to change.
    NotHeld,
}

/// A shard was not booked, or not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Refusal {
    /// What it needs.
    pub need: Load,
    /// What would fit now; for a change, what the shard holds included.
    pub free: Load,
    /// The node's whole capacity.
    pub capacity: Load,
    /// Why not.
    pub obstacle: Obstacle,
}

impl Refusal {
    fn text(&self) -> String {
        let Refusal {
            need,
            free,
            capacity,
            obstacle,
        } = self;
        match obstacle {
            Obstacle::Full => format!("it needs {need}, {free} of the node's {capacity} would fit now"),
            _ => self.waiting_text(),
        }
    }

    /// Why it waits, in words that stay the same for as long as the reason does.
    pub fn waiting_text(&self) -> String {
        let Refusal {
            need,
            capacity,
            obstacle,
            ..
        } = self;
        match obstacle {
            Obstacle::Full => {
                format!("it needs {need}; too much of the node's {capacity} is taken by other tasks")
            }
            Obstacle::TooBig => {
                format!(
                    "it needs {need}, more than the node's whole capacity of {capacity}; lower its rate or raise node.capacity_rate"
                )
            }
            Obstacle::Behind(shard) => format!("{shard} has waited longer and goes first"),
            Obstacle::Held => "it runs here already".to_owned(),
            Obstacle::NotHeld => "it doesn't run here".to_owned(),
        }
    }
}
