//! Commands that need no node.

pub mod db;
pub(crate) mod dev;
pub mod doctor;
pub(crate) mod init;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod trial;
pub mod version;
