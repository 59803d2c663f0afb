//! What the actors of a node share: their context, their policy of restarts, the tree as people see it.

pub mod context;
pub mod handle;
pub mod lines;
pub mod new_ids;
pub mod policy;
pub mod tree;
