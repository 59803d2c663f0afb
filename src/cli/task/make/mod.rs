//! Creation of tasks: from flags, from a file, as clones, and as redrives.

pub(crate) mod append;
pub(crate) mod apply;
pub(crate) mod create;
pub(crate) mod draft;
pub(crate) mod redrive;
pub(crate) mod warnings;
