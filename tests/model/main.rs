//! The pure core against naive twins, and against files that pin what must never change.

mod checkpoint;
mod lifecycle;
