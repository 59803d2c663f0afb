//! Tasks that are made: from flags, from a file, again, over failures.

pub(crate) mod append;
pub(crate) mod apply;
pub(crate) mod create;
pub(crate) mod draft;
pub(crate) mod redrive;
pub(crate) mod warnings;
