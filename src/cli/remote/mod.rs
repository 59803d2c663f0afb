//! Commands that talk to a node, except those for tasks.

pub mod alert;
pub mod api;
pub mod audit;
pub mod biz;
pub mod cluster;
pub mod ctx;
pub mod dataset;
pub mod files;
pub mod limit;
pub mod node;
pub mod openapi;
pub mod schedule;
pub mod statistics;
pub mod token;
