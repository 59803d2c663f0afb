//! Statistics of calls and items, for people and for advice.

pub mod autopilot;
pub mod completion;
pub mod daily;
pub mod histogram;
pub mod permits;
pub mod series;
pub mod speed;
pub mod stall;
pub mod tally;
