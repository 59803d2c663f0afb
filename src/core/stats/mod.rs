//! What is counted of calls and items, for people who watch and for advice.

pub mod completion;
pub mod daily;
pub mod histogram;
pub mod permits;
pub mod series;
pub mod speed;
pub mod stall;
pub mod tally;
