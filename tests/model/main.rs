//! The pure core against naive twins, and against files that pin what must never change.

mod capacity;
mod checkpoint;
mod lifecycle;
