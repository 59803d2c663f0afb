//! The client commands as people and scripts use them: the real program against a real node, exit codes, standard
//! output and error.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "in a test a panic is the report; real time bounds real processes"
)]

#[allow(dead_code, reason = "shared with the tests of the façade")]
#[path = "../api/business.rs"]
mod business;
#[allow(dead_code, reason = "shared by all tests of the client")]
mod program;
#[allow(dead_code, reason = "shared with the tests of the façade")]
#[path = "../api/sse.rs"]
mod sse;
#[allow(dead_code, reason = "shared with the tests of the façade")]
#[path = "../api/support.rs"]
mod support;

mod agree;
mod api;
mod audit;
mod biz;
mod biz_apply;
mod completions;
mod config;
mod contexts;
mod datasets;
mod db;
mod db_restore;
mod doctor;
mod explains;
mod faults;
mod files;
mod limits;
mod logs;
mod nodes;
mod open;
mod outages;
mod results;
mod schedules;
mod statistics;
mod task_look;
mod task_make;
mod task_steer;
mod tasks;
mod times;
mod tokens;
mod unconfirmed;
mod waits;
mod watches;
mod wire;
