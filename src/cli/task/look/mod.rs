//! Commands that inspect tasks.

pub(crate) mod carried;
pub(crate) mod columns;
pub mod explain;
pub(crate) mod export;
pub(crate) mod failures;
pub(crate) mod follow;
pub(crate) mod history;
pub(crate) mod item;
pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod results;
pub(crate) mod rows;
pub(crate) mod show;
