//! Reasons why a shard may not run here now, with texts for people.

use windrow_words::{Message, capacity as say};

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
    fn text(&self) -> Message {
        match self.obstacle {
            Obstacle::Full => say::full(
                self.need.to_string(),
                self.free.to_string(),
                self.capacity.to_string(),
            ),
            _ => self.waiting_text(),
        }
    }

    /// Describes the refusal of a shard that isn't in the line yet.
    pub fn foretold(&self) -> Message {
        match (self.obstacle, self.holder) {
            (Obstacle::Full, Some(task)) => say::will_wait_for(
                task.to_string(),
                self.need.to_string(),
                self.free.to_string(),
                self.capacity.to_string(),
            ),
            (Obstacle::Behind(shard), _) => say::will_wait_behind(shard.task.to_string()),
            _ => say::will_wait(self.text()),
        }
    }

    /// Describes why the shard waits; the text stays the same for as long as the reason does.
    pub fn waiting_text(&self) -> Message {
        let (need, capacity) = (self.need.to_string(), self.capacity.to_string());
        match (self.obstacle, self.holder) {
            (Obstacle::Full, Some(task)) => say::taken_by(need, capacity, task.to_string()),
            (Obstacle::Full, None) => say::taken(need, capacity),
            (Obstacle::TooBig, _) => say::too_big(need, capacity),
            (Obstacle::Behind(shard), _) => say::behind(shard.task.to_string()),
            (Obstacle::Held, _) => say::held(),
            (Obstacle::NotHeld, _) => say::not_held(),
        }
    }
}
