//! Why a shard may not run here now, in words for people.

use super::Load;
use crate::ids::{ShardId, TaskId};

/// Why a shard may not run here now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Not now; when others have ended it fits.
    Full,
    /// Never: it needs more than the node's whole capacity.
    TooBig,
    /// It would fit, but this one is ahead in the line and would start later for it.
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
    /// Of a line that is full: the task that has booked most.
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

    /// The same of one that isn't in the line yet.
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

    /// Why it waits, in words that stay the same for as long as the reason does.
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
