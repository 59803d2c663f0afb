//! What drives a task: the actors, and what they need from the world, as traits.

pub mod actors;
pub mod ports;
