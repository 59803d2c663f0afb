//! The program as people and scripts use it: real processes, real signals, exit codes, standard output and error.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod dev;
mod each;
mod failures;
mod init;
mod interrupt;
mod jobs;
mod limits;
mod many_sources;
mod outages;
mod pipes;
mod refusals;
mod requests;
mod requests_again;
mod results;
mod runs;
mod serve;
mod support;
mod topics;
mod trial;
mod unconfirmed;
