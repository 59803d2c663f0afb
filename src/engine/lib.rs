//! Engine that drives a task: the actors, and their ports to the outside as traits.

pub mod actors;
pub mod ports;
