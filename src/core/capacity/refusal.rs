//! Reasons why a shard may not run here now, with texts for people.

use super::Load;
use crate::ids::{ShardId, TaskId};

/// Reason why a shard may not run here now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Not enough is free now; the shard fits once others have ended.
    Full,
    /// The shard never fits: it needs more than the node's whole capacity.
    TooBig,
    /// The shard would fit, but would delay this one, which is ahead in the line.
    Behind(ShardId),
    /// The shard is booked already.
    Held,
    /// The shard isn't booked, so there is nothing to change.
    NotHeld,
}

/// Refusal to book a shard or to change its booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Refusal {
    /// Load that the shard needs.
    pub need: Load,
    /// Load that would fit now; for a change, including the shard's own booking.
    pub free: Load,
    /// Whole capacity of the node.
    pub capacity: Load,
    /// Reason for the refusal.
    pub obstacle: Obstacle,
    /// Task with the largest booking, if the node is full.
    pub holder: Option<TaskId>,
}

impl Refusal {
    fn text(&self) -> String {
        let Refusal {
            need,
            free,
            capacity,
            obstacle,
            ..
        } = self;
        match obstacle {
            Obstacle::Full => format!("it needs {need}, {free} of the node's {capacity} would fit now"),
            _ => self.waiting_text(),
        }
    }

    /// Describes the refusal of a shard that isn't in the line yet.
    pub fn foretold(&self) -> String {
        let Refusal {
            need,
            free,
            capacity,
            holder,
            ..
        } = self;
        match (self.obstacle, holder) {
            (Obstacle::Full, Some(task)) => format!(
                "it will wait behind {task}: it needs {need}, and {free} of the node's {capacity} are free now"
            ),
            (Obstacle::Behind(shard), _) => format!(
                "it will wait behind {}, which is ahead in the line and doesn't fit yet",
                shard.task
            ),
            _ => format!("it will wait: {}", self.text()),
        }
    }

    /// Describes why the shard waits; the text stays the same for as long as the reason does.
    pub fn waiting_text(&self) -> String {
        let Refusal {
            need,
            capacity,
            obstacle,
            holder,
            ..
        } = self;
        match obstacle {
            Obstacle::Full => {
                let most = holder.map(|task| format!(", most of it by {task}"));
                format!(
                    "it needs {need}; too much of the node's {capacity} is taken by other tasks{}",
                    most.unwrap_or_default()
                )
            }
            Obstacle::TooBig => {
                format!(
                    "it needs {need}, more than the node's whole capacity of {capacity}; lower its rate or raise node.capacity_rate"
                )
            }
            Obstacle::Behind(shard) => {
                format!(
                    "it waits behind {}, which is ahead in the line and doesn't fit yet",
                    shard.task
                )
            }
            Obstacle::Held => "it runs here already".to_owned(),
            Obstacle::NotHeld => "it doesn't run here".to_owned(),
        }
    }
}
